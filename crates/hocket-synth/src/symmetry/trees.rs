//! Trees of the first NPU whose shifts use all links of an orbit alike.

use std::collections::{BTreeMap, HashMap};

use super::NoSymmetry;
use super::balance::Balance;
use super::group::Symmetry;
use super::ranks::{Shifts, entries, ranks};
use super::steps::{Growth, Steps};
use crate::id::{LinkId, fit, narrow};
use crate::packing::{Tree, TreeArc, TreeSet};
use crate::topology::Topology;

/// Trees of the first NPU, and the same with each link replaced by the first of its orbit.
#[derive(Clone, Debug)]
pub(super) struct Trees {
    pub set: TreeSet,
    pub folded: TreeSet,
    /// How long the busiest link takes for a byte that each NPU sends [s].
    pub seconds_a_byte: f64,
}

/// Elements times steps up to which trees are looked for.
const MOST_WORK: u64 = 1 << 26;
/// Numbers of trees that are tried, as long as they have no more arcs than this.
const MOST_TREES: u64 = 32;
const MOST_ARCS: u64 = 1 << 17;
/// What more trees must gain.
const GAIN: f64 = 1.000_5;
/// How often prices are changed to bring what is busiest down.
const MOST_ROUNDS: usize = 8;

/// One way to grow trees, and what it comes to.
struct Choice {
    trees: u64,
    busiest: f64,
    rank: Vec<u32>,
    entries: Vec<Vec<(u32, u32)>>,
    shares: BTreeMap<Vec<u32>, Vec<u64>>,
}

/// Finds trees, as few as use links about as evenly as any number up to `room` that is tried; `count` of them where that is given.
///
/// # Errors
/// [`NoSymmetry`] where no ways lead to all NPUs that the shifts of one another never meet on, or there are too many.
pub(super) fn trees(
    topology: &Topology,
    symmetry: &Symmetry,
    turned: bool,
    (count, room): (Option<u64>, u64),
    least: f64,
) -> Result<Trees, NoSymmetry> {
    let steps = Steps::new(Growth { topology, turned }, symmetry);
    let shifts = Shifts::new(symmetry, &steps);
    if shifts.work(symmetry) > MOST_WORK {
        return Err(NoSymmetry::TooMany {
            npus: symmetry.len(),
            ways: steps.steps.len(),
        });
    }
    let orbits = 0..narrow(symmetry.orbits().len());
    let first = orbits.map(|orbit| topology.link(symmetry.orbits().first(orbit)));
    let costs: Vec<f64> = first
        .map(|link| 1.0 / link.bandwidth.bytes_per_second() as f64)
        .collect();
    let mut prices = costs.clone();
    let mut best: Option<Choice> = None;
    for _ in 0..MOST_ROUNDS {
        let (choice, uses) = choose(symmetry, (&steps, &shifts), &costs, &prices, (count, room))?;
        let is_better = best
            .as_ref()
            .is_none_or(|best| choice.busiest * GAIN < best.busiest);
        let busiest = choice.busiest;
        if is_better {
            best = Some(choice);
        }
        let goal = best.as_ref().map_or(busiest, |best| best.busiest);
        if goal <= least * GAIN {
            break;
        }
        for (price, busy) in prices.iter_mut().zip(uses) {
            *price *= 0.5 + busy / busiest;
        }
    }
    let choice = best.expect("there is a round");
    Ok(grow(symmetry, &steps, &choice))
}

/// Returns the best number of trees for some prices; also how busy each orbit is.
fn choose(
    symmetry: &Symmetry,
    (steps, shifts): (&Steps, &Shifts),
    costs: &[f64],
    prices: &[f64],
    (count, room): (Option<u64>, u64),
) -> Result<(Choice, Vec<f64>), NoSymmetry> {
    let rank = ranks(symmetry, steps, prices);
    if rank.contains(&u32::MAX) {
        return Err(steps.left_out.clone().unwrap_or(NoSymmetry::Regular));
    }
    let entries = entries(symmetry, shifts, &rank);
    let mut patterns: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
    for entry in &entries[1..] {
        let pattern = entry.iter().map(|&(profile, _)| profile).collect();
        *patterns.entry(pattern).or_insert(0) += 1;
    }
    let arcs = symmetry.len() as u64 - 1;
    let tried =
        (1..=MOST_TREES).filter(|trees| *trees == 1 || *trees <= room && trees * arcs <= MOST_ARCS);
    let tried: Vec<u64> = count.map_or_else(|| tried.collect(), |count| vec![count]);
    let mut best: Option<(u64, f64, Balance)> = None;
    for trees in tried {
        let balance = Balance::new(&steps.profiles, costs, &patterns, trees);
        let busiest = balance.busiest() / trees as f64;
        if best
            .as_ref()
            .is_none_or(|(_, least, _)| busiest * GAIN < *least)
        {
            best = Some((trees, busiest, balance));
        }
    }
    let (trees, busiest, balance) = best.expect("one tree is tried");
    let shares = balance.shares().into_iter();
    let shares = shares
        .map(|(pattern, shares)| (pattern.clone(), shares.clone()))
        .collect();
    let uses = balance.busy().map(|busy| busy / trees as f64).collect();
    Ok((
        Choice {
            trees,
            busiest,
            rank,
            entries,
            shares,
        },
        uses,
    ))
}

/// Assigns each element of each tree one of the profiles of its pattern, in turn, so that each has its share.
fn grow(symmetry: &Symmetry, steps: &Steps, choice: &Choice) -> Trees {
    let mut order: Vec<u32> = (1..narrow(symmetry.len())).collect();
    order.sort_by_key(|&element| (choice.rank[element as usize], element));
    let mut dealt: BTreeMap<Vec<u32>, Vec<u64>> = BTreeMap::new();
    let mut ways = Ways::default();
    let mut made: Vec<Vec<TreeArc>> = vec![Vec::with_capacity(order.len()); fit(choice.trees)];
    let mut arc_of = vec![vec![TreeArc::ROOT; symmetry.len()]; fit(choice.trees)];
    for &element in &order {
        let entry = &choice.entries[element as usize];
        let pattern: Vec<u32> = entry.iter().map(|&(profile, _)| profile).collect();
        let shares = &choice.shares[&pattern];
        let dealt = dealt
            .entry(pattern)
            .or_insert_with(|| vec![0; shares.len()]);
        for (arcs, arc_of) in made.iter_mut().zip(&mut arc_of) {
            let chosen = furthest_behind(shares, dealt);
            dealt[chosen] += 1;
            let step = entry[chosen].1;
            let from = symmetry.difference(element, steps.steps[step as usize].by);
            let way = ways.get(symmetry, steps, from, step);
            arc_of[element as usize] = narrow(arcs.len());
            arcs.push(TreeArc {
                src: symmetry.npu(from),
                dst: symmetry.npu(element),
                way,
                parent: arc_of[from as usize],
            });
        }
    }
    let root = symmetry.npu(0);
    let trees: Vec<Tree> = made.into_iter().map(|arcs| Tree { root, arcs }).collect();
    Trees {
        set: TreeSet {
            trees: trees.clone(),
            ways: ways.links,
        },
        folded: TreeSet {
            trees,
            ways: ways.folded,
        },
        seconds_a_byte: choice.busiest,
    }
}

/// Returns the profile that is furthest behind its share of what has been dealt.
fn furthest_behind(shares: &[u64], dealt: &[u64]) -> usize {
    let behind = |&i: &usize| {
        // By when its next one is due, as a share of its own; those that have all theirs come last.
        let (next, share) = (2 * dealt[i] + 1, shares[i]);
        (dealt[i] < share, next as f64 / (2 * share.max(1)) as f64)
    };
    let open = (0..shares.len()).filter(|i| behind(i).0);
    let first = open.min_by(|a, b| behind(a).1.total_cmp(&behind(b).1));
    first.expect("shares add up to what is dealt")
}

#[derive(Default)]
struct Ways {
    links: Vec<Vec<LinkId>>,
    folded: Vec<Vec<LinkId>>,
    number: HashMap<(u32, u32), u32>,
}

impl Ways {
    /// Returns the way of a step from an element.
    fn get(&mut self, symmetry: &Symmetry, steps: &Steps, from: u32, step: u32) -> u32 {
        let next = narrow(self.links.len());
        let number = *self.number.entry((from, step)).or_insert(next);
        if number == next {
            let links = &steps.steps[step as usize].links;
            let taken = links.iter().map(|&link| symmetry.take_link(from, link));
            self.links.push(taken.collect());
            let orbits = symmetry.orbits();
            let first = links.iter().map(|&link| orbits.first(orbits.of(link)));
            self.folded.push(first.collect());
        }
        number
    }
}
