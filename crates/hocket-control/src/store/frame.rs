//! Records in a file, each with its length, checksum and number.
//!
//! ```text
//! "hocket store 1\n", epoch, generation, number of the first record, checksum
//! length | checksum | number | payload        for each record
//! ```

use hocket_base::id::narrow;

use super::codec::{Reader, Writer};

const MAGIC: &[u8] = b"hocket store 1\n";
/// Bytes of the header of a file.
pub(super) const HEADER: usize = MAGIC.len() + 3 * 8 + 4;
/// Bytes of a record besides its payload.
const RECORD: usize = 4 + 4 + 8;

/// What stands at the head of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) epoch: u64,
    pub(super) generation: u64,
    pub(super) first: u64,
}

impl Header {
    pub(super) fn encode(self) -> Vec<u8> {
        let mut writer = Writer(MAGIC.to_vec());
        writer.word(self.epoch);
        writer.word(self.generation);
        writer.word(self.first);
        writer.small(crc32fast::hash(&writer.0));
        writer.0
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..HEADER)?;
        let mut reader = Reader(bytes.strip_prefix(MAGIC)?);
        let header = Self {
            epoch: reader.word()?,
            generation: reader.word()?,
            first: reader.word()?,
        };
        let checksum = crc32fast::hash(&bytes[..HEADER - 4]);
        (reader.small()? == checksum).then_some(header)
    }
}

/// Appends a record.
pub(super) fn write(bytes: &mut Vec<u8>, number: u64, payload: &[u8]) {
    let mut writer = Writer(std::mem::take(bytes));
    writer.small(narrow(payload.len()));
    writer.small(checksum(number, payload));
    writer.word(number);
    writer.0.extend(payload);
    *bytes = writer.0;
}

/// Returns the bytes that a payload takes.
pub(super) fn length(payload: &[u8]) -> usize {
    RECORD + payload.len()
}

fn checksum(number: u64, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&narrow(payload.len()).to_le_bytes());
    hasher.update(&number.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

/// How a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// With a whole record.
    Whole,
    /// With bytes, from here on, that are no record and have none after them: a crash during a write.
    Torn(usize),
    /// The bytes here are no record, and there are records after them.
    Damaged(usize),
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frames<'a> {
    /// Its epoch and generation; `None` where the header is torn or damaged.
    pub written: Option<(u64, u64)>,
    /// Number of the record after the last.
    pub next: u64,
    /// Payloads of the records up to the tail.
    pub payloads: Vec<&'a [u8]>,
    /// How the file ends.
    pub tail: Tail,
}

/// Returns the records of a file, up to the first that is none.
///
/// # Complexity
/// O(bytes), and where the tail is no record O(its bytes x the length of records in it).
pub fn frames(bytes: &[u8]) -> Frames<'_> {
    let Some(header) = Header::decode(bytes) else {
        let has_more = follows(bytes, 0, None);
        return Frames {
            written: None,
            next: 0,
            payloads: Vec::new(),
            tail: if has_more {
                Tail::Damaged(0)
            } else {
                Tail::Torn(0)
            },
        };
    };
    let (mut at, mut next) = (HEADER, header.first);
    let mut payloads = Vec::new();
    while let Some((number, payload)) = record(bytes, at) {
        if number != next {
            break;
        }
        payloads.push(payload);
        at += length(payload);
        next = next.wrapping_add(1);
    }
    let tail = if at == bytes.len() {
        Tail::Whole
    } else if follows(bytes, at, Some(next)) {
        Tail::Damaged(at)
    } else {
        Tail::Torn(at)
    };
    Frames {
        written: Some((header.epoch, header.generation)),
        next,
        payloads,
        tail,
    }
}

/// Returns the record that stands at a place.
fn record(bytes: &[u8], at: usize) -> Option<(u64, &[u8])> {
    let mut reader = Reader(bytes.get(at..)?);
    let (length, sum, number) = (reader.small()?, reader.small()?, reader.word()?);
    let payload = reader.bytes(length as usize)?;
    let is_whole = !payload.is_empty() && checksum(number, payload) == sum;
    is_whole.then_some((number, payload))
}

/// Returns whether a record that was written after the one at `at` stands anywhere behind it. Its number is higher, by
/// no more than as many records as fit between.
fn follows(bytes: &[u8], at: usize, next: Option<u64>) -> bool {
    (at + 1..bytes.len().saturating_sub(RECORD)).any(|place| {
        let number: [u8; 8] = bytes[place + 8..place + 16].try_into().unwrap_or_default();
        let number = u64::from_le_bytes(number);
        let most = ((place - at) / RECORD + 1) as u64;
        let is_later = next.is_none_or(|next| number > next && number - next <= most);
        is_later && record(bytes, place).is_some()
    })
}
