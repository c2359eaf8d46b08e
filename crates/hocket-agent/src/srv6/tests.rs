//! Flows come, move, end; what the kernel has then, against what it should have.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::*;

pub(crate) const SETTINGS: Settings = Settings {
    table: 1_000,
    most: 4,
    priority: 7,
    // Not while a test runs.
    renew: Duration::from_secs(3_600),
};

/// What is refused is asked again soon.
pub(crate) const HASTY: Settings = Settings {
    renew: Duration::from_millis(1),
    ..SETTINGS
};

/// A kernel that keeps what it is told, and may refuse. It obeys the first rule for some packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    routes: BTreeMap<u32, Way>,
    rules: Vec<(u32, Packets)>,
    /// What begins so is refused.
    refuses: Option<&'static str>,
    /// What was asked, in order.
    asked: Vec<&'static str>,
}

impl Recorder {
    fn kept<T>(&self, look: impl FnOnce(&mut Kept) -> T) -> T {
        look(&mut self.0.lock().unwrap())
    }

    /// Does something, unless it refuses.
    fn ask<T>(&self, what: &'static str, does: impl FnOnce(&mut Kept) -> T) -> io::Result<T> {
        self.kept(|kept| {
            kept.asked.push(what);
            match kept.refuses.is_some_and(|start| what.starts_with(start)) {
                true => Err(io::ErrorKind::PermissionDenied.into()),
                false => Ok(does(kept)),
            }
        })
    }

    /// It refuses from now on, or does not.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.kept(|kept| kept.refuses = refuses.then_some(""));
    }

    /// Nothing can be removed from now on.
    fn refuse_to_remove(&self) {
        self.kept(|kept| kept.refuses = Some("remove"));
    }

    /// Which way the packets of each rule go; every table has its route, and every route a rule.
    pub(crate) fn led(&self) -> BTreeSet<(Packets, Way)> {
        self.kept(|kept| {
            let tables: BTreeSet<u32> = kept.rules.iter().map(|(table, _)| *table).collect();
            assert!(tables.iter().eq(kept.routes.keys()), "{kept:?}");
            let rules = kept.rules.iter();
            let led = rules.map(|(table, packets)| (*packets, kept.routes[table].clone()));
            led.collect()
        })
    }

    /// Which way packets go.
    fn way(&self, of: &Packets) -> Option<Way> {
        self.kept(|kept| {
            let rule = kept.rules.iter().find(|(_, packets)| packets == of);
            rule.and_then(|(table, _)| kept.routes.get(table).cloned())
        })
    }
}

impl Kernel for Recorder {
    fn clear(&mut self) -> io::Result<usize> {
        self.ask("clear", |kept| {
            let count = kept.routes.len() + kept.rules.len();
            kept.routes.clear();
            kept.rules.clear();
            count
        })
    }

    fn list(&mut self) -> io::Result<There> {
        self.ask("list", |kept| There {
            routes: kept.routes.clone(),
            rules: kept.rules.iter().copied().collect(),
        })
    }

    fn add_route(&mut self, table: u32, way: &Way) -> io::Result<()> {
        assert!(SETTINGS.tables().contains(&table));
        self.ask("add route", |kept| {
            drop(kept.routes.insert(table, way.clone()))
        })
    }

    fn remove_route(&mut self, table: u32, way: &Way) -> io::Result<()> {
        self.ask("remove route", |kept| {
            let removed = kept.routes.remove(&table);
            assert!(removed.is_none_or(|removed| removed == *way));
        })
    }

    fn add_rule(&mut self, table: u32, packets: &Packets) -> io::Result<()> {
        self.ask("add rule", |kept| {
            assert!(kept.routes.contains_key(&table), "packets go nowhere");
            if !kept.rules.contains(&(table, *packets)) {
                kept.rules.push((table, *packets));
            }
        })
    }

    fn remove_rule(&mut self, table: u32, packets: &Packets) -> io::Result<()> {
        self.ask("remove rule", |kept| {
            kept.rules.retain(|rule| *rule != (table, *packets));
        })
    }
}

fn steer(dst: u16, sport: u16, segment: u16) -> Steer {
    let address = |last| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last);
    Steer {
        packets: Packets {
            protocol: 6,
            src: address(1),
            dst: address(dst),
            sport,
            dport: 80,
        },
        segments: vec![address(segment)],
    }
}

fn led(steers: impl IntoIterator<Item = Steer>) -> BTreeSet<(Packets, Way)> {
    let led = steers.into_iter().map(|steer| {
        let way = steer.way();
        (steer.packets, way)
    });
    led.collect()
}

#[test]
fn flows_to_a_receiver_by_the_same_segments_share_a_table() {
    let kernel = Recorder::default();
    let mut rules = Rules::new(kernel.clone(), SETTINGS.tables());
    for (flow, sport) in [(1, 100), (2, 200)] {
        rules.set(flow, Some(&steer(2, sport, 50))).unwrap();
    }
    rules.set(3, Some(&steer(2, 300, 51))).unwrap();
    assert_eq!(rules.tables(), 2);
    rules.set(1, None).unwrap();
    assert_eq!(rules.tables(), 2);
    rules.set(2, None).unwrap();
    assert_eq!(rules.tables(), 1);
    assert_eq!(kernel.led(), led([steer(2, 300, 51)]));
}

#[test]
fn a_flow_that_moves_has_its_new_rule_before_the_old_one_goes() {
    let kernel = Recorder::default();
    let mut rules = Rules::new(kernel.clone(), SETTINGS.tables());
    rules.set(1, Some(&steer(2, 100, 50))).unwrap();
    kernel.kept(|kept| kept.asked.clear());
    rules.set(1, Some(&steer(2, 100, 51))).unwrap();
    let asked = ["add route", "add rule", "remove rule", "remove route"];
    assert_eq!(kernel.kept(|kept| kept.asked.clone()), asked);
    // The same once more is nothing to do.
    rules.set(1, Some(&steer(2, 100, 51))).unwrap();
    assert_eq!(kernel.kept(|kept| kept.asked.len()), asked.len());
}

#[test]
fn what_others_remove_is_put_back() {
    let kernel = Recorder::default();
    let mut rules = Rules::new(kernel.clone(), SETTINGS.tables());
    rules.set(1, Some(&steer(2, 100, 50))).unwrap();
    kernel.kept(|kept| {
        kept.routes.clear();
        kept.rules.clear();
    });
    rules.renew().unwrap();
    assert_eq!(kernel.led(), led([steer(2, 100, 50)]));
}

#[test]
fn what_is_there_is_not_set_again() {
    let kernel = Recorder::default();
    let mut rules = Rules::new(kernel.clone(), SETTINGS.tables());
    for sport in 0..3 {
        rules.set(sport.into(), Some(&steer(2, sport, 50))).unwrap();
    }
    kernel.kept(|kept| {
        kept.asked.clear();
        kept.rules.pop();
    });
    rules.renew().unwrap();
    assert_eq!(kernel.kept(|kept| kept.asked.clone()), ["list", "add rule"]);
}

#[test]
fn a_flow_whose_rule_stays_has_not_moved() {
    let kernel = Recorder::default();
    let mut rules = Rules::new(kernel.clone(), SETTINGS.tables());
    let (before, after) = (steer(2, 100, 50), steer(2, 100, 51));
    rules.set(1, Some(&before)).unwrap();
    kernel.refuse_to_remove();
    let refused = |set: io::Result<()>| set.unwrap_err().kind() == io::ErrorKind::PermissionDenied;
    assert!(refused(rules.set(1, Some(&after))));
    // Nor does another flow that has its port go its own way.
    assert!(refused(rules.set(2, Some(&after))));
    kernel.refuse(false);
    rules.set(2, Some(&after)).unwrap();
    assert_eq!(kernel.way(&after.packets), Some(after.way()));
    rules.renew().unwrap();
    assert_eq!(kernel.led(), led([after]));
}

#[derive(Clone, Debug)]
enum Step {
    Set(u64, Option<(u16, u16)>),
    Refuse(bool),
    RefuseToRemove,
    Renew,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let to = prop::option::weighted(0.7, (2..4u16, 50..53u16));
    prop_oneof![
        6 => (0..u64::from(SETTINGS.most), to).prop_map(|(flow, to)| Step::Set(flow, to)),
        1 => any::<bool>().prop_map(Step::Refuse),
        1 => Just(Step::RefuseToRemove),
        1 => Just(Step::Renew),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    /// The oracle: the latest of each flow, less what was refused.
    #[test]
    fn rules_are_those_of_flows_that_are_led(steps in prop::collection::vec(step(), 0..40)) {
        let kernel = Recorder::default();
        let mut rules = Rules::new(kernel.clone(), SETTINGS.tables());
        let mut wanted: BTreeMap<u64, Steer> = BTreeMap::new();
        // What could not be removed takes up tables until it is.
        let mut is_clean = true;
        for step in steps {
            match step {
                Step::Set(flow, to) => {
                    // A flow keeps its port.
                    let to = to.map(|(dst, segment)| steer(dst, 100 + u16::try_from(flow).unwrap(), segment));
                    let set = rules.set(flow, to.as_ref());
                    wanted.remove(&flow);
                    if let (Some(to), Ok(())) = (to, &set) {
                        prop_assert_eq!(kernel.way(&to.packets), Some(to.way()));
                        wanted.insert(flow, to);
                    }
                    prop_assert!(set.is_ok() || !is_clean);
                }
                Step::Refuse(refuses) => {
                    kernel.refuse(refuses);
                    is_clean &= !refuses;
                }
                Step::RefuseToRemove => {
                    kernel.refuse_to_remove();
                    is_clean = false;
                }
                Step::Renew => {
                    let _ = rules.renew();
                    is_clean = kernel.kept(|kept| kept.refuses.is_none());
                }
                Step::Restart => {
                    // Another agent, which removes what the one before has left.
                    kernel.refuse(false);
                    rules = Rules::new(kernel.clone(), SETTINGS.tables());
                    rules.clear().unwrap();
                    wanted.clear();
                    is_clean = true;
                }
            }
            prop_assert!(rules.tables() <= SETTINGS.tables().count());
        }
        kernel.refuse(false);
        rules.renew().unwrap();
        prop_assert_eq!(kernel.led(), led(wanted.into_values()));
    }
}

fn started(kernel: &Recorder) -> (Srv6, mpsc::UnboundedReceiver<Done>) {
    start(kernel, &SETTINGS)
}

pub(crate) fn start(
    kernel: &Recorder,
    settings: &Settings,
) -> (Srv6, mpsc::UnboundedReceiver<Done>) {
    let (tell, done) = mpsc::unbounded_channel();
    let srv6 = Srv6::start(kernel.clone(), settings, tell).unwrap();
    (srv6, done)
}

#[test]
fn what_the_kernel_refused_is_asked_again() {
    let kernel = Recorder::default();
    kernel.refuse(true);
    let (srv6, mut done) = start(&kernel, &HASTY);
    let turn = srv6.want(1, steer(2, 100, 50)).unwrap();
    let told = done.blocking_recv().unwrap();
    assert!(told.result.is_err());
    // It is told once alone.
    while srv6.counts().failed < 5 {
        std::thread::yield_now();
    }
    assert!(done.try_recv().is_err());
    kernel.refuse(false);
    let told = done.blocking_recv().unwrap();
    assert_eq!((told.turn, told.result), (turn, Ok(())));
    assert_eq!(kernel.led(), led([steer(2, 100, 50)]));
    srv6.forget(1);
    while srv6.counts().flows > 0 {
        std::thread::yield_now();
    }
    drop(srv6);
    assert!(kernel.led().is_empty());
}

#[test]
fn what_becomes_of_each_flow_is_told_and_counted() {
    let kernel = Recorder::default();
    let (srv6, mut done) = started(&kernel);
    let turn = srv6.want(1, steer(2, 100, 50)).unwrap();
    let told = Done {
        flow: 1,
        turn,
        result: Ok(()),
    };
    assert_eq!(done.blocking_recv(), Some(told));
    assert_eq!(kernel.led(), led([steer(2, 100, 50)]));
    kernel.refuse(true);
    srv6.want(2, steer(3, 100, 50)).unwrap();
    let told = done.blocking_recv().unwrap();
    assert_eq!(
        (told.flow, told.result),
        (2, Err("permission denied".to_owned()))
    );
    kernel.refuse(false);
    let counts = srv6.counts();
    assert_eq!((counts.flows, counts.tables), (2, 1));
    assert_eq!((counts.set, counts.failed), (1, 1));
    drop(srv6);
    assert_eq!(kernel.led(), BTreeSet::new());
}

#[test]
fn there_are_no_more_flows_than_there_may_be_and_ends_are_never_lost() {
    let kernel = Recorder::default();
    let (srv6, mut done) = started(&kernel);
    // The kernel does nothing for a while.
    let held = kernel.0.lock().unwrap();
    for flow in 0..4_u8 {
        let way = steer(2, 100 + u16::from(flow), 50);
        assert!(srv6.want(flow.into(), way).is_some());
    }
    assert_eq!(srv6.want(4, steer(2, 200, 50)), None);
    (0..4).for_each(|flow| srv6.forget(flow));
    // A flow that is gone has its place until its rule is gone, too.
    assert_eq!(srv6.want(4, steer(2, 200, 50)), None);
    assert_eq!(srv6.counts().left_out, 2);
    drop(held);
    while srv6.want(5, steer(2, 300, 51)).is_none() {
        std::thread::yield_now();
    }
    while done.blocking_recv().is_some_and(|told| told.flow != 5) {}
    assert_eq!(kernel.led(), led([steer(2, 300, 51)]));
}
