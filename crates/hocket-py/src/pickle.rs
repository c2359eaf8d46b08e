//! `restore`: what pickles of the core's classes call to make an object again.
//!
//! `__reduce__` of a class gives `restore`, the name of a constructor in `hocket._core` and its keywords: plain values
//! and columns. A pickle is input like a file: the constructor checks all of it, and no proof is in it.

use std::convert::Infallible;

use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyMemoryError};
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{intern, type_hint_identifier, type_hint_subscript};

use crate::error::{CoreError, Parts};

/// What `__reduce__` gives.
pub(crate) struct Reduced<'py>(Bound<'py, PyTuple>);

impl<'py> IntoPyObject<'py> for Reduced<'py> {
    type Target = PyTuple;
    type Output = Bound<'py, Self::Target>;
    type Error = Infallible;

    const OUTPUT_TYPE: PyStaticExpr = type_hint_subscript!(
        type_hint_identifier!("builtins", "tuple"),
        type_hint_identifier!("typing", "Any"),
        type_hint_identifier!("typing", "Any")
    );

    fn into_pyobject(self, _: Python<'py>) -> Result<Self::Output, Self::Error> {
        Ok(self.0)
    }
}

/// `restore`, the name of the constructor, and the keywords.
pub(crate) fn reduced<'py>(
    py: Python<'py>,
    name: &'static str,
    keywords: Bound<'py, PyDict>,
) -> PyResult<Reduced<'py>> {
    let restore = py.import("hocket._core")?.getattr(intern!(py, "restore"))?;
    (restore, (name, keywords)).into_pyobject(py).map(Reduced)
}

/// Keywords of some attributes of an object, by their own names.
pub(crate) fn attributes<'py>(
    object: &Bound<'py, PyAny>,
    names: &[&str],
) -> PyResult<Bound<'py, PyDict>> {
    let keywords = PyDict::new(object.py());
    for name in names {
        keywords.set_item(name, object.getattr(*name)?)?;
    }
    Ok(keywords)
}

/// Make again what ``__reduce__`` of a class gave; all of it is checked, and no proof is in it.
#[pyfunction]
pub(crate) fn restore<'py>(
    py: Python<'py>,
    name: &str,
    state: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let core = py.import("hocket._core")?.into_any();
    let found = name
        .split('.')
        .try_fold(core, |outer, part| outer.getattr(part));
    let constructor = found.map_err(|_| unfit(name, "there is no such class"))?;
    let Ok(keywords) = state.cast::<PyDict>() else {
        return Err(unfit(name, "its state is not a dictionary"));
    };
    constructor.call((), Some(keywords)).map_err(|error| {
        if is_told_already(py, &error) {
            return error;
        }
        let text = error.value(py).to_string();
        unfit(name, text.lines().next().unwrap_or_default())
    })
}

fn unfit(name: &str, why: &str) -> PyErr {
    let is_class = |part: &&str| part.starts_with(char::is_uppercase);
    let class = name.split('.').find(is_class).unwrap_or(name);
    let wrong = Parts::new(why).origin(format!("pickle of {class}"));
    CoreError::from(wrong.remedy("pickle the object again, by this version")).into()
}

/// Whether an error is hocket's own, or none that the state is to blame for.
fn is_told_already(py: Python<'_>, error: &PyErr) -> bool {
    let own = py
        .import("hocket.errors")
        .and_then(|errors| errors.getattr("Error"));
    let own: Option<Bound<'_, PyType>> = own.ok().and_then(|class| class.cast_into().ok());
    own.is_some_and(|class| error.matches(py, class).unwrap_or(false))
        || error.is_instance_of::<PyMemoryError>(py)
        || error.is_instance_of::<PyKeyboardInterrupt>(py)
        || !error.is_instance_of::<PyException>(py)
}
