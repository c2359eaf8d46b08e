//! The rings and trees that the chunks of a run take on its network. Nothing is known of the algorithm.

use std::collections::{BTreeMap, BTreeSet};

use super::ReportError;
use crate::graph::Lists;
use crate::id::narrow;
use crate::plan::{Op, Plan, Wait, WaitOn};
use crate::simulate::Run;

/// Transfers of single chunks that are sorted at most.
const MAX_PLACES: usize = 1 << 26;
/// Sets of hops that are searched for rings at most.
const MAX_MERGED: usize = 2048;
const NONE: u32 = u32::MAX;

/// Transfers that belong together. All columns are sorted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structure {
    /// `ring`, `tree`, `branch` (what leads into rings and out of them) or `graph` (any other).
    pub kind: &'static str,
    /// The chunks that take it.
    pub chunks: Vec<u32>,
    /// Sending and receiving device of each transfer, each pair once.
    pub transfers: Vec<(u32, u32)>,
    /// The links that the transfers take.
    pub links: Vec<u32>,
    /// Devices at which sums end, or copies begin; none of a ring or branch.
    pub roots: Vec<u32>,
}

impl Structure {
    /// Finds the rings and trees of a run that kept its services, in order of their first chunks.
    ///
    /// Chunks that are sent between the same devices over the same paths share a structure. Chunks that go round one
    /// ring share one too: together they have one way out of every device (into it, for copies), and a cycle through
    /// at least three devices and more than half of them. One branch has what they take beside their cycles.
    ///
    /// `phase` is [`Op::Reduce`] for sums, and for copies that a sum waits for because their receiver has nothing of
    /// its own; [`Op::Copy`] is for all others. `chunk` leaves out what other chunks take.
    ///
    /// # Errors
    /// [`ReportError::NoTransfers`], [`ReportError::TooManyPlaces`].
    ///
    /// # Complexity
    /// O(n log n) for n transfers of single chunks, and O(devices) for each two sets of hops that could make a ring.
    pub fn find(
        run: &Run,
        plan: &Plan,
        phase: Op,
        chunk: Option<u32>,
    ) -> Result<Vec<Self>, ReportError> {
        let gathers = gathering(plan);
        let takes = |&row: &usize| {
            let chunks = chunks_of(plan, row);
            gathers[row] == (phase == Op::Reduce) && chunk.is_none_or(|one| chunks.contains(&one))
        };
        let rows: Vec<usize> = (0..plan.len()).filter(takes).collect();
        if rows.is_empty() {
            return Err(ReportError::NoTransfers { phase, chunk });
        }
        let hops = Hops::new(run, plan, &rows, phase);
        let sets = sets(plan, &rows, &hops, chunk)?;
        Ok(merged(&sets, &hops))
    }
}

fn chunks_of(plan: &Plan, row: usize) -> std::ops::Range<u32> {
    plan.chunk()[row]..plan.chunk()[row] + plan.chunk_count()[row]
}

/// Marks sums, and copies to the sender of a sum that waits for them, directly or through such copies.
fn gathering(plan: &Plan) -> Vec<bool> {
    let mut marked: Vec<bool> = plan.op().iter().map(|&op| op == Op::Reduce as u8).collect();
    let mut owners: Vec<usize> = (0..plan.len()).filter(|&row| marked[row]).collect();
    let mut has_copy = vec![false; plan.groups().len()];
    let mut seen_by = vec![usize::MAX; plan.groups().len()];
    for (group, items) in plan.groups().iter().enumerate() {
        has_copy[group] = items
            .iter()
            .any(|&bits| match Wait::from_bits(bits).target() {
                WaitOn::Nothing => false,
                WaitOn::Transfer(id) => !marked[id.index()],
                WaitOn::Group(inner) => has_copy[inner as usize],
            });
    }
    let mut stack = Vec::new();
    while let Some(owner) = owners.pop() {
        let chunks = chunks_of(plan, owner);
        stack.push(plan.wait()[owner]);
        while let Some(bits) = stack.pop() {
            match Wait::from_bits(bits).target() {
                WaitOn::Nothing => {}
                WaitOn::Transfer(id) => {
                    let (row, theirs) = (id.index(), chunks_of(plan, id.index()));
                    let is_same = theirs.start < chunks.end && chunks.start < theirs.end;
                    if !marked[row] && is_same && plan.dst()[row] == plan.src()[owner] {
                        marked[row] = true;
                        owners.push(row);
                    }
                }
                WaitOn::Group(group) => {
                    let group = group as usize;
                    if has_copy[group] && std::mem::replace(&mut seen_by[group], owner) != owner {
                        stack.extend_from_slice(plan.groups().get(group));
                    }
                }
            }
        }
    }
    marked
}

/// The different ways from device to device; the ways back for copies, so that trees lead to their roots.
struct Hops {
    /// Sender, receiver and path of each, sorted.
    known: Vec<(u32, u32, u32)>,
    /// Those of the rows, in their order.
    of_row: Vec<u32>,
    links: Lists<u32>,
    devices: usize,
    is_turned: bool,
}

impl Hops {
    fn new(run: &Run, plan: &Plan, rows: &[usize], phase: Op) -> Self {
        let key = |&row: &usize| (plan.src()[row], plan.dst()[row], plan.path()[row]);
        let mut known: Vec<_> = rows.iter().map(key).collect();
        known.sort_unstable();
        known.dedup();
        let place = |row| narrow(known.binary_search(&key(row)).unwrap_or_default());
        let of_row: Vec<u32> = rows.iter().map(place).collect();
        // The links of a hop are those of its first transfer.
        let mut hop_of = vec![NONE; plan.len()];
        let mut is_new = vec![true; known.len()];
        for (&row, &hop) in rows.iter().zip(&of_row) {
            if std::mem::take(&mut is_new[hop as usize]) {
                hop_of[row] = hop;
            }
        }
        let stays = run.services.iter();
        let stays = stays.map(|each| (hop_of[each.transfer as usize], each.link));
        let stays = stays.filter_map(|(hop, link)| (hop != NONE).then_some((hop as usize, link)));
        let ends = known.iter().map(|&(src, dst, _)| src.max(dst) as usize + 1);
        Self {
            devices: ends.max().unwrap_or(0),
            links: Lists::grouped(known.len(), stays),
            known,
            of_row,
            is_turned: phase == Op::Copy,
        }
    }

    /// Returns the device that a hop leaves, and the one that it leads to.
    fn ends(&self, hop: u32) -> (u32, u32) {
        let (src, dst, _) = self.known[hop as usize];
        if self.is_turned {
            (dst, src)
        } else {
            (src, dst)
        }
    }

    /// Returns the device that follows each; `None` if two follow one.
    fn next_of(&self, hops: &[u32]) -> Option<Vec<Option<u32>>> {
        let mut follows = vec![None; self.devices];
        for &hop in hops {
            let (tail, head) = self.ends(hop);
            if follows[tail as usize].replace(head).is_some() {
                return None;
            }
        }
        Some(follows)
    }

    fn structure(&self, kind: &'static str, mut chunks: Vec<u32>, hops: &[u32]) -> Structure {
        chunks.sort_unstable();
        let sent = |&hop: &u32| (self.known[hop as usize].0, self.known[hop as usize].1);
        let transfers: BTreeSet<_> = hops.iter().map(sent).collect();
        let links = hops.iter().flat_map(|&hop| self.links.get(hop as usize));
        let links: BTreeSet<_> = links.copied().collect();
        let tails: BTreeSet<_> = hops.iter().map(|&hop| self.ends(hop).0).collect();
        let heads: BTreeSet<_> = hops.iter().map(|&hop| self.ends(hop).1).collect();
        let mut roots: Vec<u32> = heads.difference(&tails).copied().collect();
        let is_tree = roots.len() == 1 && hops.len() == tails.len();
        let kind = if kind == "graph" && is_tree {
            "tree"
        } else {
            kind
        };
        if matches!(kind, "ring" | "branch") {
            roots.clear();
        }
        Structure {
            kind,
            chunks,
            transfers: transfers.into_iter().collect(),
            links: links.into_iter().collect(),
            roots,
        }
    }
}

/// A set of hops, sorted, and the chunks that take it.
type Set = (Vec<u32>, Vec<u32>);

/// Returns the different sets of hops that chunks take, in order of the first chunks.
fn sets(
    plan: &Plan,
    rows: &[usize],
    hops: &Hops,
    chunk: Option<u32>,
) -> Result<Vec<Set>, ReportError> {
    let chunks = |&row: &usize| chunk.map_or(chunks_of(plan, row), |one| one..one + 1);
    // Between two bounds all chunks are sent alike.
    let ends = |row| [chunks(row).start, chunks(row).end];
    let mut bounds: Vec<u32> = rows.iter().flat_map(ends).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let stretches = |row| {
        let chunks = chunks(row);
        bounds.partition_point(|&bound| bound < chunks.start)
            ..bounds.partition_point(|&bound| bound < chunks.end)
    };
    let places: usize = rows.iter().map(|row| stretches(row).len()).sum();
    if places > MAX_PLACES {
        return Err(ReportError::TooManyPlaces { places });
    }
    let each = rows.iter().zip(&hops.of_row);
    let each = each.flat_map(|(row, &hop)| stretches(row).map(move |stretch| (stretch, hop)));
    let taken = Lists::grouped(bounds.len(), each);
    let mut found: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
    for (hops, bounds) in taken.iter().zip(bounds.windows(2)) {
        let mut hops = hops.to_vec();
        hops.sort_unstable();
        hops.dedup();
        if !hops.is_empty() {
            found.entry(hops).or_default().extend(bounds[0]..bounds[1]);
        }
    }
    let mut found: Vec<Set> = found.into_iter().collect();
    found.sort_by_key(|(_, chunks)| chunks[0]);
    Ok(found)
}

/// Sets of hops that go round one cycle.
struct Ring {
    /// The device that follows each on the cycle.
    follows: Vec<Option<u32>>,
    hops: BTreeSet<u32>,
    chunks: Vec<u32>,
}

impl Ring {
    /// Makes a ring of what follows in two sets together, if most of it is a cycle that both keep to.
    fn of(one: &[Option<u32>], other: &[Option<u32>]) -> Option<Self> {
        if one
            .iter()
            .zip(other)
            .any(|(a, b)| a.is_some() && b.is_some() && a != b)
        {
            return None;
        }
        let both: Vec<_> = one.iter().zip(other).map(|(a, b)| a.or(*b)).collect();
        let cycle = longest_cycle(&both);
        if cycle.len() <= (both.iter().flatten().count() / 2).max(2) {
            return None;
        }
        let mut follows = vec![None; both.len()];
        cycle
            .iter()
            .for_each(|&at| follows[at as usize] = both[at as usize]);
        let ring = Self {
            follows,
            hops: BTreeSet::new(),
            chunks: Vec::new(),
        };
        (ring.takes(one) && ring.takes(other)).then_some(ring)
    }

    /// Returns whether a set keeps to the cycle, all but one link of it.
    fn takes(&self, follows: &[Option<u32>]) -> bool {
        let mut left_out = 0;
        self.follows.iter().zip(follows).all(|(mine, theirs)| {
            left_out += usize::from(mine.is_some() && theirs.is_none());
            left_out <= 1 && (mine.is_none() || theirs.is_none() || mine == theirs)
        })
    }
}

/// Puts sets that go round one ring together.
fn merged(sets: &[Set], hops: &Hops) -> Vec<Structure> {
    let mut is_alone = vec![true; sets.len()];
    let mut rings = Vec::new();
    if sets.len() <= MAX_MERGED {
        // Only sets of the same devices can make a ring.
        let mut alike: BTreeMap<BTreeSet<u32>, Vec<Follows<'_>>> = BTreeMap::new();
        for (set, is_alone) in sets.iter().zip(&mut is_alone) {
            if let Some(follows) = hops.next_of(&set.0) {
                let both = |&hop: &u32| <[u32; 2]>::from(hops.ends(hop));
                let devices = set.0.iter().flat_map(both).collect();
                let each = Follows {
                    set,
                    is_alone,
                    follows,
                };
                alike.entry(devices).or_default().push(each);
            }
        }
        rings.extend(alike.into_values().flat_map(rings_of));
    }
    let alone = sets
        .iter()
        .zip(&is_alone)
        .filter(|(_, is_alone)| **is_alone);
    let mut found: Vec<Structure> = alone
        .map(|((taken, chunks), _)| hops.structure("graph", chunks.clone(), taken))
        .collect();
    let (mut branches, mut through) = (BTreeSet::new(), Vec::new());
    for ring in rings {
        let is_on = |&hop: &u32| {
            let (tail, head) = hops.ends(hop);
            ring.follows[tail as usize] == Some(head)
        };
        let (on, off): (Vec<u32>, Vec<u32>) = ring.hops.iter().partition(|hop| is_on(hop));
        if !off.is_empty() {
            branches.extend(off);
            through.extend_from_slice(&ring.chunks);
        }
        found.push(hops.structure("ring", ring.chunks, &on));
    }
    found.sort_by_key(|each| each.chunks[0]);
    if !branches.is_empty() {
        let branches: Vec<u32> = branches.into_iter().collect();
        found.push(hops.structure("branch", through, &branches));
    }
    found
}

/// A set by the device that follows each, and whether it goes round no ring.
struct Follows<'a> {
    set: &'a Set,
    is_alone: &'a mut bool,
    follows: Vec<Option<u32>>,
}

/// Finds the rings among sets of the same devices; marks off those that go round them.
fn rings_of(bucket: Vec<Follows<'_>>) -> Vec<Ring> {
    let mut rings: Vec<Ring> = Vec::new();
    let mut waiting: Vec<Follows<'_>> = Vec::new();
    for each in bucket {
        let mine = &each.follows;
        let known = rings.iter().position(|ring| ring.takes(mine));
        let place = known.or_else(|| {
            let ring = waiting
                .iter()
                .find_map(|other| Ring::of(mine, &other.follows))?;
            rings.push(ring);
            Some(rings.len() - 1)
        });
        waiting.push(each);
        let Some(ring) = place.map(|place| &mut rings[place]) else {
            continue;
        };
        let joining = waiting.extract_if(.., |other| ring.takes(&other.follows));
        for taken in joining.collect::<Vec<_>>() {
            ring.hops.extend(&taken.set.0);
            ring.chunks.extend(&taken.set.1);
            *taken.is_alone = false;
        }
    }
    rings
}

/// Returns the devices of the longest cycle, the first of equals.
fn longest_cycle(follows: &[Option<u32>]) -> Vec<u32> {
    let mut best = Vec::new();
    let mut seen = vec![usize::MAX; follows.len()];
    for start in 0..follows.len() {
        let mut way = Vec::new();
        let mut at = Some(narrow(start));
        while let Some(here) = at.filter(|&here| seen[here as usize] == usize::MAX) {
            seen[here as usize] = start;
            way.push(here);
            at = follows[here as usize];
        }
        if let Some(first) = at.and_then(|at| way.iter().position(|&here| here == at))
            && way.len() - first > best.len()
        {
            best = way.split_off(first);
        }
    }
    best
}
