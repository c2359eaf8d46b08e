//! Index newtypes: one for each kind of thing, so that swapping two arguments does not compile.

use std::fmt;

/// Returns an index or a count as columns store it.
///
/// # Panics
/// If it does not fit 32 bits; every container of hocket is limited to that.
#[inline]
pub fn narrow(index: usize) -> u32 {
    u32::try_from(index).expect("ids are 32 bits wide")
}

/// Returns a number as another type, such as 64 bits as an index.
///
/// # Panics
/// If it does not fit: callers know that it does, and check what comes from outside.
#[inline]
#[track_caller]
pub fn fit<To: TryFrom<From>, From>(number: From) -> To {
    match To::try_from(number) {
        Ok(number) => number,
        Err(_) => panic!("a number exceeds {}", std::any::type_name::<To>()),
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the id as a `usize`, for indexing columns.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<usize> for $name {
            /// # Panics
            /// As [`narrow`].
            #[inline]
            fn from(index: usize) -> Self {
                Self(narrow(index))
            }
        }
    };
}

id!(
    /// A device of a topology: an NPU or a switch. NPUs come first.
    DeviceId
);
id!(
    /// An NPU of a topology. NPU `i` is device `i`.
    NpuId
);
id!(
    /// A directed link of a topology.
    LinkId
);
id!(
    /// A chunk of a plan.
    ChunkId
);
id!(
    /// A transfer of a plan: its position in the plan's order.
    TransferId
);
id!(
    /// A position in a collective's list of participating NPUs.
    Rank
);

impl NpuId {
    /// Returns the same NPU as a device.
    #[inline]
    pub const fn device(self) -> DeviceId {
        DeviceId(self.0)
    }
}
