//! Files that others wrote, for tests: those in `tests/data`, and those of a folder that an environment variable names.

use std::path::{Path, PathBuf};

/// Files with an ending in a folder of `tests/data`, and in the folder that a variable names, with those below them.
pub(crate) fn files(variable: &str, shipped: &str, ending: &str) -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let mut folders = vec![data.join(shipped)];
    folders.extend(std::env::var_os(variable).map(PathBuf::from));
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|each| each == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "{shipped} has files");
    found
}
