//! HyperX of two dimensions: a grid of switches, fully connected along rows and along columns.

use super::super::{Topology, TopologyBuilder, TopologyError};
use super::nodes::runs;
use super::{Counts, check_least, check_memory};
use crate::id::DeviceId;
use crate::units::{Bandwidth, Time};

family! {
    /// A grid of switches with NPUs, each joined to all others of its row and of its column.
    ///
    /// ```text
    /// switch0_0 - switch0_1 - switch0_2     NPU h of the switch in row r and column c is
    ///     |    \_________________/ |        npu((r * columns + c) * npus_per_switch + h)
    /// switch1_0 - switch1_1 - switch1_2
    ///          \_________________/
    /// ```
    ///
    /// From switch to switch there are two links at most: along the row, and along the column. NPUs at one
    /// switch are a group.
    ///
    /// # Source
    /// Ahn, Binkert, Davis, McLaren, Schreiber: HyperX, topology, routing, and packaging of efficient
    /// large-scale networks, SC 2009: L = 2, S = (columns, rows), T = npus_per_switch, and K the bandwidths
    /// of rows and columns relative to that of NPUs.
    "hyperx_2d", as "4x4x8",
    struct HyperX2d {
        /// Rows of switches.
        rows: u32,
        /// Columns of switches, which is how many there are in a row.
        columns: u32,
        /// NPUs at each switch.
        npus_per_switch: u32,
        /// Of each link between an NPU and its switch; as `bandwidth` by default.
        npu_bandwidth: Bandwidth = bandwidth,
        /// Of each link along a row, one direction.
        bandwidth: Bandwidth,
        /// Of each link along a column; as `bandwidth` by default.
        column_bandwidth: Bandwidth = bandwidth,
        /// Of every link.
        latency: Time,
    }
}

impl HyperX2d {
    /// Returns the NPUs, switches and links, however many.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let (rows, columns) = (u128::from(self.rows), u128::from(self.columns));
        let switches = rows * columns;
        let npus = switches * u128::from(self.npus_per_switch);
        let others = (rows + columns).saturating_sub(2);
        Counts::of(npus, switches, npus + switches.saturating_mul(others) / 2)
    }

    /// Builds it.
    ///
    /// # Errors
    /// [`TopologyError::BadParameter`] for a count of 0 or fewer than two NPUs in all;
    /// [`TopologyError::TooLarge`].
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let &Self {
            rows,
            columns,
            npus_per_switch: each,
            ..
        } = self;
        check_least("rows of the HyperX", rows, 1)?;
        check_least("columns of the HyperX", columns, 1)?;
        check_least("NPUs per switch of the HyperX", each, 1)?;
        let counts = self.counts();
        if counts.npus < 2 {
            return Err(TopologyError::BadParameter {
                what: "HyperX".to_owned(),
                why: "has one NPU; give it two switches or two NPUs per switch".to_owned(),
            });
        }
        let what = || format!("a HyperX of {rows} x {columns} switches of {each} NPUs");
        check_memory(what, &counts)?;
        let mut builder = TopologyBuilder::new(format!("hyperx_2d {rows}x{columns}x{each}"));
        builder.npus((rows * columns * each) as usize);
        let grid: Vec<DeviceId> = (0..rows * columns)
            .map(|i| builder.switch(format!("switch{}_{}", i / columns, i % columns), None))
            .collect();
        let at = |row: u32, column: u32| grid[(row * columns + column) as usize];
        for npu in 0..rows * columns * each {
            let switch = grid[(npu / each) as usize];
            builder.both_ways(DeviceId(npu), switch, self.npu_bandwidth, self.latency);
        }
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |c| (row, c))) {
            for other in column + 1..columns {
                let (a, b) = (at(row, column), at(row, other));
                builder.both_ways(a, b, self.bandwidth, self.latency);
            }
            for other in row + 1..rows {
                let (a, b) = (at(row, column), at(other, column));
                builder.both_ways(a, b, self.column_bandwidth, self.latency);
            }
        }
        builder.finish()?.with_groups(runs(rows * columns, each))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::narrow;

    fn bw(bytes: u64) -> Bandwidth {
        Bandwidth::from_bytes_per_second(bytes).expect("positive")
    }

    fn grid(rows: u32, columns: u32, npus_per_switch: u32) -> Result<Topology, TopologyError> {
        HyperX2d {
            rows,
            columns,
            npus_per_switch,
            npu_bandwidth: bw(100),
            bandwidth: bw(50),
            column_bandwidth: bw(20),
            latency: Time::from_ns(10),
        }
        .build()
    }

    #[test]
    fn closed_forms() {
        for (r, c, t) in [
            (4, 4, 4),
            (2, 6, 8),
            (3, 5, 2),
            (1, 4, 1),
            (4, 1, 3),
            (1, 1, 2),
        ] {
            let made = grid(r, c, t).expect("a HyperX");
            let (switches, npus) = (u128::from(r * c), u128::from(r * c * t));
            let cables = npus + u128::from(r * c * (c - 1) / 2 + c * r * (r - 1) / 2);
            let links = made.links().len() as u128;
            assert_eq!(made.npu_count() as u128, npus);
            assert_eq!(
                (made.device_count() as u128, links),
                (npus + switches, 2 * cables)
            );
            let facts = made.inspect();
            let hops = 2 + usize::from(r > 1) + usize::from(c > 1);
            assert_eq!((facts.connected, facts.diameter_hops), (true, Some(hops)));
            for (i, group) in made.groups().iter().enumerate() {
                assert_eq!((group.len(), group[0].0), (t as usize, narrow(i) * t));
            }
        }
    }

    #[test]
    fn half_of_the_switches_to_the_other_half() {
        for (r, c, t) in [(4u32, 4u32, 8u32), (2, 4, 8), (4, 2, 8)] {
            let made = grid(r, c, t).expect("a HyperX");
            // Every two of a row on different sides are joined; or of a column.
            let across = [r * c * c / 4 * 50, c * r * r / 4 * 20];
            let cut = made.inspect().bisection.expect("several NPUs");
            assert_eq!(
                Some(cut.bytes_per_second),
                across.map(u128::from).into_iter().min()
            );
        }
    }

    #[test]
    fn what_makes_no_network_is_refused() {
        for (r, c, t) in [(0, 4, 1), (4, 0, 1), (4, 4, 0), (1, 1, 1)] {
            let error = grid(r, c, t).expect_err("no network");
            assert!(
                matches!(error, TopologyError::BadParameter { .. }),
                "{error}"
            );
        }
        let error = grid(u32::MAX, u32::MAX, u32::MAX).expect_err("large");
        assert!(matches!(error, TopologyError::TooLarge { .. }), "{error}");
    }
}
