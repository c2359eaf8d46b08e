//! Anything may be said to the machines; every input that fuzzing kept, run once, and some that are drawn.

#[path = "../../../../fuzz/src/service.rs"]
mod service;

use std::fs;
use std::path::Path;

use proptest::prelude::*;

#[test]
fn the_corpus_of_every_target_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, run) in service::TARGETS {
        let folder = corpus.join(name);
        let inputs = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
        let mut count = 0;
        for input in inputs {
            let path = input.expect("a file").path();
            // Seen only where the test fails.
            println!("{}", path.display());
            run(&fs::read(&path).expect("it can be read"));
            count += 1;
        }
        assert!(count > 10, "{name} has only {count} inputs");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn no_bytes_break_a_door(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        service::control::run(&bytes);
        service::store::run(&bytes);
    }
}
