//! What an error can tell besides its text.

use std::error::Error;
use std::fmt;

/// Derives [`Explain`], [`Display`](fmt::Display) and [`Error`] from the parts of the text, each declared once.
///
/// A struct, or each variant of an enum, has an attribute `explain` with these keys:
///
/// | key | what it is |
/// | --- | --- |
/// | `why("...", ...)` | what is wrong, as `format!` takes it; the text names the fields of the case, unnamed ones `_0`, `_1` |
/// | `origin("...", ...)`, `field("...", ...)`, `remedy("...", ...)` | the other parts, each of which may be left out |
/// | `of(parts)` | the [`Parts`] of an error in the case; keys beside it replace them one by one |
/// | `from` | `?` makes the case of its only, unnamed field; without `why`, the case has the parts of the field |
///
/// # Examples
/// ```
/// use hocket_base::explain::{Explain, Parts};
/// use hocket_base::progress::Interrupted;
///
/// #[derive(Debug, Explain)]
/// enum ReadError {
///     #[explain(origin("{file}"), why("has no line {line}"), remedy("give 1 to {}", lines.len()))]
///     NoLine { file: String, line: usize, lines: Vec<String> },
///     #[explain(from)]
///     Interrupted(Interrupted),
/// }
///
/// let error = ReadError::NoLine { file: "a.txt".to_owned(), line: 2, lines: vec![String::new()] };
/// assert_eq!(error.to_string(), "a.txt: has no line 2; give 1 to 1");
/// assert_eq!(error.parts(), Parts::new("has no line 2").origin("a.txt").remedy("give 1 to 1"));
/// assert_eq!(ReadError::from(Interrupted).parts(), Interrupted.parts());
/// ```
pub use hocket_derive::Explain;

/// An error that has its text in parts.
///
/// Whoever shows the error by its parts need not take the text apart: the field may be an option of a command
/// or a key of a file by another name, and the origin known to the reader already.
pub trait Explain: Error {
    /// Returns the parts of the text.
    fn parts(&self) -> Parts;
}

/// The parts of an error's text, which is `origin: field: why; remedy`: all but `why` may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The object that is at fault: a file, a node, an algorithm.
    pub origin: Option<String>,
    /// The argument that is wrong.
    pub field: Option<String>,
    /// What is wrong.
    pub why: String,
    /// What would be right.
    pub remedy: Option<String>,
}

impl Parts {
    /// Returns parts that say what is wrong, and nothing else.
    pub fn new(why: impl Into<String>) -> Self {
        Self {
            origin: None,
            field: None,
            why: why.into(),
            remedy: None,
        }
    }

    /// Names the object that is at fault; none if the text is empty.
    #[must_use]
    pub fn origin(self, origin: impl Into<String>) -> Self {
        let origin = some(origin);
        Self { origin, ..self }
    }

    /// Names the argument that is wrong; none if the text is empty.
    #[must_use]
    pub fn field(self, field: impl Into<String>) -> Self {
        let field = some(field);
        Self { field, ..self }
    }

    /// Says what would be right; nothing if the text is empty.
    #[must_use]
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        let remedy = some(remedy);
        Self { remedy, ..self }
    }
}

fn some(text: impl Into<String>) -> Option<String> {
    Some(text.into()).filter(|text| !text.is_empty())
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in [&self.origin, &self.field].into_iter().flatten() {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.why)?;
        self.remedy
            .iter()
            .try_for_each(|remedy| write!(f, "; {remedy}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Explain)]
    enum Fault {
        #[explain(field("{_0}"), why("is {_1:?}"), remedy("{}", _2))]
        Field(&'static str, String, &'static str),
        #[explain(why("stays"))]
        Plain,
    }

    #[derive(Debug, Explain)]
    #[explain(of(fault.parts()), origin("node {id}"))]
    struct Node {
        id: u32,
        fault: Box<Fault>,
    }

    #[derive(Debug, Explain)]
    enum Wrapped {
        #[explain(from)]
        Node(Node),
    }

    #[test]
    fn a_text_is_made_of_its_parts() {
        let fault = Fault::Field("size", "x".to_owned(), "give 1");
        assert_eq!(fault.to_string(), "size: is \"x\"; give 1");
        let parts = Parts::new("is \"x\"").field("size").remedy("give 1");
        assert_eq!(fault.parts(), parts);
        assert_eq!(Fault::Plain.parts(), Parts::new("stays"));
        let without = Fault::Field("size", String::new(), "");
        assert_eq!(without.parts().remedy, None);
    }

    #[test]
    fn what_wraps_an_error_keeps_its_parts() {
        let fault = || Fault::Field("size", "x".to_owned(), "give 1");
        let wrapped = Wrapped::from(Node {
            id: 3,
            fault: Box::new(fault()),
        });
        assert_eq!(wrapped.parts(), fault().parts().origin("node 3"));
        assert_eq!(wrapped.to_string(), "node 3: size: is \"x\"; give 1");
        assert!(
            wrapped.source().is_none(),
            "it has said all that its source says"
        );
    }
}
