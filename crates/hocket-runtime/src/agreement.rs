//! What all ranks must agree on before a byte of a call is used.

use hocket_plan::collective::CollectiveKind;

use crate::number::{Dtype, Reduction};

/// What a call's bytes go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Way {
    /// The window, without a plan.
    Window,
    /// Connections, by a plan.
    Tcp,
    /// Shared memory, by a plan.
    Memory,
}

impl Way {
    fn text(way: u8) -> &'static str {
        match way {
            0 => "shared memory without a plan",
            1 => "TCP by a plan",
            2 => "shared memory by a plan",
            _ => "something unknown",
        }
    }
}

/// What a rank has come for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Agreement {
    /// Number of the call.
    pub call: u64,
    /// The plan's hash; 0 without one, and [`Agreement::BOARD`] where memory is made.
    pub plan: u64,
    /// Numbers of the whole vector.
    pub elements: u64,
    /// Type of the numbers.
    pub dtype: u8,
    /// What is done to them.
    pub op: u8,
    /// Kind of the collective.
    pub kind: u8,
    /// Way of its bytes.
    pub way: u8,
    /// Its root; 0 of kinds without one.
    pub root: u32,
}

impl Agreement {
    /// Bytes of an agreement.
    pub const BYTES: usize = 32;

    /// What stands for a plan where ranks make memory that all see.
    pub const BOARD: u64 = 1;

    /// As bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..8].copy_from_slice(&self.call.to_le_bytes());
        out[8..16].copy_from_slice(&self.plan.to_le_bytes());
        out[16..24].copy_from_slice(&self.elements.to_le_bytes());
        out[24..28].copy_from_slice(&[self.dtype, self.op, self.kind, self.way]);
        out[28..].copy_from_slice(&self.root.to_le_bytes());
        out
    }

    /// From bytes.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        Self {
            call: number(0),
            plan: number(8),
            elements: number(16),
            dtype: bytes[24],
            op: bytes[25],
            kind: bytes[26],
            way: bytes[27],
            root: u32::from_le_bytes(bytes[28..].try_into().expect("4 bytes")),
        }
    }

    /// Returns how two ranks differ, in words: `theirs` is of rank `peer`.
    pub fn differences(&self, theirs: &Self, peer: u32) -> String {
        let name =
            |dtype: u8| Dtype::from_repr(dtype).map_or("an unknown type", |dtype| dtype.name());
        let op = |op: u8| Reduction::from_repr(op).map_or("unknown", |op| op.name());
        let mut found = Vec::new();
        if self.call != theirs.call {
            found.push(format!("is at call {}, not {}", theirs.call, self.call));
        }
        if self.what() != theirs.what() {
            found.push(format!("calls {}, not {}", theirs.what(), self.what()));
        } else if self.way != theirs.way {
            let (theirs, ours) = (Way::text(theirs.way), Way::text(self.way));
            found.push(format!("goes over {theirs}, not {ours}"));
        } else if self.plan != theirs.plan {
            let (theirs, ours) = (theirs.plan, self.plan);
            found.push(format!("runs plan {theirs:016x}, not {ours:016x}"));
        }
        if self.dtype != theirs.dtype {
            found.push(format!(
                "has {}, not {}",
                name(theirs.dtype),
                name(self.dtype)
            ));
        }
        if self.op != theirs.op {
            found.push(format!("asks for {}, not {}", op(theirs.op), op(self.op)));
        }
        if self.elements != theirs.elements {
            let (theirs, ours) = (theirs.elements, self.elements);
            found.push(format!("has {theirs} numbers, not {ours}"));
        }
        format!("rank {peer} {}", found.join(" and "))
    }

    /// Returns what is called for, in words.
    fn what(&self) -> String {
        if self.plan == Self::BOARD {
            return "for memory that all see".to_owned();
        }
        let known = CollectiveKind::NAMED
            .iter()
            .find(|&&kind| kind as u8 == self.kind);
        match known {
            Some(kind) if kind.is_rooted() => format!("{kind} with root {}", self.root),
            Some(kind) => kind.to_string(),
            None => "something unknown".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_words() {
        let ours = Agreement {
            call: 3,
            plan: 0,
            elements: 10,
            dtype: Dtype::F32 as u8,
            op: Reduction::Sum as u8,
            kind: CollectiveKind::Broadcast as u8,
            way: Way::Window as u8,
            root: 70_000,
        };
        assert_eq!(Agreement::decode(&ours.encode()), ours);
        let says = |theirs: Agreement| ours.differences(&theirs, 2);
        assert_eq!(
            says(Agreement { root: 1, ..ours }),
            "rank 2 calls broadcast with root 1, not broadcast with root 70000"
        );
        let kind = CollectiveKind::AllReduce as u8;
        assert_eq!(
            says(Agreement {
                kind,
                call: 4,
                ..ours
            }),
            "rank 2 is at call 4, not 3 and calls all-reduce, not broadcast with root 70000"
        );
        assert_eq!(
            says(Agreement {
                way: Way::Tcp as u8,
                plan: 7,
                ..ours
            }),
            "rank 2 goes over TCP by a plan, not shared memory without a plan"
        );
        assert_eq!(
            says(Agreement {
                plan: Agreement::BOARD,
                ..ours
            }),
            "rank 2 calls for memory that all see, not broadcast with root 70000"
        );
        assert_eq!(
            says(Agreement {
                plan: 7,
                elements: 9,
                ..ours
            }),
            "rank 2 runs plan 0000000000000007, not 0000000000000000 and has 9 numbers, not 10"
        );
        for at in 24..28 {
            let mut bytes = ours.encode();
            bytes[at] = 99;
            assert!(!says(Agreement::decode(&bytes)).is_empty());
        }
    }
}
