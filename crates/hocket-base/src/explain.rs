//! What an error can tell besides its text.

use std::borrow::Cow;
use std::error::Error;

/// An error whose text is `origin: field: why; remedy`, of which all but `why` may be left out.
///
/// Whoever shows the error by its parts need not take the text apart: the field may be an option of a command
/// or a key of a file by another name, and the origin known to the reader already.
pub trait Explain: Error {
    /// Returns the object that is at fault, with which the text begins: a file, a node, an algorithm.
    fn origin(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// Returns the argument that is wrong, with which the text goes on; `None` where the text names none.
    fn field(&self) -> Option<&'static str> {
        None
    }

    /// Returns what would be right, with which the text ends.
    fn remedy(&self) -> Option<Cow<'_, str>> {
        None
    }

    /// Returns what is wrong: the text without the other parts.
    fn why(&self) -> String {
        let text = self.to_string();
        let after = |text: &str, part: &str| {
            let rest = text.strip_prefix(part)?.strip_prefix(": ")?;
            Some(rest.to_owned())
        };
        let before = |text: &str, part: &str| {
            let rest = text.strip_suffix(part)?.strip_suffix("; ")?;
            Some(rest.to_owned())
        };
        let why = self.origin().and_then(|origin| after(&text, &origin));
        let why = why.unwrap_or(text);
        let why = self
            .field()
            .and_then(|field| after(&why, field))
            .unwrap_or(why);
        let remedy = self.remedy();
        remedy
            .and_then(|remedy| before(&why, &remedy))
            .unwrap_or(why)
    }
}
