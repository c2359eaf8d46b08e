//! XML as a list of elements with their lines, of which nothing is expanded and everything is counted.
//!
//! Document types are refused, and with them every entity but the five of XML itself, so that a small file stays
//! small. Text between tags is refused too: the formats that are read here have none.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::error::FormatError;

/// Bytes of a file at most.
pub const LARGEST: usize = 64 << 20;
/// Elements within one another at most; NCCL's own reader has no limit, a dump 20.
const DEEPEST: usize = 64;
/// Elements in all, and attributes of one.
const MOST: usize = 1 << 20;
const MOST_ATTRIBUTES: usize = 256;

/// An element and what it contains, by number.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    /// Its tag.
    pub name: String,
    /// Names and values, in order.
    pub attributes: Vec<(String, String)>,
    /// Numbers of the elements within it.
    pub children: Vec<usize>,
    /// Where it begins, from 1.
    pub line: u64,
}

impl Element {
    /// Returns the value of an attribute.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut all = self.attributes.iter();
        all.find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the value of an attribute that there must be.
    ///
    /// # Errors
    /// A fault at the element's line.
    pub(crate) fn text(&self, name: &str) -> Result<&str, FormatError> {
        self.get(name).ok_or_else(|| {
            let why = format!("<{}> has no {name}", self.name);
            FormatError::at(self.line, why).remedy(format!("write {name}=\"...\" in it"))
        })
    }

    /// Returns a number that there must be, in some range.
    ///
    /// # Errors
    /// A fault at the element's line.
    pub(crate) fn whole(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Result<i64, FormatError> {
        self.number_in(name, self.text(name)?, range)
    }

    /// Returns a number where there is one, in some range.
    ///
    /// # Errors
    /// A fault at the element's line.
    pub(crate) fn whole_or(
        &self,
        name: &str,
        otherwise: i64,
        range: std::ops::RangeInclusive<i64>,
    ) -> Result<i64, FormatError> {
        self.get(name)
            .map_or(Ok(otherwise), |text| self.number_in(name, text, range))
    }

    fn number_in(
        &self,
        name: &str,
        text: &str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Result<i64, FormatError> {
        let read = text.trim().parse().ok();
        read.filter(|value| range.contains(value)).ok_or_else(|| {
            let why = format!(
                "{name} of <{}> is {}, no whole number",
                self.name,
                quoted(text)
            );
            FormatError::at(self.line, why).remedy(format!(
                "give one of {} to {}",
                range.start(),
                range.end()
            ))
        })
    }

    /// Returns a number with a fraction that there must be, from 0 to 10^6.
    ///
    /// # Errors
    /// A fault at the element's line.
    pub(crate) fn real(&self, name: &str) -> Result<f64, FormatError> {
        let text = self.text(name)?;
        let read: Option<f64> = text.trim().parse().ok();
        read.filter(|value| (0.0..=1e6).contains(value))
            .ok_or_else(|| {
                let why = format!("{name} of <{}> is {}, no number", self.name, quoted(text));
                FormatError::at(self.line, why).remedy("give one of 0 to 1000000")
            })
    }
}

/// All elements of a file, the outermost first.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    elements: Vec<Element>,
}

impl Document {
    /// Reads a file.
    ///
    /// # Errors
    /// A fault with the line, for what is no XML, has text or entities, or is larger than [`LARGEST`].
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        if bytes.len() > LARGEST {
            let why = format!("it has {} bytes", bytes.len());
            return Err(FormatError::new(why).remedy(format!("such files have at most {LARGEST}")));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = line_of(bytes, error.valid_up_to());
            FormatError::at(line, "it is not text in UTF-8")
                .remedy("give the file as NCCL wrote it")
        })?;
        let mut reading = Reading {
            bytes,
            elements: Vec::new(),
            open: Vec::new(),
            counted: (0, 1),
        };
        reading.run(text)?;
        Ok(Self {
            elements: reading.elements,
        })
    }

    /// Returns the outermost element.
    pub(crate) fn root(&self) -> &Element {
        &self.elements[0]
    }

    /// Returns the elements within one, in order.
    pub(crate) fn within<'a>(&'a self, element: &'a Element) -> impl Iterator<Item = &'a Element> {
        element.children.iter().map(|&child| &self.elements[child])
    }
}

/// Returns a value in quotation marks, cut where it is long.
pub(crate) fn quoted(text: &str) -> String {
    let word: String = text.chars().take(40).collect();
    match word.len() < text.len() {
        true => format!("{word:?}..."),
        false => format!("{word:?}"),
    }
}

fn line_of(bytes: &[u8], at: usize) -> u64 {
    1 + bytes[..at.min(bytes.len())]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count() as u64
}

struct Reading<'a> {
    bytes: &'a [u8],
    elements: Vec<Element>,
    open: Vec<usize>,
    /// A position, and its line: lines are counted once.
    counted: (usize, u64),
}

impl Reading<'_> {
    fn line(&mut self, at: usize) -> u64 {
        let (from, line) = self.counted;
        let at = at.clamp(from, self.bytes.len());
        let more = self.bytes[from..at].iter();
        let line = line + more.filter(|&&byte| byte == b'\n').count() as u64;
        self.counted = (at, line);
        line
    }

    fn run(&mut self, text: &str) -> Result<(), FormatError> {
        let mut reader = Reader::from_str(text);
        loop {
            let at = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
            let event = reader.read_event().map_err(|error| {
                let at = usize::try_from(reader.error_position()).unwrap_or(usize::MAX);
                let line = line_of(self.bytes, at);
                FormatError::at(line, format!("it is no XML: {error}"))
                    .remedy("give the file whole, as it was written")
            })?;
            let line = self.line(at);
            match event {
                Event::Start(tag) => {
                    let number = self.element(&tag, line)?;
                    self.open.push(number);
                    if self.open.len() > DEEPEST {
                        let why = format!("elements are {} deep", self.open.len());
                        return Err(FormatError::at(line, why).remedy(format!("{DEEPEST} at most")));
                    }
                }
                Event::Empty(tag) => {
                    self.element(&tag, line)?;
                }
                Event::End(_) => {
                    self.open.pop();
                }
                Event::Text(text) if text.trim_ascii().is_empty() => {}
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
                Event::DocType(_) => {
                    return Err(FormatError::at(
                        line,
                        "it declares a document type, and so perhaps entities",
                    )
                    .remedy("remove the line with <!DOCTYPE"));
                }
                Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => {
                    return Err(FormatError::at(line, "there is text between tags")
                        .remedy("such files consist of tags and comments alone"));
                }
                Event::Eof => break,
            }
        }
        if let Some(&number) = self.open.last() {
            let element = &self.elements[number];
            let why = format!("<{}> is never closed", element.name);
            return Err(FormatError::at(element.line, why).remedy("the end of the file is missing"));
        }
        match self.elements.is_empty() {
            true => {
                Err(FormatError::new("it has no elements").remedy("give a file that NCCL wrote"))
            }
            false => Ok(()),
        }
    }

    fn element(&mut self, tag: &BytesStart<'_>, line: u64) -> Result<usize, FormatError> {
        let number = self.elements.len();
        if number == MOST {
            return Err(FormatError::at(
                line,
                format!("there are more than {MOST} elements"),
            ));
        }
        let name = tag.name().as_ref().to_owned();
        match self.open.last() {
            Some(&parent) => self.elements[parent].children.push(number),
            None if number > 0 => {
                let why = format!("<{name}> follows the end of <{}>", self.elements[0].name);
                return Err(FormatError::at(line, why).remedy("a file has one outermost element"));
            }
            None => {}
        }
        let mut attributes: Vec<(String, String)> = Vec::new();
        for attribute in tag.attributes() {
            let wrong = |why: String| FormatError::at(line, format!("<{}>: {why}", quoted(&name)));
            let attribute = attribute.map_err(|error| wrong(error.to_string()))?;
            let key = attribute.key.as_ref().to_owned();
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value
                .map_err(|error| wrong(error.to_string()))?
                .into_owned();
            if attributes.len() == MOST_ATTRIBUTES {
                return Err(wrong(format!(
                    "it has more than {MOST_ATTRIBUTES} attributes"
                )));
            }
            attributes.push((key, value));
        }
        self.elements.push(Element {
            name,
            attributes,
            children: Vec::new(),
            line,
        });
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        Document::parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn elements_have_their_lines() {
        let text = "<!-- c -->\n<a x=\"1\">\n  <b y='2'/>\n\n  <b y=\"&lt;3\"></b>\n</a>\n";
        let read = Document::parse(text.as_bytes()).unwrap();
        let root = read.root();
        assert_eq!((root.name.as_str(), root.line), ("a", 2));
        let within: Vec<_> = read.within(root).map(|b| (b.line, b.get("y"))).collect();
        assert_eq!(within, [(3, Some("2")), (5, Some("<3"))]);
        assert_eq!(root.whole("x", 0..=4).unwrap(), 1);
        assert!(root.whole("x", 2..=4).is_err());
    }

    #[test]
    fn what_is_no_such_file_is_refused_with_its_line() {
        assert!(wrong("").contains("no elements"));
        assert!(wrong("<a>\n<b></a>").starts_with("line 2: it is no XML"));
        assert!(wrong("<a>\n<b>\n").contains("line 2: <b> is never closed"));
        assert!(wrong("<a/>\n<b/>").contains("line 2: <b> follows the end of <a>"));
        assert!(wrong("<a>\ntext</a>").contains("text between tags"));
        assert!(wrong("<a x=\"&boom;\"/>").contains("line 1"));
        let bomb = "<!DOCTYPE a [<!ENTITY b \"bbbb\">]>\n<a>&b;</a>";
        assert!(wrong(bomb).contains("document type"));
        let deep = format!("{}{}", "<a>".repeat(100), "</a>".repeat(100));
        assert!(wrong(&deep).contains("65 deep"));
        assert!(Document::parse(b"<a \xff/>").is_err());
    }
}
