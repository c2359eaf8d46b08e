//! Maximum flow from one side of the NPUs to the other, through switches.

use super::super::super::{DeviceKind, Topology};
use crate::graph::{FlowNetwork, UNLIMITED};
use crate::id::narrow;

/// Links between NPUs apart from those through switches; a limited switch is two nodes joined by its limit.
pub(super) struct SplitFlow {
    npus: usize,
    /// Between NPUs.
    direct: Vec<(usize, usize, u128)>,
    /// All other links; `None` where there are no switches.
    switched: Option<FlowNetwork>,
}

impl SplitFlow {
    pub(crate) fn new(topology: &Topology) -> Self {
        let npus = topology.npu_count();
        // Where a device passes on what it receives: a limited switch behind its limit.
        let mut exits: Vec<u32> = (0..narrow(topology.device_count())).collect();
        let mut nodes = topology.device_count();
        let mut arcs = Vec::new();
        for (device, exit) in topology.devices().iter().zip(&mut exits) {
            if let (DeviceKind::Switch, Some(limit)) = (device.kind, device.limit) {
                arcs.push((*exit, narrow(nodes), i128::from(limit.bytes_per_second())));
                *exit = narrow(nodes);
                nodes += 1;
            }
        }
        let mut direct = Vec::new();
        for link in topology.links() {
            let bandwidth = link.bandwidth.bytes_per_second();
            if topology.is_npu(link.src) && topology.is_npu(link.dst) {
                direct.push((link.src.index(), link.dst.index(), bandwidth.into()));
            } else {
                arcs.push((exits[link.src.index()], link.dst.0, bandwidth.into()));
            }
        }
        Self {
            npus,
            direct,
            switched: (nodes > npus).then(|| FlowNetwork::new(nodes, arcs)),
        }
    }

    /// Returns the lesser of the maximum flows from the `true` side to the `false` one and back.
    pub(crate) fn least(&mut self, side: &[bool]) -> u128 {
        self.from(side, true).min(self.from(side, false))
    }

    /// Returns the maximum flow from the NPUs of which `side` is `start` to the others.
    fn from(&mut self, side: &[bool], start: bool) -> u128 {
        debug_assert_eq!(side.len(), self.npus);
        let starts = |npu: usize| side[npu] == start;
        let crossing = self
            .direct
            .iter()
            .filter(|(src, dst, _)| starts(*src) && !starts(*dst));
        let direct: u128 = crossing.map(|(_, _, bandwidth)| bandwidth).sum();
        let Some(switched) = &mut self.switched else {
            return direct;
        };
        // An NPU has as much as any link takes from it, so that none needs to pass anything on.
        let mut supplies = Vec::new();
        for npu in 0..self.npus {
            let drain = if starts(npu) { 0 } else { UNLIMITED };
            switched.set_drain(narrow(npu), drain);
            if starts(npu) {
                supplies.push((narrow(npu), UNLIMITED));
            }
        }
        direct + switched.flow(&supplies, UNLIMITED).unsigned_abs()
    }
}
