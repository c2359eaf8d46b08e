//! `hocket._core.perfetto`: spans of time as Perfetto shows them.

use std::borrow::Cow;

use hocket_formats::perfetto::{self, Span, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};

use crate::hints::Keywords;

/// Process, track, name, start and end [ps], category, and what else there is to say.
type Row<'py> = (
    u32,
    u32,
    Bound<'py, PyString>,
    u64,
    u64,
    Bound<'py, PyString>,
    Option<Keywords<'py>>,
);

/// Writes a trace, packet by packet, each text once.
#[pyclass(module = "hocket._core.perfetto")]
pub(crate) struct Writer(perfetto::Writer);

#[pymethods]
impl Writer {
    #[new]
    fn new() -> Self {
        Self(perfetto::Writer::new())
    }

    /// Add a process.
    fn process(&mut self, process: u32, name: &str) {
        self.0.process(process, name);
    }

    /// Add a track of a process.
    fn track(&mut self, process: u32, track: u32, name: &str) {
        self.0.track(process, track, name);
    }

    /// Add spans, each track's in the order of their starts; give the bytes since the last call.
    fn spans(&mut self, spans: Vec<Row<'_>>) -> PyResult<Cow<'static, [u8]>> {
        for (process, track, name, start_ps, end_ps, category, about) in &spans {
            let said = about
                .as_ref()
                .map(|about| said(&about.0))
                .transpose()?
                .unwrap_or_default();
            let (name, category) = (name.to_string_lossy(), category.to_string_lossy());
            self.0.span(&Span {
                process: *process,
                track: *track,
                name: &name,
                category: &category,
                start_ps: *start_ps,
                end_ps: *end_ps,
                about: said
                    .iter()
                    .map(|(key, value)| (key.as_ref(), value.value()))
                    .collect(),
            });
        }
        Ok(Cow::Owned(self.0.take()))
    }
}

/// A value of Python as it is written.
enum Said {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
}

impl Said {
    fn value(&self) -> Value<'_> {
        match self {
            Said::Bool(truth) => Value::Bool(*truth),
            Said::Int(number) => Value::Int(*number),
            Said::Float(number) => Value::Float(*number),
            Said::Text(text) => Value::Text(text),
        }
    }
}

fn said(about: &Bound<'_, PyDict>) -> PyResult<Vec<(String, Said)>> {
    let mut all = Vec::with_capacity(about.len());
    for (key, value) in about {
        let value = if let Ok(truth) = value.cast::<PyBool>() {
            Said::Bool(truth.is_true())
        } else if let Ok(number) = value.cast::<PyInt>() {
            match number.extract() {
                Ok(number) => Said::Int(number),
                Err(_) => Said::Text(number.to_string()),
            }
        } else if let Ok(number) = value.cast::<PyFloat>() {
            Said::Float(number.value())
        } else {
            Said::Text(value.str()?.to_string_lossy().into_owned())
        };
        all.push((key.str()?.to_string_lossy().into_owned(), value));
    }
    Ok(all)
}
