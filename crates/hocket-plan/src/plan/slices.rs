//! Plans that do the same several times, each time with other chunks.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Chunks, Plan, PlanBuilder, Transfer, Wait, WaitOn};
use crate::id::{TransferId, fit, narrow};
use crate::units::gcd;

impl Plan {
    /// Returns the plan of the first of as many equal slices as there are, with all data in its chunks, and how many slices
    /// there are; `None` if there are no two.
    ///
    /// Of S slices, slice s has the chunks from s C / S on, where C is the number of chunks. All slices send and sum their chunks
    /// in the same way. The plan of the first leaves out paths and waits for others, so it is to be proved.
    ///
    /// # Complexity
    /// O(transfers x divisors of the number of chunks), and less where transfers of a pair are few.
    pub fn first_of_equal_slices(&self) -> Option<(Plan, u32)> {
        let slices = self.equal_slices()?;
        let chunks = narrow(self.chunks().len());
        Some((self.first_slice(chunks / slices), slices))
    }

    /// Returns the plan with as few of its equal slices left out as make its chunks at least so many bytes long, on average, with
    /// all data in the others; `None` if they are that long already, or no slices are equal.
    ///
    /// The plan leaves out paths and waits for other slices, so it is to be proved.
    ///
    /// # Complexity
    /// That of [`first_of_equal_slices`](Self::first_of_equal_slices).
    pub fn with_chunks_of(&self, least: u64) -> Option<Plan> {
        let chunks = narrow(self.chunks().len());
        let own = self.chunks().bytes_of(0, chunks) / u64::from(chunks);
        if own >= least {
            return None;
        }
        let slices = self.equal_slices()?;
        let is_long =
            |left: &u32| slices.is_multiple_of(*left) && own * u64::from(slices / left) >= least;
        let left = (1..slices).rev().find(is_long).unwrap_or(1);
        Some(self.first_slice(chunks / slices * left))
    }

    fn equal_slices(&self) -> Option<u32> {
        let chunks = narrow(self.chunks().len());
        let mut counts: HashMap<(u32, u32, u8), u64> = HashMap::new();
        for i in 0..self.len() {
            let key = (self.src()[i], self.dst()[i], self.op()[i]);
            *counts.entry(key).or_default() += 1;
        }
        let most: u32 = fit(counts.into_values().fold(u64::from(chunks), gcd));
        let mut divisors = (2..=most)
            .rev()
            .filter(|slices| most.is_multiple_of(*slices));
        divisors.find(|&slices| self.has_equal(slices, chunks / slices))
    }

    /// Returns whether slices of so many chunks are equal.
    fn has_equal(&self, slices: u32, chunks: u32) -> bool {
        let demand = self.chunks().demand();
        let (first, rest) = demand.split_at(chunks as usize);
        if rest.chunks(first.len()).any(|each| each != first) {
            return false;
        }
        let mut sums = vec![0u64; slices as usize];
        for i in 0..self.len() {
            let (chunk, count) = (self.chunk()[i], self.chunk_count()[i]);
            let slice = chunk / chunks;
            if (chunk + count - 1) / chunks != slice {
                return false;
            }
            let mut hasher = DefaultHasher::new();
            let ends = (self.src()[i], self.dst()[i], self.op()[i]);
            (chunk % chunks, count, ends).hash(&mut hasher);
            let sum = &mut sums[slice as usize];
            *sum = sum.wrapping_add(hasher.finish());
        }
        sums.iter().all(|sum| *sum == sums[0])
    }

    /// Returns the plan of the first so many chunks, with the data of those that lie as many behind them.
    fn first_slice(&self, count: u32) -> Plan {
        let all = self.chunks();
        let mut chunks = Chunks::with_capacity(count as usize);
        for first in 0..count {
            let equal = (first..narrow(all.len())).step_by(count as usize);
            let bytes = equal.map(|chunk| all.bytes_of(chunk, 1)).sum();
            chunks.push(all.demand()[first as usize], bytes);
        }
        let mut builder = PlanBuilder::new(self.algorithm(), self.collective(), chunks);
        builder.link_order(self.link_order());
        let own: Vec<u32> = (0..narrow(self.len()))
            .filter(|&i| self.chunk()[i as usize] < count)
            .collect();
        let place: HashMap<u32, u32> = own.iter().copied().zip(0..).collect();
        let mut known = HashMap::new();
        for &i in &own {
            let transfer = self.transfer(TransferId(i));
            let wait = self.wait_within(transfer.wait, &place, &mut known, &mut builder);
            builder.push(Transfer {
                wait,
                path: None,
                ..transfer
            });
        }
        builder.finish()
    }

    /// Returns a wait for those transfers of one that have a place.
    fn wait_within(
        &self,
        wait: Wait,
        place: &HashMap<u32, u32>,
        known: &mut HashMap<u32, Wait>,
        builder: &mut PlanBuilder,
    ) -> Wait {
        if let Some(&made) = known.get(&wait.to_bits()) {
            return made;
        }
        let (mut left, mut seen, mut members) = (vec![wait], HashSet::new(), Vec::new());
        while let Some(each) = left.pop() {
            match each.target() {
                WaitOn::Nothing => {}
                WaitOn::Transfer(id) => {
                    let own = place.get(&id.0).map(|&own| Wait::on(TransferId(own)));
                    members.extend(own);
                }
                WaitOn::Group(group) if seen.insert(group) => {
                    let bits = self.groups().get(group as usize).iter();
                    left.extend(bits.map(|&bits| Wait::from_bits(bits)));
                }
                WaitOn::Group(_) => {}
            }
        }
        members.sort_unstable_by_key(|wait| wait.to_bits());
        members.dedup();
        let made = builder.all_of(&members);
        known.insert(wait.to_bits(), made);
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{Collective, CollectiveKind};
    use crate::id::NpuId;
    use crate::plan::Op;

    /// A broadcast along a line, slice by slice, in which a slice waits for the one before it and for a group.
    fn line(slices: u32, is_odd: bool) -> Plan {
        let npus: Vec<NpuId> = (0..3).map(NpuId).collect();
        let collective = Collective::new(CollectiveKind::Broadcast, npus, 100, None).unwrap();
        let chunks = Chunks::split(&collective.demands(), 2 * slices as usize).unwrap();
        let mut plan = PlanBuilder::new("line", &collective, chunks);
        let mut before = Wait::NOTHING;
        for slice in 0..slices {
            let first = plan.send((2 * slice, 2), NpuId(0), NpuId(1), Op::Copy, before);
            let both = plan.all_of(&[Wait::on(first), before]);
            let nested = plan.all_of(&[both, before]);
            before = Wait::on(plan.send((2 * slice, 2), NpuId(1), NpuId(2), Op::Copy, nested));
        }
        if is_odd {
            plan.send((0, 1), NpuId(0), NpuId(2), Op::Copy, Wait::NOTHING);
        }
        plan.finish()
    }

    #[test]
    fn the_first_slice_has_all_data_and_waits_of_its_own() {
        let (first, slices) = line(6, false).first_of_equal_slices().unwrap();
        assert_eq!(slices, 6);
        assert_eq!(
            (first.chunk(), first.chunk_count()),
            (&[0, 0][..], &[2, 2][..])
        );
        assert_eq!((first.src(), first.dst()), (&[0, 1][..], &[1, 2][..]));
        assert_eq!(first.chunks().offsets().last(), Some(&100));
        let waits = first
            .wait()
            .iter()
            .map(|&bits| Wait::from_bits(bits).target());
        let waits: Vec<WaitOn> = waits.collect();
        assert_eq!(waits, [WaitOn::Nothing, WaitOn::Transfer(TransferId(0))]);
    }

    #[test]
    fn few_slices_have_all_data_in_long_chunks() {
        // Of 12 chunks of 8 or 9 bytes in 6 slices, chunks of 16 bytes are left by 3 slices, of 25 by 2 and of 50 by 1.
        for (least, slices) in [
            (1, None),
            (8, None),
            (9, Some(3)),
            (16, Some(3)),
            (17, Some(2)),
            (33, Some(1)),
        ] {
            let plan = line(6, false).with_chunks_of(least);
            assert_eq!(
                plan.as_ref().map(|plan| plan.chunks().len()),
                slices.map(|each: usize| 2 * each)
            );
            let Some(plan) = plan else { continue };
            assert_eq!(plan.chunks().offsets().last(), Some(&100));
            assert_eq!(plan.len(), 2 * slices.unwrap());
        }
        assert!(line(6, true).with_chunks_of(50).is_none());
    }

    #[test]
    fn one_slice_and_unequal_slices_are_none() {
        assert!(line(1, false).with_chunks_of(1000).is_none());
        assert!(line(1, false).first_of_equal_slices().is_none());
        assert!(line(6, true).first_of_equal_slices().is_none());
    }
}
