//! NPUs at the corners of a cube of many dimensions.

use super::super::{DimensionKind, Topology, TopologyError};
use super::product::{build, check_product, sides};
use super::{Counts, check_least, check_memory};
use crate::units::{Bandwidth, Time};

/// A hypercube of more is never built, and has more NPUs than any number of interest.
const MAX_DIMENSIONS: u32 = 64;

family! {
    /// NPUs that are joined where their numbers differ in one bit.
    "hypercube", as "4",
    fn hypercube,
    struct Hypercube {
        /// Dimensions: there are `2 ** log2_npus` NPUs.
        log2_npus: u32,
        /// Of each link, one direction.
        bandwidth: Bandwidth,
        /// Of each link.
        latency: Time,
    }
}

impl Hypercube {
    /// Returns the NPUs, switches and links, however many.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let axes = self.log2_npus.min(MAX_DIMENSIONS) as usize;
        let (kind, sizes) = (DimensionKind::FullyConnected, vec![2; axes]);
        Counts::of_dimensions(sides(kind, &sizes, self.bandwidth, self.latency))
    }

    /// Builds it.
    ///
    /// # Errors
    /// [`TopologyError::BadParameter`] for `log2_npus` of 0, [`TopologyError::TooLarge`].
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let (axes, counts) = (self.log2_npus, self.counts());
        check_least("dimensions of the hypercube", axes, 1)?;
        check_memory(|| format!("a hypercube of 2^{axes} NPUs"), &counts)?;
        let name = format!("hypercube 2^{axes}");
        check_product(&name, &counts)?;
        build(name, &counts.dimensions, None)
    }
}
