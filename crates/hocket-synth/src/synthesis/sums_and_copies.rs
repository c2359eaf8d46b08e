//! A collective, taken apart into what is to be summed and what is to be copied.

use std::borrow::Cow;
use std::collections::HashSet;

use super::delivery::{Delivery, Wanted};
use super::network::UnwoundNetwork;
use super::sum_places::SumPlaces;
use crate::collective::Collective;
use crate::id::{NpuId, narrow};
use crate::plan::{Chunks, Lists, PlanError};

/// The chunks of a plan, and the spreads that make it: sums first, mirrored, then copies.
#[derive(Clone, Debug)]
#[doc(alias = "Work")]
pub struct SumsAndCopies {
    /// All chunks of the plan.
    pub chunks: Chunks,
    /// What is summed, as it spreads in mirrored time.
    pub sums: Part,
    /// What is copied.
    pub copies: Part,
}

/// Some of a plan's chunks, as a spread.
#[derive(Clone, Debug)]
pub struct Part {
    /// The spread; its chunk i is chunk `ids[i]` of the plan.
    pub spread: Delivery,
    /// The plan's chunk of each chunk.
    pub ids: Vec<u32>,
}

impl SumsAndCopies {
    /// Cuts every demand into `pieces`; a demand whose sum several want, into as many for each of
    /// them, each summed at one of them. What one alone holds is copied, whatever it is called.
    ///
    /// # Errors
    /// [`PlanError::TooManyChunks`] where there are fewer bytes than pieces.
    pub fn new(
        network: &UnwoundNetwork,
        collective: &Collective,
        pieces: usize,
    ) -> Result<Self, PlanError> {
        let npus = network.npus();
        let participants = collective.npus();
        let demands = collective.demands();
        let mut chunks = Chunks::with_capacity(demands.len() * pieces);
        let everybody = participants.len() == npus;
        let mut sites = SumPlaces::new(network);
        let sizes = Sizes::new(demands.iter().map(|demand| {
            let holders = demand.holders.members(participants);
            let wanted = demand.wanted.members(participants);
            let reduced = demand.reduced && holders.len() > 1;
            let count = if reduced {
                sites.of(demand, holders, wanted).len() * pieces
            } else {
                pieces
            };
            demand.bytes.div_ceil(count as u64)
        }));
        let mut sums = Builder::new(npus, everybody);
        let mut copies = Builder::new(npus, everybody);
        for (d, demand) in demands.iter().enumerate() {
            let holders = demand.holders.members(participants);
            let wanted = demand.wanted.members(participants);
            let reduced = demand.reduced && holders.len() > 1;
            let sites = match reduced {
                true => sites.of(demand, holders, wanted),
                false => Cow::Borrowed(&[][..]),
            };
            let count = pieces * sites.len().max(1);
            let first = narrow(chunks.len());
            chunks.split_one(narrow(d), demand.bytes, count)?;
            let bytes = sizes.of(demand.bytes.div_ceil(count as u64));
            for q in 0..count {
                let id = first + narrow(q);
                if reduced {
                    let owner = sites[q / pieces];
                    sums.push(id, bytes, &[owner], holders);
                    if wanted != [owner] {
                        copies.push(id, bytes, &[owner], wanted);
                    }
                } else {
                    copies.push(id, bytes, holders, wanted);
                }
            }
        }
        Ok(Self {
            chunks,
            sums: sums.finish(),
            copies: copies.finish(),
        })
    }

    /// Returns the number of transfers of its plan, if nobody passes on what he does not want.
    pub fn transfers(&self) -> u128 {
        self.sums.transfers() + self.copies.transfers()
    }
}

/// Sizes of chunks; those that differ by a byte count as the larger.
struct Sizes {
    /// Descending; each more than a byte below the one before.
    known: Vec<u64>,
}

impl Sizes {
    fn new(sizes: impl Iterator<Item = u64>) -> Self {
        let mut all: Vec<u64> = sizes.collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        let mut known: Vec<u64> = Vec::new();
        for size in all {
            if known.last().is_none_or(|&last| size + 1 < last) {
                known.push(size);
            }
        }
        Self { known }
    }

    /// Returns what a size counts as: the least known that is no smaller.
    fn of(&self, size: u64) -> u64 {
        self.known[self.known.partition_point(|&known| known >= size) - 1]
    }
}

impl Part {
    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    fn transfers(&self) -> u128 {
        let chunks = self.ids.len() as u128;
        match &self.spread.wanted {
            Wanted::All => chunks * (self.spread.npus as u128 - 1),
            Wanted::Listed(wanted) => wanted.items().len() as u128,
        }
    }
}

struct Builder {
    part: Part,
    wanted: Lists<u32>,
    /// Whether all participants are all NPUs.
    everybody: bool,
    all: bool,
}

impl Builder {
    fn new(npus: usize, everybody: bool) -> Self {
        let spread = Delivery {
            npus,
            sizes: Vec::new(),
            class: Vec::new(),
            holders: Vec::new(),
            others: Vec::new(),
            wanted: Wanted::All,
        };
        Self {
            part: Part {
                spread,
                ids: Vec::new(),
            },
            wanted: Lists::default(),
            everybody,
            all: true,
        }
    }

    fn push(&mut self, id: u32, bytes: u64, holders: &[NpuId], wanted: &[NpuId]) {
        let spread = &mut self.part.spread;
        let lacking = wanted.iter().filter(|npu| !holders.contains(npu));
        if lacking.clone().next().is_none() {
            return;
        }
        let chunk = narrow(spread.class.len());
        let class = spread.sizes.iter().position(|&size| size == bytes);
        let class = class.unwrap_or_else(|| {
            spread.sizes.push(bytes);
            spread.sizes.len() - 1
        });
        spread.class.push(narrow(class));
        spread.holders.push((holders[0].0, 0));
        spread
            .others
            .extend(holders[1..].iter().map(|npu| (chunk, npu.0)));
        self.part.ids.push(id);
        let is_all = self.everybody && wanted.len() == spread.npus;
        if self.all && !is_all {
            // From here on, wants are listed.
            let everyone: Vec<u32> = (0..narrow(spread.npus)).collect();
            let held: HashSet<(u32, u32)> = spread.others.iter().copied().collect();
            for (c, &(holder, _)) in (0..chunk).zip(&spread.holders) {
                let others: Vec<u32> = everyone
                    .iter()
                    .copied()
                    .filter(|&npu| npu != holder && !held.contains(&(c, npu)))
                    .collect();
                self.wanted.push(&others);
            }
            self.all = false;
        }
        if !self.all {
            let mut lacking: Vec<u32> = lacking.map(|npu| npu.0).collect();
            lacking.sort_unstable();
            self.wanted.push(&lacking);
        }
    }

    fn finish(mut self) -> Part {
        if !self.all {
            self.part.spread.wanted = Wanted::Listed(self.wanted);
        }
        self.part
    }
}
