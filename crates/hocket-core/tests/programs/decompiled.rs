//! Lowered plans raised again: the transfers do, one after the other, what the collective asks for.

use std::collections::{HashMap, HashSet};

use hocket_core::algorithms::Algorithm;
use hocket_core::collective::CollectiveKind;
use hocket_core::program::{CompileOptions, Program, compile, decompile};
use hocket_core::topology::build::{self, RingWays};
use hocket_core::units::{Bandwidth, Time};

use crate::compiled::verified;

/// What each rank has of each chunk of data after the transfers: whose contributions.
fn replay(program: &Program) -> HashMap<(u32, u32), HashSet<u32>> {
    let task = *program.task();
    let mut held: HashMap<(u32, u32), HashSet<u32>> = HashMap::new();
    for rank in 0..task.ranks {
        for chunk in 0..task.input(rank) {
            let data = task.before(rank, chunk).data;
            held.insert((rank, data), HashSet::from([rank]));
        }
    }
    for each in decompile(program).unwrap().transfers {
        for data in each.first..each.first + each.count {
            let sent = held[&(each.src, data)].clone();
            let has = held.entry((each.dst, data)).or_default();
            if each.is_sum {
                assert!(has.is_disjoint(&sent), "counted twice");
                has.extend(sent);
            } else {
                *has = sent;
            }
        }
    }
    held
}

#[test]
fn lowered_plans_are_raised_to_what_they_do() {
    let gigabyte = Bandwidth::from_bytes_per_second(1_000_000_000).unwrap();
    let networks = [
        build::ring(4, gigabyte, Time::ZERO, RingWays::Both).unwrap(),
        build::fully_connected(5, gigabyte, Time::ZERO).unwrap(),
    ];
    let mut count = 0;
    for network in &networks {
        for kind in CollectiveKind::NAMED {
            for algorithm in [Algorithm::Ring, Algorithm::Direct, Algorithm::Greedy] {
                let Some(verified) = verified(network, kind, algorithm, 1, 60_000) else {
                    continue;
                };
                let program = compile(&verified, &CompileOptions::default()).unwrap();
                let task = *program.task();
                let held = replay(&program);
                for rank in 0..task.ranks {
                    for chunk in 0..task.output(rank) {
                        let after = task.after(rank, chunk).unwrap();
                        let wanted: HashSet<u32> = match after.rank {
                            Some(of) => HashSet::from([of]),
                            None => (0..task.ranks).collect(),
                        };
                        assert_eq!(held[&(rank, after.data)], wanted, "{kind} by {algorithm:?}");
                    }
                }
                count += 1;
            }
        }
    }
    assert!(count > 20);
}
