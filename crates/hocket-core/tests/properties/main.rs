//! Properties that hold for any algorithm on any connected topology.
//!
//! `PROPTEST_CASES` sets how many cases each property gets (64 by default).

mod flows;
mod fluids;
mod controller;
mod equal_paths;
mod garbage;
mod mutations;
mod networks;
mod packets;
mod one_way;
mod oracle;
mod plans;
mod routers;
mod routing;
mod switches;
mod synthesis;
