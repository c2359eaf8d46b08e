//! How a family of networks is declared: a file of its own, from which everything else follows.

use strum::IntoStaticStr;

use super::super::{Dimension, DimensionKind, Topology, TopologyError};
use super::product::product_counts;
use crate::units::{Bandwidth, Time};

/// What a parameter is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Unit {
    /// A whole number, 1 or more; 0 or more where that is the default.
    Count,
    /// From 1 to 32 of them, one for each axis.
    Counts,
    /// Bytes per second, of a link in one direction.
    Bandwidth,
    /// Picoseconds.
    Latency,
    /// Yes or no.
    Flag,
}

impl Unit {
    /// Returns its name in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Of [`Unit::Count`].
    Count(u32),
    /// Of [`Unit::Counts`].
    Counts(Vec<u32>),
    /// Of [`Unit::Bandwidth`].
    Bandwidth(Bandwidth),
    /// Of [`Unit::Latency`].
    Latency(Time),
    /// Of [`Unit::Flag`].
    Flag(bool),
}

/// What holds where a parameter is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// It must be given.
    Required,
    /// The network is without it.
    Nothing,
    /// This number.
    Count(u32),
    /// Yes or no.
    Flag(bool),
    /// What another parameter is.
    Like(&'static str),
}

/// A parameter of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name of the field, the keyword and the key.
    pub name: &'static str,
    /// What it is, a line each.
    pub about: &'static [&'static str],
    /// What it is measured in.
    pub unit: Unit,
    /// What holds where it is left out.
    pub otherwise: Otherwise,
}

/// How a family is a dimension of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Along {
    /// Which dimension it is.
    pub kind: DimensionKind,
    /// Its name, as in `Ring_Switch`.
    pub name: &'static str,
    /// Other names, in small letters.
    pub aliases: &'static [&'static str],
}

impl DimensionKind {
    /// Returns its name, as the family that is such a dimension declares it.
    #[must_use]
    pub fn name(self) -> &'static str {
        let mut found = super::FAMILIES.iter().filter_map(|family| family.along);
        found
            .find(|along| along.kind == self)
            .map_or("", |along| along.name)
    }
}

/// What a network has, known before it is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// NPUs.
    pub npus: u128,
    /// Switches.
    pub switches: u128,
    /// Directed links.
    pub links: u128,
    /// Its dimensions, where it is a product.
    pub dimensions: Vec<Dimension>,
}

impl Counts {
    /// Of a network without dimensions whose `cables` are links both ways.
    pub(super) fn of(npus: u128, switches: u128, cables: u128) -> Self {
        Self {
            npus,
            switches,
            links: cables.saturating_mul(2),
            dimensions: Vec::new(),
        }
    }

    /// Of a product; none where a size is 0.
    #[must_use]
    pub fn of_dimensions(dimensions: Vec<Dimension>) -> Self {
        let (npus, switches, links) = match dimensions.iter().any(|one| one.size == 0) {
            true => (0, 0, 0),
            false => product_counts(&dimensions),
        };
        Self {
            npus,
            switches,
            links,
            dimensions,
        }
    }
}

/// What is known of a family of networks without building one.
#[derive(Debug)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// Other names that it answers to as text.
    pub aliases: &'static [&'static str],
    /// Sizes of one as text, joined by `x`.
    pub example: &'static str,
    /// What it is, a line each: a sentence, then whatever else is to be known.
    pub about: &'static [&'static str],
    /// How it is a dimension of a product.
    pub along: Option<Along>,
    /// What it is made of.
    pub parameters: &'static [Parameter],
    pub(super) counts: fn(&Given<'_>) -> Result<Counts, TopologyError>,
    pub(super) build: fn(&Given<'_>) -> Result<Topology, TopologyError>,
}

impl Family {
    /// Returns what such a network has, however large.
    ///
    /// # Errors
    /// [`TopologyError::BadParameter`] for a parameter that is missing or of another unit.
    pub fn counts(&self, given: &[(&str, Value)]) -> Result<Counts, TopologyError> {
        (self.counts)(&self.given(given))
    }

    /// Builds it.
    ///
    /// # Errors
    /// As [`Family::counts`], and as the family refuses its values.
    pub fn build(&self, given: &[(&str, Value)]) -> Result<Topology, TopologyError> {
        (self.build)(&self.given(given))
    }

    fn given<'a>(&self, values: &'a [(&'a str, Value)]) -> Given<'a> {
        Given {
            parameters: self.parameters,
            values,
        }
    }
}

/// Values of a family's parameters, by name.
#[derive(Debug)]
pub(super) struct Given<'a> {
    parameters: &'static [Parameter],
    values: &'a [(&'a str, Value)],
}

impl Given<'_> {
    /// Returns what a parameter is, or what holds where it is left out.
    pub(super) fn get<T: Field>(&self, name: &str) -> Result<T, TopologyError> {
        let value = self.value(name);
        let parameter = self.parameters.iter().find(|one| one.name == name);
        if let (None, Some(Otherwise::Like(other))) = (&value, parameter.map(|one| one.otherwise)) {
            return self.get(other);
        }
        let why = match &value {
            None => "is missing; give it".to_owned(),
            Some(_) => format!("is of another unit; give a {}", T::UNIT.name()),
        };
        T::read(value).ok_or_else(|| TopologyError::BadParameter {
            what: name.to_owned(),
            why,
        })
    }

    fn value(&self, name: &str) -> Option<Value> {
        if let Some((_, value)) = self.values.iter().find(|(known, _)| *known == name) {
            return Some(value.clone());
        }
        let parameter = self.parameters.iter().find(|one| one.name == name)?;
        match parameter.otherwise {
            Otherwise::Required | Otherwise::Nothing => None,
            Otherwise::Count(count) => Some(Value::Count(count)),
            Otherwise::Flag(yes) => Some(Value::Flag(yes)),
            Otherwise::Like(other) => self.value(other),
        }
    }
}

/// A type that a parameter may have.
pub(super) trait Field: Sized {
    const UNIT: Unit;
    /// What holds where nothing else is said.
    const OTHERWISE: Otherwise = Otherwise::Required;

    fn read(value: Option<Value>) -> Option<Self>;
}

macro_rules! fields {
    ($($type:ty: $unit:ident,)*) => {
        $(impl Field for $type {
            const UNIT: Unit = Unit::$unit;

            fn read(value: Option<Value>) -> Option<Self> {
                match value? {
                    Value::$unit(value) => Some(value.into()),
                    _ => None,
                }
            }
        })*
    };
}
fields! {
    u32: Count,
    Vec<u32>: Counts,
    Bandwidth: Bandwidth,
    Time: Latency,
    super::RingWays: Flag,
}

impl<T: Field> Field for Option<T> {
    const UNIT: Unit = T::UNIT;
    const OTHERWISE: Otherwise = Otherwise::Nothing;

    fn read(value: Option<Value>) -> Option<Self> {
        match value {
            None => Some(None),
            Some(_) => T::read(value).map(Some),
        }
    }
}

/// Declares a family of networks.
///
/// It has its documentation, name and other names, sizes as an example, how it is a dimension of a product, and a
/// function of all parameters if one is wanted. The parameters are the fields of a type; `= 1` or `= other` is what
/// holds if one is left out. The type needs `counts`, which holds
/// for any values, and `build`, which refuses bad ones.
macro_rules! family {
    (
        $(#[doc = $about:literal])*
        $name:literal $(or $alias:literal)*, as $example:literal,
        $(along $kind:ident as $along:literal $(or $short:literal)*,)?
        $(fn $function:ident,)?
        struct $Type:ident {
            $($(#[doc = $what:literal])* $field:ident: $type:ty $(= $otherwise:tt)?,)*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $Type {
            $($(#[doc = $what])* pub $field: $type,)*
        }

        impl $Type {
            fn read(given: &$crate::build::family::Given<'_>) -> Result<Self, TopologyError> {
                Ok(Self { $($field: given.get(stringify!($field))?,)* })
            }

            /// What is known of all of them.
            pub const FAMILY: $crate::build::Family = $crate::build::Family {
                name: $name,
                aliases: &[$($alias),*],
                example: $example,
                about: &[$($about),*],
                along: family!(@along $($kind $along $($short)*)?),
                parameters: &[$($crate::build::Parameter {
                    name: stringify!($field),
                    about: &[$($what),*],
                    unit: <$type as $crate::build::family::Field>::UNIT,
                    otherwise: family!(@otherwise $type $(, $otherwise)?),
                }),*],
                counts: |given| Ok(Self::read(given)?.counts()),
                build: |given| Self::read(given)?.build(),
            };
        }

        family!(@function [$($function)?] $Type { $($field: $type,)* });
    };
    (@function [] $Type:ident { $($field:ident: $type:ty,)* }) => {};
    (@function [$function:ident] $Type:ident { $($field:ident: $type:ty,)* }) => {
        #[doc = concat!("Builds a [`", stringify!($Type), "`].\n\n# Errors\nAs its `build`.")]
        pub fn $function($($field: $type),*) -> Result<Topology, TopologyError> {
            $Type { $($field),* }.build()
        }
    };
    (@along) => { None };
    (@along $kind:ident $name:literal $($alias:literal)*) => {
        Some($crate::build::Along {
            kind: $crate::DimensionKind::$kind,
            name: $name,
            aliases: &[$($alias),*],
        })
    };
    (@otherwise $type:ty) => { <$type as $crate::build::family::Field>::OTHERWISE };
    (@otherwise $type:ty, true) => { $crate::build::Otherwise::Flag(true) };
    (@otherwise $type:ty, $count:literal) => { $crate::build::Otherwise::Count($count) };
    (@otherwise $type:ty, $other:ident) => {
        $crate::build::Otherwise::Like(stringify!($other))
    };
}

/// Lists the families: a module each, and the type that is declared in it.
macro_rules! families {
    ($($module:ident::$Type:ident,)*) => {
        $(mod $module;
        pub use $module::*;)*

        /// Every family, as they are listed to a user.
        pub static FAMILIES: &[Family] = &[$($Type::FAMILY),*];
    };
}
