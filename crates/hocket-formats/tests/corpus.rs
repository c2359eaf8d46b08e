//! Every input that fuzzing kept, run once, and changed ones.

#[path = "../../../fuzz/src/files.rs"]
mod files;
#[path = "../../../fuzz/src/kept.rs"]
mod kept;

use proptest::prelude::*;

const XML: &str = include_str!("../../../fuzz/corpus/msccl/pair");
const JSON: &str = include_str!("../../../fuzz/corpus/mscclpp/pair");

#[test]
fn the_corpus_of_every_target_passes() {
    kept::all_pass(&files::TARGETS);
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
    fn no_change_breaks_the_doors(changes in changes()) {
        files::runtimes::msccl(&changed(XML, &changes));
        files::runtimes::mscclpp(&changed(JSON, &changes));
    }
}
