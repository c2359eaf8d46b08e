//! Which paths have segments.

use std::time::Duration;

use hocket_control::agent::Input;
use hocket_control::message::PatternFlow;
use hocket_control::server::Server;
use hocket_control::store::Saved;

use super::desk::{Desk, SECOND, agent, options};
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
fn desk(takers: u32, came: u32) -> Desk {
    let agents = (0..8).map(|host| agent(host, host < takers)).collect();
    let mut desk = Desk::of(server(1, Duration::ZERO), agents);
    (0..came).for_each(|host| desk.connect(host));
    desk
}

/// Whether a flow of host 0 has a path, and one with segments.
fn led(desk: &Desk, flow: u64) -> Option<bool> {
    let path = desk.agents[0].path(flow)?;
    Some(!path.segments.is_empty())
}

/// The agent of a host starts anew.
fn start(desk: &mut Desk, host: u32, takes_segments: bool) {
    desk.cut(host);
    desk.agents[host as usize] = agent(host, takes_segments);
    desk.connect(host);
    desk.wait(SECOND);
}

#[test]
fn paths_have_segments_where_receivers_take_them() {
    let mut desk = desk(4, 8);
    let (to_taker, to_other) = (desk.open(0, 3, 0), desk.open(0, 6, 0));
    assert_eq!(led(&desk, to_taker), Some(true));
    assert_eq!(led(&desk, to_other), Some(false));
    // Links that fail change neither.
    let before = [to_taker, to_other].map(|flow| desk.choice(0, flow).unwrap());
    let spare = (0..4).find(|choice| !before.contains(choice)).unwrap();
    let mut links = Vec::new();
    stages_with_segments()
        .fabric()
        .route(0, 3, spare, &mut links);
    let links = links.iter().map(|link| link.0).collect();
    desk.serve(hocket_control::server::Input::LinksFail { links });
    desk.wait(SECOND);
    assert_eq!(led(&desk, to_taker), Some(true));
    assert_eq!(led(&desk, to_other), Some(false));
}

#[test]
fn a_receiver_that_comes_back_without_segments_is_reached_by_ports() {
    let mut desk = desk(8, 8);
    let pattern = vec![PatternFlow {
        src: address(0),
        dst: address(3),
        bytes: 1 << 30,
    }];
    desk.agent(0, Input::JobComes { job: 1, pattern });
    desk.agent(0, Input::JobStarts { job: 1 });
    let (flow, of_job) = (desk.open(0, 3, 0), desk.open(0, 3, 1));
    for takes in [true, false, true] {
        start(&mut desk, 3, takes);
        assert_eq!(led(&desk, flow), Some(takes));
        assert_eq!(led(&desk, of_job), Some(takes));
    }
}

/// The controller starts anew, and has heard of host 0 alone, which sends a flow to host 3.
fn restarted() -> (Desk, u64) {
    let mut desk = desk(8, 8);
    let flow = desk.open(0, 3, 0);
    desk.wait(SECOND);
    (0..8).for_each(|host| desk.cut(host));
    desk.server = server(2, desk.now);
    desk.connect(0);
    desk.wait(SECOND);
    (desk, flow)
}

#[test]
fn flows_keep_their_segments_while_a_controller_that_starts_hears_of_receivers() {
    let (mut desk, flow) = restarted();
    // One that has no path yet may not be led to a receiver that takes nothing.
    let new = desk.open(0, 3, 0);
    assert_eq!(
        (led(&desk, flow), led(&desk, new)),
        (Some(true), Some(false))
    );
    desk.connect(3);
    desk.wait(SECOND);
    assert_eq!(
        (led(&desk, flow), led(&desk, new)),
        (Some(true), Some(true))
    );
}

#[test]
fn a_receiver_that_has_not_come_by_the_end_of_recovery_takes_no_segments() {
    let (mut desk, flow) = restarted();
    assert_eq!(led(&desk, flow), Some(true));
    desk.wait(options().recovery);
    assert!(desk.server.is_synced());
    assert_eq!(led(&desk, flow), Some(false));
}
