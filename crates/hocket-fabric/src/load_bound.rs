//! A load that no assignment can keep every link below, with what forces it.

use super::{Fabric, Flow};
use crate::graph::Lists;
use crate::id::narrow;
use crate::units::Bandwidth;

/// A lower bound on the maximum link load of any assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "Certificate")]
pub struct LoadBound {
    /// The bound, in the unit of the weights; 0 without flows.
    pub load: u64,
    /// The flows that force the bound; `None` without flows.
    pub witness: Option<Witness>,
}

/// Flows that share few links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The ToR whose links they share, or a ToR of the pod whose links they share.
    pub tor: u32,
    /// `true` if the flows leave the ToR (up), `false` if they enter it (down).
    pub outgoing: bool,
    /// The links that the flows share.
    pub share: Share,
    /// Number of flows.
    pub flows: usize,
    /// Sum of the flows' weights.
    pub weight: u64,
    /// Number of links over which the flows can spread.
    pub links: usize,
    /// Number of links of the same end that no flow can take, since no path goes on from them.
    pub unused: usize,
    /// Levels of the fabric: ToRs are called `tor` on two and `edge` on three.
    pub levels: u32,
    /// The bandwidth that a weight loads with just itself, if links have several: [`Fabric::reference`].
    pub reference: Option<Bandwidth>,
}

/// The links that the flows of a [`Witness`] share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// A ToR's.
    Tor,
    /// A ToR's on the way to this one.
    Pair(u32),
    /// Those of a pod with the cores.
    Pod,
}

impl LoadBound {
    /// In words: `tor5 sends 33 flows of 33 in all over 32 uplinks: one carries 2 or more`. Where links differ, what is carried
    /// counts for more on slow ones.
    pub fn describe(&self) -> String {
        let Some(witness) = &self.witness else {
            return "there are no flows".to_owned();
        };
        let Witness {
            tor,
            flows,
            weight,
            links,
            unused,
            reference,
            ..
        } = *witness;
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let (verb, preposition, link) = match witness.outgoing {
            true => ("sends", "to", "uplink"),
            false => ("receives", "from", "downlink"),
        };
        let kind = if witness.levels == 2 { "tor" } else { "edge" };
        let (whose, peer, link) = match witness.share {
            Share::Tor => (String::new(), String::new(), link),
            Share::Pair(other) => (
                String::new(),
                format!(" {preposition} {kind}{other}"),
                "path",
            ),
            Share::Pod => ("the pod of ".to_owned(), String::new(), link),
        };
        let besides = match unused {
            0 => String::new(),
            _ => format!(" (no path uses {unused} more)"),
        };
        let counted = reference.map_or_else(String::new, |rate| {
            format!(", each times {rate} over the link's bandwidth")
        });
        format!(
            "{whose}{kind}{tor} {verb} {flows} flow{} of {weight} in all{peer} over {links} {link}{}{besides}: \
             one carries {} or more{counted}",
            plural(flows),
            plural(links),
            self.load,
        )
    }
}

/// Returns the strongest of these arguments, over all ToRs and pods both ways and, where links are missing or differ,
/// over all pairs of ToRs: flows of total weight W on the k links that their paths use load one with W / k. The k j + 1
/// heaviest load one with the j + 1 lightest of them (j = 0: the heaviest flow). Of links that differ, all loaded just
/// as high, the flows must fit in what they carry.
///
/// For flows of one weight on a complete two-level fabric of equal links this is the optimum, which
/// edge colouring reaches.
pub(super) fn least_load(fabric: &Fabric, flows: &[Flow]) -> LoadBound {
    let mut order: Vec<u32> = (0..narrow(flows.len())).collect();
    let alike = flows
        .windows(2)
        .all(|pair| pair[0].weight == pair[1].weight);
    if !alike {
        order.sort_by_key(|&i| std::cmp::Reverse(flows[i as usize].weight));
    }
    let mut search = Search {
        fabric,
        flows,
        alike,
        leads: None,
        scales: Vec::new(),
        unused: 0,
        best: LoadBound {
            load: 0,
            witness: None,
        },
    };
    let pairs = (!(fabric.is_complete() && fabric.is_even())).then(|| {
        let mut pairs = order.clone();
        pairs.sort_by_key(|&i| pair(&flows[i as usize]));
        pairs
    });
    if !fabric.is_complete() {
        search.leads = pairs.as_ref().map(|pairs| search.leading(pairs));
    }
    for outgoing in [true, false] {
        search.ends(&order, outgoing);
    }
    if let Some(pairs) = pairs {
        search.pairs(&pairs);
    }
    search.best
}

fn pair(flow: &Flow) -> (u32, u32) {
    (flow.src, flow.dst)
}

struct Search<'a> {
    fabric: &'a Fabric,
    flows: &'a [Flow],
    alike: bool,
    /// Whether some flow can take the link of a slot, where links are missing: one that is there may
    /// end at a switch that no path goes on from.
    leads: Option<Vec<bool>>,
    /// Of the links that the flows at hand share.
    scales: Vec<u64>,
    /// Links of the same end that no flow can take.
    unused: usize,
    best: LoadBound,
}

impl Search<'_> {
    /// ToRs and pods, as sources or as destinations.
    fn ends(&mut self, order: &[u32], outgoing: bool) {
        let (fabric, flows) = (self.fabric, self.flows);
        let end = |flow: &Flow| if outgoing { flow.src } else { flow.dst };
        let of = |i: u32| Some(end(&flows[i as usize]) as usize);
        let blocks = fabric.blocks();
        let start = blocks[usize::from(!outgoing)];
        for (tor, group) in not_empty(&grouped(fabric.tor_count(), order, of)) {
            self.share(start + tor * fabric.columns..start + (tor + 1) * fabric.columns);
            self.raise(group, narrow(tor), outgoing, Share::Tor);
        }
        let Some(upper) = &fabric.upper else {
            return;
        };
        let of = |i: u32| {
            let Flow { src, dst, .. } = flows[i as usize];
            let pods = [src, dst].map(|tor| upper.pod_of[tor as usize] as usize);
            (pods[0] != pods[1]).then_some(pods[usize::from(!outgoing)])
        };
        let start = blocks[2 + usize::from(!outgoing)];
        for (pod, group) in not_empty(&grouped(upper.pods, order, of)) {
            self.share(start + pod * upper.cores..start + (pod + 1) * upper.cores);
            let tor = upper.pod_of.iter().position(|&of| of as usize == pod);
            let tor = tor.expect("flows come from ToRs");
            self.raise(group, narrow(tor), outgoing, Share::Pod);
        }
    }

    fn share(&mut self, slots: std::ops::Range<usize>) {
        let fabric = self.fabric;
        self.scales.clear();
        self.unused = 0;
        for slot in slots.filter(|&slot| fabric.links[slot].is_some()) {
            match self.leads.as_ref().is_none_or(|leads| leads[slot]) {
                true => self.scales.push(fabric.scale(slot)),
                false => self.unused += 1,
            }
        }
    }

    /// Returns the slots that some flow can take. `pairs`: the flows, pair by pair.
    fn leading(&self, pairs: &[u32]) -> Vec<bool> {
        let (fabric, flows) = (self.fabric, self.flows);
        let mut leads = vec![false; fabric.links.len()];
        for flow in pairs.chunk_by(|&a, &b| pair(&flows[a as usize]) == pair(&flows[b as usize])) {
            let (src, dst) = pair(&flows[flow[0] as usize]);
            for choice in fabric.choices_between(src, dst) {
                for slot in fabric.slots_of(src, dst, choice).iter() {
                    leads[slot] = true;
                }
            }
        }
        leads
    }

    /// Pairs of ToRs, heaviest flow first; a path of theirs can carry what its narrower end can.
    fn pairs(&mut self, pairs: &[u32]) {
        let flows = self.flows;
        for group in pairs.chunk_by(|&a, &b| pair(&flows[a as usize]) == pair(&flows[b as usize])) {
            let (src, dst) = pair(&flows[group[0] as usize]);
            self.share_pair(src, dst);
            self.raise(group, src, true, Share::Pair(dst));
        }
    }

    /// Of each column that a path takes, the narrower of its links at the two ToRs.
    fn share_pair(&mut self, src: u32, dst: u32) {
        let fabric = self.fabric;
        self.unused = 0;
        let narrower = |[up, down]: [usize; 2]| fabric.scale(up).max(fabric.scale(down));
        self.scales.clear();
        if fabric.levels() == 2 {
            let columns = fabric.columns;
            let [up, down] = [src as usize, fabric.tors + dst as usize].map(|row| row * columns);
            let both = (0..columns).map(|column| [up + column, down + column]);
            let there = both.filter(|ends| ends.iter().all(|&slot| fabric.links[slot].is_some()));
            self.scales.extend(there.map(narrower));
            return;
        }
        let mut ends: Vec<[usize; 2]> = fabric
            .choices_between(src, dst)
            .map(|choice| {
                fabric
                    .slots_of(src, dst, choice)
                    .ends()
                    .map(|slot| slot as usize)
            })
            .collect();
        ends.sort_unstable();
        ends.dedup();
        self.scales.extend(ends.into_iter().map(narrower));
    }

    fn raise(&mut self, group: &[u32], tor: u32, outgoing: bool, share: Share) {
        let weight = |&i: &u32| self.flows[i as usize].weight;
        let witness = Witness {
            tor,
            outgoing,
            share,
            flows: group.len(),
            weight: group.iter().map(weight).sum(),
            links: self.scales.len(),
            unused: self.unused,
            levels: self.fabric.levels(),
            reference: (!self.fabric.is_even()).then(|| self.fabric.reference()),
        };
        let load = self.least(group, witness.weight);
        // Of arguments as strong, one that needs no word about links that no path uses.
        let plainer =
            |best: &Witness| load == self.best.load && self.unused == 0 && best.unused > 0;
        if load > self.best.load || self.best.witness.as_ref().is_none_or(plainer) {
            self.best = LoadBound {
                load,
                witness: Some(witness),
            };
        }
    }

    /// Returns what one link must carry of the group, heaviest first.
    fn least(&self, group: &[u32], total: u64) -> u64 {
        let links = self.scales.len();
        let weight = |position: usize| self.flows[group[position] as usize].weight;
        if !self.fabric.is_even() {
            let unit = if self.alike { weight(0).max(1) } else { 1 };
            return self
                .least_of_uneven(unit, total)
                .max(self.scaled(weight(0)));
        }
        if self.alike {
            return weight(0) * group.len().div_ceil(links) as u64;
        }
        let mut best = total.div_ceil(links as u64);
        for (j, last) in (0..group.len()).step_by(links).enumerate() {
            best = best.max((last - j..=last).map(weight).sum());
        }
        best
    }

    /// Returns what a weight loads the widest link with.
    fn scaled(&self, weight: u64) -> u64 {
        weight * self.scales.iter().copied().min().unwrap_or(1)
    }

    /// Returns the least load at which the links carry a total of whole units.
    fn least_of_uneven(&self, unit: u64, total: u64) -> u64 {
        let carries = |load: u64| -> u128 {
            let carried = |&scale: &u64| u128::from(load / (scale * unit)) * u128::from(unit);
            self.scales.iter().map(carried).sum()
        };
        let (mut low, mut high) = (0, self.scaled(total));
        while low < high {
            let middle = low + (high - low) / 2;
            match carries(middle) >= u128::from(total) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }
}

/// Returns the positions by ToR or pod, in the order given. Those that belong nowhere are left out.
fn grouped(sets: usize, order: &[u32], set_of: impl Fn(u32) -> Option<usize>) -> Lists<u32> {
    let in_sets = |&i: &u32| set_of(i).map(|set| (set, i));
    Lists::grouped(sets, order.iter().filter_map(in_sets))
}

/// Returns each list that is not empty, with its number.
fn not_empty(groups: &Lists<u32>) -> impl Iterator<Item = (usize, &[u32])> {
    let groups = groups.iter().enumerate();
    groups.filter(|(_, group)| !group.is_empty())
}
