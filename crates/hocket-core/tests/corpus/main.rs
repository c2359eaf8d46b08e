//! Every input that fuzzing kept, run once: no engine is needed.

#[path = "../../../../fuzz/src/lib.rs"]
mod doors;

use std::fs;
use std::path::Path;

#[test]
fn the_corpus_of_every_target_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, run) in doors::TARGETS {
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
