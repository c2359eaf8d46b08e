//! A slow, obvious fluid model: every flow's rate and rest anew at every moment at which anything happens.
//!
//! It shares with the simulation it judges how rates are rounded (down to 2^-24 bytes/s, or to so many bits; servers with
//! as little to give as each other stop their flows at once) and that ends are rounded up to picoseconds.
//! That its rates are max-min fair it checks at every moment.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use hocket_core::id::{TransferId, fit};
use hocket_core::plan::{Plan, Wait, WaitOn};
use hocket_core::simulate::FlowOptions;
use hocket_core::units::Bandwidth;
use hocket_core::verify::Verified;

/// What becomes of a plan, in picoseconds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub start: Vec<u64>,
    pub end: Vec<u64>,
    /// By link: picoseconds in use, bytes, messages.
    pub links: Vec<(u64, u64, u64)>,
}

struct Server {
    capacity: u128,
    users: Vec<usize>,
}

/// In 2^-24 bytes/s.
fn units(rate: Bandwidth) -> u128 {
    u128::from(rate.bytes_per_second()) << 24
}

/// Whether what a transfer or group waits for has ended by now.
fn is_over(plan: &Plan, wait: Wait, ended: &[bool]) -> bool {
    match wait.target() {
        WaitOn::Nothing => true,
        WaitOn::Transfer(transfer) => ended[transfer.index()],
        WaitOn::Group(group) => {
            let members = plan.groups().get(group as usize);
            let mut members = members.iter().map(|&bits| Wait::from_bits(bits));
            members.all(|member| is_over(plan, member, ended))
        }
    }
}

/// Each transfer's servers, limits behind the links that lead to them, and its latency.
fn routes(verified: &Verified) -> (Vec<Server>, Vec<Vec<usize>>, Vec<u64>) {
    let (plan, topology) = (verified.plan(), verified.topology());
    let server = |capacity| Server {
        capacity: units(capacity),
        users: Vec::new(),
    };
    let links = topology.links().iter();
    let mut servers: Vec<Server> = links.map(|link| server(link.bandwidth)).collect();
    let mut limits = BTreeMap::new();
    for (number, device) in topology.devices().iter().enumerate() {
        if let Some(limit) = device.limit {
            limits.insert(number, servers.len());
            servers.push(server(limit));
        }
    }
    let (mut passes, mut latencies) = (Vec::new(), Vec::new());
    for transfer in (0..plan.len()).map(TransferId::from) {
        let mut passed = Vec::new();
        let mut latency = 0;
        for id in verified.routes().links(plan, topology, transfer) {
            let link = topology.link(id);
            latency += link.latency.as_ps();
            passed.push(id.index());
            passed.extend(limits.get(&link.dst.index()));
        }
        passes.push(passed);
        latencies.push(latency);
    }
    (servers, passes, latencies)
}

/// So many leading bits of a rate.
fn round(rate: u128, bits: u32) -> u128 {
    let surplus = rate.checked_ilog2().unwrap_or(0).saturating_sub(bits - 1);
    (rate >> surplus) << surplus
}

/// Rates of the flows under way by filling all servers step by step.
fn fill(
    servers: &[Server],
    passes: &[Vec<usize>],
    under_way: &[usize],
    (most, bits): (u128, u32),
) -> Vec<u128> {
    let mut rates: Vec<Option<u128>> = vec![None; under_way.len()];
    let passages = |i: usize, server: usize| {
        let passed = passes[under_way[i]].iter();
        passed.filter(|&&other| other == server).count() as u128
    };
    while rates.contains(&None) {
        let share = |server: usize| {
            let (mut left, mut open) = (servers[server].capacity, 0);
            for (i, rate) in rates.iter().enumerate() {
                match rate {
                    Some(rate) => left -= rate * passages(i, server),
                    None => open += passages(i, server),
                }
            }
            left.checked_div(open).map(|share| round(share, bits))
        };
        let shares: Vec<Option<u128>> = (0..servers.len()).map(share).collect();
        let least = shares.iter().flatten().min().copied().unwrap();
        for (i, rate) in rates.iter_mut().enumerate() {
            let mut passed = passes[under_way[i]].iter();
            let is_full = passed.any(|&server| shares[server] == Some(least));
            if rate.is_none() && (least >= most || is_full) {
                *rate = Some(least.min(most));
            }
        }
    }
    rates.into_iter().map(Option::unwrap).collect()
}

/// Each flow has the most, or passes a full server on which nobody has more; but for rounding.
fn check_fair(
    servers: &[Server],
    passes: &[Vec<usize>],
    under_way: &[usize],
    rates: &[u128],
    (most, bits): (u128, u32),
) {
    let on = |server: usize| {
        let flows = under_way.iter().zip(rates);
        flows.flat_map(move |(&transfer, &rate)| {
            let passed = passes[transfer].iter();
            passed
                .filter(move |&&other| other == server)
                .map(move |_| rate)
        })
    };
    for (number, server) in servers.iter().enumerate() {
        assert!(on(number).sum::<u128>() <= server.capacity);
    }
    for (&transfer, &rate) in under_way.iter().zip(rates) {
        let is_bottleneck = |&server: &usize| {
            let step = (rate >> (bits - 1)).max(1);
            let left = servers[server].capacity - on(server).sum::<u128>();
            let as_fast = on(server).filter(|&other| other == rate).count();
            left < as_fast as u128 * step && on(server).all(|other| other <= rate)
        };
        assert!(rate > 0 && rate <= most);
        assert!(rate == most || passes[transfer].iter().any(is_bottleneck));
    }
}

/// Runs a plan.
pub(crate) fn run(verified: &Verified, options: &FlowOptions) -> Outcome {
    let (plan, topology) = (verified.plan(), verified.topology());
    let (mut servers, passes, latencies) = routes(verified);
    let most = options.flow_rate.map_or(u128::MAX, units);
    let limits = (most, options.rate_bits.map_or(128, NonZeroU32::get));
    let count = plan.len();
    let mut left: Vec<u128> = (0..count)
        .map(|t| (u128::from(plan.bytes(TransferId::from(t))) * 1_000_000_000_000) << 24)
        .collect();
    let mut start = vec![None; count];
    let mut arrival: Vec<Option<u64>> = vec![None; count];
    let mut ended = vec![false; count];
    let mut links = vec![(0, 0, 0); topology.links().len()];
    let mut now = 0;
    loop {
        for (start, &bits) in start.iter_mut().zip(plan.wait()) {
            if start.is_none() && is_over(plan, Wait::from_bits(bits), &ended) {
                *start = Some(now);
            }
        }
        for t in 0..count {
            if start[t].is_some() && left[t] == 0 && arrival[t].is_none() {
                arrival[t] = Some(now + latencies[t]);
            }
        }
        let before = ended.clone();
        for t in 0..count {
            ended[t] |= arrival[t].is_some_and(|arrival| arrival <= now);
        }
        if ended != before {
            continue;
        }
        if ended.iter().all(|&ended| ended) {
            break;
        }
        let under_way: Vec<usize> = (0..count)
            .filter(|&t| start[t].is_some() && left[t] > 0)
            .collect();
        let rates = fill(&servers, &passes, &under_way, limits);
        check_fair(&servers, &passes, &under_way, &rates, limits);
        let drains = under_way.iter().zip(&rates);
        let drains = drains.map(|(&t, rate)| now + fit::<u64, _>(left[t].div_ceil(*rate)));
        let arrivals = arrival.iter().flatten().copied().filter(|&time| time > now);
        let next = drains.chain(arrivals).min().expect("something goes on");
        servers.iter_mut().for_each(|server| server.users.clear());
        for (&t, rate) in under_way.iter().zip(&rates) {
            left[t] = left[t].saturating_sub(rate * u128::from(next - now));
            for &server in &passes[t] {
                servers[server].users.push(t);
            }
        }
        for (link, server) in links.iter_mut().zip(&servers) {
            link.0 += if server.users.is_empty() {
                0
            } else {
                next - now
            };
        }
        now = next;
    }
    for (t, passed) in passes.iter().enumerate() {
        for &server in passed {
            if let Some((_, bytes, messages)) = links.get_mut(server) {
                *bytes += plan.bytes(TransferId::from(t));
                *messages += 1;
            }
        }
    }
    let all = |times: Vec<Option<u64>>| times.into_iter().map(Option::unwrap).collect();
    Outcome {
        start: all(start),
        end: all(arrival),
        links,
    }
}
