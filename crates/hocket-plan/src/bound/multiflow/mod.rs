//! Data of one NPU for one other: over which links it goes, so that the busiest link has least to do.
//!
//! An all-to-all has n (n - 1) blocks, each from one NPU to one other, and no block is copied or summed on its way.
//! What it can come to is a multicommodity flow: how blocks are spread over ways decides how long the busiest link
//! sends, and no plan is quicker than the best such flow. The steps, a file each:
//!
//! | file | what it does |
//! | --- | --- |
//! | `demand` | what goes from whom to whom |
//! | `shares` | that, cut into parts that each take one path |
//! | `price` | what a byte costs on each link: the busier the link, the more |
//! | `cheapest_path` | the cheapest path of one part |
//! | `route` | a way for each part, and again for those that could go cheaper, until the busiest link has least |
//! | `spread` | the bytes of each way, in proportion |
//! | `fluid` | bytes for each destination by arc, for the prices alone |
//!
//! # Source
//! Shahrokhi, Matula, The maximum concurrent flow problem, 1990 (prices, and the bound that they prove).

#[cfg(test)]
mod tests;

mod demand;
mod shares;
mod price;
mod cheapest_path;
mod route;
mod spread;
mod fluid;

pub use demand::{Flow, flows};
pub(super) use fluid::Fluid;
pub(super) use route::work;
pub use route::{Routing, Unroutable};
pub use shares::Shares;
pub use spread::{MOST_FLOWS, Spread};
