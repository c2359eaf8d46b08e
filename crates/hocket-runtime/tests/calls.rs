//! Whole calls among ranks that are threads of this process, against what the collective means.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hocket_core::algorithms::{Algorithm, PlanOptions, plan};
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::id::Rank;
use hocket_core::progress::Silent;
use hocket_core::topology::{Topology, build};
use hocket_core::units::{Bandwidth, Time};
use hocket_core::verify::verify;
use hocket_runtime::error::{Code, Failure};
use hocket_runtime::group::{Area, Board, Group, Request};
use hocket_runtime::number::{Dtype, Reduction};
use hocket_runtime::options::GroupOptions;
use hocket_runtime::script::Loaded;
use hocket_runtime::store::Store;

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
    let npus = (0..ranks).map(hocket_core::id::NpuId).collect();
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
    (rank as i32 + 1) * 1000 + i as i32 % 997
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

/// A rank's array in memory that all see, as numbers.
fn board(group: &mut Group, count: usize) -> (std::sync::Arc<Board>, &'static mut [i32]) {
    let made = group.allocate(4 * count, &mut || false).expect("all ask");
    let board = made.expect("all can map it");
    assert_eq!(board.bytes(), 4 * count);
    // SAFETY: the board is returned beside them and outlives every use here.
    let numbers = unsafe { std::slice::from_raw_parts_mut(board.own().cast(), count) };
    (board, numbers)
}

#[test]
fn arrays_that_all_see_are_used_where_they_are() {
    for size in [1, 2, 3, 5] {
        with_group(size, true, PATIENT, |mut group| {
            let rank = group.rank();
            let whole = 60_000 * size as usize;
            let part = whole / size as usize;
            let (kept, first) = board(&mut group, whole);
            let (others, second) = board(&mut group, 2 * whole);
            let mut own = vec![0; whole];
            for kind in KINDS {
                let root = if kind.is_rooted() { size - 1 } else { 0 };
                let gathers = matches!(kind, CollectiveKind::AllGather | CollectiveKind::Gather);
                let len = if gathers { part } else { whole };
                let expected = after(kind, rank, size, root, whole);
                // Both arrays where all see them; the output at a rank's own offset; at some ranks not at all.
                for way in 0..4 {
                    let offset = if way == 0 { 0 } else { 16 * rank as usize };
                    let output: &mut [i32] = match way {
                        3 if rank == 0 => &mut own,
                        _ => &mut second[offset..][..whole],
                    };
                    output.fill(-1);
                    for (i, number) in first[..len].iter_mut().enumerate() {
                        *number = before(rank, i);
                    }
                    let request = Request {
                        dtype: Dtype::I32,
                        op: Reduction::Sum,
                        elements: whole as u64,
                        by_memory: true,
                    };
                    let mut copied = first[..len].to_vec();
                    let input = if way == 2 && rank == size - 1 {
                        &mut copied[..]
                    } else {
                        &mut first[..len]
                    };
                    let (from, to) = (area(input), area(output));
                    // SAFETY: the arrays are there until the call ends.
                    unsafe { group.exchange(kind, root, &request, from, to, &mut || false) }
                        .expect("the call works");
                    if let Some(expected) = &expected {
                        let got = &output[..expected.len()];
                        assert_eq!(got, expected, "{kind} at {rank} of {size}, {way}");
                    }
                }
            }
            // In place.
            for (i, number) in first.iter_mut().enumerate() {
                *number = before(rank, i);
            }
            let request = Request {
                dtype: Dtype::I32,
                op: Reduction::Sum,
                elements: whole as u64,
                by_memory: true,
            };
            let kind = CollectiveKind::AllReduce;
            let both = area(first);
            // SAFETY: as above.
            unsafe { group.exchange(kind, 0, &request, both, both, &mut || false) }
                .expect("the call works");
            assert_eq!(
                first,
                after(kind, rank, size, 0, whole).expect("all get it")
            );
            drop((kept, others));
        });
    }
}

#[test]
fn ranks_that_ask_for_different_memory_are_told() {
    let failures = with_group(3, true, PATIENT, |mut group| {
        let bytes = if group.rank() == 1 { 4096 } else { 8192 };
        group
            .allocate(bytes, &mut || false)
            .expect_err("they differ")
    });
    for failure in failures {
        assert_eq!(failure.code, Code::Mismatch);
        assert!(failure.why.contains("asks for"), "{failure}");
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
                    "rank 2 has no table of plans, rank 0 the table of plans 0000000000000007; \
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
    std::thread::scope(|scope| {
        for rank in 0..4 {
            let (store, loaded) = (&store, &loaded);
            scope.spawn(move || {
                let options = GroupOptions {
                    streams: 3,
                    ..options(store, rank, 4, false)
                };
                let mut group = Group::connect(&options).expect("all come");
                call(
                    &mut group,
                    Some(loaded),
                    CollectiveKind::AllReduce,
                    0,
                    100_000,
                );
            });
        }
    });
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
                        let last = 10 * (rank + 1) as u8 + peer as u8;
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
fn a_rank_that_does_something_else_is_an_error_of_all() {
    let ring = load(CollectiveKind::AllReduce, 0, 4, Algorithm::Ring).expect("it applies");
    let direct = load(CollectiveKind::AllReduce, 0, 4, Algorithm::Direct).expect("it applies");
    for shares in [false, true] {
        for other in ["plan", "size", "calls"] {
            let started = Instant::now();
            let failures = with_group(4, shares, Duration::from_secs(5), |mut group| {
                let differs = group.rank() == 2;
                let plan = (!shares).then_some(if differs && other == "plan" {
                    &direct
                } else {
                    &ring
                });
                let count = if differs && (other == "size" || shares) {
                    999
                } else {
                    1000
                };
                if !(differs && other == "calls") {
                    sum(&mut group, plan, 10)?;
                }
                sum(&mut group, plan, count)
            });
            for failure in failures {
                let failure = failure.expect_err("they differ");
                assert!(
                    matches!(failure.code, Code::Mismatch | Code::Stalled),
                    "{shares} {other}: {failure:?}"
                );
                assert!(failure.call > 0);
            }
            assert!(
                started.elapsed() < Duration::from_secs(4),
                "{shares} {other}"
            );
        }
    }
}

#[test]
fn a_rank_that_leaves_or_stands_still_is_named_and_the_others_go_on() {
    let ring = load(CollectiveKind::AllReduce, 0, 4, Algorithm::Ring).expect("it applies");
    let three = load(CollectiveKind::AllReduce, 0, 3, Algorithm::Ring).expect("it applies");
    let timeout = Duration::from_millis(600);
    for shares in [false, true] {
        with_group(4, shares, timeout, |mut group| {
            let plan = |ring| (!shares).then_some(ring);
            sum(&mut group, plan(&ring), 1000).expect("all are there");
            if group.rank() == 1 {
                std::thread::sleep(Duration::from_millis(2500));
                return;
            }
            let started = Instant::now();
            let failure = sum(&mut group, plan(&ring), 1000).expect_err("rank 1 is not there");
            let took = started.elapsed();
            assert_eq!(
                (failure.code, failure.culprit),
                (Code::Stalled, Some(1)),
                "{failure}"
            );
            assert!(took < timeout + Duration::from_millis(500), "{took:?}");
            let again = sum(&mut group, plan(&ring), 1000).expect_err("the group is dead");
            assert_eq!(again, failure);
            let mut left = group
                .shrink(Duration::from_millis(700))
                .expect("three are left");
            assert_eq!((left.size(), left.old_ranks()), (3, &[0, 2, 3][..]));
            let numbers = sum(&mut left, plan(&three), 1000).expect("they go on");
            assert!(numbers.iter().all(|&number| number == 3));
        });
    }
}

#[test]
fn joining_fails_with_a_reason() {
    let store = Store::listen("127.0.0.1:0", b"secret").expect("a free port");
    let join = |change: &dyn Fn(&mut GroupOptions)| {
        let mut given = GroupOptions {
            patience: Duration::from_millis(300),
            ..options(&store, 0, 2, false)
        };
        change(&mut given);
        let failure = Group::connect(&given).expect_err("it cannot work");
        (failure.code, failure.why)
    };
    let (code, why) = join(&|_| {});
    assert_eq!(
        (code, why.as_str()),
        (Code::Join, "rank 1 did not join within 0.3 s")
    );
    let (code, why) = join(&|given| given.secret = b"other".to_vec());
    assert_eq!(code, Code::Join);
    assert!(why.contains("secret"), "{why}");
    let (code, why) = join(&|given| given.rank = 2);
    assert_eq!(
        (code, why.as_str()),
        (Code::Invalid, "rank: 2 of 2 ranks; give 0 to 1")
    );
    let (_, why) = join(&|given| given.address = "127.0.0.1:1".to_owned());
    assert!(why.contains("no store there"), "{why}");
    let (code, why) = join(&|given| {
        given.address = "0.0.0.0:1".to_owned();
        given.secret.clear();
    });
    assert_eq!(code, Code::Invalid);
    assert!(why.contains("secret"), "{why}");
    let taken = Store::listen(&store.address().to_string(), b"").expect_err("in use");
    assert!(
        taken.why.contains("address already in use"),
        "{}",
        taken.why
    );
}

#[test]
fn strangers_are_closed_and_disturb_nobody() {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    let store = Store::listen("127.0.0.1:0", b"secret").expect("a free port");
    let mut strangers = Vec::new();
    for greeting in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0; 4096],
        b"hocket\x02Sxxxx",
        b"",
    ] {
        let mut stranger = TcpStream::connect(store.address()).expect("it listens");
        stranger.write_all(greeting).expect("it takes that");
        strangers.push(stranger);
    }
    std::thread::scope(|scope| {
        for rank in 0..2 {
            let options = options(&store, rank, 2, true);
            scope.spawn(move || {
                let mut group = Group::connect(&options).expect("all come");
                assert_eq!(sum(&mut group, None, 3).expect("it works"), [2; 3]);
            });
        }
    });
    for mut stranger in strangers {
        stranger
            .set_read_timeout(Some(Duration::from_secs(5)))
            .expect("a time");
        let mut answer = Vec::new();
        let _ = stranger.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.len() == 64);
    }
}
