//! A load that no assignment can keep every link below, with the ToR that forces it.

use super::{Fabric, Flow};

/// A lower bound on the maximum link load of any assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The bound, in the unit of the weights; 0 without flows.
    pub load: u64,
    /// What forces it; `None` without flows.
    pub witness: Option<Witness>,
}

/// Flows that share few links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The ToR whose links they share.
    pub tor: u32,
    /// Whether they leave it (up) or enter it (down).
    pub outgoing: bool,
    /// The only ToR at their other ends, where that is what leaves them few links.
    pub peer: Option<u32>,
    /// How many flows there are.
    pub flows: usize,
    /// What they weigh together.
    pub weight: u64,
    /// Over how many links they can spread.
    pub links: usize,
}

impl Certificate {
    /// In words: `tor5 sends 33 flows of 33 in all over 32 uplinks: one carries 2 or more`.
    pub fn describe(&self) -> String {
        let Some(witness) = &self.witness else {
            return "there are no flows".to_owned();
        };
        let Witness {
            tor,
            flows,
            weight,
            links,
            ..
        } = *witness;
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let (verb, preposition, link) = match witness.outgoing {
            true => ("sends", "to", "uplink"),
            false => ("receives", "from", "downlink"),
        };
        let link = if witness.peer.is_some() { "path" } else { link };
        let peer = witness
            .peer
            .map_or(String::new(), |peer| format!(" {preposition} tor{peer}"));
        format!(
            "tor{tor} {verb} {flows} flow{} of {weight} in all{peer} over {links} {link}{}: one carries {} or more",
            plural(flows),
            plural(links),
            self.load,
        )
    }
}

/// The strongest of these arguments, over all ToRs both ways and, where links are missing, over all
/// pairs of ToRs: flows of total weight W on k links load one with W / k; the k j + 1 heaviest load
/// one with the j + 1 lightest of them (j = 0: the heaviest flow).
///
/// For flows of one weight on a complete fabric this is the optimum, which edge colouring reaches.
pub(super) fn certify(fabric: &Fabric, flows: &[Flow]) -> Certificate {
    let mut best = Certificate {
        load: 0,
        witness: None,
    };
    let mut order: Vec<u32> = (0..flows.len() as u32).collect();
    let alike = flows
        .windows(2)
        .all(|pair| pair[0].weight == pair[1].weight);
    if !alike {
        order.sort_by_key(|&i| std::cmp::Reverse(flows[i as usize].weight));
    }
    for outgoing in [true, false] {
        let end = |flow: &Flow| if outgoing { flow.src } else { flow.dst };
        let groups = grouped(fabric.tor_count(), &order, |i| {
            end(&flows[i as usize]) as usize
        });
        let column = fabric.columns()[usize::from(!outgoing)];
        for (tor, group) in groups.iter() {
            let spines = fabric.spine_count();
            let row = &column[tor * spines..(tor + 1) * spines];
            let links = row.iter().flatten().count();
            let witness = witness(tor as u32, outgoing, None, links, group, flows);
            best.raise(group, flows, alike, witness);
        }
    }
    if !fabric.is_complete() {
        order.sort_by_key(|&i| (flows[i as usize].src, flows[i as usize].dst));
        let pair = |i: &u32| (flows[*i as usize].src, flows[*i as usize].dst);
        for group in order.chunk_by_mut(|a, b| pair(a) == pair(b)) {
            group.sort_by_key(|&i| std::cmp::Reverse(flows[i as usize].weight));
            let (src, dst) = pair(&group[0]);
            let links = fabric.spines_between(src, dst).count();
            let witness = witness(src, true, Some(dst), links, group, flows);
            best.raise(group, flows, alike, witness);
        }
    }
    best
}

impl Certificate {
    fn raise(&mut self, group: &[u32], flows: &[Flow], alike: bool, witness: Witness) {
        let load = least(group, flows, alike, &witness);
        if self.witness.is_none() || load > self.load {
            *self = Self {
                load,
                witness: Some(witness),
            };
        }
    }
}

fn witness(
    tor: u32,
    outgoing: bool,
    peer: Option<u32>,
    links: usize,
    group: &[u32],
    flows: &[Flow],
) -> Witness {
    Witness {
        tor,
        outgoing,
        peer,
        flows: group.len(),
        weight: group.iter().map(|&i| flows[i as usize].weight).sum(),
        links,
    }
}

/// What one link must carry of the group, heaviest first.
fn least(group: &[u32], flows: &[Flow], alike: bool, witness: &Witness) -> u64 {
    let links = witness.links;
    let weight = |position: usize| flows[group[position] as usize].weight;
    if alike {
        return weight(0) * group.len().div_ceil(links) as u64;
    }
    let mut best = witness.weight.div_ceil(links as u64);
    for (j, last) in (0..group.len()).step_by(links).enumerate() {
        best = best.max((last - j..=last).map(weight).sum());
    }
    best
}

/// Positions by ToR, in the order given.
struct Groups {
    offsets: Vec<u32>,
    members: Vec<u32>,
}

impl Groups {
    /// Each ToR with flows, and those.
    fn iter(&self) -> impl Iterator<Item = (usize, &[u32])> {
        let range = |tor: usize| self.offsets[tor] as usize..self.offsets[tor + 1] as usize;
        let tors = 0..self.offsets.len() - 1;
        let group = move |tor| (tor, &self.members[range(tor)]);
        tors.map(group).filter(|(_, group)| !group.is_empty())
    }
}

fn grouped(tors: usize, order: &[u32], tor_of: impl Fn(u32) -> usize) -> Groups {
    let mut offsets = vec![0u32; tors + 1];
    for &i in order {
        offsets[tor_of(i) + 1] += 1;
    }
    for tor in 0..tors {
        offsets[tor + 1] += offsets[tor];
    }
    let mut next = offsets.clone();
    let mut members = vec![0; order.len()];
    for &i in order {
        let place = &mut next[tor_of(i)];
        members[*place as usize] = i;
        *place += 1;
    }
    Groups { offsets, members }
}
