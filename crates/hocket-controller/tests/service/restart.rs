//! A controller that starts anew, and sessions that end.

use hocket_controller::server_owner::Keep;

use super::support::{Bench, HOSTS, until};

#[tokio::test]
async fn a_restart_moves_no_flow() {
    let bench = Bench::new();
    let service = bench.start(1, None).await;
    let at = service.address;
    let agents: Vec<_> = (0..HOSTS).map(|i| bench.agent(i, at)).collect();
    let mut flows = 0;
    for (from, agent) in agents.iter().enumerate() {
        for i in 0..8 {
            let to = (from + 2 + i % 2) % HOSTS;
            if from / 2 != to / 2 {
                let (_, port) = agent.open(agent.ends(to, 5_000 + i as u16)).await;
                assert!(port.is_ok(), "{port:?}");
                flows += 1;
            }
        }
    }
    let before = service.choices();
    assert_eq!(before.len(), flows);
    service.end().await;

    let service = bench.start(2, Some(at)).await;
    until("every host has come back", || {
        service.server_owner.view(|server| server.is_synced())
    })
    .await;
    assert_eq!(service.choices(), before);
    let tally = service.server_owner.view(|server| *server.policy().tally());
    assert_eq!(tally.total_moves(), 0);
    for agent in &agents {
        agent.welcomed(2).await;
    }
    let resyncs = service.server_owner.view(|server| server.metrics().resyncs);
    assert_eq!(resyncs, 0);
    service.end().await;
}

#[tokio::test]
async fn a_controller_of_an_older_epoch_is_refused() {
    let bench = Bench::new();
    let service = bench.start(7, None).await;
    let at = service.address;
    let agent = bench.agent(0, at);
    assert!(agent.open(agent.ends(2, 5_000)).await.1.is_ok());
    service.end().await;
    let old = bench.start(6, Some(at)).await;
    let stale = || {
        let closed =
            |server: &hocket_control::server::Server| server.metrics().closed.iter().sum::<u64>();
        agent.agent_owner.metrics().stale + old.server_owner.view(closed)
    };
    until("the old controller is refused", || stale() > 0).await;
    assert_eq!(agent.agent_owner.metrics().welcomes, 1);
    old.end().await;
}

#[tokio::test]
async fn jobs_are_kept() {
    use hocket_control::agent::Input;
    use hocket_control::message::PatternFlow;
    let bench = Bench::new();
    let service = bench.start(1, None).await;
    let agent = bench.agent(0, service.address);
    let flow = |src, dst| PatternFlow {
        src: super::support::address(src),
        dst: super::support::address(dst),
        bytes: 1 << 30,
    };
    let pattern = vec![flow(0, 2), flow(2, 0)];
    agent
        .agent_owner
        .handle(Input::JobComes { job: 3, pattern });
    agent.agent_owner.handle(Input::Flush);
    let jobs = || service.server_owner.view(|server| server.jobs().count());
    until("the job is registered", || jobs() == 1).await;
    let kept = service.kept.recv().unwrap();
    assert!(matches!(kept, Keep::Record(1, _)), "{kept:?}");
    service.end().await;
}
