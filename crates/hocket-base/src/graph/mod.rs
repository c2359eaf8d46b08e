//! Tools for graphs that know nothing of networks: nodes are numbers from 0, arcs are what the caller says.
//!
//! | file | what it is |
//! | --- | --- |
//! | `csr` | compressed adjacency: [`Lists`], made by counting sort ([`Counts`]) |
//! | `dead_ends` | nodes that no way between others needs: [`dead_ends`] |
//! | `shortest` | shortest paths, with any cost and tie-break, until any node: [`ShortestPaths`] |
//! | `maxflow` | maximum flows and least cuts, many on one network: [`FlowNetwork`] |
//! | `min_cost` | flows of least cost, way by way: [`CheapestWays`] |

mod csr;
mod dead_ends;
mod maxflow;
mod min_cost;
mod shortest;

pub use csr::{Counts, Lists, Offset, Slots};
pub use dead_ends::dead_ends;
pub use maxflow::{FlowNetwork, UNLIMITED};
pub use min_cost::CheapestWays;
pub use shortest::{FirstFound, ShortestPaths};
