//! Whom the store blames: never a rank that lives.

use std::io::{Read, Write};
use std::net::TcpStream;

use hocket_runtime::wire::{self, Frame, Member};

use super::*;

/// A rank that says what a test has it say.
struct Scripted(TcpStream);

impl Scripted {
    /// Joins a group whose other ranks come meanwhile.
    fn join(store: &Store, rank: u32, size: u32) -> Self {
        let mut socket = TcpStream::connect(store.address()).expect("it listens");
        let ours = wire::challenge();
        socket
            .write_all(&[&wire::GREETING[..], &ours].concat())
            .expect("it takes that");
        let mut answer = [0; 8 + 2 * wire::PROOF];
        socket.read_exact(&mut answer).expect("a store answers");
        let theirs = &answer[8..8 + wire::PROOF];
        let proof = wire::prove(b"secret", "rank", &[theirs, &ours]);
        socket.write_all(&proof).expect("it takes that");
        let member = Member {
            rank,
            address: "127.0.0.1:1".to_owned(),
            challenge: wire::challenge(),
            host: String::new(),
            process: 0,
            file: 0,
            table: 0,
            streams: 1,
            shares: false,
            outward: false,
        };
        let join = Frame::Join {
            group: "scripted".to_owned(),
            size,
            patience: 20_000,
            member,
        };
        join.send(&socket).expect("it takes that");
        Self(socket)
    }

    fn group(size: u32) -> (Store, Vec<Self>) {
        let store = Store::listen("127.0.0.1:0", b"secret").expect("a free port");
        let ranks: Vec<_> = (0..size)
            .map(|rank| Self::join(&store, rank, size))
            .collect();
        for rank in &ranks {
            let table = Frame::receive(&rank.0).expect("all have come");
            assert!(matches!(table, Frame::Table { .. }));
        }
        (store, ranks)
    }

    fn loses(&self, peer: u32) {
        let how = format!("the connection to rank {peer} broke: it ended");
        let lost = Frame::Lost { call: 7, peer, how };
        lost.send(&self.0).expect("it takes that");
    }

    /// What the store says of the group.
    fn hears(&self) -> Failure {
        loop {
            match Frame::receive(&self.0).expect("it says something") {
                Frame::Failed(failure) => return failure,
                Frame::Left { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_connection_that_broke_between_two_that_live_is_no_death() {
    let (_store, ranks) = Scripted::group(3);
    ranks[0].loses(2);
    for rank in &ranks {
        let failure = rank.hears();
        assert_eq!((failure.code, failure.culprit), (Code::Lost, None));
        let says = "rank 0: the connection to rank 2 broke: it ended; rank 2 is still there";
        assert_eq!((failure.call, failure.why.as_str()), (7, says));
    }
}

#[test]
fn a_death_that_is_heard_of_after_lost_connections_is_what_all_are_told() {
    // Rank 1 dies; rank 0 lets go of its connections, rank 3 loses that to rank 0; rank 2 that to rank 3.
    let (_store, mut ranks) = Scripted::group(4);
    ranks[2].loses(3);
    ranks[3].loses(0);
    ranks[0].loses(1);
    std::thread::sleep(Duration::from_millis(50));
    drop(ranks.remove(1));
    for rank in &ranks {
        let failure = rank.hears();
        assert_eq!((failure.code, failure.culprit), (Code::Died, Some(1)));
    }
}

#[test]
fn whoever_has_left_is_said_to_have_left() {
    for stalls in [false, true] {
        let (_store, ranks) = Scripted::group(2);
        Frame::Bye.send(&ranks[1].0).expect("it takes that");
        let left = Frame::receive(&ranks[0].0).expect("it says something");
        assert_eq!(left, Frame::Left { rank: 1 });
        if stalls {
            let awaited = vec![1];
            let stalled = Frame::Stalled { call: 7, awaited };
            stalled.send(&ranks[0].0).expect("it takes that");
        } else {
            ranks[0].loses(1);
        }
        let failure = ranks[0].hears();
        assert_eq!((failure.code, failure.culprit), (Code::Aborted, Some(1)));
        assert_eq!(failure.why, "rank 1 has left the group");
    }
}

#[test]
fn who_waits_for_a_rank_that_has_left_hears_of_it_at_once() {
    let ring = load(CollectiveKind::AllReduce, 0, 3, Algorithm::Ring).expect("it applies");
    for (shares, by_memory) in [(false, false), (true, false), (true, true)] {
        for before in [0, 2] {
            let ended = with_group(3, shares, PATIENT, |mut group| {
                let mut numbers = [1; 1000];
                let request = Request {
                    dtype: Dtype::I32,
                    op: Reduction::Sum,
                    elements: 1000,
                    by_memory,
                };
                let mut call = |group: &mut Group| {
                    if shares && !by_memory {
                        return sum(group, None, 1000).map(drop);
                    }
                    let array = area(&mut numbers);
                    // SAFETY: it lives until the call has ended.
                    unsafe { group.run(&ring, &request, array, array, &mut || false) }
                };
                for _ in 0..before {
                    call(&mut group).expect("all are there");
                }
                if group.rank() == 1 {
                    return None;
                }
                let started = Instant::now();
                let failure = call(&mut group).expect_err("rank 1 has left");
                assert!(started.elapsed() < PATIENT / 2);
                Some((failure.code, failure.culprit))
            });
            let told = Some((Code::Aborted, Some(1)));
            assert_eq!(ended, [told, None, told], "{shares} {by_memory} {before}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_rank_that_does_not_come_to_the_first_call_is_named() {
    let told = std::sync::Barrier::new(3);
    let failures = with_group(3, true, Duration::from_millis(400), |mut group| {
        let absent = group.rank() == 1;
        let failure =
            (!absent).then(|| sum(&mut group, None, 10).expect_err("rank 1 is not there"));
        told.wait(); // who has not come stays in the group until then
        failure.map(|failure| (failure.code, failure.culprit))
    });
    let stalled = Some((Code::Stalled, Some(1)));
    assert_eq!(failures, [stalled, None, stalled]);
}

#[test]
fn a_rank_joins_through_a_flood_of_strangers() {
    let store = Store::listen("127.0.0.1:0", b"secret").expect("a free port");
    // As many as may be greeting at once: until they are closed, others are.
    let _flood: Vec<_> = (0..256)
        .map(|_| TcpStream::connect(store.address()).expect("it listens"))
        .collect();
    std::thread::sleep(Duration::from_millis(100));
    std::thread::scope(|scope| {
        for rank in 0..2 {
            let options = options(&store, rank, 2, false);
            scope.spawn(move || {
                let group = Group::connect(&options).expect("the flood passes");
                assert_eq!(group.size(), 2);
            });
        }
    });
}
