//! Which dimension of a product each link belongs to.

use super::Topology;
use crate::id::{DeviceId, narrow};

impl Topology {
    /// For each link the position in [`Topology::dimensions`] of the dimension that it belongs to;
    /// `None` where the topology is not a whole product of dimensions.
    ///
    /// A link between NPUs belongs to the one dimension in which their coordinates differ, a link of
    /// a switch to the dimension along which that switch's NPUs differ. A link of neither kind, as
    /// of a switch that has one NPU left, belongs to none.
    ///
    /// # Complexity
    /// O(links log dimensions).
    pub fn link_dimensions(&self) -> Option<Vec<Option<u32>>> {
        let axes = Axes::new(self)?;
        let mut hubs = vec![Hub::default(); self.device_count() - self.npu_count()];
        for link in self.links() {
            if let Some((npu, switch)) = self.npu_and_switch(link.src, link.dst) {
                hubs[switch].join(npu, &axes);
            }
        }
        let of_link = |link: &super::Link| match self.npu_and_switch(link.src, link.dst) {
            Some((_, switch)) => hubs[switch].along.filter(|_| !hubs[switch].mixed),
            None if self.is_npu(link.src) => axes.along(link.src.0, link.dst.0),
            None => None,
        };
        Some(self.links().iter().map(of_link).collect())
    }

    /// Returns the NPU and the number of the switch that a link joins, whichever way.
    fn npu_and_switch(&self, a: DeviceId, b: DeviceId) -> Option<(u32, usize)> {
        match (self.is_npu(a), self.is_npu(b)) {
            (true, false) => Some((a.0, b.index() - self.npu_count())),
            (false, true) => Some((b.0, a.index() - self.npu_count())),
            _ => None,
        }
    }
}

/// How far apart neighbours along each dimension are numbered, and the count of all NPUs.
struct Axes {
    strides: Vec<u32>,
}

impl Axes {
    fn new(topology: &Topology) -> Option<Self> {
        let mut strides = vec![1u32];
        for dimension in topology.dimensions() {
            strides.push(strides[strides.len() - 1].checked_mul(dimension.size)?);
        }
        let whole = strides[strides.len() - 1] as usize == topology.npu_count();
        (whole && !topology.dimensions().is_empty()).then_some(Self { strides })
    }

    /// Returns the one dimension in which two NPUs differ, if it is one.
    fn along(&self, a: u32, b: u32) -> Option<u32> {
        let apart = a.abs_diff(b);
        let above = self.strides.partition_point(|&stride| stride <= apart);
        let (stride, next) = (
            *self.strides.get(above.checked_sub(1)?)?,
            self.strides[above],
        );
        let same_elsewhere = a % stride == b % stride && a / next == b / next;
        same_elsewhere.then_some(narrow(above) - 1)
    }
}

/// The NPUs of one switch.
#[derive(Clone, Default)]
struct Hub {
    first: Option<u32>,
    along: Option<u32>,
    mixed: bool,
}

impl Hub {
    fn join(&mut self, npu: u32, axes: &Axes) {
        let first = *self.first.get_or_insert(npu);
        if npu != first {
            let along = axes.along(first, npu);
            self.mixed |= along.is_none() || self.along.is_some_and(|known| along != Some(known));
            self.along = along;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::id::LinkId;
    use crate::units::{Bandwidth, Time};
    use crate::{Dimension, DimensionKind, TopologyBuilder, build};

    const KINDS: [DimensionKind; 4] = [
        DimensionKind::Ring,
        DimensionKind::Line,
        DimensionKind::FullyConnected,
        DimensionKind::Switch,
    ];

    fn dimension(kind: DimensionKind, size: u32) -> Dimension {
        Dimension {
            kind,
            size,
            bandwidth: Bandwidth::from_bytes_per_second(100).expect("positive"),
            latency: Time::ZERO,
            offload: false,
        }
    }

    fn dimensions() -> impl Strategy<Value = Vec<Dimension>> {
        let one = (0usize..4, 1u32..6).prop_map(|(kind, size)| dimension(KINDS[kind], size));
        prop::collection::vec(one, 1..5)
            .prop_filter("two NPUs", |all| all.iter().any(|one| one.size > 1))
    }

    /// Returns the number of links of one group, as the builder counts on.
    fn group_links(one: &Dimension) -> u32 {
        let n = one.size;
        match one.kind {
            _ if n == 1 => 0,
            DimensionKind::Ring if n == 2 => 2,
            DimensionKind::Ring | DimensionKind::Switch => 2 * n,
            DimensionKind::Line => 2 * (n - 1),
            DimensionKind::FullyConnected => n * (n - 1),
        }
    }

    fn config() -> ProptestConfig {
        ProptestConfig {
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(1),
            ..ProptestConfig::with_cases(256)
        }
    }

    proptest! {
        #![proptest_config(config())]

        /// Products are built dimension by dimension, so that their links come in that order.
        #[test]
        fn of_any_product(dimensions in dimensions()) {
            let topology = build::product(&dimensions).expect("a product");
            let npus = narrow(topology.npu_count());
            let mut expected = Vec::new();
            for (i, one) in dimensions.iter().enumerate() {
                let links = npus / one.size * group_links(one);
                expected.extend((0..links).map(|_| Some(narrow(i))));
            }
            prop_assert_eq!(topology.link_dimensions(), Some(expected));
        }

        /// Of the coordinates, one by one.
        #[test]
        fn along_is_the_only_difference(dimensions in dimensions(), a: u32, b: u32) {
            let topology = build::product(&dimensions).expect("a product");
            let npus = narrow(topology.npu_count());
            let (a, b) = (a % npus, b % npus);
            let (mut x, mut y) = (a, b);
            let mut differ = Vec::new();
            for (i, one) in dimensions.iter().enumerate() {
                if x % one.size != y % one.size {
                    differ.push(narrow(i));
                }
                (x, y) = (x / one.size, y / one.size);
            }
            let expected = (differ.len() == 1).then(|| differ[0]);
            prop_assert_eq!(Axes::new(&topology).expect("a product").along(a, b), expected);
        }
    }

    #[test]
    fn none_without_dimensions() {
        let rate = Bandwidth::from_bytes_per_second(1).expect("positive");
        let one_way = build::ring(4, rate, Time::ZERO, build::RingWays::One).expect("a ring");
        assert_eq!(one_way.link_dimensions(), None);
    }

    #[test]
    fn links_of_no_dimension() {
        let rate = Bandwidth::from_bytes_per_second(1).expect("positive");
        let mut builder = TopologyBuilder::new("odd");
        builder.npus(4);
        let mixed = builder.switch("mixed", None);
        let one = builder.switch("one", None);
        for npu in 0..3 {
            builder.link(DeviceId(npu), mixed, rate, Time::ZERO);
        }
        builder.both_ways(DeviceId(3), one, rate, Time::ZERO);
        builder.link(mixed, one, rate, Time::ZERO);
        builder.link(DeviceId(0), DeviceId(3), rate, Time::ZERO);
        builder.link(DeviceId(1), DeviceId(3), rate, Time::ZERO);
        builder.dimensions(vec![dimension(DimensionKind::Switch, 2); 2]);
        let topology = builder.finish().expect("a network");
        let mut expected = vec![None; 8];
        expected[7] = Some(1);
        assert_eq!(topology.link_dimensions(), Some(expected));
    }

    #[test]
    fn what_failures_leave_keeps_its_dimension() {
        let whole = build::product(&[
            dimension(DimensionKind::Ring, 3),
            dimension(DimensionKind::Switch, 2),
        ])
        .expect("a product");
        let all = whole.link_dimensions().expect("a product");
        let left = whole.without(&[], &[LinkId(0)]).expect("a network");
        assert_eq!(left.link_dimensions(), Some(all[1..].to_vec()));
        let fewer = whole.without(&[DeviceId(0)], &[]).expect("a network");
        assert_eq!(fewer.link_dimensions(), None);
    }
}
