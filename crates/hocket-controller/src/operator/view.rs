//! What operators see: one value for the page, and the metrics.

use std::collections::BTreeMap;

use hocket_base::id::LinkId;
use hocket_control::message::Refusal;
use hocket_control::server::{Close, Metrics as Counts, Server};
use hocket_fabric::controller::Reason;
use serde_json::{Value, json};

use super::expected;
use crate::audit;
use crate::cluster::{Network, Tier};
use crate::metrics::{labelled, number};
use crate::server_owner::ServerOwner;

/// Fabrics of more links are shown without each of them.
const MOST_LINKS: usize = 20_000;
/// How many of the worst links, flows and jobs are named.
const NAMED: usize = 20;

/// A link between switches: its number, whether it leads up, its load, whether it has failed.
struct Loaded {
    link: LinkId,
    is_up: bool,
    load: u16,
    has_failed: bool,
}

/// Everything that the page shows.
pub(crate) fn all(server_owner: &ServerOwner, network: &Network) -> Value {
    let (links, mut value, flows) = server_owner.view(|server| {
        let links = loads(server, network);
        (links, summary(server), worst_flows(server, network))
    });
    let between = links.iter().filter(|link| link.load > 0);
    let mut worst: Vec<&Loaded> = between.collect();
    worst.sort_by_key(|link| (std::cmp::Reverse(link.load), link.link));
    let named = worst.iter().take(NAMED).map(|loaded| {
        let [src, dst] = network.ends(loaded.link);
        json!({"src": network.device(src), "dst": network.device(dst), "load": loaded.load})
    });
    value["name"] = network.name().into();
    value["worst_links"] = named.collect();
    value["worst_flows"] = flows;
    value["expected_excess"] = by_hash(network, &links).into();
    value["tiers"] = tiers(network);
    value["links"] = match links.len() > MOST_LINKS {
        true => Value::Null,
        false => columns(network, &links),
    };
    value
}

fn loads(server: &Server, network: &Network) -> Vec<Loaded> {
    let failed = server.has_failed();
    let links = network.topology().links().iter().enumerate();
    let loaded = links.filter_map(|(id, link)| {
        let [src, dst] = [link.src, link.dst].map(|end| network.tier(end));
        let link = LinkId::from(id);
        (src.min(dst) != Tier::Npu).then(|| Loaded {
            link,
            is_up: src < dst,
            load: server.policy().load(link),
            has_failed: failed.get(id).copied().unwrap_or(false),
        })
    });
    loaded.collect()
}

fn summary(server: &Server) -> Value {
    let policy = server.policy();
    let moves: BTreeMap<&str, u64> = Reason::ALL
        .iter()
        .map(|&reason| (reason.name(), policy.tally().moves_for(reason)))
        .filter(|&(_, moves)| moves > 0)
        .collect();
    let missing: Vec<&str> = server
        .missing()
        .take(NAMED)
        .map(|host| server.directory().entry(host).name.as_str())
        .collect();
    let jobs = server
        .jobs()
        .take(NAMED)
        .map(|(job, leader, flows, is_live)| {
            let leader = &server.directory().entry(leader).name;
            json!({"job": job, "leader": leader, "flows": flows, "live": is_live})
        });
    json!({
        "active": true,
        "epoch": server.epoch(),
        "synced": server.is_synced(),
        "hosts": server.directory().len(),
        "missing": missing,
        "sessions": server.session_count(),
        "flows": policy.flow_count(),
        "excess": policy.excess(),
        "moves": moves,
        "job_count": server.jobs().count(),
        "jobs": jobs.collect::<Value>(),
    })
}

/// Returns the flows over the fullest links, of those that hosts announced themselves.
fn worst_flows(server: &Server, network: &Network) -> Value {
    let (directory, fabric) = (server.directory(), &network.fabric);
    let mut path = Vec::new();
    let mut worst: Vec<(u16, String, &hocket_control::message::HostFlow)> = Vec::new();
    let mut least = 0;
    for (host, flow, told) in server.flows() {
        let tor = |address| fabric.tor_of(directory.at(address)?.1);
        let (Some(choice), Some(src), Some(dst)) =
            (told, tor(flow.opened.src), tor(flow.opened.dst))
        else {
            continue;
        };
        path.clear();
        fabric.route(src, dst, choice, &mut path);
        let load = path.iter().map(|&link| server.policy().load(link)).max();
        let load = load.unwrap_or(0);
        if load <= least {
            continue;
        }
        worst.push((load, directory.entry(host).name.clone(), flow));
        if worst.len() >= 4 * NAMED {
            worst.sort_by_key(|each| std::cmp::Reverse(each.0));
            worst.truncate(NAMED);
            least = worst[NAMED - 1].0;
        }
    }
    worst.sort_by_key(|each| std::cmp::Reverse(each.0));
    let named = worst.iter().take(NAMED).map(|(load, host, flow)| {
        let opened = &flow.opened;
        json!({
            "load": load, "host": host, "flow": flow.id, "job": opened.job,
            "src": opened.src.to_string(), "dst": opened.dst.to_string(), "bytes": opened.bytes,
        })
    });
    named.collect()
}

/// Returns what hashing would make links exceed their shares by, ToR by ToR, up and down.
fn by_hash(network: &Network, links: &[Loaded]) -> f64 {
    let mut at: BTreeMap<(usize, bool), [u64; 2]> = BTreeMap::new();
    for loaded in links.iter().filter(|loaded| !loaded.has_failed) {
        let [src, dst] = network.ends(loaded.link);
        let low = if loaded.is_up { src } else { dst };
        if network.tier(low) == Tier::Tor {
            let [flows, links] = at.entry((low.index(), loaded.is_up)).or_default();
            *flows += u64::from(loaded.load);
            *links += 1;
        }
    }
    at.values()
        .map(|&[flows, links]| expected::excess(flows, links))
        .sum()
}

fn tiers(network: &Network) -> Value {
    let named = [
        (Tier::Core, "core"),
        (Tier::Spine, "spine"),
        (Tier::Tor, "ToR"),
    ];
    let tiers = named.iter().map(|(tier, name)| {
        let of = network.switches().filter(|(.., each)| each == tier);
        json!({"tier": name, "switches": of.map(|(_, name, _)| name).collect::<Vec<_>>()})
    });
    tiers.filter(|tier| tier["switches"] != json!([])).collect()
}

fn columns(network: &Network, links: &[Loaded]) -> Value {
    let name = |end: usize| {
        let names = links
            .iter()
            .map(move |link| network.device(network.ends(link.link)[end]));
        names.collect::<Vec<_>>()
    };
    let loads: Vec<u16> = links.iter().map(|link| link.load).collect();
    let up: Vec<bool> = links.iter().map(|link| link.is_up).collect();
    let failed: Vec<bool> = links.iter().map(|link| link.has_failed).collect();
    json!({"src": name(0), "dst": name(1), "up": up, "load": loads, "failed": failed})
}

/// All metrics as Prometheus reads them.
pub(crate) fn metrics(server_owner: &ServerOwner, text: &mut String) {
    server_owner.metrics().write(text);
    let (counts, gauges, moves) = server_owner.view(|server| {
        let policy = server.policy();
        let gauges = [
            ("epoch", "The controller's epoch.", server.epoch()),
            (
                "synced",
                "1 where every host has come back, or the time for it is over.",
                u64::from(server.is_synced()),
            ),
            (
                "hosts",
                "Hosts of the configuration.",
                server.directory().len() as u64,
            ),
            (
                "missing_hosts",
                "Hosts that have not come since the start.",
                server.missing().count() as u64,
            ),
            ("flows", "Live flows.", policy.flow_count() as u64),
            ("jobs", "Registered jobs.", server.jobs().count() as u64),
            (
                "excess",
                "By how many flows links exceed their shares.",
                policy.excess(),
            ),
            (
                "revision",
                "Events with commands so far.",
                policy.revision(),
            ),
        ];
        let moves = policy.tally().moves;
        (*server.metrics(), gauges, moves)
    });
    for (name, help, value) in gauges {
        number(text, "gauge", name, help, value);
    }
    let moves = Reason::ALL.iter().zip(moves);
    let moves = moves.map(|(reason, moves)| (reason.name().to_owned(), moves));
    labelled(
        text,
        ("counter", "moves", "Flows that were told another path."),
        "reason",
        moves,
    );
    sessions(text, &counts);
}

fn sessions(text: &mut String, counts: &Counts) {
    let all = [
        ("received", "Messages of hosts.", counts.received),
        ("told", "Messages to hosts.", counts.sent),
        (
            "told_again",
            "Messages that were not acknowledged in time.",
            counts.sent_again,
        ),
        ("opened", "Sessions that opened.", counts.sessions),
        (
            "duplicates",
            "Messages that had been taken before.",
            counts.duplicates,
        ),
        (
            "gaps",
            "Messages that came before one that was missing.",
            counts.gaps,
        ),
        (
            "strays",
            "Messages of sessions that were over.",
            counts.strays,
        ),
        (
            "resyncs",
            "Times that a host was told to say all again.",
            counts.resyncs,
        ),
        ("started_flows", "Flows that started.", counts.starts),
        ("ended_flows", "Flows that ended.", counts.ends),
        ("changes", "Changes that hosts were told.", counts.changes),
        (
            "lost_hosts",
            "Hosts whose lease was over.",
            counts.lost_hosts,
        ),
    ];
    for (name, help, value) in all {
        number(text, "counter", name, help, value);
    }
    let closed = Close::ALL.iter().zip(counts.closed);
    let closed = closed.map(|(&why, count)| (audit::close(why).to_owned(), count));
    let about = ("counter", "closed", "Sessions that the controller ended.");
    labelled(text, about, "why", closed);
    let refused = Refusal::ALL.iter().zip(counts.refused);
    let refused = refused.map(|(&why, count)| (audit::refusal(why).to_owned(), count));
    let about = ("counter", "refused", "Flows and jobs that were refused.");
    labelled(text, about, "why", refused);
}
