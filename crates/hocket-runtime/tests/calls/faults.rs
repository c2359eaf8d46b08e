//! What goes wrong, and what ranks are told of it.

use super::*;

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
            assert!(took < Duration::from_secs(5), "{took:?}");
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

/// Runs a rooted kind at each rank, with the roots that each believes in; gives what they are told.
fn with_roots(kind: CollectiveKind, size: u32, roots: impl Fn(u32) -> u32 + Sync) -> Vec<Failure> {
    let timeout = Duration::from_secs(10);
    let failed = with_group(size, false, timeout, |mut group| {
        let root = roots(group.rank());
        let plan = load(kind, root, size, Algorithm::Direct).expect("it applies");
        let mut numbers = vec![1i32; 12];
        let mut room = vec![0i32; 12];
        let (input, output) = (area(&mut numbers), area(&mut room));
        let request = Request {
            dtype: Dtype::I32,
            op: Reduction::Sum,
            elements: 12,
            by_memory: false,
        };
        // SAFETY: both live until the call has ended.
        unsafe { group.run(&plan, &request, input, output, &mut || false) }
    });
    let failed = failed.into_iter();
    failed
        .map(|ended| ended.expect_err("their roots differ"))
        .collect()
}

#[test]
fn ranks_that_all_take_themselves_for_the_root_are_told_in_that_call() {
    for kind in [
        CollectiveKind::Broadcast,
        CollectiveKind::Scatter,
        CollectiveKind::Reduce,
        CollectiveKind::Gather,
    ] {
        for size in [2, 3] {
            let started = Instant::now();
            for failure in with_roots(kind, size, |rank| rank) {
                assert_eq!(
                    (failure.code, failure.call),
                    (Code::Mismatch, 1),
                    "{kind} {failure}"
                );
                let root = format!("calls {kind} with root ");
                assert!(failure.why.contains(&root), "{failure}");
            }
            assert!(started.elapsed() < Duration::from_secs(8), "{kind}");
        }
    }
}

#[test]
fn a_call_by_a_plan_and_one_without_are_told_apart() {
    let ring = load(CollectiveKind::AllReduce, 0, 3, Algorithm::Ring).expect("it applies");
    let started = Instant::now();
    let failures = with_group(3, true, Duration::from_secs(5), |mut group| {
        let plan = (group.rank() == 1).then_some(&ring);
        sum(&mut group, plan, 1000).expect_err("they go different ways")
    });
    for failure in failures {
        assert_eq!(failure.code, Code::Mismatch, "{failure}");
        assert!(
            failure.why.contains("shared memory without a plan"),
            "{failure}"
        );
    }
    assert!(started.elapsed() < Duration::from_secs(4));
}

#[test]
fn ranks_with_other_options_do_not_make_a_group() {
    type Change = fn(&mut GroupOptions);
    let changes: [(Change, &str); 3] = [
        (
            |given| given.streams = 2,
            "rank 1 has 2 streams per link, rank 0 has 1 stream per link",
        ),
        (
            |given| (given.outward, given.streams) = (true, 2),
            "rank 1 connects one way, rank 0 connects both ways",
        ),
        (
            |given| given.shares = false,
            "rank 1 goes over TCP alone, rank 0 would share memory",
        ),
    ];
    for (change, says) in changes {
        let store = Store::listen("127.0.0.1:0", b"secret").expect("a free port");
        std::thread::scope(|scope| {
            for rank in 0..2 {
                let mut options = options(&store, rank, 2, true);
                if rank == 1 {
                    change(&mut options);
                }
                scope.spawn(move || {
                    let failure = Group::connect(&options).expect_err("they differ");
                    assert_eq!(failure.code, Code::Mismatch);
                    assert!(failure.why.starts_with(says), "{failure}");
                });
            }
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
    let late = std::thread::scope(|scope| {
        let early = scope.spawn(|| join(&|given| given.size = 3));
        std::thread::sleep(Duration::from_millis(150));
        let late = join(&|given| (given.size, given.rank) = (3, 2));
        early.join().expect("no panic");
        late.1
    });
    assert_eq!(late, "rank 1 did not join within 0.3 s");
    let (code, why) = join(&|given| given.secret = b"other".to_vec());
    assert_eq!(code, Code::Join);
    assert!(why.contains("secret"), "{why}");
    let (code, why) = join(&|given| given.rank = 2);
    assert_eq!(
        (code, why.as_str()),
        (Code::Invalid, "rank: 2 of 2 ranks; give 0 to 1")
    );
    let stranger = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = stranger.local_addr().expect("it has one").to_string();
    let (_, why) = join(&|given| given.address.clone_from(&address));
    assert!(
        why.ends_with("who listens there is no store: it says nothing"),
        "{why}"
    );
    let answering = std::thread::spawn(move || {
        use std::io::Write;
        stranger.accept().expect("the first gave up");
        let (mut socket, _) = stranger.accept().expect("who joins");
        let answer = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nServer: something of some length\r\n\r\n";
        socket.write_all(answer).expect("it takes that");
    });
    let (_, why) = join(&|given| given.address.clone_from(&address));
    assert!(
        why.ends_with("is no store of this version of hocket"),
        "{why}"
    );
    answering.join().expect("no panic");
    for local in ["0.0.0.0", "224.0.0.1"] {
        let address = local.parse().expect("an address");
        let (_, why) = join(&|given| given.local = Some(address));
        assert!(why.starts_with("local: others reach nobody at "), "{why}");
    }
    let (_, why) = join(&|given| {
        given.local = Some([10, 0, 0, 1].into());
        given.secret.clear();
    });
    assert!(why.contains("give a secret"), "{why}");
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
        b"hocket\x04Sxxxx",
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
        assert!([0, 8, 72].contains(&answer.len()));
    }
}
