//! Traces of Perfetto as bytes: spans of time on named tracks of processes, every text written once.
//!
//! A trace is a sequence of packets. A packet begins or ends a span, or describes a track; texts are numbered by
//! the first packet that uses them. Times are whole nanoseconds: a finer one is rounded down, so
//! that spans which follow each other still do.
//!
//! # Source
//! google/perfetto, `protos/perfetto/trace/perfetto_trace.proto` (v59): field numbers and kinds of values.

use std::collections::HashMap;

use prost::{Message, Oneof};

const PS_PER_NS: u64 = 1_000;
/// One writer writes the whole file, so there is one sequence of packets.
const SEQUENCE: u32 = 1;
const STATE_CLEARED: u32 = 1;
const NEEDS_STATE: u32 = 2;
const BEGIN: i32 = 1;
const END: i32 = 2;
const EXPLICIT: i32 = 3;

/// What there is to say of a span, beside its name and times.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// A truth.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(&'a str),
}

/// Something that took its time on a track; times in picoseconds.
///
/// Spans of a track come in the order of their starts; they follow each other, or lie within each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Span<'a> {
    /// Number of its process.
    pub process: u32,
    /// Number of its track, within the process.
    pub track: u32,
    /// What it is called.
    pub name: &'a str,
    /// What kind of thing it is; empty for none.
    pub category: &'a str,
    /// When it begins.
    pub start_ps: u64,
    /// When it ends.
    pub end_ps: u64,
    /// What else there is to say, by name.
    pub about: Vec<(&'a str, Value<'a>)>,
}

/// Writes a trace, packet by packet.
#[derive(Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
    has_begun: bool,
    names: Numbers,
    categories: Numbers,
    keys: Numbers,
    texts: Numbers,
}

impl Writer {
    /// Returns a trace without packets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a process; those with lower numbers are shown first.
    pub fn process(&mut self, process: u32, name: &str) {
        self.describe(Track {
            uuid: process_uuid(process),
            process: Some(Process {
                // 0 is the idle task of Linux.
                pid: pid(process),
                sort_index: pid(process),
                name: name.to_owned(),
            }),
            child_ordering: EXPLICIT,
            ..Track::default()
        });
    }

    /// Adds a track of a process; those with lower numbers are shown first.
    pub fn track(&mut self, process: u32, track: u32, name: &str) {
        self.describe(Track {
            uuid: track_uuid(process, track),
            name: name.to_owned(),
            parent_uuid: process_uuid(process),
            rank: i32::try_from(track).unwrap_or(i32::MAX),
            ..Track::default()
        });
    }

    /// Adds a span.
    pub fn span(&mut self, span: &Span<'_>) {
        let mut new = Interned::default();
        let name = self.names.of(span.name, &mut new.names);
        let categories = match span.category {
            "" => Vec::new(),
            category => vec![self.categories.of(category, &mut new.categories)],
        };
        let annotations = span.about.iter().map(|(key, value)| Annotation {
            key: self.keys.of(key, &mut new.keys),
            value: Some(match *value {
                Value::Bool(truth) => Annotated::Bool(truth),
                Value::Int(number) => Annotated::Int(number),
                Value::Float(number) => Annotated::Double(number),
                Value::Text(text) => Annotated::Text(self.texts.of_bytes(text, &mut new.texts)),
            }),
        });
        let begin = Event {
            kind: BEGIN,
            track: track_uuid(span.process, span.track),
            name: Some(name),
            categories,
            annotations: annotations.collect(),
        };
        let end = Event {
            kind: END,
            track: begin.track,
            ..Event::default()
        };
        let interned = (new != Interned::default()).then_some(new);
        self.packet(Packet {
            timestamp: Some(span.start_ps / PS_PER_NS),
            event: Some(begin),
            interned,
            ..Packet::default()
        });
        self.packet(Packet {
            timestamp: Some(span.end_ps / PS_PER_NS),
            event: Some(end),
            ..Packet::default()
        });
    }

    /// Returns the bytes since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn describe(&mut self, track: Track) {
        self.packet(Packet {
            descriptor: Some(track),
            ..Packet::default()
        });
    }

    fn packet(&mut self, packet: Packet) {
        let cleared = if self.has_begun { 0 } else { STATE_CLEARED };
        self.has_begun = true;
        let file = File {
            packets: vec![Packet {
                sequence: SEQUENCE,
                flags: NEEDS_STATE | cleared,
                ..packet
            }],
        };
        file.encode_raw(&mut self.out);
    }
}

fn pid(process: u32) -> i32 {
    i32::try_from(process).map_or(i32::MAX, |number| number.saturating_add(1))
}

fn process_uuid(process: u32) -> u64 {
    (u64::from(process) + 1) << 32
}

fn track_uuid(process: u32, track: u32) -> u64 {
    process_uuid(process) | (u64::from(track) + 1)
}

/// Numbers of texts, from 1.
#[derive(Debug, Default)]
struct Numbers(HashMap<Box<str>, u64>);

impl Numbers {
    fn of(&mut self, text: &str, new: &mut Vec<Name>) -> u64 {
        self.number(text, |number| {
            new.push(Name {
                number,
                text: text.to_owned(),
            });
        })
    }

    fn of_bytes(&mut self, text: &str, new: &mut Vec<Bytes>) -> u64 {
        self.number(text, |number| {
            new.push(Bytes {
                number,
                text: text.as_bytes().to_vec(),
            });
        })
    }

    fn number(&mut self, text: &str, add: impl FnOnce(u64)) -> u64 {
        if let Some(&number) = self.0.get(text) {
            return number;
        }
        let number = self.0.len() as u64 + 1;
        self.0.insert(text.into(), number);
        add(number);
        number
    }
}

#[derive(Clone, PartialEq, Message)]
struct File {
    #[prost(message, repeated, tag = "1")]
    packets: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, tag = "10")]
    sequence: u32,
    #[prost(message, optional, tag = "11")]
    event: Option<Event>,
    #[prost(message, optional, tag = "12")]
    interned: Option<Interned>,
    #[prost(uint32, tag = "13")]
    flags: u32,
    #[prost(message, optional, tag = "60")]
    descriptor: Option<Track>,
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(uint64, repeated, packed = "false", tag = "3")]
    categories: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    annotations: Vec<Annotation>,
    #[prost(int32, tag = "9")]
    kind: i32,
    #[prost(uint64, optional, tag = "10")]
    name: Option<u64>,
    #[prost(uint64, tag = "11")]
    track: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Annotation {
    #[prost(uint64, tag = "1")]
    key: u64,
    #[prost(oneof = "Annotated", tags = "2, 4, 5, 17")]
    value: Option<Annotated>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Annotated {
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(int64, tag = "4")]
    Int(i64),
    #[prost(double, tag = "5")]
    Double(f64),
    /// Number of a text.
    #[prost(uint64, tag = "17")]
    Text(u64),
}

#[derive(Clone, PartialEq, Message)]
struct Interned {
    #[prost(message, repeated, tag = "1")]
    categories: Vec<Name>,
    #[prost(message, repeated, tag = "2")]
    names: Vec<Name>,
    #[prost(message, repeated, tag = "3")]
    keys: Vec<Name>,
    #[prost(message, repeated, tag = "29")]
    texts: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct Name {
    #[prost(uint64, tag = "1")]
    number: u64,
    #[prost(string, tag = "2")]
    text: String,
}

#[derive(Clone, PartialEq, Message)]
struct Bytes {
    #[prost(uint64, tag = "1")]
    number: u64,
    #[prost(bytes = "vec", tag = "2")]
    text: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Track {
    #[prost(uint64, tag = "1")]
    uuid: u64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, optional, tag = "3")]
    process: Option<Process>,
    #[prost(uint64, tag = "5")]
    parent_uuid: u64,
    #[prost(int32, tag = "11")]
    child_ordering: i32,
    #[prost(int32, tag = "12")]
    rank: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Process {
    #[prost(int32, tag = "1")]
    pid: i32,
    #[prost(int32, tag = "3")]
    sort_index: i32,
    #[prost(string, tag = "6")]
    name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start_ps: u64, end_ps: u64, about: Vec<(&str, Value<'static>)>) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.process(0, "rank 0");
        writer.track(0, 0, "NPU");
        for _ in 0..2 {
            writer.span(&Span {
                process: 0,
                track: 0,
                name: "forward",
                category: "compute",
                start_ps,
                end_ps,
                about: about
                    .iter()
                    .map(|(key, value)| (*key, value.clone()))
                    .collect(),
            });
        }
        writer.take()
    }

    #[test]
    fn a_text_is_written_once_and_times_in_whole_nanoseconds() {
        let bytes = span(1_999, 5_000, vec![("does", Value::Text("layer"))]);
        let packets = File::decode(bytes.as_slice()).unwrap().packets;
        assert_eq!(packets.len(), 6);
        let interned: Vec<bool> = packets.iter().map(|each| each.interned.is_some()).collect();
        assert_eq!(interned, [false, false, true, false, false, false]);
        let times: Vec<_> = packets.iter().map(|each| each.timestamp).collect();
        assert_eq!(times[2..], [Some(1), Some(5), Some(1), Some(5)]);
        let flags: Vec<_> = packets.iter().map(|each| each.flags).collect();
        assert_eq!(flags, [3, 2, 2, 2, 2, 2]);
        let text = |needle: &str| {
            let needle = needle.as_bytes();
            bytes
                .windows(needle.len())
                .filter(|at| *at == needle)
                .count()
        };
        assert_eq!([text("forward"), text("compute"), text("layer")], [1, 1, 1]);
    }

    #[test]
    fn begin_and_end_are_on_the_track_that_was_described() {
        let packets = File::decode(span(0, 1, Vec::new()).as_slice())
            .unwrap()
            .packets;
        let described = packets[1].descriptor.as_ref().unwrap();
        assert_eq!(
            described.parent_uuid,
            packets[0].descriptor.as_ref().unwrap().uuid
        );
        let events: Vec<_> = packets
            .iter()
            .filter_map(|each| each.event.as_ref())
            .collect();
        assert!(events.iter().all(|event| event.track == described.uuid));
        let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [BEGIN, END, BEGIN, END]);
    }
}
