//! Arguments that are any object for PyO3, with the types that stubs give them.

use std::marker::PhantomData;
use std::net::IpAddr;

use pyo3::call::PyCallArgs;
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{type_hint_identifier, type_hint_subscript};

/// Who is told of progress now and then: (stage, done, total).
///
/// An exception that it raises stops the call and comes out of it, and so does Ctrl-C.
pub(crate) type Listener = Callback<(&'static str, u64, u64)>;

/// A function that takes these arguments, a tuple; what it gives is not looked at.
pub(crate) struct Callback<A> {
    function: Py<PyAny>,
    arguments: PhantomData<fn(A)>,
}

impl<A> Callback<A> {
    /// The same function again.
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            function: self.function.clone_ref(py),
            arguments: PhantomData,
        }
    }

    /// Calls it.
    pub(crate) fn call<'py>(
        &self,
        py: Python<'py>,
        arguments: impl PyCallArgs<'py>,
    ) -> PyResult<()> {
        self.function.call1(py, arguments).map(drop)
    }
}

impl<'a, 'py, A: IntoPyObject<'py>> FromPyObject<'a, 'py> for Callback<A> {
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = type_hint_subscript!(
        type_hint_identifier!("collections.abc", "Callable"),
        as_list(A::OUTPUT_TYPE),
        type_hint_identifier!("builtins", "object")
    );

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self {
            function: given.to_owned().unbind(),
            arguments: PhantomData,
        })
    }
}

/// `[A, B]` of `tuple[A, B]`.
const fn as_list(tuple: PyStaticExpr) -> PyStaticExpr {
    if let PyStaticExpr::Subscript { slice, .. } = tuple {
        return match slice {
            PyStaticExpr::Tuple { elts } => PyStaticExpr::List { elts },
            only => PyStaticExpr::List {
                elts: std::slice::from_ref(only),
            },
        };
    }
    tuple
}

/// An address of a host, as text.
pub(crate) struct Address(pub IpAddr);

impl<'a, 'py> FromPyObject<'a, 'py> for Address {
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = type_hint_identifier!("builtins", "str");

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        given.extract().map(Self)
    }
}

/// An object that is read as a `T` later, so that what is wrong with it is said in other words.
pub(crate) struct Unread<'py, T>(pub Bound<'py, PyAny>, pub PhantomData<fn() -> T>);

impl<'a, 'py, T: FromPyObject<'a, 'py>> FromPyObject<'a, 'py> for Unread<'py, T> {
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = T::INPUT_TYPE;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(given.to_owned(), PhantomData))
    }
}

/// A dictionary of values by names.
pub(crate) struct Keywords<'py>(pub Bound<'py, PyDict>);

impl<'a, 'py> FromPyObject<'a, 'py> for Keywords<'py> {
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = type_hint_subscript!(
        type_hint_identifier!("builtins", "dict"),
        type_hint_identifier!("builtins", "str"),
        type_hint_identifier!("typing", "Any")
    );

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(given.cast::<PyDict>()?.to_owned()))
    }
}
