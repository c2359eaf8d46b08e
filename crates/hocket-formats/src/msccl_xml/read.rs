//! Text to [`Algo`].

use std::borrow::Cow;

use hocket_base::id::fit;
use hocket_program::program::{Buffer, Span};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::{Algo, At, COLLECTIVES, Gpu, LineNumber, Step, Tb};
use crate::FormatError;

/// Largest file that is read, in bytes. The largest published one has 670 kB.
const MAX_BYTES: usize = 1 << 30;
/// Elements that may lie in one another; those of the format have four levels.
const MAX_DEPTH: usize = 64;
/// Names of collectives that a runtime knows and that have no kind here.
const OTHER_COLLECTIVES: [&str; 4] = ["custom", "alltoallv", "send", "recv"];

/// Reads an algorithm.
///
/// # Errors
/// [`FormatError`] for what no runtime would load, with the line: text that is not XML, a document type or entities, an
/// element or attribute that is missing or has no value that it can have.
pub fn read(text: &str) -> Result<Algo, FormatError> {
    if text.len() > MAX_BYTES {
        let why = format!("has {} bytes", text.len());
        return Err(FormatError::new(why).remedy(format!("the most that is read is {MAX_BYTES}")));
    }
    let mut parser = Parser {
        reader: Reader::from_str(text),
        text,
        counted: 0,
        line: 1,
        algo: None,
        depth: Vec::new(),
    };
    parser.run()
}

/// What an open element is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Algo,
    Gpu,
    Tb,
    Step,
    /// One that the runtimes skip, with what lies in it.
    Other,
}

struct Parser<'a> {
    reader: Reader<&'a [u8]>,
    text: &'a str,
    /// Bytes whose lines have been counted, and the line that the next lies in.
    counted: usize,
    line: u64,
    algo: Option<Algo>,
    depth: Vec<Level>,
}

impl Parser<'_> {
    fn run(&mut self) -> Result<Algo, FormatError> {
        loop {
            let before = fit(self.reader.buffer_position());
            let event = self.reader.read_event();
            self.count_lines(before);
            let event = match event {
                Ok(event) => event,
                Err(error) => {
                    let at: usize = fit(self.reader.error_position());
                    self.count_lines(at.max(self.counted));
                    return self.fail(format!("is not XML: {error}"), "");
                }
            };
            match event {
                Event::Start(start) => self.open(&start, false)?,
                Event::Empty(start) => self.open(&start, true)?,
                Event::End(_) => {
                    self.depth.pop();
                }
                Event::Text(text) if text.trim().is_empty() => {}
                Event::Comment(_) => {}
                Event::Eof => break,
                Event::Decl(_) => {
                    return self.fail(
                        "has an XML declaration, which the runtimes cannot read",
                        "begin with <algo",
                    );
                }
                Event::DocType(_) => {
                    return self.fail(
                        "has a document type, which the runtimes cannot read",
                        "take it out, with its entities",
                    );
                }
                _ => {
                    return self.fail(
                        "has text or an entity between elements",
                        "leave only elements and comments",
                    );
                }
            }
        }
        if !self.depth.is_empty() {
            return self.fail("ends within an element", "close every element");
        }
        match self.algo.take() {
            Some(algo) if algo.gpus.len() == algo.ranks as usize => Ok(algo),
            Some(algo) => {
                let (found, ranks) = (algo.gpus.len(), algo.ranks);
                self.fail(
                    format!("has {found} <gpu> elements, and ngpus is {ranks}"),
                    "give one for each rank",
                )
            }
            None => self.fail("has no <algo> element", "begin with <algo"),
        }
    }

    fn fail<T>(&self, why: impl Into<String>, remedy: &str) -> Result<T, FormatError> {
        Err(FormatError::at(self.line, why).remedy(remedy))
    }

    fn count_lines(&mut self, until: usize) {
        let until = until.min(self.text.len());
        if until > self.counted {
            let bytes = &self.text.as_bytes()[self.counted..until];
            self.line += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
            self.counted = until;
        }
    }

    fn open(&mut self, start: &BytesStart<'_>, is_empty: bool) -> Result<(), FormatError> {
        let level = self.level(start)?;
        match level {
            Level::Algo => self.algo = Some(self.algo(start)?),
            Level::Gpu => {
                let gpu = self.gpu(start)?;
                self.made().gpus.push(gpu);
            }
            Level::Tb => {
                let tb = self.tb(start)?;
                self.last_gpu().blocks.push(tb);
            }
            Level::Step => {
                let step = self.step(start)?;
                let blocks = &mut self.last_gpu().blocks;
                blocks.last_mut().expect("in a tb").steps.push(step);
            }
            Level::Other => {}
        }
        if !is_empty {
            if self.depth.len() == MAX_DEPTH {
                return self.fail(
                    format!("has more than {MAX_DEPTH} elements in one another"),
                    "",
                );
            }
            self.depth.push(level);
        }
        Ok(())
    }

    /// Returns what an element is, from its name and the element that it lies in.
    fn level(&self, start: &BytesStart<'_>) -> Result<Level, FormatError> {
        let name = start.name();
        let inside = self.depth.last().copied();
        match (inside, name.as_ref()) {
            (None, "algo") if self.algo.is_none() => Ok(Level::Algo),
            (None, "algo") => self.fail("has a second <algo> element", "give one a file"),
            (None, other) => self.fail(
                format!("begins with <{}>, not with <algo>", shown(other)),
                "",
            ),
            (Some(Level::Algo), "gpu") => Ok(Level::Gpu),
            (Some(Level::Gpu), "tb") => Ok(Level::Tb),
            (Some(Level::Tb), "step") => Ok(Level::Step),
            (Some(_), known @ ("algo" | "gpu" | "tb" | "step")) if inside != Some(Level::Other) => {
                self.fail(format!("has a <{known}> element where none belongs"), "")
            }
            _ => Ok(Level::Other),
        }
    }

    fn made(&mut self) -> &mut Algo {
        self.algo.as_mut().expect("in an algo")
    }

    fn last_gpu(&mut self) -> &mut Gpu {
        self.made().gpus.last_mut().expect("in a gpu")
    }

    fn algo(&self, start: &BytesStart<'_>) -> Result<Algo, FormatError> {
        let of = Attributes::of(self, start, "algo")?;
        let protocol = of.one_of("proto", |name| name.parse().ok())?;
        let collective = of.text("coll")?.to_owned();
        let known = COLLECTIVES.iter().any(|(name, _)| *name == collective);
        if !known && !OTHER_COLLECTIVES.contains(&collective.as_str()) {
            return self.fail(
                format!("<algo> has coll=\"{}\", which no runtime knows", shown(&collective)),
                "allreduce, allgather, reducescatter, alltoall, broadcast, reduce, gather and scatter are known",
            );
        }
        Ok(Algo {
            name: of.text("name")?.to_owned(),
            protocol,
            channels: of.number("nchannels", 1, 1024)?,
            chunks: of.number("nchunksperloop", 1, i64::from(Span::MAX_CHUNKS) - 1)?,
            ranks: of.number("ngpus", 1, 1 << 16)?,
            collective,
            in_place: of.flag("inplace")?,
            out_of_place: of
                .has("outofplace")
                .then(|| of.flag("outofplace"))
                .transpose()?,
            min_bytes: of.optional("minBytes", 0, i64::MAX)?,
            max_bytes: of.optional("maxBytes", 0, i64::MAX)?,
            threads: of.optional("nthreads", 0, 1024)?,
            gpus: Vec::new(),
        })
    }

    fn gpu(&self, start: &BytesStart<'_>) -> Result<Gpu, FormatError> {
        let of = Attributes::of(self, start, "gpu")?;
        let next = self.algo.as_ref().map_or(0, |algo| algo.gpus.len());
        let ranks = self.algo.as_ref().map_or(0, |algo| algo.ranks);
        let id: u32 = of.number("id", 0, i64::from(ranks) - 1)?;
        if id as usize != next {
            return self.fail(
                format!("<gpu> has id=\"{id}\", and the next rank is {next}"),
                "give each rank once, from 0 on",
            );
        }
        let most = i64::from(Span::MAX_CHUNKS) - 1;
        let mut sizes = [0; 3];
        for (size, name) in sizes.iter_mut().zip(["i_chunks", "o_chunks", "s_chunks"]) {
            *size = of.number(name, 0, most)?;
        }
        Ok(Gpu {
            sizes,
            blocks: Vec::new(),
            line: LineNumber(fit(self.line)),
        })
    }

    fn tb(&self, start: &BytesStart<'_>) -> Result<Tb, FormatError> {
        let of = Attributes::of(self, start, "tb")?;
        let gpu = self.algo.as_ref().and_then(|algo| algo.gpus.last());
        let next = gpu.map_or(0, |gpu| gpu.blocks.len());
        let id: u32 = of.number("id", 0, 4096)?;
        if id as usize != next {
            return self.fail(
                format!("<tb> has id=\"{id}\", and the next is {next}"),
                "number the blocks of a rank from 0 on",
            );
        }
        let peer = |name: &str| -> Result<Option<u32>, FormatError> {
            Ok(u32::try_from(of.integer(name, -1, 1 << 20)?).ok())
        };
        Ok(Tb {
            send: peer("send")?,
            recv: peer("recv")?,
            channel: of.number("chan", 0, 1024)?,
            steps: Vec::new(),
            line: LineNumber(fit(self.line)),
        })
    }

    fn step(&self, start: &BytesStart<'_>) -> Result<Step, FormatError> {
        let of = Attributes::of(self, start, "step")?;
        let at = |buffer: &str, offset: &str| -> Result<At, FormatError> {
            Ok(At {
                buffer: of.one_of(buffer, |name| match name {
                    "i" => Some(Buffer::Input),
                    "o" => Some(Buffer::Output),
                    "s" => Some(Buffer::Scratch),
                    _ => None,
                })?,
                offset: of.number(offset, -1, i64::from(Span::MAX_CHUNKS) - 1)?,
            })
        };
        let (block, step) = (
            of.integer("depid", -1, 4096)?,
            of.integer("deps", -1, 1 << 24)?,
        );
        let dependency = match (block, step) {
            (-1, _) => None,
            (_, -1) => {
                return self.fail(
                    format!("<step> has depid=\"{block}\" and deps=\"-1\""),
                    "give both, or -1 for both",
                );
            }
            _ => Some((fit(block), fit(step))),
        };
        let kind = of.one_of("type", |name| name.parse().ok())?;
        Ok(Step {
            position: of.number("s", 0, 1 << 24)?,
            kind,
            src: at("srcbuf", "srcoff")?,
            dst: at("dstbuf", "dstoff")?,
            count: of.number("cnt", 0, i64::from(Span::MAX_COUNT))?,
            dependency,
            awaited: of.flag("hasdep")?,
            line: LineNumber(fit(self.line)),
        })
    }
}

/// The attributes of one element.
struct Attributes<'a> {
    element: &'static str,
    line: u64,
    all: Vec<(&'a str, &'a str)>,
}

impl<'a> Attributes<'a> {
    const MOST: usize = 64;

    fn of(
        parser: &Parser<'_>,
        start: &'a BytesStart<'_>,
        element: &'static str,
    ) -> Result<Self, FormatError> {
        let mut all = Vec::with_capacity(12);
        for attribute in start.attributes() {
            let attribute = match attribute {
                Ok(attribute) => attribute,
                Err(error) => return parser.fail(format!("<{element}>: {error}"), ""),
            };
            let name = attribute.key.into_inner();
            let value = match attribute.value {
                Cow::Borrowed(value) => value,
                Cow::Owned(_) => "&", // never: values are not unescaped here
            };
            if value.contains('&') {
                return parser.fail(
                    format!(
                        "<{element}> has an entity in {name}, which the runtimes do not expand"
                    ),
                    "write the character itself",
                );
            }
            if all.len() == Self::MOST {
                return parser.fail(
                    format!("<{element}> has more than {} attributes", Self::MOST),
                    "",
                );
            }
            all.push((name, value));
        }
        Ok(Self {
            element,
            line: parser.line,
            all,
        })
    }

    fn fail<T>(&self, why: String, remedy: &str) -> Result<T, FormatError> {
        Err(FormatError::at(self.line, why).remedy(remedy))
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.all
            .iter()
            .find(|(known, _)| *known == name)
            .map(|&(_, value)| value)
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    fn text(&self, name: &str) -> Result<&'a str, FormatError> {
        match self.get(name) {
            Some(value) => Ok(value),
            None => self.fail(format!("<{}> lacks {name}", self.element), "give it"),
        }
    }

    fn one_of<T>(&self, name: &str, find: impl Fn(&str) -> Option<T>) -> Result<T, FormatError> {
        let value = self.text(name)?;
        match find(value) {
            Some(found) => Ok(found),
            None => self.fail(
                format!(
                    "<{}> has {name}=\"{}\", which is unknown",
                    self.element,
                    shown(value)
                ),
                "",
            ),
        }
    }

    /// Returns a whole number as C's strtol reads it: decimal, 0x for hexadecimal or 0 for octal.
    fn integer(&self, name: &str, least: i64, most: i64) -> Result<i64, FormatError> {
        let text = self.text(name)?;
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, text),
        };
        let is_octal = digits.len() > 1 && digits.starts_with('0');
        let value = if let Some(hex) = digits.strip_prefix("0x") {
            i64::from_str_radix(hex, 16)
        } else {
            i64::from_str_radix(digits, if is_octal { 8 } else { 10 })
        };
        match value.map(|value| value.saturating_mul(sign)) {
            Ok(value) if (least..=most).contains(&value) => Ok(value),
            Ok(value) => self.fail(
                format!("<{}> has {name}=\"{value}\"", self.element),
                &format!("it must be {least} to {most}"),
            ),
            Err(_) => self.fail(
                format!("<{}> has {name}=\"{}\"", self.element, shown(text)),
                &format!("it must be a whole number, {least} to {most}"),
            ),
        }
    }

    fn number<T: TryFrom<i64>>(&self, name: &str, least: i64, most: i64) -> Result<T, FormatError> {
        Ok(fit(self.integer(name, least, most)?))
    }

    fn optional<T: TryFrom<i64>>(
        &self,
        name: &str,
        least: i64,
        most: i64,
    ) -> Result<Option<T>, FormatError> {
        self.has(name)
            .then(|| self.number(name, least, most))
            .transpose()
    }

    fn flag(&self, name: &str) -> Result<bool, FormatError> {
        Ok(self.integer(name, 0, 1)? == 1)
    }
}

/// Returns the beginning of a value, for messages.
fn shown(value: &str) -> String {
    value
        .chars()
        .take(40)
        .filter(|letter| !letter.is_control())
        .collect()
}
