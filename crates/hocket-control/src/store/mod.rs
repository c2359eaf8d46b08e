//! What outlives a restart of the controller: registered jobs, and links that operators said have failed. Flows
//! do not: hosts bring them back.
//!
//! ```text
//! claim-EPOCH                 a controller of this epoch is active, and none before it
//! snapshot-EPOCH-GENERATION   all there is, written beside and renamed
//! log-EPOCH-GENERATION        what came after it, record by record
//! ```
//!
//! A generation is never written again once something went wrong with it: the next one starts with a snapshot, for
//! pages whose sync failed may be taken for clean. A controller claims the folder for its epoch before it reads it,
//! and begins with a generation of that epoch. One that was deposed and does not know yet writes where nobody
//! reads, and finds out before it says that anything is kept.

mod codec;
mod disk;
mod frame;
mod log;
mod record;

pub use disk::{Disk, DiskError};
pub use frame::{Frames, Tail, frames};
pub use log::{OnDamage, Recovered, Store, StoreError, last_epoch};
pub use record::{Record, Saved, SavedJob};
