//! `hocket._core`: the Rust core as Python sees it. Converts and does nothing else.
//!
//! One thin file per module of the core. Arrays cross as NumPy views without a copy, long calls run
//! with the interpreter released, and every core error becomes a class of `hocket.errors`.

use pyo3::prelude::*;

#[pymodule]
mod _core {
    /// Version of the package.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
