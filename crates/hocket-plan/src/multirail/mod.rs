//! Multi-rail scheduling: which way each chunk of a collective goes through the dimensions of a product
//! topology, and when.
//!
//! A [`Rail`] is a dimension as a scheduler sees it, a [`Lane`] is a chunk with an order of rails.
//! [`fixed_order`], [`themis()`] and [`optimal()`] choose orders; [`simulate`] runs them at dimension
//! fidelity, which fixes the order in which each rail serves them: a [`Schedule`].
//! `algorithms::schedule` of hocket-synth makes schedules by name, and plans of them.
//!
//! # Examples
//! ```
//! use hocket_plan::collective::CollectiveKind;
//! use hocket_plan::multirail::{Model, Policy, Rail, Schedule, themis};
//! use hocket_topology::build::{self, RingWays};
//! use hocket_base::units::{Bandwidth, Time};
//!
//! let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
//! let ring = build::ring(4, gigabyte, Time::ZERO, RingWays::Both)?;
//! let rails = Rail::of(&ring);
//! assert_eq!(rails[0].bandwidth, 2_000_000_000); // both ways round
//!
//! let lanes = themis(&rails, CollectiveKind::AllReduce, 4_000_000, 1);
//! let policy = Policy::SmallestFirst;
//! let made = Schedule::new(CollectiveKind::AllReduce, rails, lanes, policy, Model::default());
//! // 2 x 3/4 of 4 MB at 2 GB/s.
//! assert_eq!(Time::from_ps(made.timeline.finish), Time::from_ns(3_000_000));
//! # Ok::<(), hocket_topology::TopologyError>(())
//! ```

mod balance;
mod dimension;
mod dispatch;
mod lane;
pub mod networks;
mod optimal;
mod rail;
mod report;
mod schedule;
mod server;
mod themis;

pub use balance::{Balance, balance};
pub use dimension::{Model, Policy, Served, Timeline, simulate};
pub use dimension::{Operation, Port, Tasks, servers};
pub use lane::{Lane, Stage};
pub use optimal::{EFFORT, Problem, optimal};
pub use rail::is_too_long;
pub use rail::{Rail, Uneven};
pub use report::{schedule_activity, schedule_report};
pub use schedule::{BadLanes, PARTS, Schedule};
pub use server::{Event, Load, Next, Servers};
pub use themis::{fixed_order, themis};

#[cfg(test)]
pub(crate) mod tests;
