//! What is wrong with a file: where, why, and what would be right.

/// A file that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct FormatError {
    line: Option<u64>,
    why: String,
    remedy: Option<String>,
}

impl FormatError {
    /// Returns a fault of the whole file.
    pub fn new(why: impl Into<String>) -> Self {
        Self {
            line: None,
            why: in_a_line(&why.into()),
            remedy: None,
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
        let remedy = Some(in_a_line(&remedy.into())).filter(|text| !text.is_empty());
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

    fn sentence(&self) -> String {
        let place = self.line.map(|line| format!("line {line}: "));
        let remedy = self.remedy.as_ref().map(|remedy| format!("; {remedy}"));
        let [place, remedy] = [place, remedy].map(Option::unwrap_or_default);
        format!("{place}{}{remedy}", self.why)
    }
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

#[cfg(feature = "core")]
impl hocket_base::explain::Explain for FormatError {
    fn origin(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.line.map(|line| format!("line {line}").into())
    }

    fn remedy(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.remedy.as_deref().map(Into::into)
    }

    fn why(&self) -> String {
        self.why.clone()
    }
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
