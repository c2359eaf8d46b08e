//! Switches that are joined among each other, with the NPUs around them and the ways between these.

use crate::graph::ShortestPaths;
use crate::id::{DeviceId, LinkId, NpuId};
use crate::topology::Topology;

/// Paths by links and by how much these are shared; the lowest link wins ties.
pub(super) type Paths = ShortestPaths<(u32, u64), LinkId>;

/// No way leads over it.
pub(super) const NO_LINK: LinkId = LinkId(u32::MAX);

/// An NPU beside a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Around {
    pub(super) npu: NpuId,
    /// Its links into the fabric, or, where it has none, those out of it.
    pub(super) links: usize,
}

/// Switches that are joined among each other, and the NPUs around them.
pub(super) struct SwitchGroup {
    member: Vec<bool>,
    /// NPUs with links into the fabric and out of it, ascending.
    pub(super) both: Vec<Around>,
    /// NPUs that can only send into it, ascending.
    pub(super) senders: Vec<Around>,
    /// NPUs that can only receive from it, ascending.
    pub(super) receivers: Vec<Around>,
    pub(super) first_link: LinkId,
    /// Links into the fabric that every NPU with links of both directions has.
    pub(super) ports: usize,
    /// Whether there is a way from each of its switches to each other.
    pub(super) is_whole: bool,
}

impl SwitchGroup {
    /// Returns the fabrics through which somebody can send to somebody else.
    pub(super) fn all(topology: &Topology) -> Vec<Self> {
        let mut seen = vec![false; topology.device_count()];
        let switches = topology.npu_count()..topology.device_count();
        let mut fabrics = Vec::new();
        for start in switches {
            if !seen[start] {
                fabrics.extend(Self::around(topology, DeviceId::from(start), &mut seen));
            }
        }
        fabrics
    }

    /// Returns how many NPUs are around it.
    pub(super) fn npus(&self) -> usize {
        self.both.len() + self.senders.len() + self.receivers.len()
    }

    /// Returns the fabric of one switch; `None` where nobody could send to somebody else through it.
    fn around(topology: &Topology, start: DeviceId, seen: &mut [bool]) -> Option<Self> {
        let mut stack = vec![start];
        let mut switches = Vec::new();
        seen[start.index()] = true;
        let (mut entries, mut exits) = (Vec::new(), Vec::new());
        while let Some(switch) = stack.pop() {
            switches.push(switch);
            let into = topology.in_links(switch).iter();
            let into = into.map(|&id| (topology.link(id).src, id, true));
            let out = topology.out_links(switch).iter();
            let out = out.map(|&id| (topology.link(id).dst, id, false));
            for (end, id, is_entry) in into.chain(out) {
                match (topology.is_npu(end), is_entry) {
                    (true, true) => entries.push((NpuId(end.0), id)),
                    (true, false) => exits.push((NpuId(end.0), id)),
                    (false, _) if std::mem::replace(&mut seen[end.index()], true) => {}
                    (false, _) => stack.push(end),
                }
            }
        }
        let first_link = entries.iter().map(|&(_, id)| id).min()?;
        let (entries, exits) = (counted(entries), counted(exits));
        let is_in = |list: &[Around], npu| list.binary_search_by_key(&npu, |at| at.npu).is_ok();
        let (both, senders): (Vec<Around>, Vec<Around>) =
            entries.iter().partition(|at| is_in(&exits, at.npu));
        let mut receivers = exits;
        receivers.retain(|at| !is_in(&entries, at.npu));
        if both.len() < 2 && (both.is_empty() || senders.is_empty()) && receivers.is_empty() {
            return None;
        }
        let mut member = vec![false; topology.device_count()];
        switches
            .iter()
            .for_each(|switch| member[switch.index()] = true);
        Some(Self {
            is_whole: is_whole(topology, &switches, &member),
            ports: both.iter().map(|at| at.links).min().unwrap_or(1),
            member,
            both,
            senders,
            receivers,
            first_link,
        })
    }

    /// All others to whom an NPU can send through the fabric, ascending.
    pub(super) fn reached_from(&self, topology: &Topology, src: NpuId) -> Vec<NpuId> {
        let mut seen = vec![false; topology.device_count()];
        let mut stack = vec![src.device()];
        let mut ends = Vec::new();
        seen[src.index()] = true;
        while let Some(device) = stack.pop() {
            let is_inside = self.member[device.index()];
            for &id in topology.out_links(device) {
                let end = topology.link(id).dst;
                let is_way = self.member[end.index()] || (is_inside && topology.is_npu(end));
                if !is_way || std::mem::replace(&mut seen[end.index()], true) {
                    continue;
                }
                match topology.is_npu(end) {
                    true => ends.push(NpuId(end.0)),
                    false => stack.push(end),
                }
            }
        }
        ends.sort_unstable();
        ends
    }

    /// Returns the way through the fabric with fewest links, and of those the least shared; `None` where there is no
    /// way.
    pub(super) fn path(
        &self,
        topology: &Topology,
        (src, dst): (NpuId, NpuId),
        link_share: &[u64],
        paths: &mut Paths,
    ) -> Option<Vec<LinkId>> {
        let cost = |id: LinkId| {
            let rate = topology.link(id).bandwidth.bytes_per_second();
            u64::try_from((u128::from(link_share[id.index()] + 1) << 64) / u128::from(rate))
                .unwrap_or(u64::MAX)
        };
        let arc = |inside: bool| {
            move |&id: &LinkId| {
                let end = topology.link(id).dst;
                let leads_on = self.member[end.index()] || (end == dst.device() && inside);
                leads_on.then_some((end.0, id))
            }
        };
        paths.until(
            topology.device_count(),
            [(src.0, (0, 0))],
            |device| {
                let device = DeviceId(device);
                let arc = arc(!topology.is_npu(device));
                topology.out_links(device).iter().filter_map(arc)
            },
            |so_far, id, known| {
                let longer = || (so_far.0 + 1, so_far.1.saturating_add(cost(id)));
                (so_far < known).then(|| (longer(), id))
            },
            |device, _| device == dst.0,
        );
        let mut path = Vec::new();
        let mut device = dst.device();
        while device != src.device() {
            let link = paths.via(device.0);
            if link == NO_LINK {
                return None;
            }
            path.push(link);
            device = topology.link(link).src;
        }
        path.reverse();
        Some(path)
    }
}

/// Returns the NPUs of a list of links, ascending, with how many links each has.
fn counted(mut links: Vec<(NpuId, LinkId)>) -> Vec<Around> {
    links.sort_unstable();
    let groups = links.chunk_by(|a, b| a.0 == b.0);
    let around = groups.map(|group| Around {
        npu: group[0].0,
        links: group.len(),
    });
    around.collect()
}

/// Returns whether each of some switches can reach each other: the first all others, and all others the first.
fn is_whole(topology: &Topology, switches: &[DeviceId], member: &[bool]) -> bool {
    let reaches_all = |backwards: bool| {
        let mut seen = vec![false; member.len()];
        let mut stack = vec![switches[0]];
        seen[switches[0].index()] = true;
        let mut count = 0;
        while let Some(switch) = stack.pop() {
            count += 1;
            let links = match backwards {
                true => topology.in_links(switch),
                false => topology.out_links(switch),
            };
            for &id in links {
                let link = topology.link(id);
                let end = if backwards { link.src } else { link.dst };
                if member[end.index()] && !std::mem::replace(&mut seen[end.index()], true) {
                    stack.push(end);
                }
            }
        }
        count == switches.len()
    };
    reaches_all(false) && reaches_all(true)
}
