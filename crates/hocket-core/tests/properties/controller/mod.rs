//! The controller against a slow account of what it said: loads counted from scratch, shares by their
//! definition, paths link by link.

mod world;

use hocket_core::id::NpuId;
use hocket_core::routing::controller::{
    AnnouncedFlow, Command, Controller, Event, FlowId, JobId, Log, Options, Policy, Reason, replay,
};
use hocket_core::units::Time;
use proptest::prelude::*;
use world::{HOSTS, World, step};

fn options() -> impl Strategy<Value = Options> {
    let policy = prop_oneof![Just(Policy::Greedy), Just(Policy::Balanced)];
    let limit = prop_oneof![Just(u32::MAX), 0..4u32];
    let rate = prop::option::of(0..200_000u32);
    (
        policy,
        limit,
        1..20u32,
        prop_oneof![Just(u32::MAX), 0..3u32],
        0..2u16,
        rate,
        0..3u32,
        any::<bool>(),
    )
        .prop_map(
            |(policy, most_moves, tries, reliefs, slack, rate_slack_ppm, look_ahead, failover)| {
                Options {
                    policy,
                    most_moves,
                    tries,
                    reliefs,
                    slack,
                    rate_slack_ppm,
                    look_ahead,
                    failover,
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever happens: no command names what failed, hosts and controller agree, loads are those of the
    /// flows, and every move is counted and has a reason.
    #[test]
    fn controller_and_hosts_agree(
        (spines, tors) in (1..5u32, 2..6u32),
        options in options(),
        steps in prop::collection::vec(step(true), 1..40),
    ) {
        let mut world = World::new(spines, tors);
        let mut controller = Controller::new(world.fabric.clone(), options);
        let mut log = Log::default();
        let mut said = Vec::new();
        for (now, step) in (0..).zip(&steps) {
            let now = Time::from_ns(now * 1_000);
            let event = world.event(step);
            world.hear(&event);
            let commands = controller.handle(now, &event);
            world.obey(&event, &commands);
            world.agrees(&controller);
            if let Some(slack) = options.rate_slack_ppm {
                check_rates(&world, &commands, slack);
            }
            log.events.push((now, event));
            said.push(commands);
        }
        let bytes = log.encode();
        prop_assert_eq!(Log::decode(&bytes), Ok(log.clone()));
        for end in 0..bytes.len() {
            // A part of a log is a log where an event ends, and refused elsewhere.
            if let Ok(part) = Log::decode(&bytes[..end]) {
                prop_assert_eq!(part.encode(), &bytes[..end]);
            }
        }
        for _ in 0..2 {
            let mut again = Controller::new(world.fabric.clone(), options);
            prop_assert_eq!(&replay(&mut again, &log), &said);
        }
    }

    /// Where moves cost nothing no link has more than its share, whole spines failing and returning.
    #[test]
    fn shares_are_kept(
        (spines, tors, slack) in (1..6u32, 2..6u32, 0..3u16),
        steps in prop::collection::vec(step(false), 1..40),
    ) {
        let options = Options {
            most_moves: u32::MAX,
            reliefs: u32::MAX,
            slack,
            ..Options::default()
        };
        let mut world = World::new(spines, tors);
        let mut controller = Controller::new(world.fabric.clone(), options);
        for step in &steps {
            let Some(event) = world.fresh(step) else { continue };
            world.hear(&event);
            let commands = controller.handle(Time::ZERO, &event);
            world.obey(&event, &commands);
            prop_assert_eq!(world.excess(slack.into()), controller.excess());
            prop_assert_eq!(controller.excess(), 0, "{:?}", event);
        }
    }

    /// Where few links are relieved at a time, what waits is relieved while other flows come and go.
    #[test]
    fn what_waits_is_relieved(
        (spines, tors, slack) in (1..6u32, 2..6u32, 0..3u16),
        steps in prop::collection::vec(step(false), 1..40),
    ) {
        const ROUNDS: usize = 400;
        let options = Options {
            most_moves: u32::MAX,
            slack,
            ..Options::default()
        };
        let mut world = World::new(spines, tors);
        let mut controller = Controller::new(world.fabric.clone(), options);
        let tell = |event: &Event, world: &mut World, controller: &mut Controller| {
            world.hear(event);
            let commands = controller.handle(Time::ZERO, event);
            world.obey(event, &commands);
        };
        for step in &steps {
            let Some(event) = world.fresh(step) else { continue };
            tell(&event, &mut world, &mut controller);
            prop_assert_eq!(world.excess(slack.into()), controller.excess());
        }
        let flow = world.announced(1 << 40, 0, 0, HOSTS);
        let come = Event::HostsCome(vec![flow.src, flow.dst]);
        tell(&come, &mut world, &mut controller);
        for _ in 0..ROUNDS {
            if controller.excess() == 0 {
                break;
            }
            tell(&Event::FlowsStart(vec![flow]), &mut world, &mut controller);
            tell(&Event::FlowsEnd(vec![flow.id]), &mut world, &mut controller);
        }
        prop_assert_eq!(world.excess(slack.into()), 0);
    }

    /// Greedy takes the path whose busiest link carries least, and nothing else moves.
    #[test]
    fn greedy_is_algorithm_1(
        (spines, tors) in (1..6u32, 2..6u32),
        steps in prop::collection::vec(step(true), 1..40),
    ) {
        let options = Options { policy: Policy::Greedy, ..Options::default() };
        let mut world = World::new(spines, tors);
        let mut controller = Controller::new(world.fabric.clone(), options);
        for step in &steps {
            let mut event = world.event(step);
            if let Event::FlowsStart(flows) = &mut event {
                flows.truncate(1);
                flows[0].held = None;
            }
            world.hear(&event);
            let loads = world.loads();
            let commands = controller.handle(Time::ZERO, &event);
            if let (Event::FlowsStart(flows), [Command::Path { choice, reason: Reason::New, .. }]) =
                (&event, &commands[..])
            {
                let (ends, _) = world.flows[&flows[0].id];
                let busiest = |spine: u32| {
                    let links = world.links(ends, spine);
                    links.iter().map(|link| loads.get(link).copied().unwrap_or(0)).max()
                };
                let ways = (0..spines).filter(|&spine| world.works(ends, spine));
                prop_assert_eq!(ways.map(busiest).min(), Some(busiest(*choice)));
            }
            world.obey(&event, &commands);
            for reason in [Reason::Room, Reason::Balance] {
                prop_assert_eq!(controller.tally().moves_for(reason), 0);
            }
        }
    }

    /// Where one flow that can move would keep a new flow from overloading a link, it moves.
    #[test]
    fn one_move_is_found_where_one_will_do(
        (spines, tors) in (2..6u32, 2..5u32),
        flows in prop::collection::vec((0..24u32, 0..24u32, prop::bool::weighted(0.3)), 1..16),
    ) {
        let options = Options {
            most_moves: 1,
            tries: u32::MAX,
            ..Options::default()
        };
        let mut world = World::new(spines, tors);
        let mut controller = Controller::new(world.fabric.clone(), options);
        for (id, &(src, dst, is_fixed)) in flows.iter().enumerate() {
            let flow = world.announced(id as u64, 0, src, dst);
            let flow = AnnouncedFlow { is_fixed, ..flow };
            let event = Event::FlowsStart(vec![flow]);
            let before = world.excess(0);
            world.hear(&event);
            let could = before == 0 && one_move_will_do(&mut world, flow.id);
            let commands = controller.handle(Time::ZERO, &event);
            world.obey(&event, &commands);
            if could {
                prop_assert_eq!(world.excess(0), 0);
            }
            prop_assert!(commands.len() <= 2);
        }
    }
}

/// Logs of version 1 do not say which flows are fixed: none is.
#[test]
fn logs_of_the_first_version_are_read() {
    let events = [5, 0, 1, 7, 1, 2, 3, 100, 4, 6, 2, 1, 7];
    let first = [b"hocket events 1\n", &events[..]].concat();
    let flow = AnnouncedFlow {
        id: FlowId(7),
        job: JobId(1),
        src: NpuId(2),
        dst: NpuId(3),
        bytes: 100,
        held: Some(3),
        is_fixed: false,
    };
    let log = Log {
        events: vec![
            (Time::from_ps(5), Event::FlowsStart(vec![flow])),
            (Time::from_ps(11), Event::FlowsEnd(vec![FlowId(7)])),
        ],
    };
    assert_eq!(Log::decode(&first), Ok(log.clone()));
    let mut second = log.encode();
    assert_eq!(Log::decode(&second), Ok(log));
    // The flow's last number says whether it is fixed.
    let flag = second.len() - 5;
    second[flag] = 2;
    let refused = Log::decode(&second).unwrap_err();
    assert_eq!(
        (refused.at, refused.why),
        (flag, "a flag is neither 0 nor 1")
    );
}

/// Tries every path of a flow, and every move of another with it that can move.
fn one_move_will_do(world: &mut World, new: FlowId) -> bool {
    let Some(&(ends, _)) = world.flows.get(&new) else {
        return false;
    };
    let others: Vec<FlowId> = world
        .flows
        .keys()
        .copied()
        .filter(|&flow| flow != new && !world.fixed.contains(&flow))
        .collect();
    let mut will_do = false;
    for spine in 0..world.spines {
        world.flows.insert(new, (ends, Some(spine)));
        will_do |= world.excess(0) == 0;
        for &other in &others {
            let (of, path) = world.flows[&other];
            for to in 0..world.spines {
                world.flows.insert(other, (of, Some(to)));
                will_do |= world.excess(0) == 0;
            }
            world.flows.insert(other, (of, path));
        }
    }
    world.flows.insert(new, (ends, None));
    will_do
}

/// Rates that were told are those of the loads.
fn check_rates(world: &World, commands: &[Command], slack: u32) {
    let loads = world.loads();
    for command in commands {
        let Command::Rate {
            flow,
            bytes_per_second,
        } = command
        else {
            continue;
        };
        let (ends, Some(spine)) = world.flows[flow] else {
            panic!("a rate without a path");
        };
        let fullest = world
            .links(ends, spine)
            .iter()
            .map(|link| loads[link])
            .max();
        let share = 1_000_000 / u64::from(fullest.expect("two links"));
        assert_eq!(
            *bytes_per_second,
            share * (1_000_000 + u64::from(slack)) / 1_000_000
        );
    }
}
