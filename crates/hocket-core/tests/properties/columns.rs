//! A plan taken apart, to be changed and put together again.

use hocket_core::plan::{Columns, Plan};

/// The columns of a plan.
pub fn columns(plan: &Plan) -> Columns {
    Columns {
        chunk: plan.chunk().to_vec(),
        chunk_count: plan.chunk_count().to_vec(),
        src: plan.src().to_vec(),
        dst: plan.dst().to_vec(),
        op: plan.op().to_vec(),
        wait: plan.wait().to_vec(),
        path: plan.path().to_vec(),
    }
}
