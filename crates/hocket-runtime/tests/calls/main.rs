//! Whole calls among ranks that are threads of this process, against what the collective means.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hocket_base::id::{Rank, fit};
use hocket_base::progress::Silent;
use hocket_base::units::{Bandwidth, Time};
use hocket_plan::collective::{Collective, CollectiveKind};
use hocket_plan::verify::verify;
use hocket_runtime::error::{Code, Failure};
use hocket_runtime::group::{Area, Board, Group, Request};
use hocket_runtime::number::{Dtype, Reduction};
use hocket_runtime::options::GroupOptions;
use hocket_runtime::pace::{Pace, Pacer};
use hocket_runtime::script::Loaded;
use hocket_runtime::store::Store;
use hocket_synth::algorithms::{Algorithm, PlanOptions, plan};
use hocket_topology::{Topology, build};

mod faults;
mod verdicts;
#[cfg(target_os = "linux")]
mod shared;

const KINDS: [CollectiveKind; 8] = [
    CollectiveKind::AllReduce,
    CollectiveKind::AllGather,
    CollectiveKind::ReduceScatter,
    CollectiveKind::Broadcast,
    CollectiveKind::Reduce,
    CollectiveKind::AllToAll,
    CollectiveKind::Gather,
    CollectiveKind::Scatter,
];

fn network(ranks: u32) -> Topology {
    let bandwidth = Bandwidth::from_bytes_per_second(1_000_000_000).expect("not 0");
    build::fully_connected(ranks, bandwidth, Time::from_ns(500)).expect("a network")
}

/// The program of an algorithm; `None` where it does not apply.
fn load(kind: CollectiveKind, root: u32, ranks: u32, algorithm: Algorithm) -> Option<Loaded> {
    let topology = Arc::new(network(ranks));
    let npus = (0..ranks).map(hocket_base::id::NpuId).collect();
    let root = kind.is_rooted().then_some(Rank(root));
    let collective = Collective::new(kind, npus, 720_720, root).expect("a collective");
    let options = PlanOptions {
        effort: 20_000,
        ..PlanOptions::new(algorithm)
    };
    let plan = plan(&topology, &collective, &options, &mut Silent).ok()?;
    let verified = verify(Arc::new(plan), topology, &mut Silent).expect("a right plan");
    Loaded::of_plan(&verified).ok()
}

fn options(store: &Store, rank: u32, size: u32, shares: bool) -> GroupOptions {
    GroupOptions {
        address: store.address().to_string(),
        group: "test".to_owned(),
        rank,
        size,
        secret: b"secret".to_vec(),
        patience: Duration::from_secs(20),
        timeout: Duration::from_secs(20),
        shares,
        streams: 1,
        table: 0,
        ways: std::collections::BTreeMap::new(),
        local: None,
        outward: false,
        pace: None,
    }
}

/// Runs something at each rank of a group.
fn with_group<T: Send>(
    size: u32,
    shares: bool,
    timeout: Duration,
    work: impl Fn(Group) -> T + Sync,
) -> Vec<T> {
    let store = Store::listen("127.0.0.1:0", b"secret").expect("a free port");
    std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..size)
            .map(|rank| {
                let (work, store) = (&work, &store);
                scope.spawn(move || {
                    let options = GroupOptions {
                        timeout,
                        ..options(store, rank, size, shares)
                    };
                    work(Group::connect(&options).expect("all come"))
                })
            })
            .collect();
        ranks
            .into_iter()
            .map(|rank| rank.join().expect("no panic"))
            .collect()
    })
}

fn area(numbers: &mut [i32]) -> Area {
    Area {
        start: numbers.as_mut_ptr().cast(),
        bytes: size_of_val(numbers),
    }
}

const PATIENT: Duration = Duration::from_secs(30);

/// What rank `rank` has at place `i` before.
fn before(rank: u32, i: usize) -> i32 {
    (rank as i32 + 1) * 1000 + fit::<i32, _>(i % 997)
}

/// What a rank must have after; `None` where it gets nothing.
fn after(kind: CollectiveKind, rank: u32, size: u32, root: u32, whole: usize) -> Option<Vec<i32>> {
    let part = whole / size as usize;
    let sum = |i: usize| (0..size).map(|rank| before(rank, i)).sum();
    let own = rank as usize * part;
    let at_root = rank == root;
    match kind {
        CollectiveKind::AllReduce => Some((0..whole).map(sum).collect()),
        CollectiveKind::Reduce => at_root.then(|| (0..whole).map(sum).collect()),
        CollectiveKind::ReduceScatter => Some((own..own + part).map(sum).collect()),
        CollectiveKind::Broadcast => Some((0..whole).map(|i| before(root, i)).collect()),
        CollectiveKind::Scatter => Some((own..own + part).map(|i| before(root, i)).collect()),
        CollectiveKind::AllGather => gathered(size, part),
        CollectiveKind::Gather => at_root.then(|| gathered(size, part))?,
        CollectiveKind::AllToAll => Some(
            (0..size)
                .flat_map(|from| (own..own + part).map(move |i| before(from, i)))
                .collect(),
        ),
        CollectiveKind::Custom => None,
    }
}

fn gathered(size: u32, part: usize) -> Option<Vec<i32>> {
    Some(
        (0..size)
            .flat_map(|from| (0..part).map(move |i| before(from, i)))
            .collect(),
    )
}

/// Runs a call at a rank, in place where the program asks for it, and compares.
fn call(group: &mut Group, loaded: Option<&Loaded>, kind: CollectiveKind, root: u32, whole: usize) {
    let (rank, size, by_memory) = (group.rank(), group.size(), group.shares());
    let part = whole / size as usize;
    let request = Request {
        dtype: Dtype::I32,
        op: Reduction::Sum,
        elements: whole as u64,
        by_memory,
    };
    let has_part = matches!(kind, CollectiveKind::AllGather | CollectiveKind::Gather);
    let len = if has_part { part } else { whole };
    let mut input: Vec<i32> = (0..len).map(|i| before(rank, i)).collect();
    let mut output = vec![-1; whole];
    let mut never = || false;
    let result = match loaded {
        Some(loaded) if loaded.is_in_place() => {
            if kind == CollectiveKind::AllGather {
                output[rank as usize * part..][..part].copy_from_slice(&input);
                input = output;
            }
            let nothing = Area {
                start: std::ptr::null_mut(),
                bytes: 0,
            };
            // SAFETY: the vector is there until the call ends.
            unsafe { group.run(loaded, &request, area(&mut input), nothing, &mut never) }
                .expect("the call works");
            match kind {
                CollectiveKind::ReduceScatter => input[rank as usize * part..][..part].to_vec(),
                _ => input,
            }
        }
        Some(loaded) => {
            let (from, to) = (area(&mut input), area(&mut output));
            // SAFETY: as above.
            unsafe { group.run(loaded, &request, from, to, &mut never) }.expect("the call works");
            output
        }
        None => {
            let (from, to) = (area(&mut input), area(&mut output));
            // SAFETY: as above.
            unsafe { group.exchange(kind, root, &request, from, to, &mut never) }
                .expect("the call works");
            output
        }
    };
    if let Some(expected) = after(kind, rank, size, root, whole) {
        assert_eq!(
            result[..expected.len()],
            expected,
            "{kind} of {whole} at rank {rank} of {size}"
        );
    }
}

fn sum(group: &mut Group, loaded: Option<&Loaded>, count: usize) -> Result<Vec<i32>, Failure> {
    let request = Request {
        dtype: Dtype::I32,
        op: Reduction::Sum,
        elements: count as u64,
        by_memory: false,
    };
    let mut numbers = vec![1; count];
    let area = area(&mut numbers);
    let mut never = || false;
    // SAFETY: the vector is there until the call ends.
    unsafe {
        match loaded {
            Some(loaded) => group.run(loaded, &request, area, area, &mut never)?,
            None => {
                let kind = CollectiveKind::AllReduce;
                group.exchange(kind, 0, &request, area, area, &mut never)?;
            }
        }
    }
    Ok(numbers)
}

#[test]
fn every_algorithm_and_kind_does_what_it_should() {
    for (size, shares) in [(2, false), (3, true), (4, false), (4, true), (6, true)] {
        for kind in KINDS {
            let root = if kind.is_rooted() { size - 1 } else { 0 };
            let programs: Vec<Loaded> = Algorithm::ALL
                .into_iter()
                .filter_map(|algorithm| load(kind, root, size, algorithm))
                .collect();
            assert!(!programs.is_empty(), "{kind} among {size}");
            with_group(size, shares, PATIENT, |mut group| {
                for loaded in &programs {
                    for whole in [0, 1, 7, 1000, 40_003] {
                        let whole = match kind {
                            CollectiveKind::AllReduce
                            | CollectiveKind::Broadcast
                            | CollectiveKind::Reduce => whole,
                            _ => whole * size as usize,
                        };
                        call(&mut group, Some(loaded), kind, root, whole);
                    }
                }
            });
        }
    }
}

#[test]
fn shared_memory_does_the_same() {
    for size in [1, 2, 3, 5] {
        with_group(size, true, PATIENT, |mut group| {
            assert!(group.shares());
            for kind in KINDS {
                let root = if kind.is_rooted() { size - 1 } else { 0 };
                for part in [0, 1, 9_000, 300_001, 700_000] {
                    call(&mut group, None, kind, root, part * size as usize);
                }
            }
        });
    }
}

#[test]
fn ranks_with_different_tables_are_told() {
    let store = Store::listen("127.0.0.1:0", b"secret").expect("a free port");
    std::thread::scope(|scope| {
        for rank in 0..3 {
            let given = GroupOptions {
                table: if rank == 2 { 0 } else { 7 },
                ..options(&store, rank, 3, true)
            };
            scope.spawn(move || {
                let failure = Group::connect(&given).expect_err("they differ");
                assert_eq!(failure.code, Code::Mismatch);
                assert_eq!(
                    failure.why,
                    "rank 2 has no table of plans, rank 0 has the table of plans 0000000000000007; \
                     give all ranks the same"
                );
            });
        }
    });
}

#[test]
fn several_streams_carry_channels_side_by_side() {
    let loaded = load(CollectiveKind::AllReduce, 0, 4, Algorithm::Ring).expect("it applies");
    let store = Store::listen("127.0.0.1:0", b"secret").expect("a free port");
    for outward in [false, true] {
        std::thread::scope(|scope| {
            for rank in 0..4 {
                let (store, loaded) = (&store, &loaded);
                scope.spawn(move || {
                    let options = GroupOptions {
                        streams: 3,
                        outward,
                        ..options(store, rank, 4, false)
                    };
                    let mut group = Group::connect(&options).expect("all come");
                    let kind = CollectiveKind::AllReduce;
                    call(&mut group, Some(loaded), kind, 0, 100_000);
                });
            }
        });
    }
}

/// More connections come to one rank at once than strangers may be there.
#[test]
fn many_connections_come_at_once() {
    let ranks = 70;
    let loaded = load(CollectiveKind::Gather, 0, ranks, Algorithm::Direct).expect("it applies");
    for (outward, streams) in [(false, 1), (true, 2)] {
        let store = Store::listen("127.0.0.1:0", b"secret").expect("a free port");
        std::thread::scope(|scope| {
            for rank in 0..ranks {
                let (store, loaded) = (&store, &loaded);
                scope.spawn(move || {
                    let options = GroupOptions {
                        outward,
                        streams,
                        ..options(store, rank, ranks, false)
                    };
                    let mut group = Group::connect(&options).expect("all come");
                    if rank == 0 {
                        std::thread::sleep(Duration::from_millis(300));
                    }
                    call(&mut group, Some(loaded), CollectiveKind::Gather, 0, 70);
                });
            }
        });
    }
}

/// Messages longer than the rings that carry them, in calls that follow each other at once.
#[test]
fn long_messages_go_through_memory() {
    let programs = [Algorithm::Ring, Algorithm::Direct]
        .map(|algorithm| load(CollectiveKind::AllReduce, 0, 3, algorithm).expect("it applies"));
    with_group(3, true, PATIENT, |mut group| {
        for _ in 0..3 {
            for loaded in &programs {
                call(
                    &mut group,
                    Some(loaded),
                    CollectiveKind::AllReduce,
                    0,
                    2_000_003,
                );
            }
        }
    });
}

#[test]
#[cfg(target_os = "linux")] // where all of 127/8 is this host
fn streams_connect_where_they_are_told() {
    let loaded = load(CollectiveKind::AllReduce, 0, 3, Algorithm::Direct).expect("it applies");
    // Whoever is told of no way listens at one address only, at which nobody comes then.
    for (told, comes) in [(3, true), (2, false)] {
        let store = Store::listen("127.0.0.1:0", b"secret").expect("a free port");
        let all: Vec<Result<(), Failure>> = std::thread::scope(|scope| {
            let each = |rank: u32| {
                let (store, loaded) = (&store, &loaded);
                scope.spawn(move || {
                    let to = (0..3).map(|peer| {
                        let last = fit(10 * (rank + 1) + peer);
                        ((peer, 0), [127, 0, 0, last].into())
                    });
                    let first = 3 - told;
                    let options = GroupOptions {
                        ways: to.filter(|_| rank >= first).collect(),
                        ..options(store, rank, 3, false)
                    };
                    let mut group = Group::connect(&options).expect("all come");
                    let numbers = sum(&mut group, Some(loaded), 999)?;
                    assert!(numbers.iter().all(|&each| each == 3));
                    Ok(())
                })
            };
            let ranks: Vec<_> = (0..3).map(each).collect();
            ranks
                .into_iter()
                .map(|rank| rank.join().expect("no panic"))
                .collect()
        });
        assert_eq!(all.iter().all(Result::is_ok), comes, "{all:?}");
        assert!(comes || all.iter().all(Result::is_err), "{all:?}");
    }
}

/// Each rank sends over its own link, and no faster than that; what is sent over it is counted.
#[test]
fn streams_keep_to_the_links_that_they_are_given() {
    const RATE: u64 = 20_000_000;
    let (ranks, count) = (3u32, 300_000);
    let loaded = load(CollectiveKind::AllReduce, 0, ranks, Algorithm::Ring).unwrap();
    let store = Store::listen("127.0.0.1:0", b"secret").unwrap();
    let pacer = Arc::new(Pacer::new(&[RATE, RATE, RATE], Duration::ZERO));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for rank in 0..ranks {
            let (store, loaded, pacer) = (&store, &loaded, Arc::clone(&pacer));
            scope.spawn(move || {
                let peers = (0..ranks).filter(|&peer| peer != rank);
                let given = GroupOptions {
                    pace: Some(Pace {
                        pacer,
                        routes: peers.map(|peer| ((peer, 0), vec![rank])).collect(),
                    }),
                    ..options(store, rank, ranks, false)
                };
                let mut group = Group::connect(&given).unwrap();
                let mut numbers = vec![rank as i32; count];
                let all = area(&mut numbers);
                let request = Request {
                    dtype: Dtype::I32,
                    op: Reduction::Sum,
                    elements: count as u64,
                    by_memory: false,
                };
                // SAFETY: the vector is there until the call ends.
                unsafe { group.run(loaded, &request, all, all, &mut || false) }.unwrap();
                assert_eq!(numbers, vec![3; count]);
            });
        }
    });
    // A ring sends two thirds twice.
    let each = 4 * 4 * count as u64 / 3;
    let carried = pacer.carried();
    assert!(
        carried
            .iter()
            .all(|&bytes| bytes >= each && bytes < each + 1000),
        "{carried:?} of {each}"
    );
    // Less what a link makes up for at first.
    assert!(begun.elapsed() >= Duration::from_secs_f64(each as f64 / RATE as f64 - 0.002));
}

#[test]
fn links_that_are_not_there_are_refused() {
    let store = Store::listen("127.0.0.1:0", b"secret").unwrap();
    let given = GroupOptions {
        pace: Some(Pace {
            pacer: Arc::new(Pacer::new(&[1000], Duration::ZERO)),
            routes: [((1, 0), vec![0, 7])].into(),
        }),
        ..options(&store, 0, 1, false)
    };
    let failure = Group::connect(&given).unwrap_err();
    assert_eq!(failure.code, Code::Invalid);
    assert_eq!(failure.why, "pace: there is no link 7 of 1");
}
