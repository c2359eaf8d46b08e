//! Every input that fuzzing kept, run once, and some that are drawn.

#[path = "../../../fuzz/src/files.rs"]
mod files;
#[path = "../../../fuzz/src/kept.rs"]
mod kept;
#[path = "../../../fuzz/src/nccl.rs"]
mod nccl;

use std::fs;
use std::path::Path;

use proptest::prelude::*;

const XML: &str = include_str!("../../../fuzz/corpus/msccl/pair");
const JSON: &str = include_str!("../../../fuzz/corpus/mscclpp/pair");

#[test]
fn the_corpus_of_every_target_passes() {
    kept::all_pass(&nccl::TARGETS);
    kept::all_pass(&files::TARGETS);
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

/// A text in which one character after another is replaced.
fn changed(text: &str, changes: &[(prop::sample::Index, u8)]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for (at, byte) in changes {
        let at = at.index(bytes.len());
        bytes[at] = *byte;
    }
    bytes
}

fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    let byte = prop::sample::select(b"0123456789-ioscpr\"<>{}[],: ".to_vec());
    prop::collection::vec((any::<prop::sample::Index>(), byte), 1..4)
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

    #[test]
    fn no_change_breaks_the_doors(changes in changes()) {
        files::runtimes::msccl(&changed(XML, &changes));
        files::runtimes::mscclpp(&changed(JSON, &changes));
    }
}
