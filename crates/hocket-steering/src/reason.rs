//! Why a flow has its path.

use strum::{IntoStaticStr, VariantArray};

/// Why a flow has the path that it has now, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Reason {
    /// It is new.
    New,
    /// It is new, and its path was computed before it came.
    Foreseen,
    /// It has had this path, and its host asked again or came back with it.
    Held,
    /// Its path failed.
    Failure,
    /// Its path failed, and another was ready.
    Failover,
    /// It made room for another flow, so that no link has more than its share.
    Room,
    /// Fewer flows or more links than before: a link had more than its share.
    Balance,
    /// It had no path, and links came back.
    Return,
    /// Both its ends are below one ToR: it needs no path.
    Local,
    /// An end of it is not a host of the fabric, or gone.
    UnknownHost,
    /// No path joins its ends, or each has a link that carries all that it may.
    NoPath,
}

impl Reason {
    /// Every reason, in order.
    pub const ALL: &[Reason] = Self::VARIANTS;

    /// Returns the reason as one word.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
