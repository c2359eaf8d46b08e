//! `hocket._core`: the Rust core as Python sees it. Converts and does nothing else.
//!
//! One thin file per module of the core. Arrays cross as NumPy views without a copy, long calls run
//! with the interpreter released, and every core error becomes a class of `hocket.errors`. The comments of classes and
//! functions are what Python shows as their docstrings, and `make build` writes the stubs from them
//! (`python/hocket/_core/*.pyi`). Types of arguments and results follow from the signatures; `hints` and `arrays` have
//! those that PyO3 and rust-numpy cannot tell.

mod arrays;
mod hints;
mod error;
mod choice;
mod pickle;
mod progress;
mod interrupt;
mod topology;
mod families;
mod routing;
mod steering;
mod collective;
mod trace;
mod plan;
mod builder;
mod bound;
mod verify;
mod simulate;
mod report;
mod multirail;
mod synthesis;
mod select;
mod packing;
mod algorithms;
mod iteration;
mod replay;
mod nccl;
mod symmetry;
mod pipelined;
mod cluster;
mod chakra;
mod formats;
mod perfetto;
mod kernel;
#[cfg(unix)]
mod runtime;

use pyo3::prelude::*;

/// The Rust core: columns in, columns out. ``hocket`` itself is what people use.
///
/// Times are whole picoseconds, bandwidths bytes per second. Array properties are read-only views into
/// the object's own memory and keep it alive. A ``progress`` callable gets (stage, done, total) now and
/// then; an exception that it raises stops the call and comes out of it, and so does Ctrl-C.
#[pymodule]
mod _core {
    use pyo3::prelude::*;

    /// Version of the package.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use crate::algorithms::{PyMade, plan};
    #[pymodule_export]
    use crate::bound::{Bound, bound};
    #[pymodule_export]
    use crate::builder::{PyPlanBuilder, even_chunks};
    #[pymodule_export]
    use crate::collective::PyCollective;
    #[pymodule_export]
    use crate::families::build_product;
    #[pymodule_export]
    use crate::multirail::{DimensionRun, PySchedule, carries_out, plan_of, schedule};
    #[pymodule_export]
    use crate::progress::PyWork;
    /// Execution traces as ASTRA-sim runs them.
    #[pymodule]
    mod chakra {
        #[pymodule_export]
        use crate::chakra::{ChakraExported, PyWriter, export};
    }

    /// Families of networks, as the Rust core declares them.
    #[pymodule]
    mod families {
        #[pymodule_export]
        use crate::families::{PyFamily, PyParameter, build, counts, families, product_counts};
    }

    /// Files of other runtimes.
    #[pymodule]
    mod formats {
        #[pymodule_export]
        use crate::formats::{
            Checked, DeviceProgram, Exported, PyFinding, Raised, check_msccl, check_mscclpp,
            check_nccl_graph, device_program, export_msccl, export_mscclpp, mscclpp_limits,
            need_mscclpp, raise_msccl, raise_mscclpp,
        };
    }

    /// The end of a command after Ctrl-C.
    #[pymodule]
    mod interrupt {
        #[pymodule_export]
        use crate::interrupt::{end, finished, guard, so_far, unfinished};
        #[pymodule_export]
        use crate::progress::unattended;
    }

    /// Graphs of computation and collectives, as the Rust core runs them.
    #[pymodule]
    mod iteration {
        #[pymodule_export]
        use crate::iteration::{
            Exposure, PyOutcome, PyTrainingGraph, Shape, causes, passes, under_way,
        };
    }

    /// The time of a kernel whose thread blocks run their steps in order, round after round.
    #[pymodule]
    mod kernel {
        #[pymodule_export]
        use crate::kernel::durations;
    }

    /// Dimensions as schedulers see them, and how data is spread over them.
    #[pymodule]
    mod multirail {
        #[pymodule_export]
        use crate::multirail::{Balance, balance, check_rails, rails};
    }

    /// Files of NCCL, and plans along the channels that they name.
    #[pymodule]
    mod nccl {
        #[pymodule_export]
        use crate::nccl::{
            PyGraph, PyNetwork, PySystem, design_channels, join, parse_graphs, parse_tuner,
            plan_channels, plan_heads, write_graphs, write_tuner,
        };
    }

    /// Plans of packed trees, and what proves how good the trees are.
    #[pymodule]
    mod packing {
        #[pymodule_export]
        use crate::packing::PyPacking;
    }

    /// Spans of time as Perfetto shows them.
    #[pymodule]
    mod perfetto {
        #[pymodule_export]
        use crate::perfetto::Writer;
    }

    #[pymodule_export]
    use crate::pickle::restore;
    #[pymodule_export]
    use crate::plan::{PyPlan, checked_routing};
    /// What is known of each algorithm before there is a network.
    #[pymodule]
    mod registry {
        #[pymodule_export]
        use crate::algorithms::{
            PyEntry, check_size, chunk_ladder, default_chunks, entries, least_transfers, transfers,
        };
    }

    /// Execution traces made ready for a network, as the Rust core runs them.
    #[pymodule]
    mod replay {
        #[pymodule_export]
        use crate::replay::PyReplay;
    }

    #[pymodule_export]
    use crate::report::{
        DimensionReport, Report, activity, dimension_report, equal_links, gap, heat, rates, report,
        structures, use_and_sums,
    };
    /// Paths on a Clos or fat tree, as the Rust core finds them.
    #[pymodule]
    mod routing {
        #[pymodule_export]
        use crate::routing::{Assignment, Flows, PyFabric, Sprayed, assign, assignment_of, spray};
    }

    /// Plans run between processes; only on Unix.
    #[cfg(unix)]
    #[pymodule]
    mod runtime {
        #[pymodule_export]
        use crate::runtime::{PyGroup, PyPacer, PyProgram, PyStore};

        #[cfg(target_os = "linux")]
        #[pymodule_export]
        use crate::runtime::relay;
    }

    /// Hashes of switches, as the Rust core models them.
    #[pymodule]
    mod steering {
        #[pymodule_export]
        use crate::steering::{
            find_label, find_port, hashed, identify, queue_pair_port, switch_seed, ways,
        };
    }

    #[pymodule_export]
    use crate::simulate::{PyRun, simulate, simulate_flows, simulate_packets};
    /// Plans of one piece of each tree, that many follow.
    #[pymodule]
    mod pipelined {
        #[pymodule_export]
        use crate::pipelined::{PyPipelinedPlan, kept_among, plan_pipelined};
    }

    /// Plans of one NPU's block, that a group shifts to the blocks of all others.
    #[pymodule]
    mod symmetry {
        #[pymodule_export]
        use crate::symmetry::{PySymmetricPlan, plan_symmetric};
    }

    /// Plans for any network: problems, timetables, and the quickest plan of all unwindings.
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

    /// Training jobs on a fabric, as the Rust core runs them.
    #[pymodule]
    mod cluster {
        #[pymodule_export]
        use crate::cluster::{Outcome, Pattern, simulate};
    }

    /// Execution traces, as the Rust core reads them.
    #[pymodule]
    mod trace {
        #[pymodule_export]
        use crate::trace::{PyDraft, PyTrace};
    }

    /// Python finds a submodule of an extension only where it is told of it.
    #[pymodule_init]
    fn init(py: Python<'_>) -> PyResult<()> {
        let modules = py.import("sys")?.getattr("modules")?;
        let module = py.import("hocket._core")?;
        for (name, value) in module.dict() {
            if value.is_instance_of::<PyModule>() {
                modules.set_item(format!("hocket._core.{name}"), value)?;
            }
        }
        Ok(())
    }
}
