//! A two-level Clos as routing sees it: which ToR reaches which spine by which links.

use super::RoutingError;
use crate::id::{DeviceId, LinkId, NpuId};
use crate::topology::{DeviceKind, Topology};

/// A two-level Clos, failures included.
///
/// ToRs and spines keep the numbers in their names, so that `tor5` is ToR 5 whatever failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    tors: usize,
    spines: usize,
    hosts_per_tor: usize,
    up: Vec<Option<LinkId>>,
    down: Vec<Option<LinkId>>,
    working: Vec<u32>,
    complete: bool,
    live_tors: usize,
    /// By NPU: its ToR and its links up to it and down from it.
    ports: Vec<(u32, [LinkId; 2])>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Host,
    Tor(usize),
    Spine(usize),
}

impl Fabric {
    /// The fabric of a network that `topology::build::clos` made, less what failed.
    ///
    /// # Errors
    /// [`RoutingError::NotClos`] for any other network, links of unequal bandwidth between ToRs and
    /// spines, or no link there at all.
    pub fn new(topology: &Topology) -> Result<Self, RoutingError> {
        Self::read(topology).map_err(|why| RoutingError::NotClos {
            name: topology.name().to_owned(),
            why,
        })
    }

    fn read(topology: &Topology) -> Result<Self, String> {
        let roles = roles(topology)?;
        let tor_numbers = roles.iter().filter_map(|role| match role {
            Role::Tor(number) => Some(*number),
            _ => None,
        });
        let spine_numbers = roles.iter().filter_map(|role| match role {
            Role::Spine(number) => Some(*number),
            _ => None,
        });
        let live_tors = tor_numbers.clone().count();
        let tors = tor_numbers.max().map_or(0, |last| last + 1);
        let spines = spine_numbers.max().map_or(0, |last| last + 1);
        if tors == 0 || spines == 0 {
            return Err("it has no switches tor0, ... and spine0, ...".to_owned());
        }
        let mut fabric = Self {
            tors,
            spines,
            hosts_per_tor: topology.npu_count().div_ceil(live_tors),
            up: vec![None; tors * spines],
            down: vec![None; tors * spines],
            working: Vec::new(),
            complete: false,
            live_tors,
            ports: vec![(0, [LinkId(0); 2]); topology.npu_count()],
        };
        fabric.add_links(topology, &roles)?;
        fabric.find_working(live_tors);
        Ok(fabric)
    }

    fn add_links(&mut self, topology: &Topology, roles: &[Role]) -> Result<(), String> {
        let mut bandwidth = None;
        for (i, link) in topology.links().iter().enumerate() {
            let name = |id: DeviceId| topology.device(id).name.as_str();
            let ends = || format!("{} -> {}", name(link.src), name(link.dst));
            let place = match (roles[link.src.index()], roles[link.dst.index()]) {
                (Role::Host, Role::Tor(tor)) => {
                    self.ports[link.src.index()].0 = tor as u32;
                    self.ports[link.src.index()].1[0] = LinkId::from(i);
                    continue;
                }
                (Role::Tor(_), Role::Host) => {
                    self.ports[link.dst.index()].1[1] = LinkId::from(i);
                    continue;
                }
                (Role::Tor(tor), Role::Spine(spine)) => &mut self.up[tor * self.spines + spine],
                (Role::Spine(spine), Role::Tor(tor)) => &mut self.down[tor * self.spines + spine],
                _ => return Err(format!("link {} is not between two tiers", ends())),
            };
            if place.replace(LinkId::from(i)).is_some() {
                return Err(format!("there are parallel links {}", ends()));
            }
            if *bandwidth.get_or_insert(link.bandwidth) != link.bandwidth {
                return Err(format!(
                    "link {} has another bandwidth than the rest",
                    ends()
                ));
            }
        }
        match bandwidth {
            Some(_) => Ok(()),
            None => Err("no link joins a ToR and a spine".to_owned()),
        }
    }

    fn find_working(&mut self, live_tors: usize) {
        let links = |spine: usize| {
            let slots = (0..self.tors).map(|tor| tor * self.spines + spine);
            slots.fold([0, 0], |[up, down], slot| {
                let there =
                    [&self.up, &self.down].map(|column| usize::from(column[slot].is_some()));
                [up + there[0], down + there[1]]
            })
        };
        let links: Vec<[usize; 2]> = (0..self.spines).map(links).collect();
        let working = (0..self.spines).filter(|&spine| links[spine] != [0, 0]);
        self.working = working.map(|spine| spine as u32).collect();
        let mut of_working = self.working.iter().map(|&spine| links[spine as usize]);
        self.complete = of_working.all(|links| links == [live_tors; 2]);
    }

    /// One more than the highest number of a ToR.
    pub fn tor_count(&self) -> usize {
        self.tors
    }

    /// One more than the highest number of a spine.
    pub fn spine_count(&self) -> usize {
        self.spines
    }

    /// NPUs below a ToR, rounded up.
    pub(super) fn hosts_per_tor(&self) -> usize {
        self.hosts_per_tor.max(1)
    }

    /// Numbers of the spines that have links.
    pub fn working_spines(&self) -> &[u32] {
        &self.working
    }

    /// Whether every ToR there is has a link to and from every spine that has links: nothing failed
    /// but whole switches.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Spines by which one ToR reaches another, lowest first; none for ToRs that are not there.
    pub fn spines_between(&self, src: u32, dst: u32) -> impl Iterator<Item = u32> + '_ {
        let candidates = self.working.iter().copied();
        candidates.filter(move |&spine| self.path(src, dst, spine).is_some())
    }

    /// The links from one ToR to another across a spine, if both are there.
    pub fn path(&self, src: u32, dst: u32, spine: u32) -> Option<[LinkId; 2]> {
        let known = (src as usize) < self.tors && (dst as usize) < self.tors;
        if !known || spine as usize >= self.spines {
            return None;
        }
        let up = self.up[self.slot(src, spine)]?;
        Some([up, self.down[self.slot(dst, spine)]?])
    }

    /// The fabric less the links that are dead, by link; everything keeps its number.
    pub fn without(&self, is_dead: &[bool]) -> Self {
        let mut less = self.clone();
        for slot in less.up.iter_mut().chain(&mut less.down) {
            *slot = slot.filter(|link| !is_dead[link.index()]);
        }
        less.find_working(self.live_tors);
        less
    }

    /// The ToR of an NPU.
    pub fn tor_of(&self, npu: NpuId) -> u32 {
        self.ports[npu.index()].0
    }

    /// The links of an NPU, up to its ToR and down from it.
    pub fn links_of(&self, npu: NpuId) -> [LinkId; 2] {
        self.ports[npu.index()].1
    }

    /// Appends the links from one ToR to another by a choice.
    pub fn route(&self, src: u32, dst: u32, choice: u32, links: &mut Vec<LinkId>) {
        links.extend(self.path(src, dst, choice).into_iter().flatten());
    }

    /// Where a ToR's link with a spine stands in columns of up- or downlinks.
    #[inline]
    pub(super) fn slot(&self, tor: u32, spine: u32) -> usize {
        tor as usize * self.spines + spine as usize
    }

    /// Up- and downlinks, `ToR x spine`; `None` where there is no link.
    pub(super) fn columns(&self) -> [&[Option<LinkId>]; 2] {
        [&self.up, &self.down]
    }
}

fn roles(topology: &Topology) -> Result<Vec<Role>, String> {
    let role = |device: &crate::topology::Device| {
        if device.kind == DeviceKind::Npu {
            return Ok(Role::Host);
        }
        let number = |prefix: &str| -> Option<usize> {
            let digits = device.name.strip_prefix(prefix)?;
            let number: u16 = digits.parse().ok()?;
            (digits == number.to_string()).then_some(number.into())
        };
        match (number("tor"), number("spine")) {
            (Some(tor), _) => Ok(Role::Tor(tor)),
            (_, Some(spine)) => Ok(Role::Spine(spine)),
            _ => Err(format!(
                "switch {:?} is neither a ToR nor a spine",
                device.name
            )),
        }
    };
    topology.devices().iter().map(role).collect()
}
