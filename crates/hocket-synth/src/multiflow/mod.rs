//! Plans of routed flows ([`crate::bound::multiflow`]): when each part takes each link, so that the busiest links never
//! wait, and parts, ways and timetable as a plan.
//!
//! # Source
//! Leighton, Maggs, Rao, Packet routing and job-shop scheduling in O(congestion + dilation) steps, 1994 (that a timetable
//! need hardly be longer than the busiest link sends).

mod plan;
mod timetable;

pub(crate) use plan::{Legs, Service, plan, whole, windowed};
