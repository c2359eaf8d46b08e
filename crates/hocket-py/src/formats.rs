//! `hocket._core.formats`: files of other runtimes.

use std::collections::HashMap;
use std::fmt;

use hocket_core::collective::CollectiveKind;
use hocket_core::explain::Explain;
use hocket_core::graph::Lists;
use hocket_core::plan::{Columns, Plan};
use hocket_core::program::check::{CheckOptions, check};
use hocket_core::program::words::{Words, WordsError, words};
use hocket_core::program::{
    CompileError, CompileOptions, CompiledPlan, Mode, Program, Ranks, SizeLimits, compile,
    decompile, fewest_channels,
};
use hocket_core::progress::Progress;
use hocket_core::topology::Topology;
use hocket_core::verify::Verified;
use hocket_formats::msccl_xml::{self, Protocol};
use hocket_formats::mscclpp_json::{self, How, Room};
use hocket_formats::nccl_graph::{Graphs, reader_fault};
use hocket_formats::{Facts, Finding, Verdict, run};
use pyo3::prelude::*;

use crate::arrays::{self, Array};
use crate::error::{CoreError, Parts};
use crate::hints::{Callback, Listener};
use crate::plan::PyPlan;
use crate::progress;

impl From<CompileError> for CoreError {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Zero { .. } => CoreError::Spec(error.parts()),
            _ => CoreError::Infeasible(error.parts()),
        }
    }
}

impl From<msccl_xml::Refused> for CoreError {
    fn from(error: msccl_xml::Refused) -> Self {
        CoreError::Infeasible(error.parts())
    }
}

impl From<mscclpp_json::Refused> for CoreError {
    fn from(error: mscclpp_json::Refused) -> Self {
        CoreError::Infeasible(error.parts())
    }
}

impl From<WordsError> for CoreError {
    fn from(error: WordsError) -> Self {
        CoreError::Infeasible(error.parts())
    }
}

/// One thing that is wrong with a file.
#[pyclass(module = "hocket._core.formats", name = "Finding", frozen, get_all)]
pub(crate) struct PyFinding {
    code: String,
    line: Option<u64>,
    place: String,
    detail: String,
    text: String,
}

impl PyFinding {
    fn of(finding: Finding) -> Self {
        Self {
            text: finding.to_string(),
            code: finding.code.to_owned(),
            line: (finding.line > 0).then_some(finding.line),
            place: finding.place,
            detail: finding.detail,
        }
    }
}

/// The kind of a file and its faults; sizes in bytes.
#[pyclass(module = "hocket._core.formats", frozen, get_all)]
pub(crate) struct Checked {
    name: String,
    collective: String,
    ranks: u32,
    chunks: u32,
    in_place: bool,
    out_of_place: bool,
    protocol: String,
    blocks: usize,
    steps: usize,
    scratch_chunks: u32,
    min_bytes: u64,
    max_bytes: Option<u64>,
    contents_known: bool,
    count: u64,
    findings: Vec<Py<PyFinding>>,
    notes: Vec<String>,
}

impl Checked {
    fn new(py: Python<'_>, facts: Facts, verdict: Verdict) -> PyResult<Self> {
        let findings = verdict.findings.into_iter();
        let findings = findings.map(|finding| Py::new(py, PyFinding::of(finding)));
        Ok(Self {
            name: facts.name,
            collective: facts.collective,
            ranks: facts.ranks,
            chunks: facts.chunks,
            in_place: facts.modes.contains(&Mode::InPlace),
            out_of_place: facts.modes.contains(&Mode::OutOfPlace),
            protocol: facts.protocol,
            blocks: facts.blocks,
            steps: facts.steps,
            scratch_chunks: facts.scratch,
            min_bytes: facts.limits.min,
            max_bytes: (facts.limits.max < u64::MAX).then_some(facts.limits.max),
            contents_known: verdict.contents_known,
            count: verdict.count,
            findings: findings.collect::<PyResult<_>>()?,
            notes: verdict.notes,
        })
    }
}

/// Read and judge a file of MSCCL; where it `runs`, on integers as well.
///
/// Raises
/// ------
/// hocket.SpecError
///     If it cannot be read.
#[pyfunction]
#[pyo3(signature = (text, *, chunks_per_message=1, runs=false, progress=None))]
pub(crate) fn check_msccl(
    py: Python<'_>,
    text: &str,
    chunks_per_message: u32,
    runs: bool,
    progress: Option<Listener>,
) -> Result<Checked, CoreError> {
    let options = CheckOptions { chunks_per_message };
    let (facts, verdict) = progress::watched(py, progress, |watch| {
        let algo = msccl_xml::read(text)?;
        let mut verdict = msccl_xml::check(&algo, &options, watch)?;
        if runs && verdict.is_right() {
            run(&msccl_xml::program(&algo)?, &options, &mut verdict);
        }
        let facts = Facts::of_msccl(&algo);
        Ok::<_, CoreError>((facts, verdict))
    })?;
    Ok(Checked::new(py, facts, verdict)?)
}

/// Read and judge a file of MSCCL++; where it `runs`, on integers as well.
///
/// Raises
/// ------
/// hocket.SpecError
///     If it cannot be read.
#[pyfunction]
#[pyo3(signature = (text, *, chunks_per_message=1, runs=false, progress=None))]
pub(crate) fn check_mscclpp(
    py: Python<'_>,
    text: &str,
    chunks_per_message: u32,
    runs: bool,
    progress: Option<Listener>,
) -> Result<Checked, CoreError> {
    let options = CheckOptions { chunks_per_message };
    let (facts, verdict) = progress::watched(py, progress, |watch| {
        let plan = mscclpp_json::read(text)?;
        let mut verdict = mscclpp_json::check(&plan, &options, watch)?;
        if runs && verdict.is_right() {
            run(&mscclpp_json::program(&plan)?.0, &options, &mut verdict);
        }
        let facts = Facts::of_mscclpp(&plan);
        Ok::<_, CoreError>((facts, verdict))
    })?;
    Ok(Checked::new(py, facts, verdict)?)
}

/// Check a file of NCCL's graphs: broken rules of NCCL's, and notes.
///
/// Raises
/// ------
/// hocket.SpecError
///     If it cannot be read.
#[pyfunction]
pub(crate) fn check_nccl_graph(
    py: Python<'_>,
    text: &str,
) -> Result<(Vec<PyFinding>, Vec<String>), CoreError> {
    py.detach(|| {
        let graphs = Graphs::parse(text.as_bytes())?;
        let faults = reader_fault(text).into_iter().chain(graphs.faults());
        let faults = faults.map(|fault| {
            PyFinding::of(Finding {
                code: fault.code,
                line: fault.line,
                place: String::new(),
                detail: format!("{}; {}", fault.why, fault.remedy),
            })
        });
        let advice = graphs
            .advice()
            .map(|fault| format!("{}; {}", fault.why, fault.remedy));
        Ok((faults.collect(), advice.into_iter().collect()))
    })
}

/// The program of a file as transfers of a plan, right one after the other.
#[pyclass(module = "hocket._core.formats", frozen)]
pub(crate) struct Raised {
    #[pyo3(get)]
    collective: &'static str,
    #[pyo3(get)]
    ranks: u32,
    #[pyo3(get)]
    chunks: u32,
    #[pyo3(get)]
    name: String,
    /// Senders and receivers are ranks.
    transfers: Columns,
    #[pyo3(get)]
    unused: u64,
}

#[pymethods]
impl Raised {
    /// First chunk of each transfer, (transfers,).
    #[getter]
    fn chunk<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.transfers.chunk.as_slice())
    }

    /// Consecutive chunks of each transfer, (transfers,).
    #[getter]
    fn chunk_count<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.transfers.chunk_count.as_slice())
    }

    /// Rank of each sender, (transfers,).
    #[getter]
    fn src<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.transfers.src.as_slice())
    }

    /// Rank of each receiver, (transfers,).
    #[getter]
    fn dst<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u32>> {
        arrays::column(slf, |this| this.transfers.dst.as_slice())
    }

    /// 0 copy, 1 reduce, (transfers,).
    #[getter]
    fn op<'py>(slf: &Bound<'py, Self>) -> PyResult<Array<'py, u8>> {
        arrays::column(slf, |this| this.transfers.op.as_slice())
    }
}

/// Return the transfers of a file of MSCCL.
///
/// Raises
/// ------
/// hocket.SpecError
///     If it cannot be read.
/// hocket.InfeasibleError
///     If no plan can say what it does.
#[pyfunction]
pub(crate) fn raise_msccl(py: Python<'_>, text: &str) -> Result<Raised, CoreError> {
    py.detach(|| raised(&msccl_xml::program(&msccl_xml::read(text)?)?))
}

/// Like :func:`raise_msccl`, for a file of MSCCL++.
///
/// Raises
/// ------
/// hocket.SpecError
///     If it cannot be read.
/// hocket.InfeasibleError
///     If no plan can say what it does.
#[pyfunction]
pub(crate) fn raise_mscclpp(py: Python<'_>, text: &str) -> Result<Raised, CoreError> {
    py.detach(|| raised(&mscclpp_json::program(&mscclpp_json::read(text)?)?.0))
}

fn raised(program: &Program) -> Result<Raised, CoreError> {
    let made = decompile(program).map_err(|error| CoreError::Infeasible(error.parts()))?;
    let task = program.task();
    let has_parts = !matches!(
        task.kind,
        CollectiveKind::AllReduce | CollectiveKind::Broadcast | CollectiveKind::Reduce
    );
    let mut transfers = Columns::default();
    for each in made.transfers {
        transfers.chunk.push(each.first);
        transfers.chunk_count.push(each.count);
        transfers.src.push(each.src);
        transfers.dst.push(each.dst);
        transfers.op.push(u8::from(each.is_sum));
    }
    Ok(Raised {
        collective: task.kind.name(),
        ranks: task.ranks,
        chunks: if has_parts { task.part() } else { task.chunks },
        name: program.name().to_owned(),
        transfers,
        unused: made.unused,
    })
}

/// The written file.
#[pyclass(module = "hocket._core.formats", frozen, get_all)]
pub(crate) struct Exported {
    chunks: u32,
    channels: u32,
    blocks: usize,
    steps: usize,
    scratch_chunks: u32,
    in_place: bool,
    notes: Vec<String>,
}

impl Exported {
    fn new(program: &Program, notes: Vec<String>) -> Self {
        let blocks = (0..program.ranks()).map(|rank| program.blocks_of(rank).len());
        let channels = program.blocks().iter().map(|block| block.channel + 1);
        Self {
            chunks: program.task().chunks,
            channels: channels.max().unwrap_or(1),
            blocks: blocks.max().unwrap_or(0),
            steps: program.len(),
            scratch_chunks: program
                .sizes()
                .iter()
                .map(|sizes| sizes[2])
                .max()
                .unwrap_or(0),
            in_place: program.modes().contains(&Mode::InPlace),
            notes,
        }
    }
}

/// Numbers of channels that are tried where none is given.
const CHANNELS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Lowering options from what Python gives.
fn compiled(
    in_place: Option<bool>,
    instances: u32,
    (min_bytes, max_bytes): (u64, Option<u64>),
) -> CompileOptions {
    CompileOptions {
        mode: in_place.map(|in_place| {
            if in_place {
                Mode::InPlace
            } else {
                Mode::OutOfPlace
            }
        }),
        instances,
        limits: SizeLimits {
            min: min_bytes,
            max: max_bytes.unwrap_or(u64::MAX),
        },
        ..CompileOptions::default()
    }
}

/// Those of pipelines, among which connections take turns.
const IN_TURNS: [u32; 9] = [1, 2, 3, 4, 5, 6, 8, 12, 16];

/// How the messages of a sender and a receiver are spread over channels.
#[derive(Clone, Copy)]
enum Spread {
    /// They take turns among so many.
    Turns(u32),
    /// So many in a row are on each at most.
    Rows(u32),
}

/// Most messages of a pipeline that are joined.
const JOINS: u32 = 32;

/// How messages are spread that are joined. Rows have fewer levels on a channel, whose messages are not joined.
const JOINED: [Spread; 17] = [
    Spread::Turns(8),
    Spread::Turns(6),
    Spread::Turns(5),
    Spread::Turns(4),
    Spread::Turns(3),
    Spread::Turns(2),
    Spread::Turns(1),
    Spread::Rows(8),
    Spread::Rows(10),
    Spread::Rows(12),
    Spread::Rows(14),
    Spread::Rows(16),
    Spread::Rows(20),
    Spread::Rows(24),
    Spread::Rows(32),
    Spread::Rows(40),
    Spread::Rows(48),
];

/// The numbers of channels to try: the one that is given, or those of which fewer than `least` cannot work.
fn ladder(known: &[u32], given: Option<u32>, least: u32) -> Vec<u32> {
    let first = known.partition_point(|&channels| channels < least);
    given.map_or_else(
        || known[first.min(known.len() - 1)..].to_vec(),
        |channels| vec![channels],
    )
}

/// The first number of channels that works; the last refusal if none does.
fn with_channels<T, E: Into<CoreError>>(
    tried: &[u32],
    watch: &mut dyn Progress,
    mut attempt: impl FnMut(u32) -> Result<T, E>,
) -> Result<T, CoreError> {
    let mut last = None;
    for (done, &channels) in tried.iter().enumerate() {
        if !watch.report("export", done as u64, tried.len() as u64) {
            return Err(CoreError::Interrupted);
        }
        match attempt(channels) {
            Ok(made) => return Ok(made),
            Err(error) => last = Some(error),
        }
    }
    Err(last.expect("something was tried").into())
}

/// Write a plan as a file of MSCCL, part by part, to `write`; sizes in bytes.
///
/// Raises
/// ------
/// hocket.InfeasibleError
///     If the format cannot express it, or no runtime loads it.
#[pyfunction]
#[pyo3(signature = (
    plan, write, *, protocol="Simple", channels=None, instances=1, in_place=None, min_bytes=0,
    max_bytes=None, progress=None
))]
#[expect(clippy::too_many_arguments, reason = "options, named in Python")]
pub(crate) fn export_msccl(
    py: Python<'_>,
    plan: &PyPlan,
    write: Writer,
    protocol: &str,
    channels: Option<u32>,
    instances: u32,
    in_place: Option<bool>,
    min_bytes: u64,
    max_bytes: Option<u64>,
    progress: Option<Listener>,
) -> Result<Exported, CoreError> {
    let given = protocol;
    let protocol: Protocol = given.parse().map_err(|_| {
        let parts = Parts::new(format!("{given:?} is not a protocol of NCCL"));
        parts.field("protocol").remedy("Simple, LL and LL128 are")
    })?;
    let verified = plan.verified(py, None)?;
    let options = CompileOptions {
        in_flight: protocol.in_flight(),
        max_count: msccl_xml::MAX_COUNT,
        max_chunks: msccl_xml::MAX_OFFSET,
        ..compiled(in_place, instances, (min_bytes, max_bytes))
    };
    let least = fewest_channels(verified.plan(), msccl_xml::MAX_STEPS);
    progress::watched(py, progress, |watch| {
        with_channels(&ladder(&CHANNELS, channels, least), watch, |channels| {
            let options = CompileOptions {
                channels,
                ..options.clone()
            };
            let program = compile(&verified, &options)?;
            let mut out = ToPython::new(&write);
            let loaders = msccl_xml::export(&program, protocol, &mut out);
            let loaders = out.finish(loaders)?;
            let names: Vec<&str> = loaders.iter().map(|runtime| runtime.name()).collect();
            Ok::<_, CoreError>(Exported::new(
                &program,
                vec![format!("loaded by {}", names.join(", "))],
            ))
        })
    })
}

/// Write a plan as a file of MSCCL++, part by part, to `write`; sizes in bytes.
///
/// Raises
/// ------
/// hocket.InfeasibleError
///     If the format cannot express it, or the executor cannot hold it.
#[pyfunction]
#[pyo3(signature = (
    plan, write, *, protocol="Simple", channels=None, instances=1, in_place=None, min_bytes=0, max_bytes=None,
    progress=None
))]
#[expect(clippy::too_many_arguments, reason = "options, named in Python")]
pub(crate) fn export_mscclpp(
    py: Python<'_>,
    plan: &PyPlan,
    write: Writer,
    protocol: &str,
    channels: Option<u32>,
    instances: u32,
    in_place: Option<bool>,
    min_bytes: u64,
    max_bytes: Option<u64>,
    progress: Option<Listener>,
) -> Result<Exported, CoreError> {
    let given = protocol;
    let protocol: mscclpp_json::Protocol = given.parse().map_err(|_| {
        let parts = Parts::new(format!("{given:?} is not a protocol of MSCCL++"));
        parts.field("protocol").remedy("Simple and LL are")
    })?;
    let verified = plan.verified(py, None)?;
    let options = compiled(in_place, instances, (min_bytes, max_bytes));
    if mscclpp_json::uses_switches(&verified) {
        return through_switches(py, &verified, &write, protocol, (channels, &options));
    }
    let given = (options, channels, progress);
    for_mscclpp(py, plan, protocol, given, |program, how, room| {
        let mut out = ToPython::new(&write);
        let made = match mscclpp_json::export(program, how, room, &mut out) {
            Err(mscclpp_json::Refused::Blocks { .. }) => return Ok(None),
            made => out.finish(made)?,
        };
        let in_place = program.frame().modes().contains(&Mode::InPlace);
        Ok(Some(of_mscclpp(&made, in_place)))
    })
}

/// What Python sees of a written file.
fn of_mscclpp(made: &mscclpp_json::Written, in_place: bool) -> Exported {
    Exported {
        chunks: made.chunks,
        channels: made.channels.max(1),
        blocks: made.blocks,
        steps: made.steps,
        scratch_chunks: made.scratch,
        in_place,
        notes: notes_of(made),
    }
}

/// What a plan takes of MSCCL++'s executor.
#[pyclass(module = "hocket._core.formats", frozen, get_all)]
pub(crate) struct Need {
    /// MSCCL++ channels over which the plan is spread.
    channels: u32,
    /// Most operations of a thread block.
    operations: usize,
    /// Most thread blocks of a rank.
    blocks: usize,
}

/// The most operations of a thread block that MSCCL++'s executor holds, and the thread blocks that any of its GPUs runs at once.
#[pyfunction]
pub(crate) fn mscclpp_limits() -> (usize, usize) {
    (mscclpp_json::MAX_OPS, mscclpp_json::MAX_BLOCKS)
}

/// Return what a plan takes of MSCCL++'s executor, spread over the fewest channels with which its operations fit, or
/// over as many as are tried.
///
/// Raises
/// ------
/// hocket.InfeasibleError
///     If the format cannot express it.
#[pyfunction]
#[pyo3(signature = (plan, *, progress=None))]
pub(crate) fn need_mscclpp(
    py: Python<'_>,
    plan: &PyPlan,
    progress: Option<Listener>,
) -> Result<Need, CoreError> {
    let seen = |made: &mscclpp_json::Written| Need {
        channels: made.channels.max(1),
        operations: made.operations,
        blocks: made.blocks,
    };
    let verified = plan.verified(py, None)?;
    if mscclpp_json::uses_switches(&verified) {
        let options = mscclpp_json::SwitchOptions::default();
        return Ok(seen(&mscclpp_json::need_switches(&verified, &options)?));
    }
    let mut above: Option<Need> = None;
    let given = (compiled(None, 1, (0, None)), None, progress);
    let fits = for_mscclpp(py, plan, WITH_SIGNALS, given, |program, how, room| {
        let made = mscclpp_json::need(program, how)?;
        let (count, most) = (made.operations, room.operations);
        if count <= most {
            let has_room = made.blocks <= room.blocks;
            return Ok(has_room.then(|| seen(&made)));
        }
        if above.as_ref().is_none_or(|above| count <= above.operations) {
            above = Some(seen(&made));
        }
        let (rank, block) = (0, 0);
        Err(mscclpp_json::Refused::Operations {
            rank,
            block,
            count,
            most,
        }
        .into())
    });
    match (fits, above) {
        (Err(CoreError::Infeasible(_)), Some(above)) => Ok(above),
        (fits, _) => fits,
    }
}

/// A plan as hocket's own interpreter on a GPU reads it. Each rank has the same buffers.
#[pyclass(module = "hocket._core.formats", frozen)]
pub(crate) struct DeviceProgram {
    words: Words,
    /// Chunks of input, output and scratch of a rank, which all have the same number of bytes.
    #[pyo3(get)]
    sizes: [u32; 3],
    /// Most thread blocks of a rank.
    #[pyo3(get)]
    blocks: usize,
}

impl DeviceProgram {
    /// Makes the words of a program that is found right.
    fn of(program: &Program, watch: &mut dyn Progress) -> Result<Self, CoreError> {
        let checked = check(program, &CheckOptions::default(), watch)?;
        if let Some(fault) = checked.faults.kept().first() {
            let why = format!("its program is wrong: {}", fault.detail);
            return Err(CoreError::Infeasible(Parts::new(why)));
        }
        let most = |sizes: [u32; 3], own: &[u32; 3]| std::array::from_fn(|i| sizes[i].max(own[i]));
        let blocks = (0..program.ranks()).map(|rank| program.blocks_of(rank).len());
        Ok(Self {
            words: words(program)?,
            sizes: program.sizes().iter().fold([0; 3], most),
            blocks: blocks.max().unwrap_or(0),
        })
    }
}

#[pymethods]
impl DeviceProgram {
    /// Slots of 64 bits that each rank needs for signals.
    #[getter]
    fn slots(&self) -> u32 {
        self.words.slots
    }

    /// Return the words of a rank; none for a rank that it does not have.
    fn words<'py>(&self, py: Python<'py>, rank: usize) -> Array<'py, u64> {
        let own = self.words.of.get(rank).map_or(&[][..], Vec::as_slice);
        Array::from_slice(py, own)
    }
}

/// Return a plan as hocket's own interpreter on a GPU reads it, in as many thread blocks as `blocks` at most.
///
/// All ranks reach each other's memory. Input and output are separate buffers. A plan of many short equal slices gets
/// fewer: a chunk has at least the 8 KiB that a thread block moves at once, as far as the slices allow.
///
/// Raises
/// ------
/// hocket.InfeasibleError
///     If it has no such program, or needs more blocks.
#[pyfunction]
#[pyo3(signature = (plan, blocks, *, progress=None))]
pub(crate) fn device_program(
    py: Python<'_>,
    plan: &PyPlan,
    blocks: u32,
    progress: Option<Listener>,
) -> Result<DeviceProgram, CoreError> {
    const AT_ONCE: u64 = 512 * 16;
    let whole = plan.verified(py, None)?;
    progress::watched(py, progress, |watch| {
        let mut text = String::new();
        let fewer = mscclpp_json::with_chunks_of(&whole, AT_ONCE);
        let verified = fewer.as_ref().unwrap_or(&whole);
        if mscclpp_json::uses_switches(verified) {
            let usual = mscclpp_json::SwitchOptions::default();
            let options = mscclpp_json::SwitchOptions {
                blocks: usual.blocks.min(blocks),
                in_place: false,
                ..usual
            };
            mscclpp_json::export_switches(verified, WITH_SIGNALS, &options, &mut text)?;
        } else {
            let (mut least, mut fits) = (0, false);
            for &channels in CHANNELS.iter().rev() {
                let options = CompileOptions {
                    channels,
                    fuse: false,
                    max_count: 1 << 12,
                    ..compiled(Some(false), 1, (0, None))
                };
                let plan = CompiledPlan::of(verified, &options)?;
                let how = How {
                    protocol: WITH_SIGNALS,
                    is_near: &|_, _| true,
                    unit: None,
                };
                least = mscclpp_json::need(&plan, &how)?.blocks;
                fits = least <= blocks as usize;
                if fits {
                    let room = Room {
                        operations: usize::MAX,
                        blocks: usize::MAX,
                    };
                    mscclpp_json::export(&plan, &how, room, &mut text)?;
                    break;
                }
            }
            if !fits {
                let why = format!("a rank needs {least} thread blocks, and the most is {blocks}");
                return Err(CoreError::Infeasible(Parts::new(why)));
            }
        }
        DeviceProgram::of(
            &mscclpp_json::program(&mscclpp_json::read(&text)?)?.0,
            watch,
        )
    })
}

/// The protocol without packets.
const WITH_SIGNALS: mscclpp_json::Protocol = mscclpp_json::Protocol::Simple;

/// Attempts something with the program of a plan for MSCCL++, over more and more channels, until it finds room. It returns
/// nothing if there is no room for its thread blocks. Plans of equal slices become pipelines if they do not fit otherwise:
/// over as many channels as there is room for, since few blocks are slow. Messages of pipelines are joined if nothing else fits.
fn for_mscclpp<T: Send>(
    py: Python<'_>,
    plan: &PyPlan,
    protocol: mscclpp_json::Protocol,
    (options, channels, progress): (CompileOptions, Option<u32>, Option<Listener>),
    mut attempt: impl FnMut(&CompiledPlan<'_>, &How<'_>, Room) -> Result<Option<T>, CoreError> + Send,
) -> Result<T, CoreError> {
    const EVERY_GPU: usize = mscclpp_json::MAX_BLOCKS;
    let whole = plan.verified(py, None)?;
    let near = near(plan.network(), plan.core().collective().npus());
    let is_near = |a: u32, b: u32| near[a as usize] == near[b as usize];
    let operations = mscclpp_json::MAX_OPS;
    progress::watched(py, progress, |watch| {
        let mut last = None;
        let mut run = |of: &Verified, slices: Option<u32>, blocks: usize, joins: u32| {
            let is_again = slices.is_none() && blocks > EVERY_GPU;
            let known = if slices.is_some() {
                &IN_TURNS[..]
            } else {
                &CHANNELS[..]
            };
            // Over fewer channels than the last ones it has too many operations, whatever room there is for blocks.
            let given = channels.or(last.filter(|_| is_again));
            let numbers = given.map_or(known.to_vec(), |channels| vec![channels]);
            let mut tried: Vec<Spread> = numbers.into_iter().map(Spread::Turns).collect();
            if slices.is_some() && blocks == EVERY_GPU {
                tried.reverse();
            }
            if joins > 1 && channels.is_none() {
                tried = JOINED.to_vec();
            }
            let transfers = u32::try_from(of.plan().len()).expect("transfers have 32 bits");
            let levels = if joins > 1 {
                of.plan().wait_levels()
            } else {
                Lists::default()
            };
            let (mut made, mut above) = (Ok(None), None);
            for (done, &how_spread) in tried.iter().enumerate() {
                if !watch.report("export", done as u64, tried.len() as u64) {
                    return Err(CoreError::Interrupted);
                }
                let channel_of = slices.map(|_| match levels.items() {
                    [] => spread(of.plan(), how_spread, 0..transfers),
                    by_level => spread(of.plan(), how_spread, by_level.iter().copied()),
                });
                let highest = channel_of.iter().flatten().max().map(|last| last + 1);
                let channels = match how_spread {
                    Spread::Turns(channels) => channels,
                    Spread::Rows(_) => highest.unwrap_or(1),
                };
                let mut how = How {
                    protocol,
                    is_near: &is_near,
                    unit: slices.map(|_| 1),
                };
                let least = mscclpp_json::least(of.plan(), &how, channels, channel_of.as_deref());
                let fits = (joins > 1 || least.operations <= operations)
                    && (slices.is_none() || least.blocks <= blocks);
                // What does not fit in the end is told by the last numbers of channels.
                let is_told = done + 1 == tried.len() && (slices.is_none() || blocks > EVERY_GPU);
                // Over fewer channels, a block has more operations.
                let has_failed = joins > 1 && above == Some(std::mem::discriminant(&how_spread));
                if !fits && !is_told || has_failed {
                    continue;
                }
                let options = CompileOptions {
                    channels,
                    fuse: false,
                    max_count: if slices.is_some() { 1 } else { 1 << 12 },
                    channel_of,
                    joins,
                    ..options.clone()
                };
                let program = CompiledPlan::of(of, &options)?;
                how.unit = slices.map(|slices| mscclpp_json::unit_of(of, &program, slices));
                made = attempt(&program, &how, Room { operations, blocks });
                let ends = match &made {
                    Ok(made) => made.is_some() || slices.is_none(),
                    Err(error) => !matches!(error, CoreError::Infeasible(_)),
                };
                if ends {
                    last = last.or(Some(channels));
                    break;
                }
                if made.is_err() {
                    above = Some(std::mem::discriminant(&how_spread));
                }
            }
            made
        };
        let plain = run(&whole, None, EVERY_GPU, 1);
        if !matches!(plain, Ok(None) | Err(CoreError::Infeasible(_))) {
            return plain.map(|made| made.expect("it has room"));
        }
        let first = (protocol == WITH_SIGNALS).then(|| mscclpp_json::first_slice(&whole));
        let first = first.flatten();
        let first = first.as_ref().map(|(first, slices)| (first, Some(*slices)));
        let others = [
            first.map(|(of, slices)| (of, slices, EVERY_GPU, 1)),
            first.map(|(of, slices)| (of, slices, EVERY_GPU, JOINS)),
            plain.is_ok().then_some((&whole, None, usize::MAX, 1)),
            first.map(|(of, slices)| (of, slices, usize::MAX, 1)),
        ];
        for (of, slices, blocks, joins) in others.into_iter().flatten() {
            match run(of, slices, blocks, joins) {
                Ok(Some(made)) => return Ok(made),
                Err(CoreError::Interrupted) => return Err(CoreError::Interrupted),
                _ => {}
            }
        }
        plain.map(|made| made.expect("some blocks have room"))
    })
}

/// Returns a channel for each transfer, for the transfers of a sender and a receiver in the order that is given.
fn spread(plan: &Plan, how: Spread, order: impl Iterator<Item = u32> + Clone) -> Vec<u32> {
    let ends = |i: u32| (plan.src()[i as usize], plan.dst()[i as usize]);
    let mut counts: HashMap<(u32, u32), u32> = HashMap::new();
    for i in order.clone() {
        *counts.entry(ends(i)).or_default() += 1;
    }
    let mut next: HashMap<(u32, u32), u32> = HashMap::new();
    let mut channels = vec![0; plan.len()];
    for i in order {
        let place = next.entry(ends(i)).or_default();
        channels[i as usize] = match how {
            Spread::Turns(channels) => *place % channels.max(1),
            Spread::Rows(most) => {
                let count = counts[&ends(i)];
                *place * count.div_ceil(most) / count
            }
        };
        *place += 1;
    }
    channels
}

/// Writes a plan in which switches sum and multicast.
fn through_switches(
    py: Python<'_>,
    verified: &Verified,
    write: &Writer,
    protocol: mscclpp_json::Protocol,
    (channels, options): (Option<u32>, &CompileOptions),
) -> Result<Exported, CoreError> {
    let mut given = mscclpp_json::SwitchOptions {
        in_place: options.mode != Some(Mode::OutOfPlace),
        limits: options.limits,
        ..mscclpp_json::SwitchOptions::default()
    };
    given.blocks = channels
        .unwrap_or(given.blocks)
        .saturating_mul(options.instances);
    py.detach(|| {
        let mut out = ToPython::new(write);
        let made = mscclpp_json::export_switches(verified, protocol, &given, &mut out);
        Ok(of_mscclpp(&out.finish(made)?, given.in_place))
    })
}

/// What whoever calls MSCCL++ must know of a file.
fn notes_of(made: &mscclpp_json::Written) -> Vec<String> {
    let mut notes = Vec::new();
    if made.blocks > mscclpp_json::MAX_BLOCKS {
        notes.push(format!(
            "a rank has {} thread blocks of 1,024 threads, which must all run at once, each on a processor of its GPU: an A100 has 108, an H100 132",
            made.blocks
        ));
    }
    if let Some(unit) = made.unit {
        notes.push(format!(
            "each step goes through its chunk in rounds of {unit} bytes, as many as a message has"
        ));
    }
    if made.has_ports {
        notes.push(
            "channels between nodes read buffers from where their allocation starts: a buffer must start there"
                .to_owned(),
        );
    }
    if made.adds_own {
        notes.push(
            "a rank's own data go through the switch too, which this plan does not count; a plan of multimem does"
                .to_owned(),
        );
    }
    if made.binds_output {
        notes.push(
            "a switch writes the output, which must be memory that it can reach: mscclpp.GpuBuffer gives such"
                .to_owned(),
        );
    }
    notes
}

/// The node of each rank; ranks whose NPUs belong to none are all on one.
fn near(topology: &Topology, npus: &[hocket_core::id::NpuId]) -> Vec<usize> {
    let groups = topology.groups();
    let of = |npu| groups.iter().position(|group| group.contains(npu));
    npus.iter()
        .map(|npu| of(npu).unwrap_or(usize::MAX))
        .collect()
}

/// Takes text, a piece at a time.
type Writer = Callback<(&'static str,)>;

/// Text that goes to a callable of Python, a megabyte at a time.
struct ToPython<'a> {
    write: &'a Writer,
    text: String,
    error: Option<PyErr>,
}

impl<'a> ToPython<'a> {
    const AT_ONCE: usize = 1 << 20;

    fn new(write: &'a Writer) -> Self {
        Self {
            write,
            text: String::with_capacity(Self::AT_ONCE),
            error: None,
        }
    }

    fn flush(&mut self) -> fmt::Result {
        let text = &self.text;
        let given = Python::attach(|py| self.write.call(py, (text,)));
        self.text.clear();
        given.map_err(|error| {
            self.error = Some(error);
            fmt::Error
        })
    }

    /// The result, unless Python raised something.
    fn finish<T, E: Into<CoreError>>(mut self, result: Result<T, E>) -> Result<T, CoreError> {
        let flushed = if result.is_ok() { self.flush() } else { Ok(()) };
        match (self.error, result, flushed) {
            (Some(error), ..) => Err(error.into()),
            (None, Err(error), _) => Err(error.into()),
            (None, Ok(made), _) => Ok(made),
        }
    }
}

impl fmt::Write for ToPython<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text.push_str(text);
        if self.text.len() >= Self::AT_ONCE {
            self.flush()
        } else {
            Ok(())
        }
    }
}
