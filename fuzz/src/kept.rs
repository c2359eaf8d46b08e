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
    for (name, run) in targets {
        let inputs = inputs(name);
        assert!(inputs.len() > 10, "{name} has only {} inputs", inputs.len());
        for (input, bytes) in inputs {
            // Seen only where the test fails.
            println!("{name}/{input}");
            run(&bytes);
        }
    }
}

/// The inputs of a target by name, out of a zip archive that stores them as they are.
///
/// # Panics
/// Where there is no such archive, or what it has is compressed.
pub fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(format!("{target}.zip"));
    let bytes = fs::read(&archive).unwrap_or_else(|error| panic!("{archive:?}: {error}"));
    let number = |at: usize, length: usize| {
        let digits = bytes[at..at + length].iter().rev();
        digits.fold(0, |sum, &byte| sum << 8 | usize::from(byte))
    };
    let mut found = Vec::new();
    let mut at = 0;
    // Each file follows a header, and the list of all follows the last.
    while bytes[at..].starts_with(b"PK\x03\x04") {
        assert_eq!(number(at + 8, 2), 0, "{archive:?} is compressed");
        let name = at + 30;
        let start = name + number(at + 26, 2) + number(at + 28, 2);
        let end = start + number(at + 18, 4);
        let input = String::from_utf8_lossy(&bytes[name..name + number(at + 26, 2)]);
        found.push((input.into_owned(), bytes[start..end].to_vec()));
        at = end;
    }
    found
}
