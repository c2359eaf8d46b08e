//! What has to be done: which data is where before, and who must hold what after.

mod demand;
pub mod pattern;

pub use demand::{Demand, NpuSet};

use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use crate::explain::Explain;
use crate::id::{NpuId, Rank, fit};
use crate::topology::{Topology, name_fault};

/// The pattern of a collective.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "kebab-case", parse_err_ty = CollectiveError, parse_err_fn = unknown_kind)]
pub enum CollectiveKind {
    /// Every NPU gets the sum of all vectors.
    AllReduce,
    /// NPU of rank i gets block i of the sum.
    ReduceScatter,
    /// Every NPU gets every NPU's block.
    AllGather,
    /// Every NPU gets the root's vector.
    Broadcast,
    /// The root gets the sum of all vectors.
    Reduce,
    /// The root gets every NPU's block.
    Gather,
    /// NPU of rank i gets block i of the root's vector.
    Scatter,
    /// NPU of rank j gets block j of every NPU's vector.
    AllToAll,
    /// A precondition and a postcondition given chunk by chunk.
    Custom,
}

impl CollectiveKind {
    /// Every kind that has a name of its own.
    pub const NAMED: [CollectiveKind; Self::VARIANTS.len() - 1] =
        *Self::VARIANTS.first_chunk().expect("custom is the last");

    /// Returns the name in files and on the command line, as `all-reduce`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns whether it has a root.
    pub const fn is_rooted(self) -> bool {
        matches!(
            self,
            CollectiveKind::Broadcast
                | CollectiveKind::Reduce
                | CollectiveKind::Gather
                | CollectiveKind::Scatter
        )
    }

    /// Returns whether it sums.
    pub const fn reduces(self) -> bool {
        matches!(
            self,
            CollectiveKind::AllReduce | CollectiveKind::ReduceScatter | CollectiveKind::Reduce
        )
    }

    /// busbw / algbw for `n` NPUs.
    ///
    /// # Source
    /// nccl-tests, doc/PERFORMANCE.md: 2(n-1)/n for all-reduce; (n-1)/n for reduce-scatter,
    /// all-gather, all-to-all, gather and scatter; 1 for broadcast and reduce. 1 for custom.
    pub fn bus_factor(self, n: usize) -> f64 {
        let share = (n as f64 - 1.0) / n as f64;
        match self {
            CollectiveKind::AllReduce => 2.0 * share,
            CollectiveKind::ReduceScatter
            | CollectiveKind::AllGather
            | CollectiveKind::AllToAll
            | CollectiveKind::Gather
            | CollectiveKind::Scatter => share,
            CollectiveKind::Broadcast | CollectiveKind::Reduce | CollectiveKind::Custom => 1.0,
        }
    }
}

fn unknown_kind(name: &str) -> CollectiveError {
    let name = name.to_owned();
    CollectiveError::UnknownKind { name }
}

/// Why a collective makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum CollectiveError {
    /// No such kind.
    #[explain(
        why("there is no collective {name:?}"),
        remedy("kinds are {}", CollectiveKind::NAMED.map(CollectiveKind::name).join(", "))
    )]
    UnknownKind {
        /// Name that was asked for.
        name: String,
    },
    /// Fewer than two participants.
    #[explain(
        why("a collective needs at least two NPUs, {count} given"),
        remedy("name two or more")
    )]
    TooFewNpus {
        /// Number of NPUs that were given.
        count: usize,
    },
    /// An NPU that the topology does not have.
    #[explain(why("NPU {npu} is not in topology {topology:?}, whose NPUs are 0 to {last}"))]
    UnknownNpu {
        /// The NPU.
        npu: NpuId,
        /// The topology's name.
        topology: String,
        /// Its highest NPU.
        last: usize,
    },
    /// One NPU twice.
    #[explain(
        why("NPU {npu} is listed twice among the participants"),
        remedy("list it once")
    )]
    DuplicateNpu {
        /// The NPU.
        npu: NpuId,
    },
    /// A size of zero.
    #[explain(why("size is 0 B"), remedy("give the collective at least one byte"))]
    ZeroSize,
    /// Blocks that together pass what can be counted.
    #[explain(
        why("{kind} of {size} B: the blocks of all {npus} NPUs pass 2^64 B together"),
        remedy("make size smaller")
    )]
    TooLarge {
        /// The kind.
        kind: CollectiveKind,
        /// Its size in bytes.
        size: u64,
        /// Number of participants.
        npus: usize,
    },
    /// A rooted kind without a root, or the reverse.
    #[explain(why("{kind}: {why}"))]
    BadRoot {
        /// The kind.
        kind: CollectiveKind,
        /// What is wrong and what would be right.
        why: String,
    },
    /// A name that cannot be printed in a line.
    #[explain(why("the name of the collective {why}"))]
    BadName {
        /// What is wrong with it.
        why: String,
    },
    /// A custom condition that cannot be met.
    #[explain(why("demand {index}: {why}"))]
    BadDemand {
        /// Position in the list given.
        index: usize,
        /// What is wrong and what would be right.
        why: String,
    },
}

/// A collective: kind, participants in rank order, size, root.
///
/// `size` is what nccl-tests calls size: the bytes of one NPU's vector for all-reduce, broadcast,
/// reduce and all-to-all; of the whole gathered or scattered vector for all-gather, reduce-scatter,
/// gather and scatter; the sum of the demands for custom. A vector of S bytes in n blocks has block
/// i from byte floor(i S / n) to floor((i + 1) S / n): no byte is lost where n does not divide S.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collective {
    kind: CollectiveKind,
    npus: Vec<NpuId>,
    size: u64,
    root: Option<Rank>,
    in_place: bool,
    custom: Vec<Demand>,
    /// What it is called, where that is not its kind.
    name: Option<Box<str>>,
}

impl Collective {
    /// Returns a collective of a named kind among `npus`.
    ///
    /// `root` is the rank (position in `npus`) of the root; a rooted kind without one uses rank 0.
    ///
    /// # Errors
    /// [`CollectiveError`] for fewer than two NPUs, a repeated one, a size of 0 or one that brings the
    /// blocks of an all-to-all past 2^64 bytes, or a root that is out of range or not called for.
    ///
    /// # Examples
    /// ```
    /// use hocket_plan::collective::{Collective, CollectiveError, CollectiveKind};
    /// use hocket_base::id::{NpuId, Rank};
    ///
    /// // NPU 5 is rank 1, and the root of a broadcast to NPUs 2 and 7.
    /// let npus = vec![NpuId(2), NpuId(5), NpuId(7)];
    /// let broadcast = Collective::new(CollectiveKind::Broadcast, npus, 1_000, Some(Rank(1)))?;
    /// let demands = broadcast.demands();
    /// assert_eq!(demands.len(), 1);
    /// assert!(demands[0].holders.contains(NpuId(5)) && demands[0].wanted.contains(NpuId(7)));
    ///
    /// let alone = Collective::new(CollectiveKind::AllReduce, vec![NpuId(0)], 1_000, None);
    /// assert_eq!(alone, Err(CollectiveError::TooFewNpus { count: 1 }));
    /// # Ok::<(), CollectiveError>(())
    /// ```
    pub fn new(
        kind: CollectiveKind,
        npus: Vec<NpuId>,
        size: u64,
        root: Option<Rank>,
    ) -> Result<Self, CollectiveError> {
        check_npus(&npus)?;
        if size == 0 {
            return Err(CollectiveError::ZeroSize);
        }
        if kind == CollectiveKind::Custom {
            return Err(CollectiveError::UnknownKind {
                name: "custom".to_owned(),
            });
        }
        let is_each = kind == CollectiveKind::AllToAll; // each NPU has a vector of its own
        if is_each && size.checked_mul(npus.len() as u64).is_none() {
            let npus = npus.len();
            return Err(CollectiveError::TooLarge { kind, size, npus });
        }
        let root = match (kind.is_rooted(), root) {
            (true, root) => Some(root.unwrap_or(Rank(0))),
            (false, None) => None,
            (false, Some(_)) => {
                return Err(CollectiveError::BadRoot {
                    kind,
                    why: "has no root; leave it out".to_owned(),
                });
            }
        };
        if let Some(root) = root
            && root.index() >= npus.len()
        {
            return Err(CollectiveError::BadRoot {
                kind,
                why: format!(
                    "root {root} is not a rank; ranks are 0 to {}",
                    npus.len() - 1
                ),
            });
        }
        Ok(Self {
            kind,
            npus,
            size,
            root,
            in_place: true,
            custom: Vec::new(),
            name: None,
        })
    }

    /// Returns a collective of a named kind among all NPUs of a topology.
    ///
    /// # Errors
    /// As [`Collective::new`].
    pub fn among_all(
        kind: CollectiveKind,
        topology: &Topology,
        size: u64,
    ) -> Result<Self, CollectiveError> {
        Self::new(kind, topology.npus().collect(), size, None)
    }

    /// Returns a precondition and a postcondition, demand by demand, among `npus`.
    ///
    /// # Errors
    /// [`CollectiveError`] for fewer than two NPUs, a repeated one, no demand, or a demand with no
    /// bytes, no holder, nobody who wants it, or an NPU that does not take part.
    pub fn custom(npus: Vec<NpuId>, demands: Vec<Demand>) -> Result<Self, CollectiveError> {
        check_npus(&npus)?;
        if demands.is_empty() {
            return Err(CollectiveError::ZeroSize);
        }
        let mut ascending = npus.clone();
        ascending.sort_unstable();
        let mut size = 0u64;
        for (index, demand) in demands.iter().enumerate() {
            demand
                .check(&ascending)
                .and_then(|()| {
                    size = size.checked_add(demand.bytes).ok_or_else(|| {
                        "brings the bytes of all demands past 2^64; make them smaller".to_owned()
                    })?;
                    Ok(())
                })
                .map_err(|why| CollectiveError::BadDemand { index, why })?;
        }
        Ok(Self {
            kind: CollectiveKind::Custom,
            size,
            npus,
            root: None,
            in_place: true,
            custom: demands,
            name: None,
        })
    }

    /// One custom collective that has the demands of several, in order, among all of their NPUs in ascending
    /// order.
    ///
    /// # Errors
    /// [`CollectiveError::ZeroSize`] if there is none; [`CollectiveError::BadDemand`] if they have 2^64
    /// bytes or more in all.
    pub fn joined(collectives: &[&Collective]) -> Result<Self, CollectiveError> {
        let all = collectives
            .iter()
            .flat_map(|each| each.npus.iter().copied());
        let mut npus: Vec<NpuId> = all.collect();
        npus.sort_unstable();
        npus.dedup();
        let mut demands = Vec::new();
        for each in collectives {
            let own = |set: NpuSet| match set {
                NpuSet::All => NpuSet::of(each.npus.iter().copied()),
                some => some,
            };
            demands.extend(each.demands().into_iter().map(|demand| Demand {
                holders: own(demand.holders),
                wanted: own(demand.wanted),
                ..demand
            }));
        }
        if npus.is_empty() {
            Err(CollectiveError::ZeroSize)
        } else {
            Self::custom(npus, demands)
        }
    }

    /// Returns the same collective with its result in a buffer of its own (`false`) or over its input (`true`, the
    /// default). The local copy that out-of-place adds takes no network time.
    pub fn with_in_place(mut self, in_place: bool) -> Self {
        self.in_place = in_place;
        self
    }

    /// Returns the same collective under a name of its own, such as "token shuffle".
    ///
    /// # Errors
    /// [`CollectiveError::BadName`] for a name that is empty, too long or more than a line.
    pub fn with_name(mut self, name: &str) -> Result<Self, CollectiveError> {
        if let Some(why) = name_fault(name) {
            return Err(CollectiveError::BadName { why });
        }
        self.name = (name != self.kind.name()).then(|| name.into());
        Ok(self)
    }

    /// Returns what it is called: its kind, or the name that it was given.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.kind.name())
    }

    /// Returns the pattern.
    pub fn kind(&self) -> CollectiveKind {
        self.kind
    }

    /// Participants, in rank order.
    pub fn npus(&self) -> &[NpuId] {
        &self.npus
    }

    /// Bytes, as nccl-tests counts them.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the root's rank, for rooted kinds.
    pub fn root(&self) -> Option<Rank> {
        self.root
    }

    /// Returns whether the result overwrites the input.
    pub fn in_place(&self) -> bool {
        self.in_place
    }

    /// Returns first byte of block `i` of the vector cut into `blocks`: floor(i size / blocks).
    pub fn block_start(&self, i: usize, blocks: usize) -> u64 {
        block_start(self.size, i, blocks)
    }

    /// Checks that the topology has all participants.
    ///
    /// # Errors
    /// [`CollectiveError::UnknownNpu`].
    pub fn check_on(&self, topology: &Topology) -> Result<(), CollectiveError> {
        match self
            .npus
            .iter()
            .find(|npu| npu.index() >= topology.npu_count())
        {
            None => Ok(()),
            Some(&npu) => Err(CollectiveError::UnknownNpu {
                npu,
                topology: topology.name().to_owned(),
                last: topology.npu_count() - 1,
            }),
        }
    }

    /// Returns the precondition and postcondition: what data there is, who holds it, who must get it.
    ///
    /// One demand for all-reduce, broadcast and reduce; one per rank, in rank order, for
    /// reduce-scatter, all-gather, gather and scatter; n x n for all-to-all, that of (source i,
    /// destination j) at i n + j.
    pub fn demands(&self) -> Vec<Demand> {
        demand::expand(self)
    }
}

/// Returns first byte of block `i` of `size` bytes cut into `blocks`.
pub fn block_start(size: u64, i: usize, blocks: usize) -> u64 {
    fit(u128::from(size) * i as u128 / blocks as u128)
}

fn check_npus(npus: &[NpuId]) -> Result<(), CollectiveError> {
    if npus.len() < 2 {
        return Err(CollectiveError::TooFewNpus { count: npus.len() });
    }
    let mut sorted = npus.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(CollectiveError::DuplicateNpu { npu: pair[0] }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
