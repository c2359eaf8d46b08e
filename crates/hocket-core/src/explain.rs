//! What an error can tell besides its text.

use std::error::Error;

/// An error whose text is `field: why; remedy`, of which the first and the last part may be left out.
///
/// Whoever shows the error by its parts need not take the text apart: the field may be an option of a command
/// or a key of a file by another name.
pub trait Explain: Error {
    /// The argument that is wrong, with which the text begins; `None` where the text names none.
    fn field(&self) -> Option<&'static str> {
        None
    }

    /// What would be right, with which the text ends; `None` where that depends on the input.
    fn remedy(&self) -> Option<&'static str> {
        None
    }

    /// What is wrong: the text without field and remedy.
    fn why(&self) -> String {
        let text = self.to_string();
        let after = |field| text.strip_prefix(field)?.strip_prefix(": ");
        let why = self.field().and_then(after).unwrap_or(&text);
        let before = |remedy| why.strip_suffix(remedy)?.strip_suffix("; ");
        self.remedy().and_then(before).unwrap_or(why).to_owned()
    }
}
