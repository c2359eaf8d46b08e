//! Flows are announced and get paths, and ports that take them.

use std::collections::BTreeSet;

use hocket_agent::ports::header;
use hocket_control::server::Input;
use hocket_controller::cluster::Network;
use hocket_controller::events::{self, Replayed};
use hocket_controller::server_owner::Keep;

use super::support::{Bench, HOSTS, clos, until};

#[tokio::test]
async fn a_flow_that_is_announced_gets_a_port_that_takes_its_path() {
    let bench = Bench::new();
    let service = bench.start(1, None).await;
    let agents: Vec<_> = (0..HOSTS)
        .map(|i| bench.agent(i, service.address))
        .collect();
    let mut opened = Vec::new();
    for (from, to) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
        let ends = agents[from].ends(to, 5_000);
        let (flow, port) = agents[from].open(ends).await;
        opened.push((format!("h{from}"), flow, ends, port.unwrap()));
    }
    let choices = service.choices();
    let spines: BTreeSet<u32> = choices.iter().map(|(.., choice)| *choice).collect();
    assert_eq!(spines.len(), 4, "four flows of a ToR have an uplink each");
    for (host, flow, ends, port) in opened {
        let of = |(name, id, choice): &(String, u64, u32)| {
            (*name == host && *id == flow).then_some(*choice)
        };
        let choice = choices.iter().find_map(of).unwrap();
        let tor = bench.config.network.switch("sw0").unwrap();
        let hash = bench.config.hashes.of(tor);
        assert_eq!(hash.way(&header(&ends, port), 4), choice);
    }
    let flows = || {
        service
            .server_owner
            .view(|server| server.policy().flow_count())
    };
    assert_eq!(flows(), 4);
    agents[0].agent_owner.gone(1);
    until("flows of a program that is gone end", || flows() == 2).await;
    service.end().await;
}

#[tokio::test]
async fn a_spine_that_fails_is_left_and_the_recorded_events_replay() {
    let bench = Bench::with("events = '1 MB'");
    let service = bench.start(1, None).await;
    let agents: Vec<_> = (0..2).map(|i| bench.agent(i, service.address)).collect();
    for (from, to) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
        let ends = agents[from].ends(to, 5_000);
        assert!(agents[from].open(ends).await.1.is_ok());
    }
    let network = &bench.config.network;
    let named = network.links_named("sw2").unwrap();
    let links: Vec<u32> = named.iter().map(|link| link.0).collect();
    let on_spine = || {
        service
            .choices()
            .iter()
            .filter(|(.., choice)| *choice == 0)
            .count()
    };
    assert_eq!(on_spine(), 1);
    service.server_owner.tell(Input::LinksFail { links });
    assert_eq!(on_spine(), 0);
    let unacknowledged = || {
        let waiting = |server: &hocket_control::server::Server| {
            let host = server.directory().host("h0").unwrap();
            server.unacknowledged(host)
        };
        service.server_owner.view(waiting)
    };
    until("what was told is acknowledged", || {
        unacknowledged() == Some(0)
    })
    .await;

    let choices =
        |policy: &hocket_fabric::controller::Controller| policy.choices().collect::<BTreeSet<_>>();
    let live = service.server_owner.view(|server| choices(server.policy()));
    let mut file = events::header(network);
    for keep in service.kept.try_iter() {
        if let Keep::Events(log) = keep {
            file.extend(events::piece(&log));
        }
    }
    let path = bench.folder.0.join("events");
    std::fs::write(&path, &file).unwrap();
    let (log, left_out) = events::read(&path, network).unwrap();
    assert_eq!(left_out, None);
    let policy = bench.config.session.options.policy;
    let replayed = Replayed::new(network.fabric.clone(), policy, &log);
    assert_eq!(choices(&replayed.controller), live);
    assert!(
        replayed.summary().contains("moved for failure: 1"),
        "{}",
        replayed.summary()
    );

    // A piece that was not written whole, or is damaged, is left out and told of, with all that stands after it.
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let (read, left_out) = events::read(&path, network).unwrap();
        assert!(read.events.len() < log.events.len());
        assert_eq!(read.events[..], log.events[..read.events.len()]);
        left_out.unwrap()
    };
    let torn = read(&file[..file.len() - 1]);
    assert_eq!(torn.why, "a piece was not written whole");
    assert_eq!(torn.at + torn.bytes, file.len() - 1);
    let mut damaged = file.clone();
    damaged[torn.at + 9] ^= 1;
    let damaged = read(&damaged);
    assert_eq!((damaged.at, damaged.bytes), (torn.at, torn.bytes + 1));
    assert_eq!(
        damaged.to_string(),
        format!(
            "left out: {} bytes from byte {} on, as its checksum is wrong",
            damaged.bytes, damaged.at
        )
    );
    // A log of another fabric is refused.
    let other = Bench::new().folder;
    std::fs::write(other.0.join("other.json"), clos(3, 2, 2)).unwrap();
    let other = Network::read(&other.0.join("other.json")).unwrap();
    std::fs::write(&path, &file).unwrap();
    let error = events::read(&path, &other).unwrap_err();
    assert_eq!(
        (error.why.as_str(), error.remedy.as_str()),
        (
            "it is of another fabric than clos",
            "give the settings that its controller had"
        )
    );
    service.end().await;
}
