//! A tuner plugin for NCCL: for each collective it picks algorithm, protocol and channels by a table.
//!
//! NCCL loads the library that `NCCL_TUNER_PLUGIN` names and looks for `ncclTunerPlugin_v7` to `_v4`, in this
//! order. The table is the file that `HOCKET_NCCL_TUNER` names, or else `NCCL_TUNER_CONFIG_FILE`, in the form that
//! [`hocket_formats::nccl_tuner`] reads. Where no line answers, or the table cannot be read, which NCCL's log says,
//! nothing is changed and NCCL chooses by itself.
//!
//! # Source
//! NVIDIA NCCL 2.30.7, `src/include/plugin/tuner/tuner_v4.h` to `tuner_v6.h` and `src/enqueue.cc` (`ncclGetAlgoInfo`);
//! `tuner_v7.h` of commit 2449986f.

use std::ffi::{CString, c_char, c_float, c_int, c_ulong, c_void};
use std::ptr::null_mut;

use hocket_formats::nccl_tuner::{Question, Table};

/// `ncclSuccess` and `ncclInternalError`.
const SUCCESS: c_int = 0;
const INTERNAL_ERROR: c_int = 3;
/// `NCCL_LOG_WARN`, `NCCL_LOG_INFO` and `NCCL_TUNING`.
const WARN: c_int = 2;
const INFO: c_int = 3;
const TUNING: c_ulong = 0x40;
/// What NCCL writes into the table of costs for what is not to be used.
const IGNORE: c_float = -1.0;
/// Where the table is, the first that is set.
const VARIABLES: [&str; 2] = ["HOCKET_NCCL_TUNER", "NCCL_TUNER_CONFIG_FILE"];

type Logger =
    Option<unsafe extern "C" fn(c_int, c_ulong, *const c_char, c_int, *const c_char, ...)>;
type Info = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    usize,
    c_int,
    *mut *mut c_float,
    c_int,
    c_int,
    c_int,
    *mut c_int,
) -> c_int;
type End = unsafe extern "C" fn(*mut c_void) -> c_int;

/// `ncclTuner_v4_t`.
#[repr(C)]
pub struct TunerV4 {
    name: *const c_char,
    init: unsafe extern "C" fn(usize, usize, Logger, *mut *mut c_void) -> c_int,
    get_coll_info: Info,
    destroy: End,
}

/// `ncclTuner_v5_t`.
#[repr(C)]
pub struct TunerV5 {
    name: *const c_char,
    init: InitV5,
    get_coll_info: Info,
    finalize: End,
}

/// `ncclTuner_v6_t`, and `ncclTuner_v7_t`: it differs in constants alone, which are not touched.
#[repr(C)]
pub struct TunerV6 {
    name: *const c_char,
    init: InitV5,
    get_coll_info: Info,
    finalize: End,
    get_chunk_size: *const c_void,
}

type InitV5 = unsafe extern "C" fn(
    *mut *mut c_void,
    u64,
    usize,
    usize,
    Logger,
    *mut c_void,
    *mut c_void,
) -> c_int;

// SAFETY: their pointers are to functions and to text that is never written.
unsafe impl Sync for TunerV4 {}
// SAFETY: as above.
unsafe impl Sync for TunerV5 {}
// SAFETY: as above.
unsafe impl Sync for TunerV6 {}

const NAME: *const c_char = c"hocket".as_ptr();

/// The plugin for NCCL before 2.28.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static ncclTunerPlugin_v4: TunerV4 = TunerV4 {
    name: NAME,
    init: init_v4,
    get_coll_info,
    destroy: finalize,
};

/// The plugin for NCCL 2.28 and 2.29.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static ncclTunerPlugin_v5: TunerV5 = TunerV5 {
    name: NAME,
    init: init_v5,
    get_coll_info,
    finalize,
};

/// The plugin for NCCL 2.30.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static ncclTunerPlugin_v6: TunerV6 = TunerV6 {
    name: NAME,
    init: init_v5,
    get_coll_info,
    finalize,
    get_chunk_size: std::ptr::null(),
};

/// The plugin for NCCL after 2.32, whose repository has this version.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static ncclTunerPlugin_v7: TunerV6 = TunerV6 {
    name: NAME,
    init: init_v5,
    get_coll_info,
    finalize,
    get_chunk_size: std::ptr::null(),
};

/// What a communicator keeps.
struct Context {
    table: Table,
    ranks: u32,
    nodes: u32,
}

unsafe extern "C" fn init_v4(
    ranks: usize,
    nodes: usize,
    log: Logger,
    context: *mut *mut c_void,
) -> c_int {
    // SAFETY: as `init_v5`.
    unsafe { init_v5(context, 0, ranks, nodes, log, null_mut(), null_mut()) }
}

unsafe extern "C" fn init_v5(
    context: *mut *mut c_void,
    _communicator: u64,
    ranks: usize,
    nodes: usize,
    log: Logger,
    _domain: *mut c_void,
    _constants: *mut c_void,
) -> c_int {
    if context.is_null() {
        return INTERNAL_ERROR;
    }
    let table = load().unwrap_or_else(|why| {
        say(log, WARN, &format!("hocket's tuner changes nothing: {why}"));
        Table::default()
    });
    if !table.rows.is_empty() {
        say(
            log,
            INFO,
            &format!(
                "hocket's tuner follows a table of {} lines",
                table.rows.len()
            ),
        );
    }
    let made = Box::new(Context {
        table,
        ranks: u32::try_from(ranks).unwrap_or(u32::MAX),
        nodes: u32::try_from(nodes).unwrap_or(u32::MAX),
    });
    // SAFETY: NCCL hands in a place for one pointer.
    unsafe { *context = Box::into_raw(made).cast() };
    SUCCESS
}

/// Reads the table that the environment names.
fn load() -> Result<Table, String> {
    let mut named = VARIABLES.iter().filter_map(std::env::var_os);
    let Some(path) = named.next() else {
        return Err(format!("{} names no table", VARIABLES[0]));
    };
    let shown = path.to_string_lossy().into_owned();
    let bytes = std::fs::read(&path).map_err(|error| format!("{shown}: {error}"))?;
    Table::parse(&bytes).map_err(|fault| format!("{shown}: {fault}"))
}

/// Writes a line to NCCL's log.
fn say(log: Logger, level: c_int, line: &str) {
    let (Some(log), Ok(line)) = (log, CString::new(line)) else {
        return;
    };
    // SAFETY: the format is of one text, which is handed in; all texts end with a zero and outlive the call.
    unsafe {
        log(
            level,
            TUNING,
            c"hocket-nccl-tuner".as_ptr(),
            0,
            c"%s".as_ptr(),
            line.as_ptr(),
        )
    };
}

unsafe extern "C" fn get_coll_info(
    context: *mut c_void,
    collective: c_int,
    bytes: usize,
    pipe_ops: c_int,
    costs: *mut *mut c_float,
    algorithms: c_int,
    protocols: c_int,
    registered: c_int,
    channels: *mut c_int,
) -> c_int {
    if context.is_null() || costs.is_null() {
        return INTERNAL_ERROR;
    }
    // SAFETY: made by `init_v5`, and NCCL does not use it after `finalize`.
    let context = unsafe { &*context.cast::<Context>() };
    let number = |value: c_int| u32::try_from(value).unwrap_or(0);
    let asked = Question {
        collective: usize::try_from(collective).unwrap_or(usize::MAX),
        bytes: bytes as u64,
        nodes: context.nodes,
        ranks: context.ranks,
        pipe_ops: number(pipe_ops),
        registered: number(registered),
    };
    let Some(row) = context.table.pick(&asked) else {
        return SUCCESS;
    };
    let (width, height) = (number(protocols) as usize, number(algorithms) as usize);
    if row.protocol >= width || row.algorithm >= height {
        return SUCCESS;
    }
    // SAFETY: NCCL's costs are one block of `algorithms` times `protocols` numbers, whatever the type says.
    let cost = unsafe {
        &mut *costs
            .cast::<c_float>()
            .add(row.algorithm * width + row.protocol)
    };
    if *cost == IGNORE {
        return SUCCESS;
    }
    *cost = 0.0;
    let count = row.channels.and_then(|count| c_int::try_from(count).ok());
    if let (Some(count), false) = (count, channels.is_null()) {
        // SAFETY: NCCL hands in a place for one number.
        unsafe { *channels = count };
    }
    SUCCESS
}

unsafe extern "C" fn finalize(context: *mut c_void) -> c_int {
    if !context.is_null() {
        // SAFETY: made by `init_v5` from a box, and given back once.
        drop(unsafe { Box::from_raw(context.cast::<Context>()) });
    }
    SUCCESS
}
