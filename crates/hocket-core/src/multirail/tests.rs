use super::*;
use crate::collective::CollectiveKind;
use crate::topology::{Dimension, DimensionKind, Switching, build};
use crate::units::{Bandwidth, Time};

fn network(dims: &[(DimensionKind, u32, u64, u64)]) -> crate::topology::Topology {
    let dims: Vec<Dimension> = dims
        .iter()
        .map(|&(kind, size, gbit, ns)| {
            let (div, lat) = match kind {
                DimensionKind::Ring => (2, 1),
                DimensionKind::FullyConnected => (u64::from(size) - 1, 1),
                _ => (1, 2),
            };
            Dimension {
                kind,
                size,
                bandwidth: Bandwidth::from_bytes_per_second(gbit * 125_000_000 / div).unwrap(),
                latency: Time::from_ps(ns * 1000 / lat),
                offload: false,
            }
        })
        .collect();
    build::product(&dims).unwrap()
}
fn table2() -> Vec<(&'static str, Vec<Rail>)> {
    nets().into_iter().map(|(n, t)| (n, Rail::of(&t))).collect()
}
fn nets() -> Vec<(&'static str, crate::topology::Topology)> {
    use DimensionKind::{FullyConnected as F, Ring as R, Switch as S};
    vec![
        ("2D", network(&[(S, 16, 1200, 700), (S, 64, 800, 1700)])),
        (
            "3Dhomo",
            network(&[(S, 16, 800, 700), (S, 8, 800, 700), (S, 8, 800, 1700)]),
        ),
        (
            "3Dhet",
            network(&[(S, 16, 1600, 700), (S, 8, 800, 700), (S, 8, 400, 1700)]),
        ),
        (
            "3Dfrs",
            network(&[(F, 8, 1400, 700), (R, 16, 800, 700), (S, 8, 400, 1700)]),
        ),
        (
            "4Drsss",
            network(&[
                (R, 4, 2000, 20),
                (S, 4, 1600, 700),
                (S, 8, 800, 700),
                (S, 8, 400, 1700),
            ]),
        ),
        (
            "4Drfrs",
            network(&[
                (R, 4, 3000, 20),
                (F, 8, 1400, 700),
                (R, 4, 1200, 700),
                (S, 8, 800, 1700),
            ]),
        ),
    ]
}

fn utilization(rails: &[Rail], bytes: u64, ps: u64) -> f64 {
    let total: f64 = rails.iter().map(|r| r.bandwidth as f64).sum();
    2.0 * bytes as f64 * (1.0 - 1.0 / 1024.0) / total / (ps as f64 * 1e-12)
}

#[test]
fn bands() {
    let kind = CollectiveKind::AllReduce;
    for parts in [1, 2] {
        let run = |rails: &[Rail], lanes: &[Lane], policy| {
            simulate(rails, lanes, parts, policy, Model::default()).finish
        };
        let mut mean = [0.0; 3];
        let mut speed = [0.0; 2];
        let mut top: f64 = 0.0;
        for (_, rails) in table2() {
            for mb in [100u64, 250, 500, 750, 1000] {
                let s = mb * 1_000_000;
                let base = run(&rails, &fixed_order(&rails, kind, s, 64), Policy::Fifo);
                let th = themis(&rails, kind, s, 64);
                let fifo = run(&rails, &th, Policy::Fifo);
                let scf = run(&rails, &th, Policy::SmallestFirst);
                for (mean, t) in mean.iter_mut().zip([base, fifo, scf]) {
                    *mean += utilization(&rails, s, t);
                }
                speed[0] += base as f64 / fifo as f64;
                speed[1] += base as f64 / scf as f64;
                top = top.max(base as f64 / scf as f64);
            }
        }
        println!(
            "m{parts} {:.4?} {:.3?} {top:.3}",
            mean.map(|m| m / 30.0),
            speed.map(|m| m / 30.0)
        );
    }
    for (name, rails) in table2() {
        let model = Model {
            latency: crate::topology::LatencyModel::Occupying,
            ..Model::default()
        };
        let t = |s| {
            simulate(
                &rails,
                &fixed_order(&rails, kind, s, 64),
                1,
                Policy::Fifo,
                model,
            )
            .finish
                / 1000
        };
        let lanes = themis(&rails, kind, 100_000_000, 64);
        let t0 = std::time::Instant::now();
        simulate(&rails, &lanes, 2, Policy::SmallestFirst, model);
        println!(
            "{name} serial 1 GB {} ns, 100 MB {} ns {:?}",
            t(1_000_000_000),
            t(100_000_000),
            t0.elapsed()
        );
    }
}

#[test]
fn agree() {
    use crate::algorithms::plan_of;
    use crate::simulate as sim;
    let kind = CollectiveKind::AllReduce;
    for (name, topology) in nets() {
        let rails = Rail::of(&topology);
        for mb in [100u64, 1000] {
            let s = mb * 1_000_000;
            let collective =
                crate::collective::Collective::new(kind, topology.npus().collect(), s, None)
                    .unwrap();
            for policy in [Policy::Fifo, Policy::SmallestFirst] {
                for switching in [Switching::CutThrough, Switching::StoreAndForward] {
                    let model = Model {
                        switching,
                        ..Default::default()
                    };
                    let lanes = if policy == Policy::Fifo {
                        fixed_order(&rails, kind, s, 64)
                    } else {
                        themis(&rails, kind, s, 64)
                    };
                    let schedule = Schedule::new(kind, rails.clone(), lanes, policy, model);
                    let plan = plan_of(&schedule, &topology, &collective, 1 << 40).unwrap();
                    let v = crate::verify::verify(
                        plan.into(),
                        topology.clone().into(),
                        &mut crate::progress::Silent,
                    )
                    .unwrap();
                    let o = sim::SimulateOptions {
                        switching: Some(switching),
                        ..Default::default()
                    };
                    let r = sim::simulate(&v, &o, &mut crate::progress::Silent).unwrap();
                    let d = schedule.simulate(model).finish;
                    println!(
                        "{name} {mb} {policy:?} {switching:?} dim {} {:.4} link {} {:.2}%",
                        d / 1000000,
                        utilization(&rails, s, d),
                        r.time.as_ps() / 1000000,
                        100.0 * (r.time.as_ps() as f64 / d as f64 - 1.0)
                    );
                    assert_eq!(d, schedule.timeline.finish);
                }
            }
        }
    }
}

#[test]
fn old_hierarchical() {
    use crate::algorithms as al;
    use crate::simulate as sim;
    let kind = CollectiveKind::AllReduce;
    for (name, topology) in nets() {
        let rails = Rail::of(&topology);
        for mb in [100u64, 1000] {
            let s = mb * 1_000_000;
            let collective =
                crate::collective::Collective::new(kind, topology.npus().collect(), s, None)
                    .unwrap();
            let plan = al::plan(
                &topology,
                &collective,
                &al::PlanOptions {
                    chunks: Some(64),
                    ..al::PlanOptions::new(al::Algorithm::Hierarchical)
                },
            )
            .unwrap();
            let v = crate::verify::verify(
                plan.into(),
                topology.clone().into(),
                &mut crate::progress::Silent,
            )
            .unwrap();
            for switching in [Switching::CutThrough, Switching::StoreAndForward] {
                let o = sim::SimulateOptions {
                    switching: Some(switching),
                    ..Default::default()
                };
                let r = sim::simulate(&v, &o, &mut crate::progress::Silent).unwrap();
                let d = simulate(
                    &rails,
                    &fixed_order(&rails, kind, s, 64),
                    2,
                    Policy::Fifo,
                    Model {
                        switching,
                        ..Default::default()
                    },
                )
                .finish;
                println!(
                    "{name} {mb} {switching:?} {} dim {} link {} {:.2}%",
                    v.plan().len(),
                    d / 1000000,
                    r.time.as_ps() / 1000000,
                    100.0 * (r.time.as_ps() as f64 / d as f64 - 1.0)
                );
            }
        }
    }
}
#[test]
fn search() {
    let kind = CollectiveKind::AllReduce;
    for chunks in [64] {
        let mut mean = 0.0;
        for (name, topology) in nets() {
            let rails = Rail::of(&topology);
            println!("{name} {:?}", balance(&rails));
            for mb in [100u64, 250, 500, 750, 1000] {
                let s = mb * 1_000_000;
                let t0 = std::time::Instant::now();
                let found = optimal(
                    &Problem {
                        kind,
                        rails: rails.clone(),
                        bytes: s,
                        chunks,
                        model: Model::default(),
                    },
                    EFFORT,
                    &mut crate::progress::Silent,
                );
                let u = utilization(&rails, s, found.timeline.finish);
                mean += u / 30.0;
                println!(
                    "{name} {mb} {chunks} {:.2} {:?} sizes {:?} {:?}",
                    u * 100.0,
                    t0.elapsed(),
                    found.lanes.iter().map(|l| l.bytes).min(),
                    found.lanes.iter().map(|l| l.bytes).max()
                );
                if mb == 5000 {
                    let collective = crate::collective::Collective::new(
                        kind,
                        topology.npus().collect(),
                        s,
                        None,
                    )
                    .unwrap();
                    let plan = crate::algorithms::plan_of(&found, &topology, &collective, 1 << 40)
                        .unwrap();
                    println!("plan of {} transfers", plan.len());
                }
            }
        }
        println!("mean {mean}");
    }
}
