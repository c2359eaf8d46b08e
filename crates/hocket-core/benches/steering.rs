//! Source ports for wanted paths.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use hocket_core::id::{fit, narrow};
use hocket_core::routing::steering::{
    Algorithm, Fields, Header, Policy, SourcePort, Stage, Stages, SwitchHash,
};
use hocket_core::units::Seed;

fn header(seed: &mut Seed) -> Header {
    let mut address = || [10, fit(seed.below(250)), fit(seed.below(250)), 1].into();
    Header {
        src: address(),
        dst: address(),
        protocol: 17,
        sport: 0,
        dport: 4791,
        label: 0,
    }
}

fn steering(c: &mut Criterion) {
    let mut group = c.benchmark_group("steering");
    let kernel = Algorithm::Linux(Policy::Custom(Fields::FIVE));
    for (name, algorithm) in [("linux", kernel), ("crc32", Algorithm::Crc32(Fields::FIVE))] {
        for ways in [&[4][..], &[32], &[64], &[4, 4], &[32, 32]] {
            let mut seed = Seed(3);
            let mut draw = || {
                let stage = |(i, &ways): (usize, &u32)| Stage {
                    hash: SwitchHash {
                        algorithm,
                        seed: 100 + narrow(i),
                        offset: 5 * narrow(i),
                    },
                    ways,
                    wanted: narrow(seed.below(ways as usize)),
                };
                let stages: Vec<Stage> = ways.iter().enumerate().map(stage).collect();
                (header(&mut seed), stages)
            };
            let find = |(header, stages): (Header, Vec<Stage>)| {
                let stages = Stages {
                    forth: &stages,
                    back: &[],
                };
                SourcePort::among(SourcePort::ROCE).find(black_box(&header), stages)
            };
            group.bench_function(format!("{name}, ways {ways:?}"), |b| {
                b.iter_batched(&mut draw, find, BatchSize::SmallInput);
            });
        }
    }
    group.finish();
}

criterion_group!(benches, steering);
criterion_main!(benches);
