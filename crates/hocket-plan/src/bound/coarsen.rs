//! Partitions found by joining parts, two at a time.

use super::network::ArcNetwork;
use super::partition::{Parts, Passing, for_each_entry};
use crate::id::narrow;
use crate::progress::{Interrupted, Paced};

/// Returns the best partition that is met while parts are joined, from single NPUs on: always those two between which
/// most bandwidth leads, less what both add to what must be passed on. Switches join the part that most bandwidth leads
/// to, if that leaves less between parts.
///
/// # Complexity
/// O(n^3) for n NPUs, and O(n) times the pairs of parts beside each switch.
pub(super) fn coarsened(
    network: &ArcNetwork,
    passing: &[Passing],
    watch: &mut Paced,
) -> Result<Option<Parts>, Interrupted> {
    let mut parts: Parts = network.stations().map(|node| vec![node]).collect();
    let mut best: Option<(f64, Parts)> = None;
    let total = parts.len() as u64;
    while parts.len() > 1 {
        let work = (parts.len() * parts.len() + network.arcs().len()) as u64;
        watch.count(work, total - parts.len() as u64, total)?;
        let with_switches = with_switches(network, &parts);
        let seconds = seconds(network, passing, &with_switches);
        if seconds > best.as_ref().map_or(0.0, |best| best.0) {
            best = Some((seconds, with_switches));
        }
        let Some((a, b)) = pair(
            network,
            passing,
            &parts,
            best.as_ref().map_or(0.0, |best| best.0),
        ) else {
            break;
        };
        let joined = parts.swap_remove(b);
        parts[a].extend(joined);
    }
    Ok(best.map(|best| best.1))
}

/// Returns how long the links into the parts send what must be passed on between them [s]; 0 if nothing must.
fn seconds(network: &ArcNetwork, passing: &[Passing], parts: &Parts) -> f64 {
    let bytes = super::partition::bytes_between(network.node_count(), passing, parts);
    let mut bandwidth = 0u128;
    for_each_entry(network, parts, |arc| {
        bandwidth += u128::from(network.arcs()[arc].capacity);
    });
    match bytes {
        0 => 0.0,
        bytes => bytes as f64 / bandwidth.max(1) as f64,
    }
}

fn places(network: &ArcNetwork, parts: &Parts) -> Vec<usize> {
    let mut place = vec![usize::MAX; network.node_count()];
    for (number, part) in parts.iter().enumerate() {
        for &node in part {
            place[node as usize] = number;
        }
    }
    place
}

/// Returns the parts with the switches that join them.
pub(super) fn with_switches(network: &ArcNetwork, parts: &Parts) -> Parts {
    let mut place = places(network, parts);
    let switches: Vec<u32> = (0..narrow(network.node_count()))
        .filter(|&node| !network.is_station(node))
        .collect();
    let arc = |&arc: &u32| &network.arcs()[arc as usize];
    for _ in 0..2 {
        for &switch in &switches {
            place[switch as usize] = usize::MAX;
            let mut sent = vec![0u128; parts.len()];
            for its in network.arcs_out(switch).iter().map(arc) {
                if let Some(sent) = sent.get_mut(place[its.dst as usize]) {
                    *sent += u128::from(its.capacity);
                }
            }
            let Some((part, &gain)) = sent.iter().enumerate().max_by_key(|(_, sent)| **sent) else {
                continue;
            };
            let into = network.arcs_in(switch).iter().map(arc);
            let lost = into.filter(|its| place[its.src as usize] != part);
            if gain > lost.map(|its| u128::from(its.capacity)).sum() {
                place[switch as usize] = part;
            }
        }
    }
    let mut all = parts.clone();
    for switch in switches {
        if let Some(part) = all.get_mut(place[switch as usize]) {
            part.push(switch);
        }
    }
    all
}

/// Returns the two parts to join, the first before the second.
fn pair(
    network: &ArcNetwork,
    passing: &[Passing],
    parts: &Parts,
    best: f64,
) -> Option<(usize, usize)> {
    let n = parts.len();
    let place = places(network, parts);
    let mut between = vec![0.0; n * n];
    for arc in network.arcs() {
        let (a, b) = (place[arc.src as usize], place[arc.dst as usize]);
        if a < n && b < n && a != b {
            between[a.min(b) * n + a.max(b)] += arc.capacity as f64;
        }
    }
    for switch in (0..narrow(network.node_count())).filter(|&node| !network.is_station(node)) {
        let mut into = vec![0.0; n];
        let mut out = vec![0.0; n];
        for &arc in network.arcs_in(switch) {
            let arc = &network.arcs()[arc as usize];
            if let Some(into) = into.get_mut(place[arc.src as usize]) {
                *into += arc.capacity as f64;
            }
        }
        for &arc in network.arcs_out(switch) {
            let arc = &network.arcs()[arc as usize];
            if let Some(out) = out.get_mut(place[arc.dst as usize]) {
                *out += arc.capacity as f64;
            }
        }
        let beside: Vec<usize> = (0..n)
            .filter(|&part| into[part] > 0.0 || out[part] > 0.0)
            .collect();
        let others = beside.len().saturating_sub(1).max(1) as f64;
        for &a in &beside {
            for &b in beside.iter().filter(|&&b| b > a) {
                let shared = into[a].min(out[b]) + into[b].min(out[a]);
                between[a * n + b] += shared / others;
            }
        }
    }
    let mut least = vec![0.0; n * n];
    if best > 0.0 {
        for pass in passing {
            let mut has = pass
                .ends
                .iter()
                .map(|&end| place[end as usize])
                .collect::<Vec<_>>();
            has.sort_unstable();
            has.dedup();
            for (i, &a) in has.iter().enumerate() {
                for &b in &has[i + 1..] {
                    least[a * n + b] += pass.bytes as f64 / best;
                }
            }
        }
    }
    let joined = (0..n * n).filter(|&pair| between[pair] > 0.0);
    let chosen = joined.max_by(|&x, &y| {
        let gain = |pair: usize| between[pair] - least[pair];
        gain(x).total_cmp(&gain(y)).then(y.cmp(&x))
    });
    chosen.map(|pair| (pair / n, pair % n))
}
