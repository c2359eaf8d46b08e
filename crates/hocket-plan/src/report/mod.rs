//! Figures that people compare: algbw, busbw, gap, link use.

mod activity;
mod dimensions;
mod equal;
mod heat;
mod rates;
mod structures;

pub use activity::{Bins, Union, activity};
pub use dimensions::{DimensionReport, DimensionUse, ideal};
pub use equal::EqualLinks;
pub use heat::{ALL_SUMS, heat, use_and_sums};
pub use rates::{Rates, gap};
pub use structures::Structure;

use crate::collective::Collective;
use crate::explain::Explain;
use crate::id::LinkId;
use crate::plan::Op;
use crate::simulate::Run;
use crate::topology::Topology;
use crate::units::Time;

/// Why there are no figures.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
#[non_exhaustive]
pub enum ReportError {
    /// The topology is not a product, or not a whole one.
    #[explain(
        why("topology {topology:?} is not a whole product of dimensions"),
        remedy("use one that is (mesh, torus, Ring_Switch, ...)")
    )]
    NoDimensions {
        /// The topology's name.
        topology: String,
    },
    /// No transfers of a phase.
    #[explain(
        field("phase"),
        why(
            "{} has no transfers that {phase}",
            chunk.map_or("the plan".to_owned(), |chunk| format!("chunk {chunk}"))
        ),
        remedy("use {}", if *phase == Op::Reduce { Op::Copy } else { Op::Reduce })
    )]
    NoTransfers {
        /// The phase that was asked for.
        phase: Op,
        /// The chunk that was asked for; all if there is none.
        chunk: Option<u32>,
    },
    /// More transfers than are sorted into structures.
    #[explain(
        why(
            "{} million transfers of single chunks are too many to sort into structures",
            places.div_ceil(1_000_000)
        ),
        remedy("plan with fewer chunks, or look at one by --chunk")
    )]
    TooManyPlaces {
        /// Transfers, each counted once for each of its chunks that differ from others.
        places: usize,
    },
}

/// The figures of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Collective time.
    pub time: Time,
    /// algbw and busbw.
    pub rates: Rates,
    /// Bytes moved over all links / (all links' bandwidth x time), 0 to 1.
    pub utilization: f64,
    /// The link that is occupied longest (lowest id on a tie), and for what share of the time;
    /// `None` where nothing moved.
    pub busiest: Option<(LinkId, f64)>,
    /// The most bytes that crossed one link.
    pub max_link_bytes: u64,
}

impl Report {
    /// Returns the figures of a run of `collective` on `topology`.
    ///
    /// # Examples
    /// ```
    /// use hocket_plan::collective::{Collective, CollectiveKind};
    /// use hocket_plan::report::Report;
    /// use hocket_plan::simulate::{LinkUse, Run};
    /// use hocket_topology::build::{self, RingWays};
    /// use hocket_base::units::{Bandwidth, Time};
    ///
    /// let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
    /// let ring = build::ring(4, gigabyte, Time::ZERO, RingWays::One)?;
    /// let all_reduce = Collective::among_all(CollectiveKind::AllReduce, &ring, 4_000_000)?;
    /// let half = Time::from_ns(6_000_000);
    /// let run = Run {
    ///     time: Time::from_ns(12_000_000), // all links are busy half of the time
    ///     start: vec![],
    ///     end: vec![],
    ///     links: vec![LinkUse { busy: half, bytes: 6_000_000, messages: 6 }; 4],
    ///     services: vec![],
    /// };
    /// let report = Report::new(&run, &all_reduce, &ring);
    /// assert!((report.rates.algbw - 4e6 / 12e-3).abs() < 1.0);
    /// assert!((report.rates.busbw - 1.5 * report.rates.algbw).abs() < 1.0);
    /// assert!((report.utilization - 0.5).abs() < 1e-9);
    /// assert_eq!(report.gap(half), 1.0); // twice the bound
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(run: &Run, collective: &Collective, topology: &Topology) -> Self {
        let seconds = run.time.as_seconds();
        let capacity: f64 = topology
            .links()
            .iter()
            .map(|link| link.bandwidth.bytes_per_second() as f64)
            .sum();
        let moved: f64 = run.links.iter().map(|link| link.bytes as f64).sum();
        let busiest = (0..run.links.len())
            .rev()
            .max_by_key(|&link| run.links[link].busy)
            .filter(|&link| run.links[link].busy > Time::ZERO)
            .map(|link| {
                let busy = run.links[link].busy.as_ps() as f64;
                (LinkId::from(link), busy / run.time.as_ps() as f64)
            });
        Self {
            time: run.time,
            rates: Rates::new(collective, run.time),
            utilization: if capacity > 0.0 && seconds > 0.0 {
                moved / seconds / capacity
            } else {
                0.0
            },
            busiest,
            max_link_bytes: run.links.iter().map(|link| link.bytes).max().unwrap_or(0),
        }
    }

    /// Returns how far the time is above a lower bound; see [`gap`].
    pub fn gap(&self, bound: Time) -> f64 {
        gap(self.time, bound)
    }
}
