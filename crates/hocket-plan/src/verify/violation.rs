//! What can be wrong with a plan.

use std::fmt;

use strum::{Display, IntoStaticStr, VariantArray};

use crate::id::{ChunkId, NpuId, TransferId};
use crate::plan::{Op, Plan};
use crate::topology::Topology;

/// The kind of a violation; its name is stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Code {
    /// A transfer names an NPU that the topology does not have.
    UnknownNpu,
    /// A switch is to do what it cannot: sum, multicast, or serve so many trees.
    SwitchCannot,
    /// A transfer names a chunk that the plan does not have, or none.
    UnknownChunk,
    /// A transfer's sender is its receiver.
    SelfTransfer,
    /// An explicit path does not lead from sender to receiver over links that meet.
    BrokenPath,
    /// There is no way from sender to receiver.
    NoRoute,
    /// The chunks do not add up to the collective's bytes.
    BytesLost,
    /// Transfers wait for each other in a cycle.
    WaitCycle,
    /// A chunk is sent by an NPU that does not hold it.
    SentBeforeHeld,
    /// A chunk is sent without waiting for everything that was received into it before.
    UnorderedRead,
    /// A chunk is received over a value that may still be being sent or received.
    UnorderedWrite,
    /// A contribution is added twice.
    CountedTwice,
    /// A chunk is added where there is nothing to add to.
    ReduceIntoNothing,
    /// An NPU gets what it already holds.
    DeliveredTwice,
    /// An NPU does not end with what the postcondition names.
    Missing,
}

impl Code {
    /// Returns the name in reports and JSON, as `counted_twice`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// One thing that is wrong with a plan: a counterexample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its kind.
    pub code: Code,
    /// The transfer to blame, where there is one.
    pub transfer: Option<TransferId>,
    /// The chunk concerned.
    pub chunk: Option<ChunkId>,
    /// The NPU concerned.
    pub npu: Option<NpuId>,
    /// What is missing, counted twice or out of order, in words.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.name())?;
        if let Some(transfer) = self.transfer {
            write!(f, ", transfer {transfer}")?;
        }
        if let Some(chunk) = self.chunk {
            write!(f, ", chunk {chunk}")?;
        }
        if let Some(npu) = self.npu {
            write!(f, ", NPU {npu}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

/// Everything wrong that was found with a plan, the first [`VerifyReport::KEPT`] in full.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    violations: Vec<Violation>,
    count: u64,
}

impl VerifyReport {
    /// How many violations are kept in full; the rest are counted.
    pub const KEPT: usize = 100;

    /// Returns the violations kept.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Returns how many were found; once [`VerifyReport::KEPT`] are, the replay looks for no more.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether as many are kept as can be, so that there may be more.
    pub fn is_full(&self) -> bool {
        self.violations.len() == Self::KEPT
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the same with what each transfer to blame sends, from where to where.
    pub(super) fn naming(mut self, plan: &Plan, topology: &Topology) -> Self {
        let name = |end: u32| match topology.devices().get(end as usize) {
            Some(device) => device.name.clone(),
            None => format!("NPU {end}"),
        };
        for violation in &mut self.violations {
            let Some(transfer) = violation.transfer else {
                continue;
            };
            let i = transfer.index();
            let is_copy = plan.op()[i] == Op::Copy as u8;
            let verb = if is_copy { "copies" } else { "adds" };
            let (first, count) = (plan.chunk()[i], plan.chunk_count()[i]);
            let last = first.saturating_add(count.saturating_sub(1));
            let chunks = match count {
                1 => format!("chunk {first}"),
                _ => format!("chunks {first} to {last}"),
            };
            let (src, dst) = (name(plan.src()[i]), name(plan.dst()[i]));
            let sent = format!("; transfer {transfer} {verb} {chunks} from {src} to {dst}");
            violation.detail.push_str(&sent);
        }
        self
    }

    /// Adds one; `make` is called only if it is kept.
    pub(super) fn add(&mut self, make: impl FnOnce() -> Violation) {
        if self.violations.len() < Self::KEPT {
            self.violations.push(make());
        }
        self.count += 1;
    }
}

impl fmt::Display for VerifyReport {
    /// One line: how many violations, and the first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.is_full() { " or more" } else { "" };
        let plural = if self.count == 1 { "" } else { "s" };
        let count = self.count;
        write!(f, "the plan is wrong, {count}{more} violation{plural}")?;
        match self.violations.first() {
            Some(first) if self.count > 1 => write!(f, "; the first: {first}"),
            Some(first) => write!(f, ": {first}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violation(number: u32) -> Violation {
        Violation {
            code: Code::Missing,
            transfer: Some(TransferId(number)),
            chunk: Some(ChunkId(2)),
            npu: Some(NpuId(3)),
            detail: "never gets it".to_owned(),
        }
    }

    #[test]
    fn a_report_is_one_line_of_its_count_and_its_first() {
        let mut report = VerifyReport::default();
        assert!(report.is_empty());
        assert_eq!(report.to_string(), "the plan is wrong, 0 violations");
        report.add(|| violation(1));
        let first = "missing, transfer 1, chunk 2, NPU 3: never gets it";
        assert_eq!(
            report.to_string(),
            format!("the plan is wrong, 1 violation: {first}")
        );
        report.add(|| violation(2));
        assert_eq!(
            report.to_string(),
            format!("the plan is wrong, 2 violations; the first: {first}")
        );
        for number in 3..=crate::id::narrow(VerifyReport::KEPT) {
            assert!(!report.is_full());
            report.add(|| violation(number));
        }
        assert!(report.is_full());
        report.add(|| unreachable!("it is counted, not made"));
        assert_eq!(report.count(), 101);
        assert_eq!(report.violations().len(), 100);
        assert_eq!(
            report.to_string(),
            format!("the plan is wrong, 101 or more violations; the first: {first}")
        );
        assert_eq!(Code::Missing.to_string(), "missing");
    }

    #[test]
    fn what_a_violation_does_not_concern_is_not_named() {
        let bare = Violation {
            code: Code::BytesLost,
            transfer: None,
            chunk: None,
            npu: None,
            detail: "8 B".to_owned(),
        };
        assert_eq!(bare.to_string(), "bytes_lost: 8 B");
    }
}
