//! What a time comes to: algbw, busbw and the gap to a lower bound.
//!
//! Times are whole picoseconds, rounded up. A time of 0 ps, of a collective that moves nothing or of a bound
//! that nothing holds up, therefore counts as 1 ps in every quotient here, and each of them is finite.

use crate::collective::Collective;
use crate::units::Time;

const INSTANT: Time = Time::from_ps(1);

/// The rates that a collective's time comes to, in bytes per second.
///
/// # Source
/// nccl-tests, doc/PERFORMANCE.md.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Size / time.
    pub algbw: f64,
    /// algbw times the kind's factor; see [`crate::collective::CollectiveKind::bus_factor`].
    pub busbw: f64,
}

impl Rates {
    /// Returns the rates of a collective that takes `time`, in which 0 ps count as 1 ps.
    pub fn new(collective: &Collective, time: Time) -> Self {
        let algbw = collective.size() as f64 / time.max(INSTANT).as_seconds();
        let factor = collective.kind().bus_factor(collective.npus().len());
        Self {
            algbw,
            busbw: algbw * factor,
        }
    }
}

/// Returns how far a time is above a lower bound: time / bound - 1, where 0 ps count as 1 ps.
///
/// # Examples
/// ```
/// use hocket_plan::report::gap;
/// use hocket_base::units::Time;
///
/// assert_eq!(gap(Time::from_ns(3), Time::from_ns(2)), 0.5);
/// assert_eq!(gap(Time::ZERO, Time::ZERO), 0.0);
/// ```
pub fn gap(time: Time, bound: Time) -> f64 {
    let quotient = time.max(INSTANT).as_ps() as f64 / bound.max(INSTANT).as_ps() as f64;
    quotient - 1.0
}
