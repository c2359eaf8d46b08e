//! Which paths have segments.

use std::time::Duration;

use hocket_control::agent::Input;
use hocket_control::message::PatternFlow;
use hocket_control::server::Server;
use hocket_control::store::Saved;

use super::connected::{Connected, SECOND, agent, options};
use super::site::{address, directory, stages_with_segments};

fn server(epoch: u64, now: Duration) -> Server {
    let saved = Saved::default();
    Server::new(
        stages_with_segments(),
        directory(),
        options(),
        epoch,
        &saved,
        now,
    )
}

/// Eight hosts, of which so many take segments, and so many have come.
fn connected(takers: u32, came: u32) -> Connected {
    let agents = (0..8).map(|host| agent(host, host < takers)).collect();
    let mut connected = Connected::of(server(1, Duration::ZERO), agents);
    (0..came).for_each(|host| connected.connect(host));
    connected
}

/// Whether a flow of host 0 has a path, and one with segments.
fn led(connected: &Connected, flow: u64) -> Option<bool> {
    let path = connected.agents[0].path(flow)?;
    Some(!path.segments.is_empty())
}

/// The agent of a host starts anew.
fn start(connected: &mut Connected, host: u32, takes_segments: bool) {
    connected.cut(host);
    connected.agents[host as usize] = agent(host, takes_segments);
    connected.connect(host);
    connected.wait(SECOND);
}

#[test]
fn paths_have_segments_where_receivers_take_them() {
    let mut connected = connected(4, 8);
    let (to_taker, to_other) = (connected.open(0, 3, 0), connected.open(0, 6, 0));
    assert_eq!(led(&connected, to_taker), Some(true));
    assert_eq!(led(&connected, to_other), Some(false));
    // Links that fail change neither.
    let before = [to_taker, to_other].map(|flow| connected.choice(0, flow).unwrap());
    let spare = (0..4).find(|choice| !before.contains(choice)).unwrap();
    let mut links = Vec::new();
    stages_with_segments()
        .fabric()
        .route(0, 3, spare, &mut links);
    let links = links.iter().map(|link| link.0).collect();
    connected.serve(hocket_control::server::Input::LinksFail { links });
    connected.wait(SECOND);
    assert_eq!(led(&connected, to_taker), Some(true));
    assert_eq!(led(&connected, to_other), Some(false));
}

#[test]
fn a_receiver_that_comes_back_without_segments_is_reached_by_ports() {
    let mut connected = connected(8, 8);
    let pattern = vec![PatternFlow {
        src: address(0),
        dst: address(3),
        bytes: 1 << 30,
    }];
    connected.agent(0, Input::JobComes { job: 1, pattern });
    connected.agent(0, Input::JobStarts { job: 1 });
    let (flow, of_job) = (connected.open(0, 3, 0), connected.open(0, 3, 1));
    for takes in [true, false, true] {
        start(&mut connected, 3, takes);
        assert_eq!(led(&connected, flow), Some(takes));
        assert_eq!(led(&connected, of_job), Some(takes));
    }
}

/// The controller starts anew, and has heard of host 0 alone, which sends a flow to host 3.
fn restarted() -> (Connected, u64) {
    let mut connected = connected(8, 8);
    let flow = connected.open(0, 3, 0);
    connected.wait(SECOND);
    (0..8).for_each(|host| connected.cut(host));
    connected.server = server(2, connected.now);
    connected.connect(0);
    connected.wait(SECOND);
    (connected, flow)
}

#[test]
fn flows_keep_their_segments_while_a_controller_that_starts_hears_of_receivers() {
    let (mut connected, flow) = restarted();
    // One that has no path yet may not be led to a receiver that takes nothing.
    let new = connected.open(0, 3, 0);
    assert_eq!(
        (led(&connected, flow), led(&connected, new)),
        (Some(true), Some(false))
    );
    connected.connect(3);
    connected.wait(SECOND);
    assert_eq!(
        (led(&connected, flow), led(&connected, new)),
        (Some(true), Some(true))
    );
}

#[test]
fn a_receiver_that_has_not_come_by_the_end_of_recovery_takes_no_segments() {
    let (mut connected, flow) = restarted();
    assert_eq!(led(&connected, flow), Some(true));
    connected.wait(options().recovery);
    assert!(connected.server.is_synced());
    assert_eq!(led(&connected, flow), Some(false));
}
