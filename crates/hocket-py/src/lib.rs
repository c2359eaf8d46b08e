//! `hocket._core`: the Rust core as Python sees it. Converts and does nothing else.
//!
//! One thin file per module of the core. Arrays cross as NumPy views without a copy, long calls run
//! with the interpreter released, and every core error becomes a class of `hocket.errors`. What the
//! classes and functions mean is written in the stub, `python/hocket/_core/*.pyi`.

mod arrays;
mod choice;
mod error;
mod progress;
mod interrupt;
mod topology;
mod families;
mod routing;
mod steering;
mod collective;
mod trace;
mod plan;
mod bound;
mod verify;
mod algorithms;
mod multirail;
mod iteration;
mod replay;
mod synthesis;
mod select;
mod nccl;
mod packing;
mod simulate;
mod symmetry;
mod cluster;
mod chakra;
mod formats;
mod perfetto;
mod report;
mod kernel;
#[cfg(unix)]
mod runtime;
mod pickle;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use pyo3::prelude::{PyAnyMethods, PyModule, PyResult, pymodule};

    /// Version of the package.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use crate::algorithms::{PyMade, plan};
    #[pymodule_export]
    use crate::bound::{Bound, bound};
    #[pymodule_export]
    use crate::collective::PyCollective;
    #[pymodule_export]
    use crate::families::build_product;
    #[pymodule_export]
    use crate::multirail::{DimensionRun, PySchedule, carries_out, plan_of, schedule};
    /// `hocket._core.chakra`: execution traces as ASTRA-sim runs them.
    #[pymodule]
    mod chakra {
        #[pymodule_export]
        use crate::chakra::{ChakraExported, PyWriter, export};
    }

    /// `hocket._core.families`: networks by their families.
    #[pymodule]
    mod families {
        #[pymodule_export]
        use crate::families::{PyFamily, PyParameter, build, counts, families, product_counts};
    }

    /// `hocket._core.formats`: files of other runtimes.
    #[pymodule]
    mod formats {
        #[pymodule_export]
        use crate::formats::{
            Checked, Exported, PyFinding, Raised, check_msccl, check_mscclpp, check_nccl_graph,
            export_msccl, export_mscclpp, raise_msccl, raise_mscclpp,
        };
    }

    /// `hocket._core.interrupt`: the end of a command after Ctrl-C.
    #[pymodule]
    mod interrupt {
        #[pymodule_export]
        use crate::interrupt::{end, finished, guard, unfinished};
        #[pymodule_export]
        use crate::progress::unattended;
    }

    /// `hocket._core.iteration`: graphs of computation and collectives.
    #[pymodule]
    mod iteration {
        #[pymodule_export]
        use crate::iteration::{Exposure, PyOutcome, Shape, run};
    }

    /// `hocket._core.kernel`: what thread blocks take that run their steps in order.
    #[pymodule]
    mod kernel {
        #[pymodule_export]
        use crate::kernel::durations;
    }

    /// `hocket._core.multirail`: dimensions as schedulers see them, and how data is spread over them.
    #[pymodule]
    mod multirail {
        #[pymodule_export]
        use crate::multirail::{Balance, balance, check_rails, rails};
    }

    /// `hocket._core.nccl`: files of NCCL, and plans along the channels that they name.
    #[pymodule]
    mod nccl {
        #[pymodule_export]
        use crate::nccl::{
            PyGraph, PyNetwork, PySystem, design_channels, join, parse_graphs, parse_tuner,
            plan_channels, plan_heads, write_graphs, write_tuner,
        };
    }

    /// `hocket._core.packing`: plans of packed trees.
    #[pymodule]
    mod packing {
        #[pymodule_export]
        use crate::packing::PyPacking;
    }

    /// `hocket._core.perfetto`: spans of time as Perfetto shows them.
    #[pymodule]
    mod perfetto {
        #[pymodule_export]
        use crate::perfetto::Writer;
    }

    #[pymodule_export]
    use crate::pickle::restore;
    #[pymodule_export]
    use crate::plan::{PyPlan, checked_routing};
    /// `hocket._core.registry`: what is known of each algorithm.
    #[pymodule]
    mod registry {
        #[pymodule_export]
        use crate::algorithms::{PyEntry, check_size, chunk_ladder, default_chunks, entries};
    }

    /// `hocket._core.replay`: execution traces on a network.
    #[pymodule]
    mod replay {
        #[pymodule_export]
        use crate::replay::PyReplay;
    }

    #[pymodule_export]
    use crate::report::{
        DimensionReport, Report, activity, dimension_report, equal_links, gap, heat, rates, report,
        use_and_sums,
    };
    /// `hocket._core.routing`: paths on a Clos or fat tree.
    #[pymodule]
    mod routing {
        #[pymodule_export]
        use crate::routing::{Assignment, PyFabric, Sprayed, assign, assignment_of, spray};
    }

    /// `hocket._core.runtime`: plans run between processes.
    #[cfg(unix)]
    #[pymodule]
    mod runtime {
        #[pymodule_export]
        use crate::runtime::{PyGroup, PyPacer, PyProgram, PyStore};

        #[cfg(target_os = "linux")]
        #[pymodule_export]
        use crate::runtime::relay;
    }

    /// `hocket._core.steering`: hashes of switches.
    #[pymodule]
    mod steering {
        #[pymodule_export]
        use crate::steering::{
            find_label, find_port, hashed, identify, queue_pair_port, switch_seed, ways,
        };
    }

    #[pymodule_export]
    use crate::simulate::{PyRun, simulate, simulate_flows, simulate_packets};
    /// `hocket._core.symmetry`: plans of one block, shifted by a group.
    #[pymodule]
    mod symmetry {
        #[pymodule_export]
        use crate::symmetry::{PySymmetricPlan, plan_symmetric};
    }

    /// `hocket._core.synthesis`: plans for any network.
    #[pymodule]
    mod synthesis {
        #[pymodule_export]
        use crate::select::PyCandidate;
        #[pymodule_export]
        use crate::synthesis::{PyProblem, PyTimetables, unwindings};
    }

    #[pymodule_export]
    use crate::topology::{Inspection, PyTopology};
    #[pymodule_export]
    use crate::verify::{Violation, verify};

    /// `hocket._core.cluster`: training jobs on a fabric.
    #[pymodule]
    mod cluster {
        #[pymodule_export]
        use crate::cluster::{Outcome, Pattern, simulate};
    }

    /// `hocket._core.trace`: execution traces.
    #[pymodule]
    mod trace {
        #[pymodule_export]
        use crate::trace::{PyDraft, PyTrace};
    }

    /// Python finds a submodule of an extension only where it is told of it.
    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, PyModule>) -> PyResult<()> {
        let modules = module.py().import("sys")?.getattr("modules")?;
        for name in [
            "chakra",
            "cluster",
            "families",
            "formats",
            "interrupt",
            "iteration",
            "kernel",
            "multirail",
            "nccl",
            "packing",
            "perfetto",
            "registry",
            "replay",
            "routing",
            #[cfg(unix)]
            "runtime",
            "steering",
            "symmetry",
            "synthesis",
            "trace",
        ] {
            modules.set_item(format!("hocket._core.{name}"), module.getattr(name)?)?;
        }
        Ok(())
    }
}
