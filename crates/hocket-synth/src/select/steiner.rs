//! Plans of Steiner trees: of which packing, in how many pieces, and in what order, by what comes out of simulation.

use std::cell::LazyCell;
use std::sync::Arc;

use super::order::{as_planned, or_when_ready};
use crate::bound::network::ArcNetwork;
use crate::bound::{BoundOptions, Fidelity, bound};
use crate::collective::{Collective, CollectiveKind};
use crate::id::fit;
use crate::plan::{PlanBuilder, PlanError};
use crate::progress::{Interrupted, MESSAGE, Progress};
use crate::simulate::Run;
use crate::steiner::{Commodity, Jobs, Known, Listed, Packer, Packing, Relays, Urgency};
use crate::topology::{LatencyModel, Topology};
use crate::units::Time;
use crate::verify::Verified;

/// The name of the algorithm.
pub const STEINER: &str = "steiner";

/// Trees of the largest demand that are tried: few for small data, many to come near to the rate.
const TREES: [u64; 6] = [1, 2, 3, 8, 24, 48];
/// Ends of all trees up to which more trees are tried.
const MOST_ENDS: u64 = 6_000;
/// The same of the packing that comes first where there is no time for all.
const MOST_ENDS_AT_ONCE: u64 = 16_000;
/// One over its share of the work.
const AT_ONCE: u64 = 4;
/// Rounds over all trees: as many as help, and those without which trees are poor.
const ROUNDS: u64 = 25;
const FEWEST_ROUNDS: u64 = 5;
/// How close to the bound a plan is beside which no others are tried: of few transfers, and of many, which take long.
const NEAR: f64 = 1.002;
const NEAR_OF_MANY: f64 = 1.01;
const MANY: usize = 250_000;
/// Ends of all stars up to which groups behind a switch get some.
const MOST_STARS: u64 = 200_000;
/// Links that are looked at in all rounds of all packings, about: a few seconds.
const MOST_WORK: u64 = 200_000_000;
/// How low trees are to be, one after the other.
const LOW: [f64; 3] = [0.0, 0.2, 3.0];
/// The same where shares of trees are chosen; and into how many trees of about equal bytes each demand is then split.
const LOW_SHARES: f64 = 0.02;
const PARTS: [u64; 4] = [1, 12, 48, 96];
/// Transfers up to which more pieces are tried.
const MOST_TRANSFERS: u64 = 300_000;
/// The same for the best plan alone, if it takes so many times as long as its links send.
const MOST_TRANSFERS_FINER: u64 = 1_200_000;
const FAR: f64 = 1.1;
/// Of its time, what such a plan of twice as many pieces may take at the most.
const GAIN: f64 = 0.98;
/// Numbers of pieces of a tree that are tried.
const PIECES: [u32; 12] = [1, 2, 4, 8, 12, 16, 24, 32, 48, 96, 192, 384];
/// Plans that are listed in every order, and those that are simulated.
const MOST_LISTED: usize = 4;
const MOST_SIMULATED: usize = 3;
/// Orders in which the best plan is listed so that later links decide; and the lists that one of them takes.
const MOST_EVEN: usize = 2;
const LISTS_OF_EVEN: u64 = 3;
/// How urgent pieces are by what follows them, first that in which all packings are compared.
const TAILS: [i64; 4] = [1, 3, 0, 8];

/// How plans of Steiner trees are made.
#[derive(Clone, Debug)]
pub struct SteinerOptions {
    /// Pieces that every tree carries; by default those of the quickest plan.
    pub pieces: Option<usize>,
    /// Bytes that a plan may take.
    pub memory_limit: u64,
    /// What latency does to links in the simulations.
    pub latency: LatencyModel,
    /// What NPUs do that take no part.
    pub relays: Relays,
}

/// A plan of Steiner trees.
#[derive(Clone, Debug)]
pub struct SteinerPlan {
    /// The plan, proved.
    pub proof: Arc<Verified>,
    /// Its run at link fidelity.
    pub run: Run,
    /// Pieces that every tree carries.
    pub pieces: usize,
}

/// The jobs of a packing, made when they are looked at first.
type Later<'a> = LazyCell<Jobs, Box<dyn FnOnce() -> Jobs + 'a>>;

/// A packing in so many pieces, listed in one order.
struct Tried {
    end: u64,
    packing: usize,
    pieces: u32,
    listed: Listed,
}

/// Packs Steiner trees for all demands of a collective at once, and makes the quickest plan of them.
///
/// # Errors
/// [`PlanError::NotApplicable`] if nobody is left to relay, every demand goes from one NPU to one other, or an NPU
/// cannot be reached; [`PlanError::TooLarge`]; [`PlanError::TooManyChunks`]; [`PlanError::TooLong`];
/// [`PlanError::Interrupted`];
/// [`PlanError::Collective`] where the topology lacks a participant.
pub fn steiner(
    topology: &Arc<Topology>,
    collective: &Collective,
    options: &SteinerOptions,
    progress: &mut dyn Progress,
) -> Result<SteinerPlan, PlanError> {
    collective.check_on(topology)?;
    let commodities = match (
        steiner_refusal(topology, collective),
        Commodity::all(collective),
    ) {
        (None, Ok(commodities)) => commodities,
        (why, _) => return Err(refused(&why.unwrap_or_default())),
    };
    let network = ArcNetwork::new(topology, Fidelity::Link);
    let bounding = BoundOptions {
        relays: options.relays,
        ..BoundOptions::default()
    };
    let least = bound(topology, collective, &bounding, progress)?;
    let on = On {
        topology,
        collective,
        options,
        least: least.time.as_seconds(),
        packer: Packer::new(topology, &network, &commodities, options.relays),
    };
    let packings = on.packings(progress)?;
    let later = |each| -> Later<'_> {
        let packer = &on.packer;
        LazyCell::new(Box::new(move || Jobs::new(packer, each)))
    };
    let jobs: Vec<Later<'_>> = packings.iter().map(later).collect();
    let mut tried = on.tried(&packings, &jobs, progress)?;
    tried.sort_by_key(|each| each.end);
    let mut best: Option<(Verified, Run, u32)> = None;
    for each in tried.into_iter().take(MOST_SIMULATED) {
        let is_near = |(proof, run): (&Verified, &Run)| on.is_near(run.time, proof.plan().len());
        if let Some((proof, run, _)) = &best
            && (is_near((proof, run)) || each.end >= run.time.as_ps())
        {
            break;
        }
        let jobs = &jobs[each.packing];
        let Some(chunks) = jobs.chunks(collective, each.pieces) else {
            continue;
        };
        let plan = jobs.plan(
            STEINER,
            collective,
            chunks,
            each.pieces,
            (&each.listed.turns, each.listed.order),
        );
        let made = as_planned(plan, topology, options.latency, progress);
        let made = made.and_then(
            |made| match jobs.has_long_ways && !is_near((&made.0, &made.1)) {
                true => or_when_ready(made, options.latency, progress),
                false => Ok(made),
            },
        );
        match made {
            Err(PlanError::Interrupted(_)) if best.is_some() => break,
            made => {
                let (proof, run) = made?;
                if best.as_ref().is_none_or(|best| run.time < best.1.time) {
                    best = Some((proof, run, each.pieces));
                }
            }
        }
    }
    let (proof, run, pieces) = best.ok_or(Interrupted)?;
    Ok(SteinerPlan {
        proof: Arc::new(proof),
        run,
        pieces: fit(pieces),
    })
}

/// What is to be planned.
struct On<'a> {
    topology: &'a Arc<Topology>,
    collective: &'a Collective,
    options: &'a SteinerOptions,
    packer: Packer<'a>,
    /// What no plan is faster than [s].
    least: f64,
}

impl On<'_> {
    /// Returns packings of few and of many trees, those that promise most first.
    fn packings(&self, progress: &mut dyn Progress) -> Result<Vec<Packing>, PlanError> {
        let commodities = self.packer.commodities;
        let largest = commodities.iter().map(|each| each.bytes).max().unwrap_or(1);
        let ends = |trees: u64| -> u64 {
            let of = |each: &Commodity| {
                let share = each.bytes as f64 / largest as f64 * trees as f64;
                crate::units::whole(share.round()).max(1) * each.ends() as u64
            };
            commodities.iter().map(of).sum()
        };
        PlanBuilder::check_size(ends(1).into(), self.options.memory_limit)?;
        if self.packer.work(1) > MOST_WORK {
            return Err(refused(&format!(
                "trees of {} ends over {} links take too long to pack; use greedy",
                ends(1),
                self.topology.links().len()
            )));
        }
        let mut left = MOST_WORK;
        let mut known = Known::default();
        let mut found: Vec<Packing> = Vec::new();
        if let Some(stars) = self.packer.stars(MOST_STARS) {
            if stars.seconds <= NEAR * self.least {
                return Ok(vec![stars]);
            }
            for tree in &stars.trees {
                known.add(&tree.0, self.packer.arcs(&tree.0).collect());
            }
            found.push(stars);
        }
        let can_have = |most: u64| {
            let fits = move |&trees: &u64| trees == 1 || (ends(trees) <= most && trees <= largest);
            TREES.into_iter().take_while(fits)
        };
        let mut shapes: Vec<(u64, f64)> = can_have(MOST_ENDS)
            .flat_map(|trees| LOW.map(|low| (trees, low)))
            .collect();
        let mut at_once = None;
        let all = |&(trees, _): &(u64, f64)| ROUNDS * self.packer.work(trees);
        if shapes.iter().map(all).sum::<u64>() > MOST_WORK {
            let most =
                |&trees: &u64| AT_ONCE * FEWEST_ROUNDS * self.packer.work(trees) <= MOST_WORK;
            at_once = can_have(MOST_ENDS_AT_ONCE).take_while(most).last();
            // The lowest trees for little data, beside as many as there is time for.
            let lowest = (1, LOW[LOW.len() - 1]);
            shapes = at_once.map_or(shapes, |trees| vec![(trees, LOW[0]), lowest]);
        }
        for (trees, low) in shapes {
            let share = at_once.take().map_or(left, |_| left / AT_ONCE);
            let rounds = (share / self.packer.work(trees).max(1)).min(ROUNDS);
            if rounds < FEWEST_ROUNDS && !found.is_empty() {
                continue;
            }
            let rounds = rounds.max(FEWEST_ROUNDS);
            left = left.saturating_sub(rounds * self.packer.work(trees));
            let shape = (trees, fit(rounds));
            match self.packer.pack(shape, low, &mut known, progress) {
                Err(_) if !found.is_empty() => return Ok(found),
                made => found.extend(made?),
            }
        }
        let seconds = found
            .iter()
            .map(|each| each.seconds)
            .fold(f64::INFINITY, f64::min);
        let shared = self.packer.shared(&known, seconds, LOW_SHARES);
        for packing in shared.iter().filter(|each| each.seconds < seconds) {
            let parts = PARTS.into_iter().filter(|&parts| ends(parts) <= MOST_ENDS);
            found.extend(parts.map(|parts| packing.split(parts * commodities.len() as u64)));
        }
        if found.is_empty() {
            return Err(refused(
                "no links lead to somebody, or from somebody, over the NPUs that may relay; let others relay, or use greedy",
            ));
        }
        found.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Ok(found)
    }

    /// Returns whether a plan of so many transfers is near enough to the bound to try no others.
    fn is_near(&self, time: Time, transfers: usize) -> bool {
        let near = if transfers > MANY { NEAR_OF_MANY } else { NEAR };
        time.as_seconds() <= near * self.least
    }

    /// Returns whether the first of some lists, the best, is near enough.
    fn has_near(&self, found: &[Tried]) -> bool {
        let first = found.first();
        first.is_some_and(|each| self.is_near(Time::from_ps(each.end), each.listed.turns.len()))
    }

    /// Puts plans of twice as many pieces first as long as they are quicker, where only the number of transfers has kept the best
    /// far from what its links send.
    fn finer(
        &self,
        found: &mut Vec<Tried>,
        packings: &[Packing],
        jobs: &[Later<'_>],
        urgency: Urgency,
        progress: &mut dyn Progress,
    ) {
        while self.options.pieces.is_none()
            && progress.report("steiner: pieces", 0, 1)
            && let Some(best) = found.first()
        {
            let (packing, pieces) = (best.packing, 2 * best.pieces);
            let jobs = &jobs[packing];
            let transfers = jobs.list.len() as u64 * u64::from(pieces);
            if best.end as f64 <= FAR * 1e12 * packings[packing].seconds
                || !(MOST_TRANSFERS..=MOST_TRANSFERS_FINER).contains(&transfers)
                || PlanBuilder::check_size(transfers.into(), self.options.memory_limit).is_err()
                || jobs.chunks(self.collective, pieces).is_none()
            {
                break;
            }
            let listed = jobs.list(self.topology, pieces, urgency);
            let end = listed.end;
            if end as f64 > GAIN * best.end as f64 {
                break;
            }
            found.insert(
                0,
                Tried {
                    end,
                    packing,
                    pieces,
                    listed,
                },
            );
            found.truncate(MOST_LISTED);
        }
    }

    /// Lists the best plan so that the later links of its ways decide what sets off. Where the first link alone decides, pieces
    /// queue at the later ones, and no list of that kind foresees all of it.
    fn evenly(
        &self,
        found: &mut Vec<Tried>,
        jobs: &[Later<'_>],
        orders: &[(i64, bool)],
        progress: &mut dyn Progress,
    ) {
        let Some(&Tried {
            packing, pieces, ..
        }) = found.first()
        else {
            return;
        };
        let jobs = &jobs[packing];
        let transfers = jobs.list.len() as u64 * u64::from(pieces);
        if !jobs.has_long_ways || transfers > MOST_TRANSFERS {
            return;
        }
        for &(tail, is_spread) in orders.iter().take(MOST_EVEN) {
            if !progress.report("steiner: orders", 0, 1) {
                break;
            }
            progress.spend(LISTS_OF_EVEN * MESSAGE * transfers);
            let urgency = Urgency {
                tail,
                is_spread,
                at_every_link: true,
                is_even: true,
            };
            let listed = jobs.list(self.topology, pieces, urgency);
            let end = listed.end;
            found.push(Tried {
                end,
                packing,
                pieces,
                listed,
            });
        }
        found.sort_by_key(|each| each.end);
        found.truncate(MOST_LISTED);
    }

    /// Lists the plans of all packings with several numbers of pieces, and the best of them in every order.
    fn tried(
        &self,
        packings: &[Packing],
        jobs: &[Later<'_>],
        progress: &mut dyn Progress,
    ) -> Result<Vec<Tried>, PlanError> {
        let ladder = match self.options.pieces {
            Some(pieces) => vec![u32::try_from(pieces).unwrap_or(u32::MAX)],
            None => PIECES.to_vec(),
        };
        // Trees of few NPUs get in each other's way at the same places if all begin at once.
        let are_many = self.packer.commodities.len() > self.collective.npus().len();
        let orders = match are_many {
            true => [(TAILS[0], true), (TAILS[0], false)].to_vec(),
            false => TAILS.map(|tail| (tail, false)).to_vec(),
        };
        let order = |(tail, is_spread)| Urgency {
            tail,
            is_spread,
            at_every_link: false,
            is_even: false,
        };
        let urgency = order(orders[0]);
        let mut found: Vec<Tried> = Vec::new();
        let total = packings.len() as u64;
        for (number, (packing, jobs)) in packings.iter().zip(jobs).enumerate() {
            let best = found.iter().map(|each| each.end).min().unwrap_or(u64::MAX);
            if packing.seconds * 1e12 >= best as f64 || self.has_near(&found) {
                break;
            }
            if !progress.report("steiner: orders", number as u64, total) && !found.is_empty() {
                break;
            }
            let most = MOST_TRANSFERS / jobs.list.len().max(1) as u64;
            let mut last: Option<(u32, u64)> = None;
            for &pieces in &ladder {
                let transfers = jobs.list.len() as u64 * u64::from(pieces);
                PlanBuilder::check_size(transfers.into(), self.options.memory_limit)?;
                let is_chosen = self.options.pieces.is_none();
                if is_chosen && pieces > 1 && u64::from(pieces) > most
                    || jobs.chunks(self.collective, pieces).is_none()
                {
                    break;
                }
                progress.spend(MESSAGE * transfers);
                let listed = jobs.list(self.topology, pieces, urgency);
                let end = listed.end;
                found.push(Tried {
                    end,
                    packing: number,
                    pieces,
                    listed,
                });
                found.sort_by_key(|each| each.end);
                found.truncate(MOST_LISTED);
                if self.has_near(&found) {
                    break;
                }
                if let Some(last) = last
                    && promised(last, (pieces, end), most) >= found[0].end as f64
                {
                    break;
                }
                last = Some((pieces, end));
            }
        }
        if found.is_empty() {
            let bytes = self.packer.commodities.iter().map(|each| each.bytes).min();
            return Err(PlanError::TooManyChunks {
                what: "the smallest demand".to_owned(),
                bytes: bytes.unwrap_or(0),
                chunks: self.options.pieces.unwrap_or(1),
            });
        }
        self.evenly(&mut found, jobs, &orders, progress);
        self.finer(&mut found, packings, jobs, urgency, progress);
        if self.has_near(&found) {
            return Ok(found);
        }
        let mut others = Vec::new();
        for each in &found {
            let jobs = &jobs[each.packing];
            if jobs.has_long_ways || each.listed.turns.len() as u64 > MOST_TRANSFERS {
                continue;
            }
            for &each_order in &orders[1..] {
                if !progress.report("steiner: orders", total, total) {
                    found.extend(others);
                    return Ok(found);
                }
                progress.spend(MESSAGE * each.listed.turns.len() as u64);
                let listed = jobs.list(self.topology, each.pieces, order(each_order));
                others.push(Tried {
                    end: listed.end,
                    listed,
                    ..*each
                });
            }
        }
        found.extend(others);
        Ok(found)
    }
}

/// When a plan of the most pieces ends, about, by those of fewer and of more pieces: it takes the longer by a part that falls
/// with the number of pieces.
fn promised(few: (u32, u64), more: (u32, u64), most: u64) -> f64 {
    let part = |pieces: f64| 1.0 / pieces;
    let [a, b] = [few.0, more.0].map(|pieces| part(pieces.into()));
    let fill = (few.1 as f64 - more.1 as f64) / (a - b);
    more.1 as f64 - fill * (b - part(most.max(more.0.into()) as f64))
}

/// Returns why it does not do a collective on a network.
pub(crate) fn steiner_refusal(topology: &Topology, collective: &Collective) -> Option<String> {
    let kind = collective.kind();
    let is_custom = kind == CollectiveKind::Custom;
    if !is_custom && collective.npus().len() == topology.npu_count() {
        return Some("every NPU takes part, so that none is left to relay; use trees".to_owned());
    }
    match Commodity::all(collective) {
        Err(demand) => Some(format!(
            "several NPUs hold demand {demand} alike, and each of its trees starts at one; use greedy"
        )),
        Ok(all) if is_custom && all.iter().all(Commodity::is_of_one_for_one) => {
            Some("each demand goes from one NPU to one other; use flows".to_owned())
        }
        Ok(_) => None,
    }
}

fn refused(why: &str) -> PlanError {
    PlanError::NotApplicable {
        algorithm: STEINER,
        why: why.to_owned(),
    }
}
