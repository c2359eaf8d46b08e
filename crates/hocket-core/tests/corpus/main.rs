//! Every input that fuzzing kept, run once: no engine is needed.

#![allow(
    unreachable_pub,
    clippy::cast_lossless,
    clippy::cast_possible_truncation,
    reason = "the crate of the fuzz targets has these modules too"
)]

#[path = "../../../../fuzz/src/lib.rs"]
mod doors;
#[path = "../../../../fuzz/src/kept.rs"]
mod kept;

#[test]
fn the_corpus_of_every_target_passes() {
    kept::all_pass(&doors::TARGETS);
}
