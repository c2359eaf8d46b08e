//! Columns of the core as read-only NumPy arrays without a copy. Unsafe code is here, in `runtime` and in `interrupt`.

use hocket_core::id::LinkId;
use hocket_core::units::{Bandwidth, Time};
use std::convert::Infallible;
use std::ops::Deref;

use numpy::ndarray::{ArrayView1, Dimension, ShapeBuilder};
use numpy::{Element, Ix1, Ix2, PyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::PyList;
use pyo3::{PyClass, type_hint_identifier, type_hint_subscript, type_hint_union};

/// A number type that NumPy knows, with the type that stubs give to its arrays.
pub(crate) trait Dtype: Element {
    /// As in `numpy.typing.NDArray[numpy.uint32]`.
    const HINT: PyStaticExpr;
}

macro_rules! dtypes {
    ($($number:ty: $name:literal),*) => {$(
        impl Dtype for $number {
            const HINT: PyStaticExpr = type_hint_subscript!(
                type_hint_identifier!("numpy.typing", "NDArray"),
                type_hint_identifier!("numpy", $name)
            );
        }
    )*};
}
dtypes!(u8: "uint8", u32: "uint32", u64: "uint64", f32: "float32", f64: "float64");

/// An array of NumPy's. The crate `numpy` says of its own types nothing that stubs could use.
pub(crate) struct Array<'py, T, D = Ix1>(pub Bound<'py, PyArray<T, D>>);

impl<'py, T: Element> Array<'py, T> {
    pub(crate) fn from_vec(py: Python<'py>, values: Vec<T>) -> Self {
        Self(PyArray1::from_vec(py, values))
    }

    pub(crate) fn from_slice(py: Python<'py>, values: &[T]) -> Self {
        Self(PyArray1::from_slice(py, values))
    }

    pub(crate) fn from_iter(py: Python<'py>, values: impl IntoIterator<Item = T>) -> Self {
        Self(PyArray1::from_iter(py, values))
    }
}

impl<'py, T: Element> Array<'py, T, Ix2> {
    /// Rows one after the other.
    pub(crate) fn from_rows(py: Python<'py>, values: Vec<T>, shape: [usize; 2]) -> PyResult<Self> {
        Ok(Self(PyArray1::from_vec(py, values).reshape(shape)?))
    }
}

impl<'py, T, D> Deref for Array<'py, T, D> {
    type Target = Bound<'py, PyArray<T, D>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'py, T: Dtype, D: Dimension> IntoPyObject<'py> for Array<'py, T, D> {
    type Target = PyArray<T, D>;
    type Output = Bound<'py, Self::Target>;
    type Error = Infallible;

    const OUTPUT_TYPE: PyStaticExpr = T::HINT;

    fn into_pyobject(self, _: Python<'py>) -> Result<Self::Output, Self::Error> {
        Ok(self.0)
    }
}

impl<'a, 'py, T: Dtype, D: Dimension + 'static> FromPyObject<'a, 'py> for Array<'py, T, D> {
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = T::HINT;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(given.extract()?))
    }
}

/// An array from Python that nobody writes to meanwhile.
pub(crate) struct Given<'py, T: Element>(PyReadonlyArray1<'py, T>);

impl<'py, T: Element> Deref for Given<'py, T> {
    type Target = PyReadonlyArray1<'py, T>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<'a, 'py, T: Dtype> FromPyObject<'a, 'py> for Given<'py, T> {
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = T::HINT;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(given.extract()?))
    }
}

/// A value that is laid out as a number that NumPy knows.
///
/// # Safety
/// Every value of the type must be a valid `Number` of the same size and alignment.
pub(crate) unsafe trait Column {
    /// The number.
    type Number: Element;
}

// SAFETY: a number is itself.
unsafe impl Column for u8 {
    type Number = u8;
}
// SAFETY: a number is itself.
unsafe impl Column for u32 {
    type Number = u32;
}
// SAFETY: a number is itself.
unsafe impl Column for u64 {
    type Number = u64;
}
// SAFETY: a number is itself.
unsafe impl Column for f64 {
    type Number = f64;
}
// SAFETY: `repr(transparent)` over a u32.
unsafe impl Column for hocket_core::id::DeviceId {
    type Number = u32;
}
// SAFETY: `repr(transparent)` over a u32.
unsafe impl Column for LinkId {
    type Number = u32;
}
// SAFETY: `repr(transparent)` over a u64.
unsafe impl Column for Time {
    type Number = u64;
}
// SAFETY: `repr(transparent)` over a `NonZeroU64`, which is laid out as a u64.
unsafe impl Column for Bandwidth {
    type Number = u64;
}

// SAFETY: `repr(u8)` without fields.
unsafe impl Column for hocket_core::trace::NodeKind {
    type Number = u8;
}
// SAFETY: `repr(u8)` without fields.
unsafe impl Column for hocket_core::trace::CallKind {
    type Number = u8;
}

/// Bytes that `owner` keeps and that are nobody's but the array's, as an array that can be written.
#[cfg(target_os = "linux")]
pub(crate) fn memory_of<'py, C: PyClass<Frozen = True> + Sync>(
    owner: Bound<'py, C>,
    place: impl FnOnce(&C) -> (*mut u8, usize),
) -> Array<'py, u8> {
    let (start, len) = place(owner.get());
    // SAFETY: the owner keeps the bytes as long as the array keeps it.
    unsafe {
        let view = ArrayView1::from_shape_ptr(len, start.cast_const());
        Array(PyArray1::borrow_from_array(&view, owner.into_any()))
    }
}

/// A column that `owner` holds, as a read-only array that keeps `owner` alive.
pub(crate) fn column<'py, C, T>(
    owner: &Bound<'py, C>,
    rows: impl for<'a> FnOnce(&'a C) -> &'a [T],
) -> PyResult<Array<'py, T::Number>>
where
    C: PyClass<Frozen = True> + Sync,
    T: Column,
{
    field(owner, rows, |row| row)
}

/// One field of each of the rows that `owner` holds, as a read-only array that keeps `owner` alive.
pub(crate) fn field<'py, C, R, T>(
    owner: &Bound<'py, C>,
    rows: impl for<'a> FnOnce(&'a C) -> &'a [R],
    of: impl for<'a> Fn(&'a R) -> &'a T,
) -> PyResult<Array<'py, T::Number>>
where
    C: PyClass<Frozen = True> + Sync,
    T: Column,
{
    const {
        assert!(size_of::<T>() == size_of::<T::Number>());
        assert!(size_of::<R>().is_multiple_of(size_of::<T>()));
    }
    let rows = rows(owner.get());
    let offset = |row: &R| std::ptr::from_ref(of(row)).addr() - std::ptr::from_ref(row).addr();
    let first = rows.first().map_or(0, offset);
    assert!(
        rows.iter()
            .all(|row| offset(row) == first && first + size_of::<T>() <= size_of::<R>()),
        "a field lies at one place in every row"
    );
    let shape = (rows.len(),).strides((size_of::<R>() / size_of::<T>(),));
    // SAFETY: by the assertion, row i has a `T`, hence a `Number`, at `first` bytes from its start.
    // The rows are borrowed from `owner` for as long as `owner` lives, since that lifetime is not
    // ours to choose; a frozen class lends nothing mutably, so they neither move nor change. The
    // array holds a reference to `owner` as its base.
    let array = unsafe {
        let start = rows.as_ptr().cast::<u8>().add(first).cast::<T::Number>();
        let view = ArrayView1::from_shape_ptr(shape, start);
        PyArray1::borrow_from_array(&view, owner.clone().into_any())
    };
    array.call_method1("setflags", (false,))?;
    Ok(Array(array))
}

/// A column from Python: an array, or a list, for which NumPy need not be loaded.
pub(crate) struct Numbers<T>(pub Vec<T>);

impl<'a, 'py, T> FromPyObject<'a, 'py> for Numbers<T>
where
    T: Dtype + Copy + FromPyObjectOwned<'py>,
{
    type Error = PyErr;

    const INPUT_TYPE: PyStaticExpr = type_hint_union!(T::HINT, Vec::<T>::INPUT_TYPE);

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if given.is_instance_of::<PyList>() {
            return Ok(Self(given.extract()?));
        }
        let array: PyReadonlyArray1<'py, T> = given.extract()?;
        Ok(Self(to_vec(&array)))
    }
}

/// An array's values, contiguous or not.
pub(crate) fn to_vec<T: Element + Copy>(array: &PyReadonlyArray1<'_, T>) -> Vec<T> {
    match array.as_slice() {
        Ok(values) => values.to_vec(),
        Err(_) => array.as_array().iter().copied().collect(),
    }
}
