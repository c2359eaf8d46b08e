mod kernel;

use super::stage::{Part, Ready};
use super::*;
use crate::units::Seed;

/// Every model of a hash, for some fields.
fn algorithms(fields: Fields) -> [Algorithm; 11] {
    [
        Algorithm::Linux(Policy::Layer3),
        Algorithm::Linux(Policy::Layer4),
        Algorithm::Linux(Policy::Custom(fields)),
        Algorithm::Crc16(fields),
        Algorithm::Crc32(fields),
        Algorithm::Crc32Low(fields),
        Algorithm::Crc32High(fields),
        Algorithm::CrcCcitt(fields),
        Algorithm::Xor(fields),
        Algorithm::CrcXor(fields),
        Algorithm::Toeplitz(fields),
    ]
}

fn header(seed: &mut Seed, is_six: bool) -> Header {
    let mut address = |_| match is_six {
        false => (seed.next_u64() as u32).to_be_bytes().into(),
        true => {
            Ipv6Addr::from(u128::from(seed.next_u64()) << 64 | u128::from(seed.next_u64())).into()
        }
    };
    let [src, dst] = [0, 1].map(&mut address);
    Header {
        src,
        dst,
        protocol: [6, 17][seed.below(2)],
        sport: seed.next_u64() as u16,
        dport: seed.next_u64() as u16,
        label: if is_six {
            seed.below(1 << 20) as u32
        } else {
            0
        },
    }
}

fn random(seed: &mut Seed) -> SwitchHash {
    let algorithms = algorithms(Fields(seed.below(64) as u8));
    SwitchHash {
        algorithm: algorithms[seed.below(algorithms.len())],
        seed: 1 + seed.below(3) as u32,
        offset: seed.below(3) as u32,
    }
}

#[test]
fn what_is_made_ready_hashes_as_in_full() {
    let mut seed = Seed(1);
    for round in 0..400 {
        let header = header(&mut seed, round % 2 == 0);
        let hash = random(&mut seed);
        let ways = 1 + seed.below(5) as u32;
        for wanted in 0..ways {
            let stage = Stage { hash, ways, wanted };
            for (part, last) in [(Part::SourcePort, 0xffff), (Part::FlowLabel, 0xf_ffff)] {
                for is_back in [false, true] {
                    let ready = Ready::new(&header, part, &stage, is_back);
                    for _ in 0..4 {
                        let value = seed.below(last + 1) as u32;
                        let seen = part.set(&header, value);
                        let seen = if is_back { seen.reversed() } else { seen };
                        assert_eq!(ready.is_met(value), hash.way(&seen, ways) == wanted);
                    }
                }
            }
        }
    }
}

#[test]
fn ways_of_linux_are_the_first_whose_bound_is_not_below() {
    let header = header(&mut Seed(3), false);
    let hash = SwitchHash {
        algorithm: Algorithm::Linux(Policy::Layer4),
        seed: 1,
        offset: 0,
    };
    for ways in 1..200u32 {
        let mut next = 0;
        for way in 0..ways {
            let [low, high] = SwitchHash::interval(way, ways);
            assert!(low == next && low <= high);
            next = high + 1;
        }
        assert_eq!(next, 1 << 31);
        let [low, high] = SwitchHash::interval(hash.way(&header, ways), ways);
        assert!((low..=high).contains(&hash.hash(&header)));
    }
}

/// Every answer against trying all ports one by one.
#[test]
fn a_port_is_found_where_there_is_one() {
    let mut seed = Seed(7);
    let (mut found, mut polarised, mut exhausted) = (0, 0, 0);
    for round in 0..600 {
        let mut header = header(&mut seed, round % 3 == 0);
        let common = random(&mut seed);
        let mut stage = || {
            let hash = if seed.below(2) == 0 {
                common
            } else {
                random(&mut seed)
            };
            let ways = 1 + seed.below(6) as u32;
            let wanted = seed.below(ways as usize) as u32;
            Stage { hash, ways, wanted }
        };
        let forth: Vec<Stage> = (0..2).map(|_| stage()).collect();
        let back: Vec<Stage> = (0..round % 2).map(|_| stage()).collect();
        let low = 1024 + seed.below(60_000) as u16;
        let mut ports = SourcePort::among(low..=low.saturating_add(seed.below(300) as u16));
        ports.first = low.saturating_add(seed.below(300) as u16);
        ports.taken = (0..4)
            .map(|_| low.saturating_add(seed.below(300) as u16))
            .collect();
        ports.taken.sort_unstable();
        let mut leads = |port: u16| {
            header.sport = port;
            let back_header = header.reversed();
            let goes = |stages: &[Stage], header: &Header| {
                let mut stages = stages.iter();
                stages.all(|stage| stage.hash.way(header, stage.ways) == stage.wanted)
            };
            goes(&forth, &header) && goes(&back, &back_header) && !ports.taken.contains(&port)
        };
        let good: Vec<u16> = ports.ports.clone().filter(|&port| leads(port)).collect();
        let stages = Stages {
            forth: &forth,
            back: &back,
        };
        match ports.find(&header, stages) {
            Ok(port) => {
                let after = good.iter().find(|&&good| good >= ports.first);
                let expected = after.filter(|_| ports.ports.contains(&ports.first));
                assert_eq!(Some(&port), expected.or(good.first()));
                found += 1;
            }
            Err(Unreachable::Polarised { .. }) => {
                assert_eq!(good, []);
                polarised += 1;
            }
            Err(Unreachable::Exhausted { tried }) => {
                assert_eq!((good.len(), tried as usize), (0, ports.ports.len()));
                exhausted += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(
        found > 100 && polarised > 20 && exhausted > 20,
        "{found} {polarised} {exhausted}"
    );
}

/// Four ways and then two by the same hash: half of the pairs are empty, and that is known without a
/// search. Seeds that differ reach all eight.
#[test]
fn equal_seeds_polarise() {
    let header = header(&mut Seed(9), false);
    let linux = |seed| SwitchHash {
        algorithm: Algorithm::Linux(Policy::Custom(Fields::FIVE)),
        seed,
        offset: 0,
    };
    let crc = |seed| SwitchHash {
        algorithm: Algorithm::Crc32(Fields::FIVE),
        seed,
        offset: 0,
    };
    let ports = SourcePort::among(SourcePort::ROCE);
    for (first, second) in [(linux(5), linux(5)), (linux(5), linux(6)), (crc(5), crc(5))] {
        let reached = (0..8).filter(|pair| {
            let stage = |hash, ways, wanted| Stage { hash, ways, wanted };
            let forth = [stage(first, 4, pair / 2), stage(second, 2, pair % 2)];
            let stages = Stages {
                forth: &forth,
                back: &[],
            };
            match ports.find(&header, stages) {
                Ok(_) => true,
                Err(why) => {
                    assert_eq!(why, Unreachable::Polarised { stages: [0, 1] });
                    false
                }
            }
        });
        assert_eq!(reached.count(), if first == second { 4 } else { 8 });
    }
}

#[test]
fn each_way_to_express_a_path_says_what_it_cannot() {
    let mut seed = Seed(2);
    let (four, six) = (header(&mut seed, false), header(&mut seed, true));
    let hash = SwitchHash {
        algorithm: Algorithm::Linux(Policy::Custom(Fields(0x3f))),
        seed: 8,
        offset: 0,
    };
    let forth = [Stage {
        hash,
        ways: 16,
        wanted: 5,
    }];
    let mut wanted = Wanted {
        stages: Stages {
            forth: &forth,
            back: &[],
        },
        ..Wanted::default()
    };
    let Ok(Mark::FlowLabel(label)) = FlowLabel::default().express(&six, &wanted) else {
        panic!("a label");
    };
    assert_eq!(hash.way(&Header { label, ..six }, 16), 5);
    for refused in [
        FlowLabel::default().express(&four, &wanted),
        SegmentList.express(&six, &wanted),
        Static.express(&six, &wanted),
    ] {
        assert!(matches!(refused, Err(Unreachable::NotExpressible { .. })));
    }
    let segments = [Ipv6Addr::LOCALHOST];
    wanted.segments = &segments;
    wanted.is_static = true;
    assert_eq!(
        SegmentList.express(&six, &wanted),
        Ok(Mark::Segments(segments.to_vec()))
    );
    assert_eq!(Static.express(&six, &wanted), Ok(Mark::Nothing));
    let beyond = [Stage {
        wanted: 16,
        ..forth[0]
    }];
    wanted.stages.forth = &beyond;
    let refused = SourcePort::among(SourcePort::ROCE).express(&six, &wanted);
    assert!(matches!(
        refused,
        Err(Unreachable::NoSuchWay { stage: 0, .. })
    ));
}
