//! What is wrong with a file, and where.

use std::fmt;

use hocket_program::program::check::{Checked, Fault};

/// One thing that is wrong with a file that could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its kind, a stable name: those of [`hocket_program::program::check::Code`], and of the format's own rules.
    pub code: &'static str,
    /// Line, from 1; 0 if no line is to blame.
    pub line: u64,
    /// Where in the file: `gpu 0, tb 2, step 1`. May be empty.
    pub place: String,
    /// What is wrong, in words.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        write!(f, "{} ({})", self.detail, self.code)
    }
}

/// What was found of a file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Verdict {
    /// What is wrong with it, the first hundred.
    pub findings: Vec<Finding>,
    /// How many faults there are.
    pub count: u64,
    /// What is to be known though it is not wrong: which runtimes load the file, and which do not.
    pub notes: Vec<String>,
    /// Whether the contents at the end were checked.
    pub contents_known: bool,
}

impl Verdict {
    /// Most findings that are kept.
    pub const KEPT: usize = 100;

    /// Returns whether nothing is wrong.
    pub fn is_right(&self) -> bool {
        self.count == 0
    }

    /// Adds a finding.
    pub fn add(&mut self, finding: Finding) {
        self.count += 1;
        if self.findings.len() < Self::KEPT {
            self.findings.push(finding);
        }
    }

    /// Adds what the check of the program found; `locate` gives line and place of each fault.
    pub fn take(&mut self, checked: &Checked, locate: impl Fn(&Fault) -> (u64, String)) {
        for fault in checked.faults.kept() {
            let (line, place) = locate(fault);
            self.add(Finding {
                code: fault.code.name(),
                line,
                place,
                detail: fault.detail.clone(),
            });
        }
        self.count += checked.faults.count() - checked.faults.kept().len() as u64;
        self.contents_known = checked.contents_known;
    }
}
