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
