//! What crosses sockets: frames between ranks and the store, greetings, and headers of messages between ranks.
//!
//! Everything is little-endian. A reader never trusts a length: it refuses what is longer than it can be, and what
//! ends early or has something left over.

use std::io::{self, Read, Write};

use hmac::{Hmac, Mac};
use hocket_base::id::narrow;
use sha2::Sha256;

use crate::agreement::Agreement;
use crate::error::{Code, Failure};

/// Bytes of a challenge and of an answer to it.
pub const PROOF: usize = 32;

/// A challenge, or the answer to one.
pub type Proof = [u8; PROOF];

/// Most bytes of a frame: a table of some thousand ranks.
pub const MAX_FRAME: usize = 1 << 20;

/// How a rank greets a store: whoever does not say this is a stranger.
pub const GREETING: [u8; 8] = *b"hocket\x04S";

/// How a rank greets another.
pub const LINK_GREETING: [u8; 8] = *b"hocket\x04L";

/// Returns the answer to a challenge, by whoever knows the secret. `role` keeps an answer from being used elsewhere.
pub fn prove(secret: &[u8], role: &str, parts: &[&[u8]]) -> Proof {
    let mut mac = keyed(secret);
    mac.update(role.as_bytes());
    for part in parts {
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Returns whether an answer is right, in a time that does not depend on where it is wrong.
pub fn proves(secret: &[u8], role: &str, parts: &[&[u8]], answer: &Proof) -> bool {
    let right = prove(secret, role, parts);
    let differing = right.iter().zip(answer).map(|(a, b)| a ^ b);
    differing.fold(0, |all, each| all | each) == 0
}

fn keyed(secret: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(secret).expect("a key of any length will do")
}

/// Fresh random bytes.
pub fn challenge() -> Proof {
    let mut bytes = [0; PROOF];
    let mut filled = 0;
    while filled < PROOF {
        let flags = rustix::rand::GetRandomFlags::empty();
        filled += rustix::rand::getrandom(&mut bytes[filled..], flags).unwrap_or(0);
    }
    bytes
}

/// What a rank says of itself when it joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its rank in the group; in a table of survivors its old one.
    pub rank: u32,
    /// Where it listens for other ranks.
    pub address: String,
    /// What others must prove to know when they connect.
    pub challenge: Proof,
    /// The host and its namespace of processes: equal where memory can be shared.
    pub host: String,
    /// Its process, and the file of that which the window would be in; 0 if it has none.
    pub process: u32,
    /// Number of that file there.
    pub file: u32,
    /// What it chooses plans by: equal for equal tables; 0 if it has none.
    pub table: u64,
    /// Streams of each link.
    pub streams: u32,
    /// Whether it would share memory.
    pub shares: bool,
    /// Whether odd streams are opened by the lower of two ranks.
    pub outward: bool,
}

/// A frame between a rank and the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A rank joins a group.
    Join {
        /// Name of the group.
        group: String,
        /// How many ranks it has.
        size: u32,
        /// How long it waits for the others, in milliseconds.
        patience: u64,
        /// Who joins.
        member: Member,
    },
    /// A rank of a group that failed joins a group of those that are left.
    Rejoin {
        /// The group that failed.
        id: u64,
        /// How long it waits for the others, in milliseconds.
        patience: u64,
        /// Who joins, by its old rank.
        member: Member,
    },
    /// All are there.
    Table {
        /// Number of the group, never used twice by a store.
        id: u64,
        /// Who is in it, by new rank.
        members: Vec<Member>,
    },
    /// The store does not let the rank in, or the group failed; a rank says so of a call.
    Failed(Failure),
    /// A rank waits for others and nothing comes: which call, and whom it waits for.
    Stalled {
        /// The call.
        call: u64,
        /// Ranks that it waits for.
        awaited: Vec<u32>,
    },
    /// A rank leaves and has nothing to complain of.
    Bye,
    /// The connection of a rank to another broke; it asks which rank has died.
    Lost {
        /// The call.
        call: u64,
        /// The other rank.
        peer: u32,
        /// What happened to the connection, in words.
        how: String,
    },
    /// A rank has left the group, and takes no part in further calls.
    Left {
        /// Which.
        rank: u32,
    },
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn short(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.short(narrow(text.len()));
        self.0.extend_from_slice(text.as_bytes());
    }

    fn member(&mut self, member: &Member) {
        self.short(member.rank);
        self.text(&member.address);
        self.0.extend_from_slice(&member.challenge);
        self.text(&member.host);
        self.short(member.process);
        self.short(member.file);
        self.number(member.table);
        self.short(member.streams);
        self.0
            .push(u8::from(member.shares) | u8::from(member.outward) << 1);
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let bytes = self.take(8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    fn short(&mut self) -> Option<u32> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes))
    }

    fn text(&mut self) -> Option<String> {
        let len = self.short()?;
        let bytes = self.take(len as usize)?;
        String::from_utf8(bytes.to_vec()).ok()
    }

    fn member(&mut self) -> Option<Member> {
        let mut member = Member {
            rank: self.short()?,
            address: self.text()?,
            challenge: self.take(PROOF)?.try_into().ok()?,
            host: self.text()?,
            process: self.short()?,
            file: self.short()?,
            table: self.number()?,
            streams: self.short()?,
            shares: false,
            outward: false,
        };
        let &flags = self.take(1)?.first()?;
        (member.shares, member.outward) = (flags & 1 > 0, flags & 2 > 0);
        (flags < 4).then_some(member)
    }
}

const NOBODY: u32 = u32::MAX;

impl Frame {
    /// Returns the frame with its length and kind before it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer(vec![0; 4]);
        match self {
            Frame::Join {
                group,
                size,
                patience,
                member,
            } => {
                out.0.push(1);
                out.text(group);
                out.short(*size);
                out.number(*patience);
                out.member(member);
            }
            Frame::Rejoin {
                id,
                patience,
                member,
            } => {
                out.0.push(2);
                out.number(*id);
                out.number(*patience);
                out.member(member);
            }
            Frame::Table { id, members } => {
                out.0.push(3);
                out.number(*id);
                out.short(narrow(members.len()));
                members.iter().for_each(|member| out.member(member));
            }
            Frame::Failed(failure) => {
                out.0.push(4);
                out.0.push(failure.code as u8);
                out.short(failure.culprit.unwrap_or(NOBODY));
                out.number(failure.call);
                out.text(&failure.why);
            }
            Frame::Stalled { call, awaited } => {
                out.0.push(5);
                out.number(*call);
                out.short(narrow(awaited.len()));
                awaited.iter().for_each(|&rank| out.short(rank));
            }
            Frame::Bye => out.0.push(6),
            Frame::Lost { call, peer, how } => {
                out.0.push(7);
                out.number(*call);
                out.short(*peer);
                out.text(how);
            }
            Frame::Left { rank } => {
                out.0.push(8);
                out.short(*rank);
            }
        }
        let len = narrow(out.0.len() - 4);
        out.0[..4].copy_from_slice(&len.to_le_bytes());
        out.0
    }

    /// Returns the frame that a body is; `None` if it is none.
    pub fn decode(body: &[u8]) -> Option<Frame> {
        let (&kind, rest) = body.split_first()?;
        let mut reader = Reader(rest);
        let frame = match kind {
            1 => Frame::Join {
                group: reader.text()?,
                size: reader.short()?,
                patience: reader.number()?,
                member: reader.member()?,
            },
            2 => Frame::Rejoin {
                id: reader.number()?,
                patience: reader.number()?,
                member: reader.member()?,
            },
            3 => {
                let id = reader.number()?;
                let count = reader.short()?;
                let members: Option<_> = (0..count).map(|_| reader.member()).collect();
                let members = members?;
                Frame::Table { id, members }
            }
            4 => {
                let code = *reader.take(1)?.first()?;
                let code = Code::from_repr(code)?;
                let culprit = reader.short()?;
                let call = reader.number()?;
                let why = reader.text()?;
                Frame::Failed(Failure {
                    code,
                    culprit: (culprit != NOBODY).then_some(culprit),
                    call,
                    why,
                })
            }
            5 => {
                let call = reader.number()?;
                let count = reader.short()?;
                let awaited: Option<_> = (0..count).map(|_| reader.short()).collect();
                let awaited = awaited?;
                Frame::Stalled { call, awaited }
            }
            6 => Frame::Bye,
            7 => Frame::Lost {
                call: reader.number()?,
                peer: reader.short()?,
                how: reader.text()?,
            },
            8 => Frame::Left {
                rank: reader.short()?,
            },
            _ => return None,
        };
        reader.0.is_empty().then_some(frame)
    }

    /// Returns the first frame of what has arrived, and how many bytes it took; `None` while it has not arrived as a
    /// whole.
    ///
    /// # Errors
    /// If it cannot be one.
    pub fn split(arrived: &[u8]) -> io::Result<Option<(Frame, usize)>> {
        let bad = || io::Error::new(io::ErrorKind::InvalidData, "not a frame");
        let Some((len, rest)) = arrived.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let len = u32::from_le_bytes(*len) as usize;
        if len > MAX_FRAME {
            return Err(bad());
        }
        match rest.get(..len) {
            None => Ok(None),
            Some(body) => {
                let frame = Frame::decode(body).ok_or_else(bad)?;
                Ok(Some((frame, 4 + len)))
            }
        }
    }

    /// Writes the frame.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn send(&self, mut to: impl Write) -> io::Result<()> {
        to.write_all(&self.encode())
    }

    /// Reads a frame.
    ///
    /// # Errors
    /// Those of the socket, and if what comes is no frame.
    pub fn receive(mut from: impl Read) -> io::Result<Frame> {
        let mut len = [0; 4];
        from.read_exact(&mut len)?;
        let bad = || io::Error::new(io::ErrorKind::InvalidData, "not a frame");
        let len = u32::from_le_bytes(len) as usize;
        if len > MAX_FRAME {
            return Err(bad());
        }
        let mut body = vec![0; len];
        from.read_exact(&mut body)?;
        Frame::decode(&body).ok_or_else(bad)
    }
}

/// What stands before the bytes of a message between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whether an [`Agreement`] follows, which opens a call, and not data.
    pub opens: bool,
    /// Channel of the connection.
    pub channel: u32,
    /// Bytes that follow.
    pub bytes: u64,
}

impl Header {
    /// Bytes of a header.
    pub const BYTES: usize = 16;

    /// As bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..4].copy_from_slice(if self.opens { b"open" } else { b"data" });
        out[4..8].copy_from_slice(&self.channel.to_le_bytes());
        out[8..].copy_from_slice(&self.bytes.to_le_bytes());
        out
    }

    /// From bytes; `None` if they are no header.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let opens = match &bytes[..4] {
            b"open" => true,
            b"data" => false,
            _ => return None,
        };
        let channel = u32::from_le_bytes(bytes[4..8].try_into().ok()?);
        let bytes = u64::from_le_bytes(bytes[8..].try_into().ok()?);
        let fits = !opens || bytes == Agreement::BYTES as u64;
        fits.then_some(Self {
            opens,
            channel,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use strum::VariantArray as _;

    use super::*;

    fn member() -> impl Strategy<Value = Member> {
        (
            any::<u32>(),
            ".{0,30}",
            any::<Proof>(),
            ".{0,30}",
            any::<(u32, u32, u64, u32, [bool; 2])>(),
        )
            .prop_map(
                |(
                    rank,
                    address,
                    challenge,
                    host,
                    (process, file, table, streams, [shares, outward]),
                )| {
                    Member {
                        rank,
                        address,
                        challenge,
                        host,
                        process,
                        file,
                        table,
                        streams,
                        shares,
                        outward,
                    }
                },
            )
    }

    fn frame() -> impl Strategy<Value = Frame> {
        prop_oneof![
            (".{0,30}", any::<u32>(), any::<u64>(), member()).prop_map(
                |(group, size, patience, member)| Frame::Join {
                    group,
                    size,
                    patience,
                    member
                }
            ),
            (any::<u64>(), any::<u64>(), member()).prop_map(|(id, patience, member)| {
                Frame::Rejoin {
                    id,
                    patience,
                    member,
                }
            }),
            (any::<u64>(), prop::collection::vec(member(), 0..5))
                .prop_map(|(id, members)| Frame::Table { id, members }),
            (
                prop::sample::select(Code::VARIANTS),
                any::<Option<u16>>(),
                any::<u64>(),
                ".{0,50}"
            )
                .prop_map(|(code, culprit, call, why)| {
                    let culprit = culprit.map(u32::from);
                    Frame::Failed(Failure::new(code, why).of(culprit, call))
                }),
            (any::<u64>(), prop::collection::vec(any::<u32>(), 0..9))
                .prop_map(|(call, awaited)| Frame::Stalled { call, awaited }),
            Just(Frame::Bye),
            (any::<u64>(), any::<u32>(), ".{0,50}").prop_map(|(call, peer, how)| Frame::Lost {
                call,
                peer,
                how
            }),
            any::<u32>().prop_map(|rank| Frame::Left { rank }),
        ]
    }

    proptest! {
        #[test]
        fn frames_survive(frame in frame()) {
            let bytes = frame.encode();
            prop_assert_eq!(Frame::receive(&bytes[..]).unwrap(), frame.clone());
            prop_assert_eq!(Frame::split(&bytes).unwrap(), Some((frame, bytes.len())));
            for end in 0..bytes.len() {
                prop_assert!(Frame::receive(&bytes[..end]).is_err());
                prop_assert_eq!(Frame::split(&bytes[..end]).unwrap(), None);
            }
        }

        #[test]
        fn bytes_of_strangers_are_refused_or_a_frame(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(frame) = Frame::decode(&bytes) {
                let again = frame.encode();
                prop_assert_eq!(Frame::decode(&again[4..]), Some(frame));
            }
            let _ = Frame::split(&bytes);
            if let Ok(header) = bytes.get(..16).unwrap_or(&[0; 16]).try_into()
                && let Some(decoded) = Header::decode(header)
            {
                prop_assert_eq!(&decoded.encode(), header);
            }
        }

        #[test]
        fn damaged_frames_are_refused_or_a_frame(frame in frame(), at in any::<usize>(), to in any::<u8>()) {
            let mut bytes = frame.encode();
            let at = at % bytes.len();
            bytes[at] = to;
            let _ = Frame::split(&bytes);
            let _ = Frame::receive(&bytes[..]);
        }
    }

    #[test]
    fn a_proof_is_right_for_its_parts_only() {
        let answer = prove(b"secret", "rank", &[b"ab", b"c"]);
        assert!(proves(b"secret", "rank", &[b"ab", b"c"], &answer));
        assert!(!proves(b"secret", "rank", &[b"a", b"bc"], &answer));
        assert!(!proves(b"secret", "store", &[b"ab", b"c"], &answer));
        assert!(!proves(b"other", "rank", &[b"ab", b"c"], &answer));
    }
}
