//! Every input that fuzzing kept, run once, and some that are drawn.

#![allow(
    unreachable_pub,
    clippy::cast_lossless,
    clippy::cast_possible_truncation,
    reason = "the crate of the fuzz targets has these modules too"
)]

#[path = "../../../fuzz/src/host.rs"]
mod host;
#[path = "../../../fuzz/src/kept.rs"]
mod kept;

use proptest::prelude::*;

#[test]
fn the_corpus_of_every_target_passes() {
    kept::all_pass(&host::TARGETS);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn no_bytes_break_the_door(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        host::settings::run(&bytes);
    }
}
