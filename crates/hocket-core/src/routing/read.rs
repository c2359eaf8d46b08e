//! A fabric read from a network: switches by their names, pods and planes by what is joined.

use super::fabric::{Fabric, Host, Upper};
use crate::id::{DeviceId, LinkId};
use crate::topology::{Device, DeviceKind, Topology};
use crate::units::{Bandwidth, gcd};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Host,
    /// `tor` or `edge`.
    Tor(usize),
    Spine(usize),
    Agg(usize),
    Core(usize),
}

/// Most that a weight of 1 may load a link with.
const MOST: u64 = 1 << 24;

pub(super) fn read(topology: &Topology) -> Result<Fabric, String> {
    let roles = roles(topology)?;
    let past = |number: fn(Role) -> Option<usize>| {
        let numbers = roles.iter().filter_map(|&role| number(role));
        numbers.max().map_or(0, |last| last + 1)
    };
    let tors = past(|role| {
        if let Role::Tor(n) = role {
            Some(n)
        } else {
            None
        }
    });
    let spines = past(|role| {
        if let Role::Spine(n) = role {
            Some(n)
        } else {
            None
        }
    });
    let upper = match past(|role| {
        if let Role::Agg(n) = role {
            Some(n)
        } else {
            None
        }
    }) {
        0 => None,
        aggs => {
            let cores = past(|role| {
                if let Role::Core(n) = role {
                    Some(n)
                } else {
                    None
                }
            });
            Some(upper(topology, &roles, [tors, aggs, cores])?)
        }
    };
    let planes = upper.iter().flat_map(|upper| upper.aggs.iter().flatten());
    let columns = match &upper {
        Some(_) => planes.map(|at| at[1] as usize + 1).max().unwrap_or(0),
        None => spines,
    };
    if tors == 0 || columns == 0 {
        return Err(
            "it has no switches tor0, ... and spine0, ..., or edge0, ..., agg0, ... and \
                    core0, ..."
                .to_owned(),
        );
    }
    let live = roles
        .iter()
        .filter(|role| matches!(role, Role::Tor(_)))
        .count();
    let mut fabric = Fabric {
        tors,
        columns,
        upper,
        links: Vec::new(),
        scales: Vec::new(),
        reference: topology.links()[0].bandwidth,
        hosts: vec![Host::default(); topology.npu_count()],
        hosts_per_tor: topology.npu_count().div_ceil(live),
        tops: Vec::new(),
        complete: false,
    };
    fabric.links = vec![None; fabric.blocks()[4]];
    add_links(&mut fabric, topology, &roles)?;
    add_scales(&mut fabric, topology)?;
    let live: Vec<usize> = roles
        .iter()
        .filter_map(|role| {
            if let Role::Tor(n) = role {
                Some(*n)
            } else {
                None
            }
        })
        .collect();
    add_tops(&mut fabric, &live);
    Ok(fabric)
}

fn roles(topology: &Topology) -> Result<Vec<Role>, String> {
    let role = |device: &Device| {
        if device.kind == DeviceKind::Npu {
            return Ok(Role::Host);
        }
        let number = |prefix: &str| -> Option<usize> {
            let digits = device.name.strip_prefix(prefix)?;
            let number: u16 = digits.parse().ok()?;
            (digits == number.to_string()).then_some(number.into())
        };
        let tor = number("tor").or_else(|| number("edge")).map(Role::Tor);
        let above = number("spine").map(Role::Spine);
        let three = || {
            number("agg")
                .map(Role::Agg)
                .or_else(|| number("core").map(Role::Core))
        };
        tor.or(above).or_else(three).ok_or_else(|| {
            format!(
                "switch {:?} is no tor, spine, edge, agg or core with a number",
                device.name
            )
        })
    };
    let roles: Vec<Role> = topology
        .devices()
        .iter()
        .map(role)
        .collect::<Result<_, _>>()?;
    let of = |prefix: &str| {
        topology
            .devices()
            .iter()
            .find(|device| device.kind == DeviceKind::Switch && device.name.starts_with(prefix))
    };
    let two = of("tor").or(of("spine"));
    let three = of("edge").or(of("agg")).or(of("core"));
    match (two, three) {
        (Some(two), Some(three)) => Err(format!(
            "it has a switch {:?} and a switch {:?}",
            two.name, three.name
        )),
        _ => Ok(roles),
    }
}

/// Sets of things that are joined, by union of smallest members.
struct Sets(Vec<usize>);

impl Sets {
    fn root(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// Pods are the parts that ToRs and aggs fall into without cores, planes those that aggs and cores
/// fall into without ToRs. A failure that parts one parts no path that is left.
fn upper(
    topology: &Topology,
    roles: &[Role],
    [tors, aggs, cores]: [usize; 3],
) -> Result<Upper, String> {
    let mut pods = Sets((0..tors + aggs).collect());
    let mut planes = Sets((0..cores + aggs).collect());
    for link in topology.links() {
        match [link.src, link.dst].map(|id| roles[id.index()]) {
            [Role::Tor(tor), Role::Agg(agg)] | [Role::Agg(agg), Role::Tor(tor)] => {
                pods.join(tor, tors + agg);
            }
            [Role::Agg(agg), Role::Core(core)] | [Role::Core(core), Role::Agg(agg)] => {
                planes.join(core, cores + agg);
            }
            _ => {}
        }
    }
    let there: Vec<bool> = {
        let mut there = vec![false; aggs];
        for role in roles {
            if let Role::Agg(agg) = role {
                there[*agg] = true;
            }
        }
        there
    };
    let mut seen = vec![None; tors + aggs];
    let mut pod_count = 0;
    let mut pod = |of: usize| number(&mut seen, pods.root(of), &mut pod_count);
    let pod_of = (0..tors).map(&mut pod).collect();
    let agg_pods: Vec<u32> = (0..aggs).map(|agg| pod(tors + agg)).collect();
    let mut seen = vec![None; cores + aggs];
    let mut plane_count = 0;
    let live = (0..aggs).filter(|&agg| there[agg]);
    let mut plane = |of: usize| number(&mut seen, planes.root(of), &mut plane_count);
    // Cores without links would be planes of their own: they come last.
    let mut linked = vec![false; cores];
    for link in topology.links() {
        for id in [link.src, link.dst] {
            if let Role::Core(core) = roles[id.index()] {
                linked[core] = true;
            }
        }
    }
    for core in (0..cores).filter(|&core| linked[core]) {
        plane(core);
    }
    let mut at = vec![None; aggs];
    for agg in live {
        at[agg] = Some([agg_pods[agg], plane(cores + agg)]);
    }
    let plane_of = (0..cores).map(plane).collect();
    let mut taken = std::collections::HashMap::new();
    let mut aggs_of = vec![[u32::MAX, 0]; pod_count as usize];
    for (agg, place) in at.iter().enumerate() {
        let Some(place) = *place else { continue };
        if let Some(other) = taken.insert(place, agg) {
            return Err(format!(
                "agg{other} and agg{agg} of one pod reach the same cores; each is to have cores of \
                 its own"
            ));
        }
        let [lowest, highest] = &mut aggs_of[place[0] as usize];
        *lowest = (*lowest).min(agg as u32);
        *highest = (*highest).max(agg as u32);
    }
    Ok(Upper {
        pods: pod_count as usize,
        cores,
        pod_of,
        plane_of,
        aggs: at,
        aggs_of,
    })
}

fn number(seen: &mut [Option<u32>], root: usize, count: &mut u32) -> u32 {
    *seen[root].get_or_insert_with(|| {
        *count += 1;
        *count - 1
    })
}

fn add_links(fabric: &mut Fabric, topology: &Topology, roles: &[Role]) -> Result<(), String> {
    let [up, down, above, below, _] = fabric.blocks();
    let columns = fabric.columns;
    let place = |agg: usize| {
        let upper = fabric.upper.as_ref().expect("aggs are on three levels");
        let [pod, plane] = upper.aggs[agg].expect("it is there");
        (pod as usize * upper.cores, plane as usize)
    };
    let mut found = Vec::new();
    for (i, link) in topology.links().iter().enumerate() {
        let name = |id: DeviceId| topology.device(id).name.as_str();
        let ends = || format!("{} -> {}", name(link.src), name(link.dst));
        let id = LinkId::from(i);
        let slot = match [link.src, link.dst].map(|id| roles[id.index()]) {
            [Role::Host, Role::Tor(tor)] => {
                let host = &mut fabric.hosts[link.src.index()];
                host.tor.get_or_insert(tor as u32);
                host.up.get_or_insert(id);
                continue;
            }
            [Role::Tor(tor), Role::Host] => {
                let host = &mut fabric.hosts[link.dst.index()];
                host.tor.get_or_insert(tor as u32);
                host.down.get_or_insert(id);
                continue;
            }
            [Role::Tor(tor), Role::Spine(spine)] => up + tor * columns + spine,
            [Role::Spine(spine), Role::Tor(tor)] => down + tor * columns + spine,
            [Role::Tor(tor), Role::Agg(agg)] => up + tor * columns + place(agg).1,
            [Role::Agg(agg), Role::Tor(tor)] => down + tor * columns + place(agg).1,
            [Role::Agg(agg), Role::Core(core)] => above + place(agg).0 + core,
            [Role::Core(core), Role::Agg(agg)] => below + place(agg).0 + core,
            _ => return Err(format!("link {} is not between two tiers", ends())),
        };
        found.push((slot, id));
        if fabric.links[slot].replace(id).is_some() {
            return Err(format!("there are parallel links {}", ends()));
        }
    }
    match found.is_empty() {
        true => Err("no link joins two switches".to_owned()),
        false => Ok(()),
    }
}

/// Loads count in the least common multiple of the bandwidths, so that all are whole.
fn add_scales(fabric: &mut Fabric, topology: &Topology) -> Result<(), String> {
    let bandwidth = |id: LinkId| topology.link(id).bandwidth.bytes_per_second();
    let mut all: Vec<u64> = fabric
        .links
        .iter()
        .flatten()
        .map(|&id| bandwidth(id))
        .collect();
    all.sort_unstable();
    all.dedup();
    let (least, largest) = (all[0], all[all.len() - 1]);
    let refused = || {
        format!(
            "bandwidths of {least} to {largest} B/s between its switches have no common multiple \
             below 2^24 times the least; round them"
        )
    };
    let mut multiple = 1;
    for &each in &all {
        let factor = each / gcd(multiple, each);
        multiple = multiple.checked_mul(factor).ok_or_else(refused)?;
    }
    if multiple / least > MOST {
        return Err(refused());
    }
    fabric.reference = Bandwidth::from_bytes_per_second(multiple).ok_or_else(refused)?;
    if all.len() > 1 {
        let scale = |link: &Option<LinkId>| link.map_or(1, |id| multiple / bandwidth(id));
        fabric.scales = fabric.links.iter().map(scale).collect();
    }
    Ok(())
}

/// Finds the switches on top that work, and whether anything else is missing.
fn add_tops(fabric: &mut Fabric, live: &[usize]) {
    let [up, down, above, below, _] = fabric.blocks();
    let there = |slot: usize| fabric.links[slot].is_some();
    let columns = fabric.columns;
    let lower_rows = |column: usize| {
        let rows = live.iter().map(move |tor| tor * columns + column);
        rows.flat_map(|slot| [up + slot, down + slot])
    };
    let used: Vec<usize> = (0..columns).filter(|&c| lower_rows(c).any(there)).collect();
    let lower_whole = used.iter().all(|&c| lower_rows(c).all(there));
    let Some(upper) = &fabric.upper else {
        fabric.complete = lower_whole;
        fabric.tops = used.iter().map(|&column| column as u32).collect();
        return;
    };
    let mut pods: Vec<usize> = live.iter().map(|&tor| upper.pod_of[tor] as usize).collect();
    pods.dedup();
    pods.sort_unstable();
    pods.dedup();
    let upper_rows = |core: usize| {
        let rows = pods.iter().map(move |pod| pod * upper.cores + core);
        rows.flat_map(|slot| [above + slot, below + slot])
    };
    let cores: Vec<usize> = (0..upper.cores)
        .filter(|&c| upper_rows(c).any(there))
        .collect();
    let upper_whole = cores.iter().all(|&c| upper_rows(c).all(there));
    let covered = |plane: &usize| cores.iter().any(|&c| upper.plane_of[c] as usize == *plane);
    fabric.complete = lower_whole && upper_whole && (pods.len() == 1 || used.iter().all(covered));
    fabric.tops = match cores.is_empty() {
        false => cores.iter().map(|&core| core as u32).collect(),
        true => (0..upper.aggs.len() as u32)
            .filter(|&agg| upper.aggs[agg as usize].is_some())
            .collect(),
    };
}
