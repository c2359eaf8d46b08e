//! Every input that fuzzing kept, run once, and some that are drawn.

#[path = "../../../fuzz/src/host.rs"]
mod host;

use std::fs;
use std::path::Path;

use proptest::prelude::*;

#[test]
fn the_corpus_of_every_target_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, run) in host::TARGETS {
        let inputs = fs::read_dir(corpus.join(name))
            .expect("a folder")
            .map(|input| input.expect("a file").path());
        let inputs: Vec<_> = inputs.collect();
        assert!(inputs.len() > 10, "{name} has only {} inputs", inputs.len());
        for path in inputs {
            // Seen only where the test fails.
            println!("{}", path.display());
            run(&fs::read(&path).expect("it can be read"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn no_bytes_break_the_door(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        host::settings::run(&bytes);
    }
}
