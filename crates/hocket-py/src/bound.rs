//! `bound`.

use std::collections::BTreeSet;
use std::sync::Arc;

use hocket_core::bound::{self as core, BoundOptions, Fidelity, Witness};
use hocket_core::collective::{CollectiveKind, Demand};
use hocket_core::topology::Topology;
use hocket_core::units::Time;
use pyo3::prelude::*;

use crate::choice::{RELAYS, choose};
use crate::collective::PyCollective;
use crate::error::{CoreError, Parts};
use crate::pickle::{Reduced, attributes, reduced};
use crate::progress;
use crate::topology::PyTopology;

/// A lower bound on the time of any plan, and what proves it.
#[pyclass(module = "hocket._core", frozen, get_all)]
pub(crate) struct Bound {
    /// No plan is faster [ps].
    time_ps: u64,
    /// What proves it: a node, a cut, a partition, the traffic or a path, in a line.
    witness: String,
    /// Name and time [ps] of every bound that was tried.
    components: Vec<(String, u64)>,
    /// Whether the cut is the worst of all cuts.
    exact_cut: bool,
    /// Whether the partition is the best of all partitions.
    exact_partition: bool,
    /// Sets of devices whose borders the argument counts; none where it counts something else.
    sides: Vec<Vec<u32>>,
    /// What it lets NPUs do with data that they neither hold nor want: none, forward or sum.
    ///
    /// None if nobody is left, or if each demand goes from one NPU to one other.
    relays: Option<String>,
}

impl Bound {
    pub(crate) fn of(bound: &core::Bound, topology: &Topology) -> Self {
        let components = bound.components.iter();
        Self {
            time_ps: bound.time.as_ps(),
            witness: bound.witness.describe(topology),
            components: components
                .map(|&(name, time)| (name.to_owned(), time.as_ps()))
                .collect(),
            exact_cut: bound.exact_cut,
            exact_partition: bound.exact_partition,
            sides: bound
                .witness
                .sides()
                .iter()
                .map(|side| side.iter().map(|device| device.0).collect())
                .collect(),
            relays: None,
        }
    }
}

#[pymethods]
impl Bound {
    /// Make one that was found before; nothing of it is proved again.
    #[new]
    #[pyo3(signature = (time_ps, witness, components, exact_cut, exact_partition, sides=Vec::new(), relays=None))]
    fn new(
        time_ps: u64,
        witness: String,
        components: Vec<(String, u64)>,
        exact_cut: bool,
        exact_partition: bool,
        sides: Vec<Vec<u32>>,
        relays: Option<String>,
    ) -> Self {
        Self {
            time_ps,
            witness,
            components,
            exact_cut,
            exact_partition,
            sides,
            relays,
        }
    }

    fn __reduce__<'py>(this: &pyo3::Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let names = [
            "time_ps",
            "witness",
            "components",
            "exact_cut",
            "exact_partition",
            "sides",
            "relays",
        ];
        reduced(this.py(), "Bound", attributes(this, &names)?)
    }

    fn __copy__(this: Py<Self>) -> Py<Self> {
        this
    }

    /// Nothing in it ever changes.
    fn __deepcopy__(this: Py<Self>, _memo: pyo3::Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    fn __repr__(&self) -> String {
        format!("<Bound {} ps: {}>", self.time_ps, self.witness)
    }
}

/// Bound any plan's time at a fidelity; `flit_bytes` are those of packet fidelity, `relays` as of a plan's options.
#[pyfunction]
#[pyo3(signature = (topology, collective, fidelity="link", flit_bytes=512, relays="sum"))]
pub(crate) fn bound(
    py: Python<'_>,
    topology: &PyTopology,
    collective: &PyCollective,
    fidelity: &str,
    flit_bytes: u64,
    relays: &str,
) -> Result<Bound, CoreError> {
    let (topology, collective) = (topology.core(), collective.core().clone());
    collective.check_on(topology)?;
    let names = [
        ("link", Fidelity::Link),
        ("flow", Fidelity::Flow),
        ("packet", Fidelity::Packet { flit_bytes }),
        ("dimension", Fidelity::Dimension),
    ];
    let options = BoundOptions {
        fidelity: choose("fidelity", fidelity, &names)?,
        relays: choose("relays", relays, RELAYS)?,
        ..BoundOptions::default()
    };
    let (on, of) = (Arc::clone(topology), collective.clone());
    let bound = progress::attended(py, move |watch| core::bound(&on, &of, &options, watch))??;
    let is_known = matches!(bound.witness, Witness::Unreachable { .. });
    if bound.time == Time::MAX && !is_known {
        let (kind, size) = (collective.kind(), collective.size());
        let long = format!("{kind} of {size} B takes longer than 213 days, more than can be told");
        let remedy = "make sizes smaller or bandwidths larger";
        return Err(Parts::new(long).remedy(remedy).into());
    }
    let everybody = topology.npu_count();
    let may_gain = |demand: &Demand| {
        let ends = [&demand.holders, &demand.wanted].map(|set| set.members(collective.npus()));
        let is_tree = ends.iter().any(|set| set.len() > 1);
        is_tree && ends.concat().into_iter().collect::<BTreeSet<_>>().len() < everybody
    };
    let has_relays = match collective.kind() {
        CollectiveKind::Custom => collective.demands().iter().any(may_gain),
        CollectiveKind::AllToAll | CollectiveKind::Gather | CollectiveKind::Scatter => false,
        _ => collective.npus().len() < everybody,
    };
    let mut found = Bound::of(&bound, topology);
    found.relays = has_relays.then(|| relays.to_owned());
    Ok(found)
}
