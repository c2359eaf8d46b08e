//! What is wrong with a file: where, why, and what would be right.

use hocket_base::explain::Explain;

/// A file that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[explain(origin("{}", place(*line)), why("{why}"), remedy("{remedy}"))]
pub struct FormatError {
    line: Option<u64>,
    why: String,
    remedy: String,
}

impl FormatError {
    /// Returns a fault of the whole file.
    pub fn new(why: impl Into<String>) -> Self {
        Self {
            line: None,
            why: in_a_line(&why.into()),
            remedy: String::new(),
        }
    }

    /// Returns a fault at a line, from 1.
    pub fn at(line: u64, why: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            ..Self::new(why)
        }
    }

    /// Returns what would be right; nothing if it is empty.
    #[must_use]
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        let remedy = in_a_line(&remedy.into());
        Self { remedy, ..self }
    }

    /// Returns the line that is at fault.
    pub fn line(&self) -> Option<u64> {
        self.line
    }

    /// Returns what is wrong.
    pub fn why(&self) -> &str {
        &self.why
    }
}

fn place(line: Option<u64>) -> String {
    line.map(|line| format!("line {line}")).unwrap_or_default()
}

/// What a file says may be quoted in a message, line breaks and all; a message is one line, and not a long one.
fn in_a_line(text: &str) -> String {
    const LONGEST: usize = 300;
    let is_plain = |c: char| !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}');
    let plain = text.chars().map(|c| if is_plain(c) { c } else { ' ' });
    let mut line: String = plain.take(LONGEST + 1).collect();
    if line.chars().count() > LONGEST {
        line.pop();
        line.push_str("...");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line() {
        let fault = FormatError::at(3, "a\nb\u{2028}c").remedy("d\te");
        assert_eq!(fault.to_string(), "line 3: a b c; d e");
        let long = FormatError::new("x".repeat(1000)).to_string();
        assert_eq!(long.len(), 303);
    }
}
