//! What an algorithm is: [`Recipe`], of which each has an implementation in its file, and the list of them all.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use strum::{IntoStaticStr, VariantArray};

use super::ladder::Ladder;
use super::{Job, Outline, registry};
use crate::collective::{Collective, CollectiveKind};
use crate::id::NpuId;
use crate::multirail::{Problem, Schedule};
use crate::packing::Passes;
use crate::plan::{Plan, PlanError};
use crate::progress::Progress;
use crate::select::Candidate;
use crate::simulate::Run;
use crate::topology::Topology;
use crate::topology::equal::EqualPaths;
use crate::units::Time;
use crate::verify::Verified;

/// The kinds that all-reduces of blocks fall into.
pub(super) const PASSES: &[CollectiveKind] = &[
    CollectiveKind::AllReduce,
    CollectiveKind::ReduceScatter,
    CollectiveKind::AllGather,
];
/// Those that trees can do.
pub(super) const TREE_KINDS: &[CollectiveKind] = &[
    CollectiveKind::AllReduce,
    CollectiveKind::ReduceScatter,
    CollectiveKind::AllGather,
    CollectiveKind::Broadcast,
    CollectiveKind::Reduce,
];

/// An option of planning that only some algorithms use, in the order in which they are checked. Number of chunks,
/// latency model, routing and limits of time and memory are for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
#[non_exhaustive]
#[doc(alias = "Heed")]
pub enum SearchOption {
    /// Seed of random choices.
    Seed,
    /// How switches are unwound into edges.
    Unwind,
    /// Number of random trials.
    Trials,
    /// How long a slot is.
    Slot,
    /// How many slots are planned at once.
    Window,
    /// What NPUs do that take no part.
    Relays,
}

impl SearchOption {
    /// Returns the name of the option, as `seed`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What a plan is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[non_exhaustive]
#[doc(alias = "Making")]
pub enum Origin {
    /// Transfers are written down by a rule.
    Rule,
    /// A schedule of dimensions is made first; see [`super::schedule`].
    Schedule,
    /// Trees or flows are laid over the links; into how many pieces data is cut is part of the choice.
    Routes,
    /// A timetable, or paths, are searched for.
    Synthesis,
    /// A solver finds the plan, which whoever asks for it brings along.
    Solver,
    /// All others are asked.
    Choice,
}

/// What is known of an algorithm before there is a network.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The name in files and on the command line, as `double-binary-tree`.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// The kinds that it implements.
    pub kinds: &'static [CollectiveKind],
    /// Whether it implements custom collectives, of demands that suit it.
    pub does_custom: bool,
    /// Options that it uses, of those that not all do.
    pub uses: &'static [SearchOption],
    /// What its plan is made of.
    pub making: Origin,
    /// Whether it plans in no more than a few seconds, so that comparisons have it unasked.
    pub is_compared: bool,
    /// What it promises where it can run: `auto` tries those first that promise more, and of plans that take the same
    /// time it keeps the first. 50 of what is not known to be among the fastest.
    pub promise: u8,
    /// Whether any network will do for it, so that its refusal says what is wrong with one.
    pub is_general: bool,
}

impl About {
    /// Of an algorithm whose transfers follow from a rule.
    pub(super) const fn rule(
        name: &'static str,
        kinds: &'static [CollectiveKind],
        summary: &'static str,
    ) -> Self {
        Self {
            name,
            summary,
            kinds,
            does_custom: false,
            uses: &[],
            making: Origin::Rule,
            is_compared: true,
            promise: 50,
            is_general: false,
        }
    }

    /// Of one that is made otherwise.
    pub(super) const fn made_by(self, making: Origin) -> Self {
        Self { making, ..self }
    }

    /// Of one that `auto` tries before or after others.
    pub(super) const fn promises(self, promise: u8) -> Self {
        Self { promise, ..self }
    }

    /// Returns whether it implements a kind.
    pub fn supports(&self, kind: CollectiveKind) -> bool {
        self.kinds.contains(&kind) || (self.does_custom && kind == CollectiveKind::Custom)
    }
}

/// A collective on a network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct On<'a> {
    pub(super) topology: &'a Topology,
    pub(super) collective: &'a Collective,
}

impl On<'_> {
    /// Returns the number of participants.
    pub(super) fn npus(&self) -> usize {
        self.collective.npus().len()
    }

    /// Returns the number of blocks of all data that an all-reduce by blocks cuts it into, and 1 of the others, whose
    /// demands are blocks.
    pub(super) fn blocks(&self) -> usize {
        match self.collective.kind() {
            CollectiveKind::AllReduce => self.npus(),
            _ => 1,
        }
    }

    /// Returns what is known of it without the network's links.
    pub(super) fn outline(&self) -> Outline<'_> {
        Outline {
            kind: self.collective.kind(),
            npus: u32::try_from(self.npus()).expect("ids of NPUs have 32 bits"),
            dimensions: self.topology.dimensions(),
        }
    }

    /// Returns the network as proofs hold it.
    pub(super) fn shared(&self) -> Arc<Topology> {
        Arc::new(self.topology.clone())
    }
}

/// Which participants must be able to send to which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Every one to every other.
    Mutual,
    /// One to every other.
    From(NpuId),
    /// Every one to one.
    To(NpuId),
    /// Those who hold data to those who want them, demand by demand: groups need not reach one another.
    Demanded,
}

impl Need {
    /// Returns what the data themselves need: the ways from the root, or to it, or those of each demand.
    pub(super) fn of_data(collective: &Collective) -> Self {
        let Some(root) = collective.root() else {
            return match collective.kind() {
                CollectiveKind::Custom => Need::Demanded,
                _ => Need::Mutual,
            };
        };
        let root = collective.npus()[root.index()];
        match collective.kind() {
            CollectiveKind::Broadcast | CollectiveKind::Scatter => Need::From(root),
            _ => Need::To(root),
        }
    }
}

/// What schedules dimensions: from what is to be done and the effort that a search may take.
pub(crate) type Scheduler = fn(Problem, u64, &mut dyn Progress) -> Schedule;

/// An algorithm: whatever is asked of one is a method, and its file is the only place that answers.
///
/// What has a default here is what most do.
pub(crate) trait Recipe: Sync {
    /// Returns what is known of it before there is a network.
    fn about(&self) -> About;

    /// Returns why it cannot do a collective, of a kind that it supports, on a network; `None` where it can.
    fn refusal(&self, on: &On<'_>) -> Option<String>;

    /// Returns which participants must reach which.
    fn need(&self, _collective: &Collective) -> Need {
        Need::Mutual
    }

    /// Into how many chunks the data may be cut.
    fn ladder(&self, on: &On<'_>) -> Ladder;

    /// Returns how many transfers a plan of so many chunks has by what is known before there is a network; at the
    /// least, where that does not tell. Saturates.
    fn outlined(&self, outline: &Outline<'_>, chunks: u128) -> u128;

    /// Returns how many transfers a plan has, exactly, on a network that it does not refuse; see
    /// [`super::transfer_count`].
    fn transfers(&self, on: &On<'_>, chunks: u128) -> u128 {
        self.outlined(&on.outline(), chunks)
    }

    /// Returns how it schedules dimensions, if it does.
    fn scheduler(&self) -> Option<Scheduler> {
        None
    }

    /// Makes the plan; all checks are done.
    fn plan(&self, job: &Job<'_>, progress: &mut dyn Progress) -> Result<Made, PlanError>;
}

/// A plan as its algorithm made it.
#[derive(Clone, Debug)]
pub struct Made {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Its proof, where it was proved on the way.
    pub proof: Option<Arc<Verified>>,
    /// Its run at link fidelity with the latency of the options, where it was simulated on the way.
    pub run: Option<Arc<Run>>,
    /// What it was made of, and what tells how good it is.
    pub construction: Option<Construction>,
}

impl From<Plan> for Made {
    fn from(plan: Plan) -> Self {
        Self {
            plan: Arc::new(plan),
            proof: None,
            run: None,
            construction: None,
        }
    }
}

impl Made {
    /// Returns a plan that was proved on the way, spread over equal paths as is asked for; without its proof and run
    /// if that changes its paths.
    pub(super) fn proved(
        job: &Job<'_>,
        proof: Arc<Verified>,
        run: Option<Run>,
        construction: Construction,
    ) -> Self {
        let (topology, routing) = (job.topology, job.options.routing);
        let is_routed = proof.plan().routing() == routing && !EqualPaths::may_exist(topology);
        let routed = match is_routed {
            true => Ok(proof),
            false => proof.routed(routing).map(Arc::new),
        };
        let (plan, proof) = match routed {
            Ok(proof) => (Arc::clone(proof.plan()), Some(proof)),
            Err(plan) => (plan, None),
        };
        Self {
            plan,
            run: run.filter(|_| proof.is_some()).map(Arc::new),
            proof,
            construction: Some(construction),
        }
    }

    /// Into how many pieces the algorithm cut the data, where that was its choice.
    pub fn pieces(&self) -> Option<usize> {
        match self.construction {
            Some(Construction::Trees { pieces, .. } | Construction::Flows { pieces }) => {
                Some(pieces)
            }
            _ => None,
        }
    }
}

/// What a plan was made of, and what tells how good it is.
#[derive(Clone, Debug)]
pub enum Construction {
    /// A schedule of dimensions.
    Schedule(Box<Schedule>),
    /// Trees, each with so many pieces, that are checked against the network.
    Trees {
        /// The trees.
        passes: Box<Passes>,
        /// Pieces that every tree carries.
        pieces: usize,
        /// When the plan ends; where blocks differ by a byte, at the latest.
        time: Time,
    },
    /// Flows, of which the largest block is cut into so many pieces.
    Flows {
        /// Pieces of the largest block.
        pieces: usize,
    },
    /// A timetable or paths that a search found.
    Synthesis {
        /// What was found.
        found: Box<Candidate>,
        /// The same, spread over equal paths, where there are any.
        spread: Option<Box<Candidate>>,
    },
}

macro_rules! recipes {
    ($($module:ident :: { $($name:ident),+ }),+ $(,)?) => {
        $(mod $module;)+

        /// A named recipe that makes plans.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Algorithm {
            $($(
                #[doc = concat!("Of `algorithms/", stringify!($module), "`; [`summary`](Self::summary) says what it does.")]
                $name,
            )+)+
        }

        impl Algorithm {
            /// Every algorithm.
            pub const ALL: [Algorithm; [$($(stringify!($name)),+),+].len()] =
                [$($(Algorithm::$name),+),+];

            /// Returns its implementation.
            pub(crate) fn recipe(self) -> &'static dyn $crate::algorithms::recipe::Recipe {
                match self {
                    $($(Algorithm::$name => &$module::$name,)+)+
                }
            }
        }
    };
}
pub(super) use recipes;

use super::Algorithm;

impl Algorithm {
    /// Returns what is known of it before there is a network.
    pub fn about(self) -> About {
        self.recipe().about()
    }

    /// Returns the name in files and on the command line, as `double-binary-tree`.
    pub fn name(self) -> &'static str {
        self.about().name
    }

    /// Returns what it does, in a line.
    pub fn summary(self) -> &'static str {
        self.about().summary
    }

    /// Returns the kinds that it implements.
    pub fn kinds(self) -> &'static [CollectiveKind] {
        self.about().kinds
    }

    /// Returns whether it implements a kind; some implement custom collectives, of demands that suit them.
    pub fn supports(self, kind: CollectiveKind) -> bool {
        self.about().supports(kind)
    }

    /// Returns whether its plans are made of a schedule of dimensions: see [`super::schedule`].
    pub fn is_multirail(self) -> bool {
        self.about().making == Origin::Schedule
    }

    /// Returns whether [`super::schedule`] makes a schedule by it.
    pub fn has_schedule(self) -> bool {
        self.recipe().scheduler().is_some()
    }

    /// Returns why it refuses a kind that it does not support.
    pub(super) fn unsupported(self, kind: CollectiveKind) -> String {
        let others: Vec<&str> = Algorithm::ALL
            .into_iter()
            .map(Algorithm::about)
            .filter(|about| about.is_compared && about.supports(kind))
            .map(|about| about.name)
            .collect();
        let own: Vec<&str> = self.kinds().iter().map(|kind| kind.name()).collect();
        let (what, those) = match kind {
            CollectiveKind::Custom => ("several groups at once or other demands", "these"),
            _ => (kind.name(), kind.name()),
        };
        let remedy = match others[..] {
            [] => format!("no baseline algorithm does {those}"),
            _ => format!("for {those} use {}", others.join(", ")),
        };
        format!("it does {}, not {what}; {remedy}", own.join(", "))
    }

    /// Returns its refusal.
    pub(super) fn refused(self, why: impl Into<String>) -> PlanError {
        PlanError::NotApplicable {
            algorithm: self.name(),
            why: why.into(),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = PlanError;

    fn from_str(name: &str) -> Result<Self, PlanError> {
        let all = Algorithm::ALL;
        let found = all.into_iter().find(|algorithm| algorithm.name() == name);
        found.ok_or_else(|| registry::unknown(name, all.into_iter().map(Algorithm::name)))
    }
}
