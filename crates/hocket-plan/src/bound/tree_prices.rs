//! Prices of trees: what several want of one, or one of several, crosses a whole tree of links.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use microlp::{ComparisonOp, OptimizationDirection, Problem as Program, Solution, Variable};

use super::network::ArcNetwork;
use super::prices::{WORTH, offer_rounded};
use super::{Candidate, Problem};
use crate::id::{fit, narrow};
use crate::progress::{Interrupted, Progress};
use crate::units::{Time, whole};

/// Demands for which prices are sought, and the ends of one.
const MOST_DEMANDS: usize = 64;
const MOST_ENDS: usize = 8;
/// Sets of ends times nodes that are looked at in all rounds, about, and the rounds without which nothing is sought.
const MOST_WORK: u64 = 30_000_000;
const FEWEST_ROUNDS: u64 = 40;
/// The square of the trees of which the program knows times arcs, at the most; trees of each demand without which nothing is
/// sought; and how near the program comes to the best prices.
const MOST_PROGRAM: usize = 60_000_000;
const FEWEST_TREES: usize = 15;
const CLOSE: f64 = 1.001;
/// By how much of all costs a demand must be dearer than a tree that the program then learns.
const DEARER: f64 = 1e-7;
/// The dearest arc while prices are sought.
const DEAREST: f64 = 16_777_216.0;
/// In place of an arc: the way ends here. A number from [`SPLIT`] on is that and a set of ends that part from the others.
const END: u32 = u32::MAX;
const SPLIT: u32 = 1 << 31;

/// Returns the best bound from [`super::traffic`] under prices, for data of several groups that are copied from one NPU or
/// summed at one, if that may be more than is `known`.
///
/// Each byte crosses at least the cheapest tree from the one to all others, or from them to it; of one group alone the worst
/// cut says as much. The best prices are those of a linear program that knows ever more trees: the cheapest under the mean of
/// its prices and of those that prove the most so far. The bound is computed from rounded prices alone, exactly.
///
/// # Complexity
/// In each round, of k ends 3^k sums at each node, and 2^k searches.
///
/// # Source
/// Dreyfus, Wagner, The Steiner problem in graphs, 1971: cheapest trees. Wentges, Weighted Dantzig-Wolfe decomposition for linear
/// mixed-integer programming, 1997: the mean.
pub(super) fn bounds(
    problem: &Problem,
    known: Time,
    progress: &mut dyn Progress,
) -> Result<Candidate, Interrupted> {
    let mut best = Candidate::default();
    let Some(families) = families(problem) else {
        return Ok(best);
    };
    let networks = [&problem.network, &problem.reversed];
    let nodes = problem.network.node_count() as u64;
    let once = families
        .iter()
        .map(|family| family.work(nodes))
        .sum::<u64>();
    let demands = families.iter().map(|family| family.roots.len());
    let demands: usize = demands.sum();
    let trees = FEWEST_TREES * demands;
    if demands > MOST_DEMANDS
        || FEWEST_ROUNDS * once > MOST_WORK
        || trees * trees * problem.network.arcs().len() > MOST_PROGRAM
    {
        return Ok(best);
    }
    let Some(mut search) = Search::new(problem, &families) else {
        return Ok(best);
    };
    for round in 0..MOST_WORK / once {
        progress.spend(once);
        if !progress.report("bound: prices", round, MOST_WORK / once) {
            return Err(Interrupted);
        }
        if !search.improve(&networks, known) {
            break;
        }
    }
    let mut trees = Trees::default();
    offer_rounded(problem, &search.proof, &mut best, |prices| {
        trees.work(&networks, &families, prices, |_| ())
    });
    Ok(best)
}

/// Roots of demands, each with its bytes.
type Roots = Vec<(u32, u64)>;

/// Demands of the same ends.
struct Family {
    ends: Vec<u32>,
    is_sum: bool,
    roots: Roots,
}

impl Family {
    /// Returns the ends that trees are grown to: all, or all but the only root.
    fn far(&self) -> Vec<u32> {
        let is_far = |end: &&u32| self.roots.len() > 1 || **end != self.roots[0].0;
        self.ends.iter().filter(is_far).copied().collect()
    }

    fn work(&self, nodes: u64) -> u64 {
        let far = self.ends.len() - usize::from(self.roots.len() == 1);
        3u64.saturating_pow(fit(far)).saturating_mul(nodes)
    }
}

/// Returns the demands by their ends; `None` if one is neither copied from one nor summed at one, if all have the same ends or
/// none has several, or if one has too many.
fn families(problem: &Problem) -> Option<Vec<Family>> {
    let needs = &problem.needs;
    let npus = needs.npus();
    if needs.all_to_all().is_some() || needs.demands().len() > 2 * MOST_DEMANDS {
        return None;
    }
    let mut found: BTreeMap<(Vec<u32>, bool), Roots> = BTreeMap::new();
    for demand in needs.demands() {
        let ends = [&demand.holders, &demand.wanted].map(|set| set.members(npus));
        let (root, is_sum) = match ends {
            [[one], _] => (one.0, false),
            [_, [one]] if demand.reduced => (one.0, true),
            _ => return None,
        };
        let ends: BTreeSet<u32> = ends.iter().copied().flatten().map(|npu| npu.0).collect();
        if ends.len() > MOST_ENDS {
            return None;
        }
        if ends.len() > 1 {
            let key = (ends.into_iter().collect(), is_sum);
            found.entry(key).or_default().push((root, demand.bytes));
        }
    }
    if found.len() < 2 || found.keys().all(|(ends, _)| ends.len() == 2) {
        return None;
    }
    let made = found.into_iter().map(|((ends, is_sum), roots)| Family {
        ends,
        is_sum,
        roots,
    });
    Some(made.collect())
}

/// The cheapest trees to each set of ends from each node, one family after the other.
#[derive(Default)]
struct Trees {
    nodes: usize,
    /// By set and node, the cost, and how the tree goes on.
    cost: Vec<u64>,
    next: Vec<u32>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Trees {
    /// Returns bytes times the cost of the cheapest trees, all together, and shows the arcs of that of each demand; `None` if
    /// somebody cannot be reached.
    fn work(
        &mut self,
        networks: &[&ArcNetwork; 2],
        families: &[Family],
        prices: &[u64],
        mut show: impl FnMut(Vec<u32>),
    ) -> Option<u128> {
        let mut work = 0;
        for family in families {
            let network = networks[usize::from(family.is_sum)];
            let far = family.far();
            self.grow(network, &far, family.roots.len() > 1, prices);
            let all = (1 << far.len()) - 1;
            for &(root, bytes) in &family.roots {
                let own = far.iter().position(|&end| end == root);
                let set = all & !own.map_or(0, |place| 1 << place);
                let cost = self.cost[set * self.nodes + root as usize];
                if cost == u64::MAX {
                    return None;
                }
                work += u128::from(bytes) * u128::from(cost);
                show(self.arcs(network, set, root));
            }
        }
        Some(work)
    }

    /// Grows trees to all sets of ends, without that of all where `but_all` is set.
    fn grow(&mut self, network: &ArcNetwork, far: &[u32], but_all: bool, prices: &[u64]) {
        self.nodes = network.node_count();
        let sets = 1usize << far.len();
        self.cost.clear();
        self.cost.resize(sets * self.nodes, u64::MAX);
        self.next.clear();
        self.next.resize(sets * self.nodes, END);
        for set in 1..sets - usize::from(but_all) {
            if set.is_power_of_two() {
                let end = far[set.trailing_zeros() as usize];
                self.cost[set * self.nodes + end as usize] = 0;
            } else {
                self.split(network, set);
            }
            self.spread(network, set, prices);
        }
    }

    /// Lets trees part at places that copy or sum.
    fn split(&mut self, network: &ArcNetwork, set: usize) {
        let lowest = set & set.wrapping_neg();
        let mut part = (set - 1) & set;
        while part > 0 {
            if part & lowest > 0 {
                for node in network.stations() {
                    let at = |set: usize| set * self.nodes + node as usize;
                    let both = self.cost[at(part)].saturating_add(self.cost[at(set ^ part)]);
                    if both < self.cost[at(set)] {
                        let to = at(set);
                        (self.cost[to], self.next[to]) = (both, SPLIT | narrow(part));
                    }
                }
            }
            part = (part - 1) & set;
        }
    }

    /// Lets trees begin with arcs.
    fn spread(&mut self, network: &ArcNetwork, set: usize, prices: &[u64]) {
        let first = set * self.nodes;
        let costs = self.cost[first..first + self.nodes].iter();
        let known = (0u32..).zip(costs).filter(|(_, cost)| **cost < u64::MAX);
        self.heap
            .extend(known.map(|(node, &cost)| Reverse((cost, node))));
        while let Some(Reverse((cost, node))) = self.heap.pop() {
            if cost > self.cost[first + node as usize] {
                continue;
            }
            for &arc in network.arcs_in(node) {
                let to = first + network.arcs()[arc as usize].src as usize;
                let longer = cost + prices[arc as usize];
                if longer < self.cost[to] {
                    (self.cost[to], self.next[to]) = (longer, arc);
                    self.heap
                        .push(Reverse((longer, network.arcs()[arc as usize].src)));
                }
            }
        }
    }

    /// Returns the arcs of a tree, ascending, an arc as often as it is used.
    fn arcs(&self, network: &ArcNetwork, set: usize, root: u32) -> Vec<u32> {
        let mut arcs = Vec::new();
        let mut left = vec![(set, root)];
        while let Some((set, node)) = left.pop() {
            match self.next[set * self.nodes + node as usize] {
                END => {}
                next if next >= SPLIT => {
                    let part = (next ^ SPLIT) as usize;
                    left.extend([(part, node), (set ^ part, node)]);
                }
                arc => {
                    arcs.push(arc);
                    left.push((set, network.arcs()[arc as usize].dst));
                }
            }
        }
        arcs.sort_unstable();
        arcs
    }
}

/// The linear program of prices: the trees of all demands, each as dear as its cheapest known tree, are to be as dear as may
/// be while all that the links can carry costs 1.
struct Search<'a> {
    families: &'a [Family],
    /// Of arcs, as parts of the fastest; and what a unit of the program's values is [s].
    rates: Vec<f64>,
    unit: f64,
    /// The bytes of the largest demand.
    most: f64,
    solution: Option<Solution>,
    prices: Vec<Variable>,
    costs: Vec<Variable>,
    trees: Trees,
    known: usize,
    /// The prices that prove most so far, and what they prove in units.
    center: Vec<f64>,
    proved: f64,
    proof: Vec<u64>,
    /// Whether the next trees are those of the program's own prices.
    is_at_program: bool,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem, families: &'a [Family]) -> Option<Self> {
        let arcs = problem.network.arcs();
        let fastest = arcs.iter().map(|arc| arc.capacity).max()? as f64;
        let rates: Vec<f64> = arcs
            .iter()
            .map(|arc| arc.capacity as f64 / fastest)
            .collect();
        let all = || families.iter().flat_map(|family| &family.roots);
        let most = all().map(|root| root.1).max()? as f64;
        let mut program = Program::new(OptimizationDirection::Maximize);
        let prices: Vec<Variable> = rates
            .iter()
            .map(|_| program.add_var(0.0, (0.0, f64::INFINITY)))
            .collect();
        let costs: Vec<Variable> = all()
            .map(|root| program.add_var(root.1 as f64 / most, (0.0, f64::INFINITY)))
            .collect();
        let sum = prices.iter().copied().zip(rates.iter().copied());
        program.add_constraint(sum.collect::<Vec<_>>(), ComparisonOp::Eq, 1.0);
        let even: f64 = rates.len() as f64;
        let center: Vec<f64> = rates.iter().map(|rate| 1.0 / rate / even).collect();
        let mut search = Self {
            families,
            unit: most / fastest,
            most,
            solution: None,
            prices,
            costs,
            trees: Trees::default(),
            known: 0,
            proved: 0.0,
            proof: Vec::new(),
            center: center.clone(),
            rates,
            is_at_program: false,
        };
        let networks = [&problem.network, &problem.reversed];
        for (number, arcs) in search.cheapest(&networks, &center)?.iter().enumerate() {
            program.add_constraint(search.row(number, arcs), ComparisonOp::Le, 0.0);
            search.known += 1;
        }
        search.solution = program.solve().ok()?.into_solution().ok();
        search.solution.is_some().then_some(search)
    }

    /// Returns the row that says that a demand costs no more than a tree.
    fn row(&self, number: usize, arcs: &[u32]) -> Vec<(Variable, f64)> {
        let mut uses: BTreeMap<u32, f64> = BTreeMap::new();
        for &arc in arcs {
            *uses.entry(arc).or_default() -= 1.0;
        }
        let uses = uses.into_iter();
        let row = uses.map(|(arc, uses)| (self.prices[arc as usize], uses));
        row.chain([(self.costs[number], 1.0)]).collect()
    }

    /// Returns the cheapest trees, and keeps the prices if they prove more than others.
    fn cheapest(&mut self, networks: &[&ArcNetwork; 2], prices: &[f64]) -> Option<Vec<Vec<u32>>> {
        let dearest = prices.iter().copied().fold(0.0, f64::max);
        let rounded = prices.iter().map(|price| price / dearest * DEAREST);
        let rounded: Vec<u64> = rounded.map(|price| whole(price.round()) + 1).collect();
        let mut found = Vec::new();
        let show = |arcs| found.push(arcs);
        let work = self.trees.work(networks, self.families, &rounded, show)?;
        let all = rounded.iter().zip(&self.rates);
        let all: f64 = all.map(|(&price, rate)| price as f64 * rate).sum();
        let proved = work as f64 / self.most / all;
        if proved > self.proved {
            self.proved = proved;
            self.center = rounded.iter().map(|&price| price as f64 / all).collect();
            self.proof = rounded;
        }
        Some(found)
    }

    /// Adds trees to the program; whether there may be better prices that are worth it.
    fn improve(&mut self, networks: &[&ArcNetwork; 2], known: Time) -> bool {
        let Some(solution) = self.solution.take() else {
            return false;
        };
        let may_be = solution.objective();
        if may_be <= CLOSE * self.proved
            || may_be * self.unit <= WORTH * known.as_seconds()
            || self.known * self.known * self.rates.len() > MOST_PROGRAM
        {
            return false;
        }
        let own = self
            .prices
            .iter()
            .map(|&price| solution.var_value(price).max(0.0));
        let share = if self.is_at_program { 1.0 } else { 0.5 };
        let mixed = own.zip(&self.center);
        let mixed: Vec<f64> = mixed
            .map(|(own, center)| share * own + (1.0 - share) * center)
            .collect();
        let Some(found) = self.cheapest(networks, &mixed) else {
            return false;
        };
        let is_new = |row: &Vec<(Variable, f64)>| {
            let values = row.iter();
            let values = values.map(|&(variable, times)| times * solution.var_value(variable));
            values.sum::<f64>() > DEARER * may_be
        };
        let rows = found.iter().enumerate();
        let rows = rows.map(|(number, arcs)| self.row(number, arcs));
        let rows: Vec<_> = rows.filter(is_new).collect();
        if rows.is_empty() {
            self.solution = Some(solution);
            return !std::mem::replace(&mut self.is_at_program, true);
        }
        self.is_at_program = false;
        self.known += rows.len();
        let mut solution = Some(solution);
        for row in rows {
            let added = solution.and_then(|it| it.add_constraint(row, ComparisonOp::Le, 0.0).ok());
            solution = added.and_then(|added| added.into_solution().ok());
        }
        self.solution = solution;
        self.solution.is_some()
    }
}
