//! Every input that fuzzing kept, run once, and some that are drawn.

#![allow(
    unreachable_pub,
    reason = "the crate of the fuzz targets has these modules too"
)]

#[path = "../../../fuzz/src/files.rs"]
mod files;
#[path = "../../../fuzz/src/kept.rs"]
mod kept;
#[path = "../../../fuzz/src/nccl.rs"]
mod nccl;

use std::sync::LazyLock;

use proptest::prelude::*;

static XML: LazyLock<Vec<u8>> = LazyLock::new(|| pair("msccl"));
static JSON: LazyLock<Vec<u8>> = LazyLock::new(|| pair("mscclpp"));
/// The inputs of a target, each with its name.
type Kept = Vec<(String, Vec<u8>)>;

static NCCL: LazyLock<Vec<Kept>> =
    LazyLock::new(|| nccl::TARGETS.map(|(name, _)| kept::inputs(name)).into());

#[test]
fn the_corpus_of_every_target_passes() {
    kept::all_pass(&nccl::TARGETS);
    kept::all_pass(&files::TARGETS);
}

/// The file of two ranks in a format.
fn pair(format: &str) -> Vec<u8> {
    let mut inputs = kept::inputs(format).into_iter();
    inputs
        .find(|(name, _)| name == "pair")
        .expect("it is kept")
        .1
}

/// A text in which one character after another is replaced.
fn changed(text: &[u8], changes: &[(prop::sample::Index, u8)]) -> Vec<u8> {
    let mut bytes = text.to_vec();
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
        let (_, run) = nccl::TARGETS[target];
        let (_, mut bytes) = which.get(&NCCL[target]).clone();
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
        files::runtimes::msccl(&changed(&XML, &changes));
        files::runtimes::mscclpp(&changed(&JSON, &changes));
    }
}
