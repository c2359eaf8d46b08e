//! A topology minus what is broken: NPUs, switches, links.

use super::groups::renumbered;
use super::{DeviceKind, Topology, TopologyBuilder, TopologyError};
use crate::id::{DeviceId, LinkId, NpuId};

impl Topology {
    /// Returns the topology without some devices, the links of those, and some links. Its name says so.
    ///
    /// The rest keeps its names and its order, so that ids close up. Dimensions are kept where every
    /// NPU is: they then describe the whole product, of which links or switches may be missing.
    ///
    /// # Errors
    /// [`TopologyError::UnknownDevice`] or [`TopologyError::BadParameter`] for an id that is not in
    /// the topology, [`TopologyError::BadParameter`] where no NPU would be left.
    pub fn without(
        &self,
        devices: &[DeviceId],
        links: &[LinkId],
    ) -> Result<Topology, TopologyError> {
        let devices_gone = marked(self.device_count(), devices.iter().map(|id| id.index()))
            .map_err(|index| TopologyError::UnknownDevice {
                name: index.to_string(),
                hint: format!("device ids are 0 to {}", self.device_count() - 1),
            })?;
        let links_gone = marked(self.links.len(), links.iter().map(|id| id.index()))
            .map_err(|index| self.no_such_link(index))?;
        if devices_gone[..self.npu_count()].iter().all(|&gone| gone) {
            return Err(TopologyError::BadParameter {
                what: format!("failures of {:?}", self.name),
                why: "leave no NPU; keep at least one".to_owned(),
            });
        }
        let mut builder = TopologyBuilder::new(self.name_without(devices, links));
        let mut new_ids = vec![None; self.device_count()];
        for (i, device) in self.devices.iter().enumerate() {
            if !devices_gone[i] {
                new_ids[i] = Some(match device.kind {
                    DeviceKind::Npu => builder.npu(device.name.clone()),
                    DeviceKind::Switch => {
                        let id = builder.switch(device.name.clone(), device.limit);
                        builder.offload(id, device.offload);
                        id
                    }
                });
            }
        }
        for (link, _) in self.links.iter().zip(links_gone).filter(|(_, gone)| !gone) {
            if let (Some(src), Some(dst)) = (new_ids[link.src.index()], new_ids[link.dst.index()]) {
                builder.link(src, dst, link.bandwidth, link.latency);
            }
        }
        if !devices_gone[..self.npu_count()].contains(&true) {
            builder.dimensions(self.dimensions.clone());
        }
        builder.switching(self.switching);
        let new = |npu: NpuId| new_ids[npu.index()].map(|id| NpuId(id.0));
        builder.finish()?.with_groups(renumbered(&self.groups, new))
    }

    /// Returns every link from `src` to `dst`, parallel ones included, lowest id first.
    ///
    /// # Errors
    /// [`TopologyError::UnknownLink`], with the devices that `src` does have links to;
    /// [`TopologyError::UnknownDevice`] for an id that is not in the topology.
    pub fn links_between(
        &self,
        src: DeviceId,
        dst: DeviceId,
    ) -> Result<Vec<LinkId>, TopologyError> {
        for id in [src, dst] {
            if id.index() >= self.device_count() {
                return Err(TopologyError::UnknownDevice {
                    name: id.to_string(),
                    hint: format!("device ids are 0 to {}", self.device_count() - 1),
                });
            }
        }
        let found = self.links_from_to(src, dst).to_vec();
        if !found.is_empty() {
            return Ok(found);
        }
        Err(TopologyError::UnknownLink {
            src: self.device(src).name.clone(),
            dst: self.device(dst).name.clone(),
            neighbours: self.neighbours_hint(src),
        })
    }

    /// `dgx1 without gpu3 and gpu0,gpu1`, links as `--failed` takes them; more than three are counted.
    fn name_without(&self, devices: &[DeviceId], links: &[LinkId]) -> String {
        const NAMED: usize = 3;
        let name = |id: DeviceId| self.device(id).name.as_str();
        let mut lost: Vec<String> = devices.iter().map(|&id| name(id).to_owned()).collect();
        for link in links.iter().map(|&id| self.link(id)) {
            let there = format!("{},{}", name(link.src), name(link.dst));
            let back = format!("{},{}", name(link.dst), name(link.src));
            if !lost.contains(&there) && !lost.contains(&back) {
                lost.push(there);
            }
        }
        let word = match self.name.contains(" without ") {
            true => " and ",
            false => " without ",
        };
        match lost.len() {
            0 => self.name.clone(),
            1..=NAMED => format!("{}{word}{}", self.name, lost.join(" and ")),
            count => format!("{}{word}{count} devices and links", self.name),
        }
    }

    fn neighbours_hint(&self, src: DeviceId) -> String {
        const SHOWN: usize = 12;
        let mut ends: Vec<DeviceId> = self
            .out_links(src)
            .iter()
            .map(|&id| self.link(id).dst)
            .collect();
        ends.sort_unstable();
        ends.dedup();
        if ends.is_empty() {
            return "nothing".to_owned();
        }
        let names: Vec<&str> = ends
            .iter()
            .take(SHOWN)
            .map(|&id| self.device(id).name.as_str())
            .collect();
        let more = match ends.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        names.join(", ") + &more
    }

    fn no_such_link(&self, index: usize) -> TopologyError {
        let why = match self.links.len() {
            0 => "there are no links".to_owned(),
            count => format!("link ids are 0 to {}", count - 1),
        };
        TopologyError::BadParameter {
            what: format!("link {index}"),
            why,
        }
    }
}

/// Returns which of `count` positions are listed; the first that is out of range is the error.
fn marked(count: usize, positions: impl Iterator<Item = usize>) -> Result<Vec<bool>, usize> {
    let mut marks = vec![false; count];
    for position in positions {
        *marks.get_mut(position).ok_or(position)? = true;
    }
    Ok(marks)
}

#[cfg(test)]
mod tests {
    use super::super::build;
    use super::*;
    use crate::units::{Bandwidth, Time};

    fn torus() -> Topology {
        let bandwidth = Bandwidth::from_bytes_per_second(10).expect("positive");
        build::torus(&[4, 3], bandwidth, Time::from_ns(1)).expect("a torus")
    }

    fn named_links(topology: &Topology) -> Vec<(String, String)> {
        let name = |id| topology.device(id).name.clone();
        let ends = |link: &super::super::Link| (name(link.src), name(link.dst));
        topology.links().iter().map(ends).collect()
    }

    #[test]
    fn the_rest_keeps_names_and_order() {
        let whole = torus();
        let broken = whole
            .without(&[DeviceId(5), DeviceId(0)], &[LinkId(7)])
            .unwrap();
        let names: Vec<&str> = broken.devices().iter().map(|d| d.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "npu1", "npu2", "npu3", "npu4", "npu6", "npu7", "npu8", "npu9", "npu10", "npu11"
            ]
        );
        let gone = &named_links(&whole)[7];
        let expected: Vec<_> = named_links(&whole)
            .into_iter()
            .filter(|link| link != gone)
            .filter(|(a, b)| [a, b].iter().all(|end| *end != "npu0" && *end != "npu5"))
            .collect();
        assert_eq!(named_links(&broken), expected);
        assert!(broken.dimensions().is_empty());
    }

    #[test]
    fn dimensions_outlive_links_and_switches() {
        let whole = torus();
        let broken = whole.without(&[], &[LinkId(0), LinkId(0)]).unwrap();
        assert_eq!(broken.dimensions(), whole.dimensions());
        assert_eq!(broken.links().len(), whole.links().len() - 1);
        let bandwidth = Bandwidth::from_bytes_per_second(10).expect("positive");
        let star = build::switch(4, bandwidth, Time::ZERO, Some(bandwidth)).unwrap();
        let broken = star.without(&[DeviceId(4)], &[]).unwrap();
        assert_eq!((broken.device_count(), broken.links().len()), (4, 0));
    }

    #[test]
    fn nonsense_is_refused() {
        let whole = torus();
        let all: Vec<DeviceId> = whole.npus().map(|npu| npu.device()).collect();
        let error = whole.without(&all, &[]).unwrap_err();
        assert!(matches!(error, TopologyError::BadParameter { .. }));
        let error = whole.without(&[DeviceId(12)], &[]).unwrap_err();
        assert!(matches!(error, TopologyError::UnknownDevice { .. }));
        let error = whole.without(&[], &[LinkId(99)]).unwrap_err();
        assert_eq!(error.to_string(), "link 99: link ids are 0 to 47");
    }

    #[test]
    fn links_between_finds_parallel_ones() {
        let mut builder = TopologyBuilder::new("pair");
        builder.npus(3);
        let bandwidth = Bandwidth::from_bytes_per_second(10).expect("positive");
        for _ in 0..2 {
            builder.both_ways(DeviceId(0), DeviceId(1), bandwidth, Time::ZERO);
        }
        let pair = builder.finish().unwrap();
        let found = pair.links_between(DeviceId(0), DeviceId(1)).unwrap();
        assert_eq!(found, [LinkId(0), LinkId(2)]);
        let error = pair.links_between(DeviceId(0), DeviceId(2)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no link \"npu0\" -> \"npu2\"; links of \"npu0\" go to: npu1"
        );
    }
}
