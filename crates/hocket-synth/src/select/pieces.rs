//! Into how many pieces the trees of one packing cut their data, and in what order links serve these.

use std::sync::Arc;

use super::order::{as_planned, or_when_ready};
use super::trees::{TREES, TreeOptions};
use crate::collective::Collective;
use crate::id::fit;
use crate::packing::{Passes, RowOrder};
use crate::plan::{PlanBuilder, PlanError};
use crate::progress::Progress;
use crate::simulate::Run;
use crate::topology::Topology;
use crate::units::Time;
use crate::verify::Verified;

/// Transfers up to which more pieces are tried.
pub(super) const MOST_TRANSFERS: u64 = 1_500_000;
/// The same where all comes from one root, or goes to it: then pieces alone keep links busy.
const MOST_FROM_ONE: u64 = 6_600_000;
/// Transfers from which on twice as many pieces must promise more.
const MANY: u64 = 4_000_000;
/// One over the share of a time that makes them worth it.
const WORTH_MANY: u64 = 64;
/// Transfers up to which they are tried although the timetable promises little of it, and links keep to it.
const CHEAP: u64 = 300_000;
/// Transfers up to which links may always serve what is ready first, too: it costs next to nothing.
const SMALL: u128 = 100_000;
/// One over the share of a time that is not worth more pieces.
const GOOD_ENOUGH: u64 = 150;
/// Transfers up to which numbers of pieces between powers of two are tried.
const MOST_BETWEEN: u64 = 2_100_000;
/// How often the number of pieces is doubled at most.
const MOST_DOUBLINGS: u32 = 13;
/// What else is tried where links do not keep to the timetable. Of pieces under way a few more than in the timetable
/// keep links busy, many more keep others waiting.
const OTHER_ORDERS: [RowOrder; 5] = [
    RowOrder::Ends,
    RowOrder::Windows(1),
    RowOrder::Windows(2),
    RowOrder::ReadyWindows(1),
    RowOrder::ReadyWindows(5),
];
/// A timetable is kept where a plan takes no more than this part longer.
const KEPT: u64 = 100;

/// A plan.
pub(super) struct Found {
    pub proof: Verified,
    pub run: Run,
    pub pieces: u64,
    /// Whether links keep to the timetable.
    is_kept: bool,
}

/// Looks for the quickest plan of one packing.
pub(super) struct Search<'a> {
    pub topology: &'a Arc<Topology>,
    pub collective: &'a Collective,
    pub options: &'a TreeOptions,
    pub passes: Passes,
    /// Numbers of pieces of which there were plans.
    pub tried: Vec<u64>,
    pub best: Option<Found>,
}

impl Search<'_> {
    pub(crate) fn run(&mut self, progress: &mut dyn Progress) -> Result<(), PlanError> {
        if let Some(pieces) = self.options.pieces {
            self.attempt(pieces as u64, progress)?;
            return Ok(());
        }
        self.powers_of_two(progress)?;
        self.between(progress)
    }

    /// The best power of two as the number of pieces.
    fn powers_of_two(&mut self, progress: &mut dyn Progress) -> Result<(), PlanError> {
        let (ladder, ends) = self.ends()?;
        // Fewer pieces, where that hardly matters.
        let least = ends.last().map_or(0, |&least| least + least / GOOD_ENOUGH);
        let start = ends.iter().position(|&end| end <= least).unwrap_or(0);
        self.attempt(ladder[start], progress)?;
        let mut is_better = false;
        let cheap = CHEAP / self.passes.arcs().max(1);
        for &pieces in &ladder[start + 1..] {
            let is_kept = self.best.as_ref().is_some_and(|best| best.is_kept);
            if (pieces > cheap && is_kept) || !self.attempt(pieces, progress)? {
                break;
            }
            is_better = true;
        }
        if is_better {
            return Ok(());
        }
        for &pieces in ladder[..start].iter().rev() {
            if !self.attempt(pieces, progress)? {
                break;
            }
        }
        Ok(())
    }

    /// Half as many again, thrice as many, and a quarter fewer: where links do not keep to the timetable, it depends on the number of
    /// pieces who meets whom on them.
    fn between(&mut self, progress: &mut dyn Progress) -> Result<(), PlanError> {
        let Some(best) = self.best.as_ref().filter(|best| !best.is_kept) else {
            return Ok(());
        };
        let most = self.most(MOST_BETWEEN);
        for pieces in [best.pieces / 2 * 3, best.pieces * 3, best.pieces / 4 * 3] {
            if (1..=most).contains(&pieces) && self.attempt(pieces, progress)? {
                break;
            }
        }
        Ok(())
    }

    /// When the best plan ends, if all keep to the timetable [ps].
    pub(crate) fn promised(&self) -> Result<u64, PlanError> {
        if let Some(pieces) = self.options.pieces {
            // More than there may be is refused later.
            let pieces = pieces.clamp(1, u32::MAX as usize) as u64;
            return self.end(pieces);
        }
        let (_, ends) = self.ends()?;
        Ok(ends.last().copied().unwrap_or(u64::MAX))
    }

    /// Returns the numbers of pieces, and when the plans of the first of them end, as long as more pieces are better.
    fn ends(&self) -> Result<(Vec<u64>, Vec<u64>), PlanError> {
        let ladder = self.ladder();
        let mut ends: Vec<u64> = Vec::with_capacity(ladder.len());
        for &pieces in &ladder {
            let end = self.end(pieces)?;
            // Beyond the best, more pieces only cost more; and many must promise more than a little.
            let least = |before: u64| match pieces * self.passes.arcs() > MANY {
                true => before - before / WORTH_MANY,
                false => before,
            };
            if ends.last().is_some_and(|&before| end >= least(before)) {
                break;
            }
            ends.push(end);
        }
        Ok((ladder, ends))
    }

    /// Powers of two for which there are bytes, and that make no plan too large.
    pub(crate) fn ladder(&self) -> Vec<u64> {
        let transfers = match self.collective.root() {
            Some(_) => MOST_FROM_ONE,
            None => MOST_TRANSFERS,
        };
        let most = self.most(transfers).max(1);
        let powers = (0..MOST_DOUBLINGS).map(|power| 1 << power);
        powers.take_while(|&pieces| pieces <= most).collect()
    }

    /// Pieces for which there are bytes, in a plan of no more than so many transfers.
    pub(crate) fn most(&self, transfers: u64) -> u64 {
        let bytes = self.collective.size() / (self.passes.trees() as u64).max(1);
        bytes.min(transfers / self.passes.arcs().max(1))
    }

    /// When the plan of so many pieces ends, if all keep to the timetable [ps].
    pub(crate) fn end(&self, pieces: u64) -> Result<u64, PlanError> {
        self.passes.end(self.topology, self.collective, fit(pieces))
    }

    /// Proves and simulates the plan of so many pieces; whether it is the best so far.
    pub(crate) fn attempt(
        &mut self,
        pieces: u64,
        progress: &mut dyn Progress,
    ) -> Result<bool, PlanError> {
        let transfers = u128::from(self.passes.arcs()) * u128::from(pieces);
        PlanBuilder::check_size(transfers.max(pieces.into()), self.options.memory_limit)?;
        self.tried.push(pieces);
        let (topology, collective) = (self.topology, self.collective);
        let latency = self.options.latency;
        let plan = |order| {
            let passes = &self.passes;
            passes.plan(TREES, topology, collective, fit(pieces), order)
        };
        let hoped = self.end(pieces)?;
        let is_kept = |time: Time| time.as_ps() <= hoped + hoped / KEPT;
        let first = plan(RowOrder::Starts)?;
        let (mut proof, mut run) = as_planned(first, topology, latency, progress)?;
        if !is_kept(run.time) || transfers <= SMALL {
            (proof, run) = or_when_ready((proof, run), latency, progress)?;
        }
        for order in OTHER_ORDERS {
            if is_kept(run.time) {
                break;
            }
            let other = as_planned(plan(order)?, topology, latency, progress)?;
            if other.1.time < run.time {
                (proof, run) = other;
            }
        }
        if self
            .best
            .as_ref()
            .is_some_and(|best| best.run.time <= run.time)
        {
            return Ok(false);
        }
        self.best = Some(Found {
            is_kept: is_kept(run.time),
            proof,
            run,
            pieces,
        });
        Ok(true)
    }
}
