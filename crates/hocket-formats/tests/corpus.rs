//! Every input that fuzzing kept, run once, and some that are drawn.

#[path = "../../../fuzz/src/kept.rs"]
mod kept;
#[path = "../../../fuzz/src/nccl.rs"]
mod nccl;

use std::fs;
use std::path::Path;

use proptest::prelude::*;

#[test]
fn the_corpus_of_every_target_passes() {
    kept::all_pass(&nccl::TARGETS);
}

/// The inputs of a target.
fn inputs(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(name);
    let files = fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    let read = paths
        .iter()
        .map(|path| fs::read(path).expect("it can be read"));
    read.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn no_change_breaks_a_door(
        target in 0..nccl::TARGETS.len(),
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let (name, run) = nccl::TARGETS[target];
        let all = inputs(name);
        let mut bytes = which.get(&all).clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        run(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        run(&bytes);
    }
}
