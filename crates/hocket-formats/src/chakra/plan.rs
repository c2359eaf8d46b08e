//! The transfers of a plan as nodes of its ranks.
//!
//! A transfer is a send at one rank and a receive at another, with its number as their tag. If it sums, a
//! computation follows the receive. A group that many members must end for is a computation as well, so
//! that not each transfer that waits for it names them all. Nodes are numbered by transfers: send,
//! receive and sum of transfer t are 3t, 3t + 1 and 3t + 2, and groups come behind.

use std::collections::HashSet;

use hocket_base::explain::Explain;
use hocket_base::id::{TransferId, narrow};
use hocket_plan::collective::CollectiveKind;
use hocket_plan::plan::{LinkOrder, Op, Plan, Wait, WaitOn};
use hocket_topology::Topology;

use super::{Does, Writer, comm_type};

/// Tags that ASTRA-sim keeps apart (`FrontEndSendRecvType` of its `Sys.hh`).
const TAGS: usize = 500_000_000;
/// Members of a group that transfers wait for one by one.
const MOST_NAMED: u32 = 64;
const NO_RANK: u32 = u32::MAX;
/// Number of the group of a plan that not all NPUs take part in; ASTRA-sim takes 0 for all.
const GROUP: u64 = 1;

/// Why a plan cannot be run by ASTRA-sim.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum Refused {
    /// A switch sums.
    #[explain(why(
        "transfer {transfer} starts or ends at switch {name}, and ASTRA-sim's switches only forward"
    ))]
    Switch {
        /// The first such transfer.
        transfer: usize,
        /// The switch.
        name: String,
    },
    /// A transfer without bytes.
    #[explain(why("transfer {_0} carries nothing, and ASTRA-sim refuses messages without bytes"))]
    Empty(usize),
    /// A wait across ranks.
    #[explain(
        why(
            "transfer {transfer} waits for transfer {awaited}, which neither starts nor ends at its NPU {npu}"
        ),
        remedy("nodes of a Chakra file wait for nodes of the same rank alone")
    )]
    Elsewhere {
        /// What waits.
        transfer: usize,
        /// What it waits for.
        awaited: u32,
        /// Where it starts.
        npu: u32,
    },
    /// More transfers than tags.
    #[explain(why("the plan has {_0} transfers, and ASTRA-sim keeps {TAGS} tags apart"))]
    Tags(usize),
    /// A plan without transfers.
    #[explain(why(
        "the plan has no transfers, and ASTRA-sim waits for ever for a collective that sends nothing"
    ))]
    Nothing,
}

/// The files of a plan: who takes part, and who has which transfers.
#[derive(Debug)]
pub struct PlanFiles<'a> {
    plan: &'a Plan,
    /// NPU of each rank.
    npus: Vec<u32>,
    rank_of: Vec<u32>,
    /// Transfers of each rank, in the plan's order: those of rank r are from `first[r]` on.
    first: Vec<u32>,
    transfers: Vec<u32>,
    /// Transfers that each group waits for, those of inner groups included.
    members: Vec<u32>,
}

impl<'a> PlanFiles<'a> {
    /// Sorts the transfers of a plan by rank. Ranks are the participants; all NPUs if others forward.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn new(plan: &'a Plan, topology: &Topology) -> Result<Self, Refused> {
        if plan.is_empty() {
            return Err(Refused::Nothing);
        }
        if plan.len() > TAGS {
            return Err(Refused::Tags(plan.len()));
        }
        let ends = || plan.src().iter().zip(plan.dst());
        let is_switch = |device: u32| device as usize >= topology.npu_count();
        if let Some(transfer) = ends().position(|(&src, &dst)| is_switch(src) || is_switch(dst)) {
            let (src, dst) = (plan.src()[transfer], plan.dst()[transfer]);
            let switch = if is_switch(src) { src } else { dst };
            let name = topology.devices()[switch as usize].name.clone();
            return Err(Refused::Switch { transfer, name });
        }
        if let Some(transfer) = plan.sizes().position(|bytes| bytes == 0) {
            return Err(Refused::Empty(transfer));
        }
        let mut npus: Vec<u32> = plan.collective().npus().iter().map(|npu| npu.0).collect();
        let mut rank_of = ranks(&npus, topology.npu_count());
        if ends().any(|(&src, &dst)| {
            rank_of[src as usize] == NO_RANK || rank_of[dst as usize] == NO_RANK
        }) {
            npus = (0..narrow(topology.npu_count())).collect();
            rank_of.clone_from(&npus);
        }
        let mut first = vec![0u32; npus.len() + 1];
        for (&src, &dst) in ends() {
            first[rank_of[src as usize] as usize + 1] += 1;
            first[rank_of[dst as usize] as usize + 1] += 1;
        }
        for rank in 0..npus.len() {
            first[rank + 1] += first[rank];
        }
        let mut next = first.clone();
        let mut transfers = vec![0u32; 2 * plan.len()];
        for (transfer, (&src, &dst)) in ends().enumerate() {
            for npu in [src, dst] {
                let slot = &mut next[rank_of[npu as usize] as usize];
                transfers[*slot as usize] = narrow(transfer);
                *slot += 1;
            }
        }
        let mut members = vec![0u32; plan.groups().len()];
        for group in 0..members.len() {
            let counts = plan.groups().get(group).iter();
            let counts = counts.map(|&bits| match Wait::from_bits(bits).target() {
                WaitOn::Nothing => 0,
                WaitOn::Transfer(_) => 1,
                WaitOn::Group(inner) => members[inner as usize],
            });
            members[group] = counts.fold(0, u32::saturating_add);
        }
        Ok(Self {
            plan,
            npus,
            rank_of,
            first,
            transfers,
            members,
        })
    }

    /// NPU of each rank.
    pub fn npus(&self) -> &[u32] {
        &self.npus
    }

    /// Returns what the format, or ASTRA-sim, leaves out of the plan.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        // A single link is the way that ASTRA-sim takes too.
        let leads_on = |path: u32| {
            path != Plan::DEFAULT_ROUTE && self.plan.paths().get(path as usize).len() > 1
        };
        let own = self.plan.path().iter();
        let own = own.filter(|&&path| leads_on(path)).count();
        if own > 0 {
            notes.push(format!(
                "{own} transfers have routes of their own over several links; ASTRA-sim takes its own"
            ));
        }
        if self.plan.link_order() == LinkOrder::Plan {
            notes.push(
                "links are meant to serve in the plan's order; ASTRA-sim's serve who comes first"
                    .to_owned(),
            );
        }
        notes
    }

    /// Adds the nodes of a rank's part of the plan; one that does nothing computes for no time, since
    /// ASTRA-sim refuses files without nodes.
    ///
    /// # Errors
    /// [`Refused::Elsewhere`].
    pub fn rank(&self, rank: usize, out: &mut Writer) -> Result<(), Refused> {
        let (plan, npu) = (self.plan, self.npus[rank]);
        let range = self.first[rank] as usize..self.first[rank + 1] as usize;
        if range.is_empty() {
            out.node(0, "idle", &[], Does::Compute { micros: 0 });
        }
        let mut joined = HashSet::new();
        let mut after = Vec::new();
        for &number in &self.transfers[range] {
            let transfer = number as usize;
            let (src, dst) = (plan.src()[transfer], plan.dst()[transfer]);
            let (bytes, tag) = (plan.bytes(TransferId(number)), u64::from(number));
            let id = 3 * tag;
            if src == npu {
                after.clear();
                let wait = Wait::from_bits(plan.wait()[transfer]);
                self.awaited(transfer, wait, &mut joined, &mut after, out)?;
                let to = u64::from(self.rank_of[dst as usize]);
                out.node(id, "send", &after, Does::Send { to, bytes, tag });
            } else {
                let from = u64::from(self.rank_of[src as usize]);
                out.node(id + 1, "receive", &[], Does::Receive { from, bytes, tag });
                if plan.op()[transfer] == Op::Reduce as u8 {
                    out.node(id + 2, "sum", &[id + 1], Does::Compute { micros: 0 });
                }
            }
        }
        Ok(())
    }

    /// Adds to `after` the nodes that a transfer's wait stands for, and to `out` those of large groups.
    fn awaited(
        &self,
        transfer: usize,
        wait: Wait,
        joined: &mut HashSet<u32>,
        after: &mut Vec<u64>,
        out: &mut Writer,
    ) -> Result<(), Refused> {
        match wait.target() {
            WaitOn::Nothing => {}
            WaitOn::Transfer(awaited) => after.push(self.ended(transfer, awaited.0)?),
            WaitOn::Group(group) if self.members[group as usize] <= MOST_NAMED => {
                for &bits in self.plan.groups().get(group as usize) {
                    self.awaited(transfer, Wait::from_bits(bits), joined, after, out)?;
                }
            }
            WaitOn::Group(group) => {
                let id = 3 * self.plan.len() as u64 + u64::from(group);
                if joined.insert(group) {
                    let mut members = Vec::new();
                    for &bits in self.plan.groups().get(group as usize) {
                        let member = Wait::from_bits(bits);
                        self.awaited(transfer, member, joined, &mut members, out)?;
                    }
                    members.sort_unstable();
                    members.dedup();
                    out.node(id, "all of a group", &members, Does::Compute { micros: 0 });
                }
                after.push(id);
            }
        }
        Ok(())
    }

    /// Returns the node, at the sender of a transfer, that ends when another transfer has.
    fn ended(&self, transfer: usize, awaited: u32) -> Result<u64, Refused> {
        let (plan, npu, i) = (self.plan, self.plan.src()[transfer], awaited as usize);
        let id = 3 * u64::from(awaited);
        if plan.dst()[i] == npu {
            let is_sum = plan.op()[i] == Op::Reduce as u8;
            Ok(id + 1 + u64::from(is_sum))
        } else if plan.src()[i] == npu {
            Ok(id)
        } else {
            Err(Refused::Elsewhere {
                transfer,
                awaited,
                npu,
            })
        }
    }

    /// Returns what ASTRA-sim is told that the collective is: it runs four kinds, and of a plan looks at nothing but
    /// its files.
    pub fn call(&self) -> CollectiveKind {
        match self.plan.collective().kind() {
            kind @ (CollectiveKind::AllReduce
            | CollectiveKind::ReduceScatter
            | CollectiveKind::AllToAll) => kind,
            _ => CollectiveKind::AllGather,
        }
    }

    /// Returns the number of the ranks' group, if they are not all NPUs in order.
    pub fn group(&self) -> Option<u64> {
        let all = 0..narrow(self.rank_of.len());
        (!self.npus.iter().copied().eq(all)).then_some(GROUP)
    }

    /// Adds the only node of an NPU's workload: the collective, or no work for those that are no rank.
    pub fn workload(&self, npu: usize, out: &mut Writer) {
        if self.rank_of[npu] == NO_RANK {
            out.node(0, "idle", &[], Does::Compute { micros: 0 });
            return;
        }
        let collective = self.plan.collective();
        let size = collective.size();
        // What goes in at one rank.
        let bytes = match collective.kind() {
            CollectiveKind::AllGather | CollectiveKind::Gather => {
                size / collective.npus().len() as u64
            }
            _ => size,
        };
        let does = Does::Call {
            kind: comm_type(self.call()).unwrap_or_default(),
            bytes: bytes.max(1),
            group: self.group(),
        };
        out.node(0, collective.kind().name(), &[], does);
    }
}

/// Ranks of NPUs: their positions in a list.
fn ranks(npus: &[u32], count: usize) -> Vec<u32> {
    let mut rank_of = vec![NO_RANK; count];
    for (rank, &npu) in npus.iter().enumerate() {
        rank_of[npu as usize] = narrow(rank);
    }
    rank_of
}
