//! Switches that do more than forward: they sum and multicast (in-network collective offload).

use super::{Topology, TopologyError};
use crate::id::DeviceId;
use crate::units::Bandwidth;

/// What a switch can do with the chunks that come to it, besides forwarding them.
///
/// Transfers may end and start at such a switch, under its device id. It holds a chunk from the first transfer
/// that brings it to the last that takes it on, and no longer: what comes after that begins anew.
///
/// # Source
/// Graham et al., Scalable Hierarchical Aggregation Protocol (SHARP): A Hardware Architecture for Efficient Data
/// Reduction, COMHPC 2016; Klenk et al., An In-Network Architecture for Accelerating Shared-Memory Multiprocessor
/// Collectives, ISCA 2020.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Offload {
    /// What comes from several devices may leave as one sum, to one device.
    pub sums: bool,
    /// What comes from one device may leave to several.
    pub multicasts: bool,
    /// A sum of what comes from several may leave to several at once.
    pub all_reduces: bool,
    /// Bandwidth at which it takes in what ends at it, all that comes together; `None`: only its links limit it.
    pub rate: Option<Bandwidth>,
    /// How many trees it can be set up for: sets of devices with which it exchanges one chunk. `None`: any number.
    pub trees: Option<u32>,
}

impl Offload {
    /// All operations, limited by nothing.
    pub const FULL: Offload = Offload {
        sums: true,
        multicasts: true,
        all_reduces: true,
        rate: None,
        trees: None,
    };

    /// Returns the names of its operations, as topology files have them.
    pub fn operations(&self) -> impl Iterator<Item = &'static str> + use<> {
        let all = [
            (self.sums, "sum"),
            (self.multicasts, "multicast"),
            (self.all_reduces, "all-reduce"),
        ];
        all.into_iter()
            .filter_map(|(can, name)| can.then_some(name))
    }

    /// Returns why it makes no sense, if it does not.
    fn fault(&self) -> Option<&'static str> {
        if self.operations().next().is_none() {
            return Some(
                "has no operation; give it sum, multicast or all-reduce, or leave offload out",
            );
        }
        (self.trees == Some(0)).then_some("has 0 trees; give it one at least, or leave trees out")
    }
}

impl Topology {
    /// Returns the same network with a switch that can do more, or, for `None`, no more than forward.
    ///
    /// # Errors
    /// [`TopologyError::BadParameter`] for an NPU or a device that is not there, for no operation and for 0 trees.
    ///
    /// # Examples
    /// ```
    /// use hocket_base::id::DeviceId;
    /// use hocket_topology::{Offload, build};
    /// use hocket_base::units::{Bandwidth, Time};
    ///
    /// let bandwidth = Bandwidth::from_bytes_per_second(400_000_000_000).unwrap();
    /// let star = build::switch(8, bandwidth, Time::ZERO, None)?;
    /// assert!(!star.can_end(DeviceId(8)));
    /// let star = star.with_offload(DeviceId(8), Some(Offload::FULL))?;
    /// assert!(star.can_end(DeviceId(8)));
    /// # Ok::<(), hocket_topology::TopologyError>(())
    /// ```
    pub fn with_offload(
        mut self,
        switch: DeviceId,
        offload: Option<Offload>,
    ) -> Result<Self, TopologyError> {
        let why = match self.devices.get(switch.index()) {
            None => Some("is not in the topology; name one of its switches"),
            Some(_) if self.is_npu(switch) => Some("is an NPU; offload is for switches"),
            Some(_) => offload.as_ref().and_then(Offload::fault),
        };
        if let Some(why) = why {
            let name = self.devices.get(switch.index());
            return Err(TopologyError::BadParameter {
                what: name.map_or_else(
                    || format!("offload of device {switch}"),
                    |device| format!("offload of {:?}", device.name),
                ),
                why: why.to_owned(),
            });
        }
        self.devices[switch.index()].offload = offload;
        let has_another = || self.devices.iter().any(|device| device.offload.is_some());
        self.has_offload = offload.is_some() || has_another();
        Ok(self)
    }

    /// Returns whether any switch can do more than forward.
    #[inline]
    pub fn has_offload(&self) -> bool {
        self.has_offload
    }

    /// Returns what a device can do as a switch; `None` for NPUs and for switches that only forward.
    #[inline]
    pub fn offload(&self, id: DeviceId) -> Option<&Offload> {
        self.devices.get(id.index())?.offload.as_ref()
    }

    /// Returns whether a transfer may start and end at a device: NPUs, and switches that can do more than forward.
    #[inline]
    pub fn can_end(&self, id: DeviceId) -> bool {
        self.is_npu(id) || (self.has_offload && self.offload(id).is_some())
    }

    /// One more than the highest id at which a transfer may start or end: the number of NPUs, or of all devices
    /// where some switch can do more than forward.
    pub fn end_count(&self) -> usize {
        match self.has_offload {
            true => self.device_count(),
            false => self.npu_count(),
        }
    }
}
