//! No bound is above the optimum, where that can be found by trying everything.
//!
//! Time goes in slots: a link takes one chunk a slot, and it arrives at the slot's end or a slot later.
//! What an NPU has of a chunk is a set of *values*, each the sum of some NPUs' contributions; it may keep
//! all of them, and add any two that share no contribution. A breadth-first search over all choices of all
//! links gives the least number of slots. Nothing here knows how a bound is found.

use std::collections::{BTreeMap, HashSet};

use hocket_core::bound::{BoundOptions, bound};
use hocket_core::collective::{Collective, CollectiveKind, Demand, NpuSet};
use hocket_core::id::{DeviceId, NpuId, Rank, fit};
use hocket_core::progress::Silent;
use hocket_core::topology::{Topology, TopologyBuilder};
use hocket_core::units::{Bandwidth, Seed, Time};

/// Bytes of a chunk; a link of 1 GB/s takes one in a slot.
const CHUNK: u64 = 1_000;
const SLOT: Time = Time::from_ns(1_000);
/// More states than this in one slot, and the search is given up.
const MAX_STATES: usize = 20_000;

struct Link {
    src: usize,
    dst: usize,
    /// Slots from a chunk's sending to its arrival: 0 or 1.
    late: bool,
}

/// One chunk: who contributes (for a copy: who holds it), who wants it.
struct Chunk {
    reduced: bool,
    holders: Vec<usize>,
    wanted: Vec<usize>,
}

struct Instance {
    npus: usize,
    links: Vec<Link>,
    chunks: Vec<Chunk>,
}

/// By chunk and NPU the values that it has, bit v for the sum of the contributions of mask v; then by link
/// what is on its way: chunk x 16 + value + 1, or 0.
type State = Vec<u16>;

/// What a slot comes to.
enum Step {
    Done,
    Open,
    TooMany,
}

/// A copy's only value.
const COPY: u16 = 1;

/// A set of values and all sums of those that share no contribution.
fn closed(mut values: u16) -> u16 {
    loop {
        let before = values;
        for a in 1..16u16 {
            for b in 1..16u16 {
                if values >> a & 1 == 1 && values >> b & 1 == 1 && a & b == 0 {
                    values |= 1 << (a | b);
                }
            }
        }
        if values == before {
            return values;
        }
    }
}

impl Instance {
    fn start(&self) -> State {
        let mut state = vec![0; self.chunks.len() * self.npus + self.links.len()];
        for (c, chunk) in self.chunks.iter().enumerate() {
            for (i, &npu) in chunk.holders.iter().enumerate() {
                let value = if chunk.reduced { 1 << i } else { COPY };
                state[c * self.npus + npu] |= 1 << value;
            }
        }
        state
    }

    fn is_done(&self, state: &State) -> bool {
        self.chunks.iter().enumerate().all(|(c, chunk)| {
            let all = if chunk.reduced {
                (1 << chunk.holders.len()) - 1
            } else {
                COPY
            };
            let has = |&npu: &usize| state[c * self.npus + npu] >> all & 1 == 1;
            chunk.wanted.iter().all(has)
        })
    }

    /// What a link can do for its far end: each value of each chunk that is not there.
    fn choices(&self, state: &State, link: &Link) -> Vec<u16> {
        let mut choices = Vec::new();
        for c in 0..self.chunks.len() {
            let (here, there) = (
                state[c * self.npus + link.src],
                state[c * self.npus + link.dst],
            );
            let useful =
                (1..16u16).filter(|value| here >> value & 1 == 1 && there >> value & 1 == 0);
            choices.extend(useful.map(|value| fit::<u16, _>(c) * 16 + value + 1));
        }
        // More never harms, so that a link is idle only where it can do nothing.
        if choices.is_empty() {
            choices.push(0);
        }
        choices
    }

    /// Puts every state a slot later into `later`; ends early where one of them is done.
    fn follow(&self, state: &State, later: &mut HashSet<State>) -> Step {
        let flights = self.chunks.len() * self.npus;
        let mut arrived = state.clone();
        for (i, link) in self.links.iter().enumerate() {
            let message = std::mem::take(&mut arrived[flights + i]);
            self.deliver(&mut arrived, link, message);
        }
        let mut partial: HashSet<State> = HashSet::from([arrived]);
        for (i, link) in self.links.iter().enumerate() {
            let choices = self.choices(state, link);
            let mut next = HashSet::with_capacity(partial.len() * choices.len());
            #[expect(
                clippy::iter_over_hash_type,
                reason = "every state is followed, in any order"
            )]
            for before in &partial {
                for &choice in &choices {
                    let mut after = before.clone();
                    match link.late {
                        true => after[flights + i] = choice,
                        false => self.deliver(&mut after, link, choice),
                    }
                    // What the other links bring takes nothing away.
                    if self.is_done(&after) {
                        return Step::Done;
                    }
                    next.insert(after);
                }
            }
            partial = next;
            if partial.len() > MAX_STATES {
                return Step::TooMany;
            }
        }
        later.extend(partial);
        match later.len() > MAX_STATES {
            true => Step::TooMany,
            false => Step::Open,
        }
    }

    fn deliver(&self, state: &mut State, link: &Link, message: u16) {
        if message > 0 {
            let (chunk, value) = ((message - 1) / 16, (message - 1) % 16);
            let place = &mut state[usize::from(chunk) * self.npus + link.dst];
            *place = closed(*place | 1 << value);
        }
    }

    /// The least number of slots; `None` where that is too much to search.
    fn optimum(&self) -> Option<u64> {
        let mut states = HashSet::from([self.start()]);
        if states.iter().any(|state| self.is_done(state)) {
            return Some(0);
        }
        let mut seen = states.clone();
        for slots in 1.. {
            let mut later = HashSet::new();
            #[expect(
                clippy::iter_over_hash_type,
                reason = "every state is followed, in any order"
            )]
            for state in &states {
                match self.follow(state, &mut later) {
                    Step::Done => return Some(slots),
                    Step::TooMany => return None,
                    Step::Open => {}
                }
            }
            later.retain(|state| seen.insert(state.clone()));
            states = later;
            assert!(!states.is_empty(), "everybody can be reached");
        }
        None
    }

    fn topology(&self) -> Topology {
        let mut builder = TopologyBuilder::new("tiny");
        builder.npus(self.npus);
        let rate = Bandwidth::from_bytes_per_second(1_000_000_000).expect("positive");
        for link in &self.links {
            let latency = if link.late { SLOT } else { Time::ZERO };
            builder.link(
                DeviceId::from(link.src),
                DeviceId::from(link.dst),
                rate,
                latency,
            );
        }
        builder.finish().expect("a network")
    }
}

/// Three or four NPUs, joined strongly, with few links.
fn links(npus: usize, most: usize, seed: &mut Seed) -> Vec<Link> {
    let lateness = seed.below(3);
    let link = |src, dst, seed: &mut Seed| Link {
        src,
        dst,
        late: lateness > 0 && seed.below(3) < lateness,
    };
    let mut links: Vec<Link> = match seed.below(2) {
        0 => (0..npus).map(|i| link(i, (i + 1) % npus, seed)).collect(),
        _ => (1..npus)
            .flat_map(|i| {
                let other = seed.below(i);
                [(i, other), (other, i)]
            })
            .collect::<Vec<_>>()
            .into_iter()
            .map(|(src, dst)| link(src, dst, seed))
            .collect(),
    };
    while links.len() < most && seed.below(4) > 0 {
        let src = seed.below(npus);
        let dst = (src + 1 + seed.below(npus - 1)) % npus;
        links.push(link(src, dst, seed));
    }
    links
}

/// A collective of unit chunks on a tiny network, and the same as the search sees it.
fn instance(kind: CollectiveKind, seed: &mut Seed) -> (Collective, Instance) {
    // A reduce-scatter among four is too much to search.
    let npus = 3 + usize::from(kind != CollectiveKind::ReduceScatter && seed.below(2) == 0);
    let sums = matches!(
        kind,
        CollectiveKind::AllReduce | CollectiveKind::ReduceScatter | CollectiveKind::Reduce
    );
    let most = if sums { 6 } else { 8 };
    let links = links(npus, most, seed);
    let mut part: Vec<NpuId> = (0..npus).map(NpuId::from).collect();
    if seed.below(3) == 0 {
        part.remove(seed.below(npus));
    }
    let n = part.len() as u64;
    let collective = if kind == CollectiveKind::Custom {
        let set = |seed: &mut Seed| {
            NpuSet::of((0..1 + seed.below(2)).map(|_| part[seed.below(part.len())]))
        };
        let demands = (0..1 + seed.below(3)).map(|_| Demand {
            bytes: CHUNK,
            reduced: seed.below(2) == 0,
            holders: set(seed),
            wanted: set(seed),
        });
        let demands = demands.collect();
        Collective::custom(part, demands)
    } else {
        let pieces = match kind {
            CollectiveKind::Broadcast => 1 + seed.below(3) as u64,
            CollectiveKind::Reduce | CollectiveKind::AllReduce if n == 3 => {
                1 + seed.below(2) as u64
            }
            CollectiveKind::Reduce | CollectiveKind::AllReduce => 1,
            _ => n,
        };
        let root = kind.is_rooted().then(|| Rank::from(seed.below(part.len())));
        Collective::new(kind, part, pieces * CHUNK, root)
    };
    let collective = collective.expect("a collective");
    let all = collective.npus();
    let numbers = |set: &NpuSet| {
        set.members(all)
            .iter()
            .map(|npu| npu.index())
            .collect::<Vec<_>>()
    };
    let mut chunks = Vec::new();
    for demand in collective.demands() {
        assert_eq!(demand.bytes % CHUNK, 0);
        for _ in 0..demand.bytes / CHUNK {
            let (holders, wanted) = (numbers(&demand.holders), numbers(&demand.wanted));
            chunks.push(Chunk {
                reduced: demand.reduced,
                holders,
                wanted,
            });
        }
    }
    (
        collective,
        Instance {
            npus,
            links,
            chunks,
        },
    )
}

#[derive(Debug, Default)]
struct Found {
    searched: u64,
    given_up: u64,
    met: u64,
}

#[test]
fn no_bound_is_above_the_optimum() {
    let each = crate::number("HOCKET_OPTIMUM_CASES").unwrap_or(24);
    let mut found: BTreeMap<&str, Found> = BTreeMap::new();
    for kind in CollectiveKind::NAMED
        .into_iter()
        .chain([CollectiveKind::Custom])
    {
        let row = found.entry(kind.name()).or_default();
        for case in 0..each {
            let mut seed = Seed(case);
            let (collective, instance) = instance(kind, &mut seed);
            let Some(slots) = instance.optimum() else {
                row.given_up += 1;
                continue;
            };
            row.searched += 1;
            let topology = instance.topology();
            let bound = bound(
                &topology,
                &collective,
                &BoundOptions::default(),
                &mut Silent,
            )
            .expect("nobody stops it");
            let optimum = Time::from_ps(slots * SLOT.as_ps());
            assert!(
                bound.time <= optimum,
                "{kind}, case {case}: {} above {slots} slots: {}\n{topology:#?}\n{collective:?}",
                bound.time,
                bound.witness.describe(&topology)
            );
            row.met += u64::from(bound.time == optimum);
        }
    }
    println!("{found:#?}");
    for (kind, row) in &found {
        assert!(
            row.searched * 3 >= each && row.met * 20 >= row.searched,
            "{kind}: {row:?}"
        );
    }
}
