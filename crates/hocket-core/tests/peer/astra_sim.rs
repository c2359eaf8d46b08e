//! An all-reduce of 64 MiB as ASTRA-sim's congestion-aware back end times it, row by row.
//!
//! Measured with commit 518bd51 of ASTRA-sim: links of 50 x 2^30 bytes/s and 500 ns, 1 ns of endpoint
//! delay. `docs/models.md` tells the two models apart; the constants below are what it rests on.

use std::sync::Arc;

use hocket_core::algorithms::Algorithm;
use hocket_core::collective::{Collective, CollectiveKind};
use hocket_core::id::NpuId;
use hocket_core::plan::{Chunks, Op, Plan, PlanBuilder, Wait};
use hocket_core::simulate::SimulateOptions;
use hocket_core::topology::Topology;
use hocket_core::topology::build::{self, RingWays};

use crate::run::{Link, time_of, time_of_plan};

const SIZE: u64 = 64 << 20;
const LINK: Link = Link {
    rate: 50 << 30,
    alpha: 500_000,
};

/// How the chunks of an all-reduce follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunking {
    /// So many, all under way together.
    Together(usize),
    /// So many, each after the one before has ended.
    InTurn(usize),
}

#[derive(Clone, Copy, Debug)]
struct Row {
    algorithm: Algorithm,
    full: bool,
    npus: u32,
    chunking: Chunking,
    /// What ASTRA-sim reports.
    ns: u64,
}

const fn ring(npus: u32, chunking: Chunking, ns: u64) -> Row {
    Row {
        algorithm: Algorithm::Ring,
        full: false,
        npus,
        chunking,
        ns,
    }
}

const fn direct(full: bool, npus: u32, chunking: Chunking, ns: u64) -> Row {
    Row {
        algorithm: Algorithm::Direct,
        full,
        npus,
        chunking,
        ns,
    }
}

use Chunking::{InTurn, Together};

const ROWS: [Row; 16] = [
    ring(16, Together(1), 2_358_961),
    ring(16, InTurn(64), 3_304_384),
    ring(16, Together(64), 2_342_902),
    direct(false, 16, Together(1), 5_627_015),
    ring(64, Together(1), 2_524_222),
    ring(64, Together(64), 2_460_022),
    direct(false, 64, Together(1), 20_626_742),
    direct(false, 64, InTurn(64), 20_766_272),
    ring(256, Together(1), 2_745_331),
    direct(false, 256, Together(1), 80_613_587),
    ring(1024, Together(1), 3_521_167),
    ring(1024, InTurn(64), 68_090_944),
    direct(true, 16, Together(1), 157_265),
    direct(true, 64, Together(1), 40_068),
    direct(true, 64, InTurn(64), 103_232),
    direct(true, 256, Together(1), 10_767),
];

const LONGEST: Row = direct(false, 1024, Together(1), 320_442_323);

impl Row {
    fn topology(&self, link: Link) -> Arc<Topology> {
        let (n, bandwidth, latency) = (self.npus, link.bandwidth(), link.latency());
        Arc::new(match self.full {
            true => build::fully_connected(n, bandwidth, latency).expect("a network"),
            false => build::ring(n, bandwidth, latency, RingWays::Both).expect("a ring"),
        })
    }

    /// Bytes of one message, and how many all-reduces run one after another.
    fn message(&self) -> (u64, u64) {
        let (chunks, in_turn) = match self.chunking {
            Together(chunks) => (chunks as u64, 1),
            InTurn(chunks) => (chunks as u64, chunks as u64),
        };
        (SIZE / chunks / u64::from(self.npus), in_turn)
    }

    /// Steps of both passes.
    fn steps(&self) -> u64 {
        match self.algorithm {
            Algorithm::Ring => 2 * u64::from(self.npus - 1),
            _ => 2,
        }
    }

    /// hocket's time with its defaults, in nanoseconds.
    fn hocket(&self) -> f64 {
        let topology = self.topology(LINK);
        let (size, chunks, in_turn) = match self.chunking {
            Together(chunks) => (SIZE, chunks, 1),
            InTurn(chunks) => (SIZE / chunks as u64, 1, chunks as u64),
        };
        let (kind, options) = (CollectiveKind::AllReduce, SimulateOptions::default());
        let ps = time_of(&topology, kind, size, self.algorithm, chunks, &options);
        (in_turn * ps) as f64 / 1000.0
    }

    fn difference(&self) -> f64 {
        let hocket = self.hocket();
        let percent = 100.0 * (hocket / self.ns as f64 - 1.0);
        println!("{self:?}: {hocket} ns, {percent:+.3} %");
        percent
    }
}

#[test]
fn every_row_is_within_a_percent() {
    for row in ROWS {
        assert!(row.difference().abs() < 1.0, "{row:?}");
    }
}

#[test]
#[ignore = "half a billion hops: a minute, 2 GB"]
fn the_longest_row_is_within_a_percent() {
    assert!(LONGEST.difference().abs() < 1.0, "{LONGEST:?}");
}
