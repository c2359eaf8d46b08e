//! A fabric read from a network: switches by their names, links by what they join.

use super::RoutingError;
use super::fabric::{Fabric, Host};
use super::pods::{self, Level, Role};
use crate::id::{DeviceId, LinkId, narrow};
use crate::topology::{Device, DeviceKind, Topology};
use crate::units::{Bandwidth, gcd};

const NAMES: [(&str, Level); 5] = [
    ("tor", Level::Tor),
    ("spine", Level::Spine),
    ("edge", Level::Tor),
    ("agg", Level::Agg),
    ("core", Level::Core),
];

/// Most that a weight of 1 may load a link with.
const MAX_SCALE: u64 = 1 << 24;

/// Most links that switches of these numbers might have.
const MAX_SLOTS: u128 = 1 << 28;

impl Fabric {
    /// Returns the fabric of a network that `topology::build::clos` or `topology::build::fat_tree` made, or of one with
    /// switches so named and joined alike, less what failed.
    ///
    /// Links between switches may differ in bandwidth. On three levels aggregation switches that
    /// reach the same cores make a plane, of which a pod has one switch.
    ///
    /// # Errors
    /// [`RoutingError::NotClos`] for any other network, no link at all between switches, and bandwidths
    /// whose least common multiple is above 2^24 times the least of them.
    pub fn new(topology: &Topology) -> Result<Self, RoutingError> {
        read(topology).map_err(|why| RoutingError::NotClos {
            name: topology.name().to_owned(),
            why,
        })
    }

    /// Returns the fabric less the links that are dead, by link; everything keeps its number.
    pub fn without(&self, is_dead: &[bool]) -> Self {
        let mut less = self.clone();
        for slot in &mut less.links {
            *slot = slot.filter(|link| !is_dead[link.index()]);
        }
        add_tops(&mut less);
        less
    }
}

fn read(topology: &Topology) -> Result<Fabric, String> {
    let roles = roles(topology)?;
    let numbers = |level: Level| {
        let of = roles.iter().filter(move |role| role.level == level);
        of.map(|role| role.number)
    };
    let past = |level: Level| numbers(level).max().map_or(0, |last| last + 1);
    let [tors, aggs, cores] = [Level::Tor, Level::Agg, Level::Core].map(past);
    let upper = match aggs {
        0 => None,
        _ => Some(pods::upper(topology, &roles, [tors, aggs, cores])?),
    };
    let planes = upper.iter().flat_map(|upper| upper.aggs.iter().flatten());
    let planes = planes.map(|[_, plane]| *plane as usize + 1).max();
    let columns = planes.unwrap_or(past(Level::Spine));
    if tors == 0 || columns == 0 {
        let wanted = "tor0, ... and spine0, ..., or edge0, ..., agg0, ... and core0, ...";
        return Err(format!("it has no switches {wanted}"));
    }
    let across = upper
        .as_ref()
        .map_or(0, |upper| upper.pods as u128 * upper.cores as u128);
    if 2 * (tors as u128 * columns as u128 + across) > MAX_SLOTS {
        return Err(format!(
            "numbers up to {tors} and {columns} are too high; number from 0 on"
        ));
    }
    let live: Vec<usize> = numbers(Level::Tor).collect();
    let mut fabric = Fabric {
        tors,
        columns,
        upper,
        links: Vec::new(),
        scales: Vec::new(),
        reference: None,
        hosts: vec![Host::default(); topology.npu_count()],
        hosts_per_tor: topology.npu_count().div_ceil(live.len()),
        tops: Vec::new(),
        complete: false,
        live,
    };
    fabric.links = vec![None; fabric.blocks()[4]];
    add_links(&mut fabric, topology, &roles)?;
    add_scales(&mut fabric, topology)?;
    add_tops(&mut fabric);
    Ok(fabric)
}

fn roles(topology: &Topology) -> Result<Vec<Role>, String> {
    let mut first: Option<(&str, bool)> = None;
    let mut roles = Vec::with_capacity(topology.device_count());
    for Device { name, kind, .. } in topology.devices() {
        if *kind == DeviceKind::Npu {
            roles.push(Role {
                level: Level::Host,
                number: 0,
            });
            continue;
        }
        let Some((prefix, role)) = NAMES.iter().find_map(|&(prefix, level)| {
            let digits = name.strip_prefix(prefix)?;
            let number: u16 = digits.parse().ok()?;
            let number = (digits == number.to_string()).then_some(number.into())?;
            Some((prefix, Role { level, number }))
        }) else {
            return Err(format!(
                "switch {name:?} is not a tor, spine, edge, agg or core with a number"
            ));
        };
        let flat = ["tor", "spine"].contains(&prefix);
        let (other, other_flat) = *first.get_or_insert((name, flat));
        if flat != other_flat {
            return Err(format!("it has a switch {other:?} and a switch {name:?}"));
        }
        roles.push(role);
    }
    Ok(roles)
}

fn add_links(fabric: &mut Fabric, topology: &Topology, roles: &[Role]) -> Result<(), String> {
    let mut any = false;
    for (i, link) in topology.links().iter().enumerate() {
        let name = |id: DeviceId| topology.device(id).name.as_str();
        let ends = || format!("{} -> {}", name(link.src), name(link.dst));
        let id = LinkId::from(i);
        let [src, dst] = [link.src, link.dst].map(|end| roles[end.index()]);
        if src.level == Level::Host && dst.level == Level::Tor {
            let host = &mut fabric.hosts[link.src.index()];
            host.tor.get_or_insert(narrow(dst.number));
            host.up.get_or_insert(id);
            continue;
        }
        if src.level == Level::Tor && dst.level == Level::Host {
            let host = &mut fabric.hosts[link.dst.index()];
            host.tor.get_or_insert(narrow(src.number));
            host.down.get_or_insert(id);
            continue;
        }
        let up = src.level < dst.level;
        let (low, high) = if up { (src, dst) } else { (dst, src) };
        let Some(slot) = slot(fabric, low, high, up) else {
            return Err(format!("link {} is not between two tiers", ends()));
        };
        if fabric.links[slot].replace(id).is_some() {
            return Err(format!("there are parallel links {}", ends()));
        }
        any = true;
    }
    match any {
        true => Ok(()),
        false => Err("no link joins two switches".to_owned()),
    }
}

/// Returns the slot of a link between two tiers.
fn slot(fabric: &Fabric, low: Role, high: Role, up: bool) -> Option<usize> {
    let place = |agg: usize| fabric.upper.as_ref()?.aggs[agg];
    let (block, row, width, column) = match (low.level, high.level) {
        (Level::Tor, Level::Spine) => (0, low.number, fabric.columns, high.number),
        (Level::Tor, Level::Agg) => {
            let [_, plane] = place(high.number)?;
            (0, low.number, fabric.columns, plane as usize)
        }
        (Level::Agg, Level::Core) => {
            let [pod, _] = place(low.number)?;
            (2, pod as usize, fabric.upper.as_ref()?.cores, high.number)
        }
        _ => return None,
    };
    Some(fabric.blocks()[block + usize::from(!up)] + row * width + column)
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
    let mut multiple = Some(1);
    for &each in &all {
        multiple =
            multiple.and_then(|multiple: u64| multiple.checked_mul(each / gcd(multiple, each)));
    }
    let Some(multiple) = multiple.filter(|multiple| multiple / least <= MAX_SCALE) else {
        return Err(format!(
            "bandwidths of {least} to {largest} B/s between its switches have no common multiple up \
             to 2^24 times the least; round them"
        ));
    };
    fabric.reference = Bandwidth::from_bytes_per_second(multiple);
    if all.len() > 1 {
        let scale = |link: &Option<LinkId>| link.map_or(1, |id| multiple / bandwidth(id));
        fabric.scales = fabric.links.iter().map(scale).collect();
    }
    Ok(())
}

/// Notes which of the highest switches have links, and whether no link is missing that could be there.
fn add_tops(fabric: &mut Fabric) {
    let live = &fabric.live;
    let there = |slot: usize| fabric.links[slot].is_some();
    // Links of a column with each of some rows, both ways.
    let column = |block: usize, rows: &[usize], width: usize, column: usize| -> Vec<bool> {
        let [up, down] = [fabric.blocks()[block], fabric.blocks()[block + 1]];
        let slots = rows.iter().map(|row| row * width + column);
        slots
            .flat_map(|slot| [there(up + slot), there(down + slot)])
            .collect()
    };
    let used = |block: usize, rows: &[usize], width: usize| -> (Vec<usize>, bool) {
        let links = (0..width).map(|at| (at, column(block, rows, width, at)));
        let links: Vec<_> = links.filter(|(_, links)| links.contains(&true)).collect();
        let whole = links.iter().all(|(_, links)| !links.contains(&false));
        (links.into_iter().map(|(at, _)| at).collect(), whole)
    };
    let (columns, lower_whole) = used(0, live, fabric.columns);
    let Some(upper) = &fabric.upper else {
        fabric.complete = lower_whole;
        fabric.tops = columns.into_iter().map(narrow).collect();
        return;
    };
    let mut pods: Vec<usize> = live.iter().map(|&tor| upper.pod_of[tor] as usize).collect();
    pods.sort_unstable();
    pods.dedup();
    let (cores, upper_whole) = used(2, &pods, upper.cores);
    let cored = |plane: &usize| {
        cores
            .iter()
            .any(|&core| upper.plane_of[core] as usize == *plane)
    };
    let whole = lower_whole && upper_whole && (pods.len() == 1 || columns.iter().all(cored));
    fabric.tops = match cores.is_empty() {
        false => cores.into_iter().map(narrow).collect(),
        true => (0..)
            .zip(&upper.aggs)
            .filter_map(|(agg, at)| at.map(|_| agg))
            .collect(),
    };
    fabric.complete = whole;
}
