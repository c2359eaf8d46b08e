//! What is wrong with files and options at start.

use std::fmt::Display;

use hocket_base::explain::Explain;

/// Why a service cannot start: `where: what is wrong; what would be right`, in one line.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[explain(origin("{origin}"), why("{why}"), remedy("{remedy}"))]
pub struct SetupError {
    /// The file, or the option.
    pub origin: String,
    /// What is wrong.
    pub why: String,
    /// What would be right; empty where `why` says it.
    pub remedy: String,
}

impl SetupError {
    /// Returns an error in three parts.
    pub fn new(
        origin: impl Into<String>,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            origin: origin.into(),
            why: why.into(),
            remedy: remedy.into(),
        }
    }

    /// Returns an error whose text says what would be right, and where it was met.
    pub fn caused(origin: impl Into<String>, error: impl Display) -> Self {
        Self::new(origin, error.to_string(), "")
    }
}

/// Returns what is wrong with what was typed, in one line: what stands before the usage in what is said of it.
pub fn typed_wrong(said: &str) -> String {
    let lines = said
        .lines()
        .take_while(|line| !line.starts_with("Usage"))
        .map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

/// Returns the cause that says most.
pub fn deepest(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
