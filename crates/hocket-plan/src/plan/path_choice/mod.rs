//! Which of several equal paths each transfer of a plan takes.
//!
//! Paths are equal where they take a lone message the same time over as many hops and pass switches only
//! ([`EqualPaths`]). A transfer whose path an algorithm chose keeps it; so does one with a single
//! shortest path, and one whose shortest path passes an NPU.

mod balanced;
mod ecmp;
mod loads;
mod steps;

use std::fmt;
use std::str::FromStr;

use rustc_hash::FxHashMap;

use super::Plan;
use crate::explain::Explain;
use crate::id::{NpuId, TransferId, narrow};
use crate::topology::Topology;
use crate::topology::equal::{EqualPaths, PathSet};
use crate::units::Seed;

/// How transfers are spread over equal paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// All on one: the first by the numbers of its links.
    #[default]
    Single,
    /// Transfers that run together on different ones, as evenly as can be found.
    Balanced,
    /// At each switch by a hash of the switch, the seed, sender and receiver: all that one NPU sends to
    /// another takes one path, as the packets of a connection do.
    Ecmp(Seed),
    /// Each transfer on all at once: its bytes evenly (flow fidelity), or its packets in turn (packet
    /// fidelity). Link fidelity, whose messages are whole, cannot simulate it.
    Spray,
}

impl fmt::Display for Routing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Routing::Single => f.write_str("single"),
            Routing::Balanced => f.write_str("balanced"),
            Routing::Ecmp(Seed(0)) => f.write_str("ecmp"),
            Routing::Ecmp(seed) => write!(f, "ecmp:{}", seed.0),
            Routing::Spray => f.write_str("spray"),
        }
    }
}

/// A name that is not a routing.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[explain(
    field("routing"),
    why("there is no {_0:?}"),
    remedy("use balanced, ecmp, ecmp:SEED (as ecmp:7), spray or single")
)]
pub struct BadRouting(String);

impl FromStr for Routing {
    type Err = BadRouting;

    fn from_str(name: &str) -> Result<Self, BadRouting> {
        let seed = |digits: &str| digits.parse().ok().map(|seed| Routing::Ecmp(Seed(seed)));
        let found = match name {
            "single" => Some(Routing::Single),
            "balanced" => Some(Routing::Balanced),
            "ecmp" => Some(Routing::Ecmp(Seed(0))),
            "spray" => Some(Routing::Spray),
            _ => name.strip_prefix("ecmp:").and_then(seed),
        };
        found.ok_or_else(|| BadRouting(name.to_owned()))
    }
}

impl Plan {
    /// Returns the same plan with its transfers spread over equal paths; those of an earlier call are forgotten.
    ///
    /// Networks without equal paths leave it as it is, at no cost.
    ///
    /// # Complexity
    /// That of [`EqualPaths::of`], and O(transfers x equal paths of each).
    pub fn routed(mut self, topology: &Topology, routing: Routing) -> Self {
        self.forget_routing();
        self.routing = routing;
        let spreads = matches!(routing, Routing::Balanced | Routing::Ecmp(_));
        if !spreads || !EqualPaths::may_exist(topology) {
            return self;
        }
        let equal = equal_paths(&self, topology);
        if equal.is_empty() {
            return self;
        }
        let choices = choices(&self, topology, &equal);
        let chosen = match routing {
            Routing::Ecmp(seed) => ecmp::choose(&self, topology, &equal, &choices, seed),
            _ => balanced::choose(&self, topology, &equal, &choices),
        };
        self.take(&equal, &choices, &chosen);
        self
    }

    /// Returns the same plan, in which transfers whose own path is one of several equal ones may be spread as well by
    /// [`routed`](Self::routed): for plans whose algorithm took any of them.
    pub fn released(mut self, topology: &Topology) -> Self {
        if !EqualPaths::may_exist(topology) {
            return self;
        }
        let own = |i: &usize| self.path[*i] != Self::DEFAULT_ROUTE;
        let equal = EqualPaths::of(
            topology,
            (0..self.len()).filter(own).map(|i| ends(&self, i)),
        );
        let mut known: FxHashMap<(u32, PathSet), bool> = FxHashMap::default();
        for i in 0..self.len() {
            let (path, (src, dst, bytes)) = (self.path[i], ends(&self, i));
            if path == Self::DEFAULT_ROUTE {
                continue;
            }
            let Some(set) = equal.between(topology, src, dst, bytes) else {
                continue;
            };
            let links = self.paths.get(path as usize);
            let is_one = |other| {
                equal
                    .links((src, dst), set, other)
                    .eq(links.iter().copied())
            };
            let mut others = 0..equal.count(set);
            if *known
                .entry((path, set))
                .or_insert_with(|| others.any(is_one))
            {
                self.path[i] = Self::DEFAULT_ROUTE;
            }
        }
        self
    }

    /// Puts transfers on the paths that were chosen for them.
    fn take(&mut self, equal: &EqualPaths, choices: &[Choice], chosen: &[u32]) {
        let mut known: FxHashMap<_, u32> = FxHashMap::default();
        let mut links = Vec::new();
        for (choice, &path) in choices.iter().zip(chosen) {
            let i = choice.transfer as usize;
            let (src, dst) = (self.src[i], self.dst[i]);
            let paths = &mut self.paths;
            let id = known
                .entry((src, dst, choice.set, path))
                .or_insert_with(|| {
                    links.clear();
                    links.extend(equal.links((NpuId(src), NpuId(dst)), choice.set, path as usize));
                    paths.push(&links)
                });
            self.path[i] = *id;
        }
    }

    /// Back to the paths that the algorithm chose.
    fn forget_routing(&mut self) {
        let own = self.own_paths();
        for path in &mut self.path {
            if *path != Self::DEFAULT_ROUTE && *path >= own {
                *path = Self::DEFAULT_ROUTE;
            }
        }
        self.paths.truncate(own as usize);
    }
}

/// A transfer that has equal paths to choose among.
#[derive(Clone, Copy, Debug)]
struct Choice {
    transfer: u32,
    set: PathSet,
}

/// Returns the equal paths of a plan's transfers that take the default route.
pub(super) fn equal_paths(plan: &Plan, topology: &Topology) -> EqualPaths {
    EqualPaths::of(topology, free(plan).map(|i| ends(plan, i)))
}

fn choices(plan: &Plan, topology: &Topology, equal: &EqualPaths) -> Vec<Choice> {
    let choice = |i: usize| {
        let (src, dst, bytes) = ends(plan, i);
        let set = equal.between(topology, src, dst, bytes)?;
        Some(Choice {
            transfer: narrow(i),
            set,
        })
    };
    free(plan).filter_map(choice).collect()
}

fn free(plan: &Plan) -> impl Iterator<Item = usize> + '_ {
    let default = |i: &usize| plan.path[*i] == Plan::DEFAULT_ROUTE;
    (0..plan.len()).filter(default)
}

fn ends(plan: &Plan, i: usize) -> (NpuId, NpuId, u64) {
    let bytes = plan.bytes(TransferId(narrow(i)));
    (NpuId(plan.src[i]), NpuId(plan.dst[i]), bytes)
}
