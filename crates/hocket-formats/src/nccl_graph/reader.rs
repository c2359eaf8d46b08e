//! NCCL's reader of files of graphs, which is not one of XML in general: what stops it, or leads it astray.
//!
//! # Source
//! NVIDIA NCCL 2.30.7, `src/graph/xml.cc`: `xmlGetChar`, `xmlGetValue`, `xmlGetToken`, `xmlGetNode`, `xmlLoadSub`.

use super::rules::{GraphFault, MOST_WITHIN};

/// Characters of a name or value at most: `MAX_STR_LEN` less its end.
const LONGEST: usize = 254;
/// `MAX_ATTR_COUNT`.
const MOST_ATTRIBUTES: usize = 16;

/// Returns what NCCL's own reader stops at first, or takes for something else, in text that is XML.
pub fn reader_fault(text: &str) -> Option<GraphFault> {
    let mut reader = Reader {
        rest: text,
        line: 1,
        children: vec![0],
    };
    while let Some(stopped) = reader.tag() {
        if let Err(fault) = stopped {
            return Some(fault);
        }
    }
    None
}

struct Reader<'a> {
    rest: &'a str,
    line: u64,
    /// Elements within each that is open, the file first.
    children: Vec<usize>,
}

type Stopped = Result<(), GraphFault>;

impl Reader<'_> {
    fn wrong(&self, code: &'static str, why: &str, remedy: &str) -> GraphFault {
        GraphFault::new(code, self.line, why, remedy)
    }

    /// Goes on by some bytes.
    fn skip(&mut self, bytes: usize) {
        let (gone, rest) = self.rest.split_at(bytes);
        self.line += gone.bytes().filter(|&byte| byte == b'\n').count() as u64;
        self.rest = rest;
    }

    /// Returns the next tag; nothing at the end of the file.
    fn tag(&mut self) -> Option<Stopped> {
        let blank = self.rest.len() - self.rest.trim_start_matches([' ', '\n', '\r']).len();
        self.skip(blank);
        let first = self.rest.chars().next()?;
        if first == '\u{feff}' {
            let remedy = "write the file without a byte order mark";
            return Some(Err(self.wrong("mark", "it begins with a mark", remedy)));
        }
        if first == '\t' {
            let remedy = "NCCL's reader takes spaces and line ends alone";
            return Some(Err(self.wrong("tab", "a tab stands between tags", remedy)));
        }
        if first != '<' {
            let remedy = "NCCL's reader takes nothing there";
            return Some(Err(self.wrong("text", "text stands between tags", remedy)));
        }
        if self.rest.starts_with("<?") || (self.rest.starts_with("<!") && !self.is_comment()) {
            let remedy = "begin with <graphs>: NCCL's reader takes this for an element";
            return Some(Err(self.wrong("prolog", "it has a prolog of XML", remedy)));
        }
        if self.is_comment() {
            let end = self.rest.find("-->").map_or(self.rest.len(), |at| at + 3);
            self.skip(end);
            return Some(Ok(()));
        }
        let Some(end) = self.rest.find('>') else {
            let remedy = "give the file whole, as it was written";
            return Some(Err(self.wrong("cut", "a tag has no end", remedy)));
        };
        let tag = &self.rest[1..end];
        let stopped = self.inside(tag);
        let (is_closing, is_single) = (tag.starts_with('/'), tag.ends_with('/'));
        if is_closing {
            self.children.pop();
        } else {
            if let Some(count) = self.children.last_mut() {
                *count += 1;
                if *count > MOST_WITHIN {
                    let remedy = format!("NCCL's reader has room for {MOST_WITHIN}");
                    let why = format!("an element contains more than {MOST_WITHIN} others");
                    return Some(Err(self.wrong("children", &why, &remedy)));
                }
            }
            if !is_single {
                self.children.push(0);
            }
        }
        self.skip(end + 1);
        Some(stopped)
    }

    fn is_comment(&self) -> bool {
        self.rest.starts_with("<!--")
    }

    /// Returns what stands between `<` and `>`.
    fn inside(&self, tag: &str) -> Stopped {
        if tag.contains('\n') || tag.contains('\r') {
            let remedy = "NCCL's reader wants a tag and its attributes on one line";
            return Err(self.wrong("line_break", "a tag goes over several lines", remedy));
        }
        if tag.contains('\t') {
            let remedy =
                "separate attributes by one space: NCCL's reader takes a tab for a part of a name";
            return Err(self.wrong("tab_within", "a tag has a tab", remedy));
        }
        let mut rest = tag.split_once(' ').map_or("", |(_, rest)| rest);
        let name = tag.split([' ', '/']).next().unwrap_or("");
        let mut count = 0;
        if name.len() > LONGEST {
            return Err(self.long());
        }
        while let Some((key, after)) = rest.split_once('=') {
            if key.ends_with(' ') || !after.starts_with(['"', '\'']) {
                let remedy = "write name=\"value\": NCCL's reader reads an empty value";
                return Err(self.wrong("spaces", "a space stands beside '='", remedy));
            }
            let quote = &after[..1];
            let value = after[1..].split(quote).next().unwrap_or("");
            if key.len() > LONGEST || value.len() > LONGEST {
                return Err(self.long());
            }
            count += 1;
            if count > MOST_ATTRIBUTES {
                let why = format!("a tag has more than {MOST_ATTRIBUTES} attributes");
                let remedy = "NCCL's reader leaves out the others without a word";
                return Err(self.wrong("attributes", &why, remedy));
            }
            rest = after.get(value.len() + 2..).unwrap_or("");
        }
        Ok(())
    }

    fn long(&self) -> GraphFault {
        let why = format!("a name or value has more than {LONGEST} characters");
        self.wrong("long", &why, "NCCL's reader has room for no more")
    }
}

#[cfg(test)]
mod tests {
    use super::reader_fault;

    const HEAD: &str = "<graphs version=\"1\">\n";

    fn code(text: &str) -> Option<(&'static str, u64)> {
        reader_fault(text).map(|fault| (fault.code, fault.line))
    }

    #[test]
    fn each_trap_is_named_with_its_line() {
        let file = |tag: &str| format!("{HEAD}{tag}\n</graphs>\n");
        assert_eq!(code(&file("  <!-- a > b -->\n<gpu dev='0x0' />")), None);
        assert_eq!(
            code(&format!("<?xml version=\"1.0\"?>{HEAD}")),
            Some(("prolog", 1))
        );
        assert_eq!(code(&format!("\u{feff}{HEAD}")), Some(("mark", 1)));
        assert_eq!(code(&file("\t<gpu/>")), Some(("tab", 2)));
        assert_eq!(code(&file("stray <gpu/>")), Some(("text", 2)));
        assert_eq!(code(&file("<gpu\n dev=\"0x0\"/>")), Some(("line_break", 2)));
        assert_eq!(code(&file("<gpu\tdev=\"0x0\"/>")), Some(("tab_within", 2)));
        assert_eq!(code(&file("<gpu dev =\"0x0\"/>")), Some(("spaces", 2)));
        assert_eq!(code(&file("<gpu dev= \"0x0\"/>")), Some(("spaces", 2)));
        let long = "7".repeat(255);
        assert_eq!(
            code(&file(&format!("<gpu dev=\"{long}\"/>"))),
            Some(("long", 2))
        );
        let many: String = (0..17).map(|i| format!(" a{i}=\"0\"")).collect();
        assert_eq!(
            code(&file(&format!("<gpu{many}/>"))),
            Some(("attributes", 2))
        );
        assert_eq!(
            code(&file(&"<gpu/>\n".repeat(641))),
            Some(("children", 642))
        );
    }
}
