//! Chakra execution traces as bytes: length-delimited messages, first the metadata, then the nodes.
//!
//! Fields that nothing here uses are not named and so are skipped, as are those of later versions.
//!
//! # Source
//! MLCommons Chakra, `schema/protobuf/et_def.proto`: field numbers and kinds of values.

use prost::{Message, Oneof};

use super::error::TraceError;

/// The first message of a file.
#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(string, tag = "1")]
    version: String,
}

/// Every other message.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Node {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(int32, tag = "3")]
    pub(super) kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub(super) control: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub(super) data: Vec<u64>,
    #[prost(uint64, tag = "7")]
    pub(super) duration_micros: u64,
    #[prost(message, optional, tag = "8")]
    pub(super) inputs: Option<Inputs>,
    #[prost(message, repeated, tag = "10")]
    pub(super) attributes: Vec<Attribute>,
}

/// What a node is given.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Inputs {
    #[prost(string, tag = "1")]
    pub(super) values: String,
}

/// What else is known of a node.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(
        oneof = "Value",
        tags = "3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29"
    )]
    pub(super) value: Option<Value>,
}

/// What an attribute says.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Value {
    #[prost(double, tag = "3")]
    Double(f64),
    #[prost(float, tag = "5")]
    Float(f32),
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(message, tag = "28")]
    Bools(Bools),
    #[prost(string, tag = "29")]
    Text(String),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Bools {
    #[prost(bool, repeated, tag = "1")]
    pub(super) values: Vec<bool>,
}

impl Node {
    /// Returns the first attribute of a name that has a value.
    pub(super) fn attribute(&self, name: &str) -> Option<&Value> {
        let mut named = self.attributes.iter().filter(|each| each.name == name);
        named.find_map(|each| each.value.as_ref())
    }
}

impl Value {
    /// As a whole number, of whatever kind it was written.
    pub(super) fn integer(&self) -> Option<i128> {
        Some(match *self {
            Value::Int32(number) | Value::Sint32(number) | Value::Sfixed32(number) => number.into(),
            Value::Int64(number) | Value::Sint64(number) | Value::Sfixed64(number) => number.into(),
            Value::Uint32(number) | Value::Fixed32(number) => number.into(),
            Value::Uint64(number) | Value::Fixed64(number) => number.into(),
            Value::Bool(truth) => truth.into(),
            Value::Double(_) | Value::Float(_) | Value::Bools(_) | Value::Text(_) => return None,
        })
    }

    /// Returns what kind of thing it is, for messages.
    pub(super) fn describe(&self) -> &'static str {
        match self {
            Value::Double(_) | Value::Float(_) => "a float",
            Value::Bools(_) => "a list",
            Value::Text(_) => "a text",
            _ => "a whole number",
        }
    }
}

/// The nodes of a file, one after the other.
pub(super) struct Nodes<'a> {
    file: &'a str,
    bytes: &'a [u8],
    /// Where the next message starts.
    at: usize,
    /// Id of the node before it.
    after: Option<u64>,
}

impl<'a> Nodes<'a> {
    /// Reads the metadata and stops before the first node.
    ///
    /// # Errors
    /// [`TraceError`] where there is no such message.
    pub(super) fn new(file: &'a str, bytes: &'a [u8]) -> Result<Self, TraceError> {
        let mut nodes = Self {
            file,
            bytes,
            at: 0,
            after: None,
        };
        let Some(message) = nodes.next_message()? else {
            return Err(TraceError::Empty {
                file: file.to_owned(),
            });
        };
        Metadata::decode(message).map_err(|error| TraceError::NoMetadata {
            file: file.to_owned(),
            why: error.to_string(),
        })?;
        Ok(nodes)
    }

    /// Returns the next node; `None` at the end of the file.
    ///
    /// # Errors
    /// [`TraceError`] where a message is cut short or is not a node.
    pub(super) fn next_node(&mut self) -> Result<Option<Node>, TraceError> {
        let start = self.at;
        let Some(message) = self.next_message()? else {
            return Ok(None);
        };
        let node = Node::decode(message).map_err(|error| TraceError::Message {
            file: self.file.to_owned(),
            byte: start,
            after: self.after,
            why: error.to_string(),
        })?;
        self.after = Some(node.id);
        Ok(Some(node))
    }

    fn next_message(&mut self) -> Result<Option<&'a [u8]>, TraceError> {
        let start = self.at;
        let mut rest = &self.bytes[start..];
        if rest.is_empty() {
            return Ok(None);
        }
        let length = prost::decode_length_delimiter(&mut rest);
        let length = length.map_err(|_| TraceError::Truncated {
            file: self.file.to_owned(),
            byte: start,
            after: self.after,
        })?;
        if length > rest.len() {
            return Err(TraceError::Overrun {
                file: self.file.to_owned(),
                byte: start,
                after: self.after,
                length,
                left: rest.len(),
            });
        }
        self.at = self.bytes.len() - rest.len() + length;
        Ok(Some(&rest[..length]))
    }
}
