//! Inputs that fuzzing kept, for the tests of the crates whose doors they are for.

use std::fs;
use std::path::Path;

/// A door: what it is called, and what runs it.
type Target = (&'static str, fn(&[u8]));

/// Runs every input of each door once.
///
/// # Panics
/// Where a door does, or has hardly any input.
pub fn all_pass(targets: &[Target]) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, run) in targets {
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
