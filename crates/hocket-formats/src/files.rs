//! Files of a folder that an environment variable names, for tests on files that are not part of this repository.

use std::path::PathBuf;

/// Files with an ending in the folder and those below it; none where the variable is not set.
pub(crate) fn files(variable: &str, ending: &str) -> Vec<PathBuf> {
    let Some(root) = std::env::var_os(variable) else {
        return Vec::new();
    };
    let mut folders = vec![PathBuf::from(root)];
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
    found
}
