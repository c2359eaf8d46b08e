//! Simulated times and figures of plans of the algorithms, against closed forms and slow oracles.

mod dimensions;
mod flows;
mod packets;
