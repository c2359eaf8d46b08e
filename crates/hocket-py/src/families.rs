//! Families of networks: what is declared of each, and networks of them.

use hocket_core::topology::build::{
    Counts, FAMILIES, Family, Otherwise, Parameter, Unit, Value, product,
};
use hocket_core::units::Time;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{CoreError, Parts};
use crate::hints::Keywords;
use crate::topology::{
    DimensionTuple, GivenDimension, PyTopology, dimension_tuple, positive, to_dimensions,
};

/// A default: a number, yes or no, or the name of a parameter that is the same.
#[derive(Clone, IntoPyObject)]
enum Default {
    Count(u32),
    Flag(bool),
    Like(&'static str),
}

/// A parameter of a family: its name, what it is, and what holds where it is left out.
#[pyclass(name = "Parameter", module = "hocket._core.families", frozen, get_all)]
pub(crate) struct PyParameter {
    name: &'static str,
    about: String,
    unit: &'static str,
    required: bool,
    /// A number, True or False, or the name of a parameter that is the same.
    default: Option<Default>,
}

/// A family: its names, sizes of one as text, and what it is made of.
#[pyclass(name = "Family", module = "hocket._core.families", frozen, get_all)]
pub(crate) struct PyFamily {
    name: &'static str,
    aliases: &'static [&'static str],
    example: &'static str,
    about: String,
    /// Its name as a dimension of a product, and others in small letters.
    dimension: Option<(&'static str, &'static [&'static str])>,
    parameters: Vec<Py<PyParameter>>,
}

/// Lines of documentation, each of which begins with a blank.
fn text(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines
        .iter()
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    lines.join("\n")
}

/// List every family, as users see them.
#[pyfunction]
pub(crate) fn families(py: Python<'_>) -> PyResult<Vec<PyFamily>> {
    let parameter = |one: &Parameter| {
        let default = match one.otherwise {
            Otherwise::Required | Otherwise::Nothing => None,
            Otherwise::Count(count) => Some(Default::Count(count)),
            Otherwise::Flag(yes) => Some(Default::Flag(yes)),
            Otherwise::Like(other) => Some(Default::Like(other)),
        };
        let parameter = PyParameter {
            name: one.name,
            about: text(one.about),
            unit: one.unit.name(),
            required: one.otherwise == Otherwise::Required,
            default,
        };
        Py::new(py, parameter)
    };
    let family = |one: &Family| {
        Ok(PyFamily {
            name: one.name,
            aliases: one.aliases,
            example: one.example,
            about: text(one.about),
            dimension: one.along.map(|along| (along.name, along.aliases)),
            parameters: one
                .parameters
                .iter()
                .map(parameter)
                .collect::<PyResult<_>>()?,
        })
    };
    FAMILIES.iter().map(family).collect()
}

/// Make a network of a family, of whole numbers, bytes/s and ps; None is left out.
#[pyfunction]
pub(crate) fn build(family: &str, given: Keywords<'_>) -> Result<PyTopology, CoreError> {
    let family = named(family)?;
    Ok(PyTopology::new(family.build(&values(family, &given.0)?)?))
}

/// Make a product of dimensions; NPU numbers vary fastest in the first.
#[pyfunction]
pub(crate) fn build_product(dimensions: Vec<GivenDimension>) -> Result<PyTopology, CoreError> {
    let dimensions = to_dimensions(&dimensions)?;
    Ok(PyTopology::new(product(&dimensions)?))
}

/// NPUs, switches, links and dimensions.
type CountsTuple = (u128, u128, u128, Vec<DimensionTuple>);

fn counts_tuple(counts: &Counts) -> CountsTuple {
    let dimensions = counts.dimensions.iter().map(dimension_tuple);
    (
        counts.npus,
        counts.switches,
        counts.links,
        dimensions.collect(),
    )
}

/// Count what such a network has, however large.
#[pyfunction]
pub(crate) fn counts(family: &str, given: Keywords<'_>) -> Result<CountsTuple, CoreError> {
    let family = named(family)?;
    Ok(counts_tuple(&family.counts(&values(family, &given.0)?)?))
}

/// Count what a product has, however large.
#[pyfunction]
pub(crate) fn product_counts(dimensions: Vec<GivenDimension>) -> Result<CountsTuple, CoreError> {
    Ok(counts_tuple(&Counts::of_dimensions(to_dimensions(
        &dimensions,
    )?)))
}

fn named(name: &str) -> Result<&'static Family, CoreError> {
    FAMILIES.iter().find(|one| one.name == name).ok_or_else(|| {
        let known: Vec<&str> = FAMILIES.iter().map(|one| one.name).collect();
        Parts::new(format!("there is no family {name:?}"))
            .remedy(format!("families are {}", known.join(", ")))
            .into()
    })
}

/// What is given, but for None, as the family measures it.
fn values(
    family: &Family,
    given: &Bound<'_, PyDict>,
) -> Result<Vec<(&'static str, Value)>, CoreError> {
    let mut values = Vec::new();
    for (name, value) in given {
        let name: String = name.extract()?;
        let parameter = family.parameters.iter().find(|one| one.name == name);
        let Some(parameter) = parameter else {
            let wrong = format!("a {} has no {name}", family.name);
            return Err(Parts::new(wrong).remedy("leave it out").into());
        };
        if value.is_none() {
            continue;
        }
        let value = match parameter.unit {
            Unit::Count => Value::Count(value.extract()?),
            Unit::Counts => Value::Counts(value.extract()?),
            Unit::Bandwidth => Value::Bandwidth(positive(value.extract()?, || name.clone())?),
            Unit::Latency => Value::Latency(Time::from_ps(value.extract()?)),
            Unit::Flag => Value::Flag(value.extract()?),
        };
        values.push((parameter.name, value));
    }
    Ok(values)
}
