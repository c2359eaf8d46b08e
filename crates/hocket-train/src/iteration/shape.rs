//! What a call puts on the rails: its tasks, step by step.

use super::engine::LONGEST_PS;
use super::graph::GraphError;
use super::station::Station;
use crate::id::fit;
use crate::multirail::{Model, Operation, PARTS, Policy, Rail, Schedule, Tasks, servers};
use crate::topology::DimensionKind;
use crate::units::whole;

/// What a collective or a message has each of its actors do: tasks for the actor's servers.
///
/// An actor has servers, numbered from 0; a rail has one, or two where it goes both ways or its switches
/// sum. Many calls may have one shape.
///
/// Whatever makes one refuses what uses no rail, and what could take longer than can be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub(super) tasks: Tasks,
    /// Of each task: least is served first.
    pub(super) key: Vec<u64>,
    /// The actor's server that stands for each of the tasks' own.
    pub(super) servers: Vec<u16>,
    pub(super) model: Model,
    lone_ps: u64,
}

impl Shape {
    /// Returns a schedule of an all-reduce, reduce-scatter or all-gather.
    ///
    /// `first`: of each rail of the schedule, the actor's first server for it.
    pub fn of_schedule(schedule: &Schedule, first: &[u16]) -> Result<Self, GraphError> {
        let tasks = Tasks::of(&schedule.rails, &schedule.lanes, PARTS);
        let key = match schedule.policy {
            Policy::Fifo => vec![0; tasks.held.len()],
            Policy::SmallestFirst => tasks.held.clone(),
        };
        let servers = own_servers(&schedule.rails, PARTS, first)?;
        Self::new(tasks, key, servers, schedule.model)
    }

    /// Returns an all-to-all over rails, one after the other: each chunk begins with another one.
    ///
    /// On every rail an NPU holds `bytes` in all and keeps 1/P of them. Through a switch or over direct
    /// links that is one step. Round a ring data goes the shorter way: S (P^2 - P mod 2) / 8P over each of
    /// the two links of an NPU; along a line S P / 4 over the link in the middle.
    ///
    /// # Source
    /// The sum over all pairs of the links between them, over the links.
    pub fn all_to_all(
        rails: &[Rail],
        bytes: u64,
        chunks: usize,
        model: Model,
        first: &[u16],
    ) -> Result<Self, GraphError> {
        let (own, count) = servers(rails, PARTS);
        let mut ways = vec![(0, 0); count];
        for (r, rail) in rails.iter().enumerate() {
            let end = own.get(r + 1).map_or(count, |&next| usize::from(next));
            ways[usize::from(own[r])..end].fill(next_way(rail));
        }
        let mut rows = Vec::with_capacity(chunks * PARTS);
        for chunk in 0..chunks.max(1) {
            let (from, to) = (chunk as u128, chunk as u128 + 1);
            let upto = |i: u128| u128::from(bytes) * i / chunks.max(1) as u128;
            let size = (upto(to) - upto(from)) as f64 / PARTS as f64;
            for part in 0..PARTS {
                let stage = |k: usize| {
                    let r = (chunk + k) % rails.len();
                    exchange(&rails[r], own[r], part, size)
                };
                rows.push((0..rails.len()).map(stage).collect());
            }
        }
        let tasks = Tasks::of_operations(ways, &rows);
        let key = vec![0; tasks.held.len()];
        Self::new(tasks, key, own_servers(rails, PARTS, first)?, model)
    }

    /// Returns a message from an NPU to another along each of some rails in turn: over one link where a rail has
    /// several. `ways`: of each rail, the links on the way, fewer than it has NPUs.
    pub fn message(
        rails: &[Rail],
        ways: &[u32],
        bytes: u64,
        model: Model,
        first: &[u16],
    ) -> Result<Self, GraphError> {
        for (entry, (rail, &value)) in rails.iter().zip(ways).enumerate() {
            if value >= rail.size {
                return Err(GraphError::Range {
                    column: "ways",
                    entry,
                    value,
                    below: rail.size as usize,
                });
            }
        }
        let latency = |(rail, &links): (&Rail, &u32)| {
            let (latency, hops) = next_way(rail);
            let links = u64::from(links.max(1));
            (latency.saturating_mul(links), links * hops)
        };
        let row = rails.iter().enumerate().map(|(r, rail)| Operation {
            server: fit(r),
            held: bytes,
            steps: vec![whole((bytes as f64 * 1e12 / link_bandwidth(rail)).ceil())],
        });
        let tasks = Tasks::of_operations(
            rails.iter().zip(ways).map(latency).collect(),
            &[row.collect()],
        );
        let key = vec![0; tasks.held.len()];
        Self::new(tasks, key, first.to_vec(), model)
    }

    /// Returns what takes a time that is known already, on one server.
    pub fn timed(time_ps: u64, server: u16) -> Result<Self, GraphError> {
        let whole = Operation {
            server: 0,
            held: 0,
            steps: vec![time_ps],
        };
        let tasks = Tasks::of_operations(vec![(0, 1)], &[vec![whole]]);
        Self::new(tasks, vec![0], vec![server], Model::default())
    }

    fn new(
        tasks: Tasks,
        key: Vec<u64>,
        servers: Vec<u16>,
        model: Model,
    ) -> Result<Self, GraphError> {
        if tasks.is_empty() {
            return Err(GraphError::Column {
                column: "rails",
                entries: 0,
                needed: 1,
            });
        }
        if longest_ps(&tasks) > LONGEST_PS {
            return Err(GraphError::TooLong);
        }
        let mut shape = Self {
            tasks,
            key,
            servers,
            model,
            lone_ps: 0,
        };
        shape.lone_ps = Station::lone(&shape);
        Ok(shape)
    }

    /// Returns how long it takes where nothing else is under way, in picoseconds.
    pub fn lone_ps(&self) -> u64 {
        self.lone_ps
    }

    /// Returns the actor's servers that it uses, and how long it keeps each busy, in picoseconds.
    pub fn busy_ps(&self) -> Vec<(u16, u64)> {
        let mut busy: Vec<(u16, u64)> = self.servers.iter().map(|&server| (server, 0)).collect();
        for (task, &server) in self.tasks.server.iter().enumerate() {
            busy[usize::from(server)].1 += self.tasks.times(task).iter().sum::<u64>();
        }
        busy
    }

    /// Returns how many of the actor's servers it needs to know of.
    pub fn server_count(&self) -> usize {
        self.servers
            .iter()
            .max()
            .map_or(0, |&most| usize::from(most) + 1)
    }
}

/// Returns what all steps take one after the other, each over all of its links.
fn longest_ps(tasks: &Tasks) -> u128 {
    let of = |(task, &server): (usize, &u8)| {
        let (latency, hops) = tasks.ways[usize::from(server)];
        let step = |&time: &u64| u128::from(time) * u128::from(hops) + u128::from(latency);
        tasks.times(task).iter().map(step).sum::<u128>()
    };
    tasks.server.iter().enumerate().map(of).sum()
}

/// Returns the actor's server for each of the servers that rails have of their own.
fn own_servers(rails: &[Rail], parts: usize, first: &[u16]) -> Result<Vec<u16>, GraphError> {
    let (own, count) = servers(rails, parts);
    let mut found = Vec::with_capacity(count);
    for (r, &start) in own.iter().enumerate() {
        let end = own.get(r + 1).map_or(count, |&next| usize::from(next));
        let more = fit(end - usize::from(start) - 1);
        let last = first[r].checked_add(more).ok_or(GraphError::Range {
            column: "first",
            entry: r,
            value: u32::from(first[r]),
            below: usize::from(u16::MAX - more) + 1,
        })?;
        found.extend(first[r]..=last);
    }
    Ok(found)
}

/// One part of a chunk's all-to-all along a rail.
fn exchange(rail: &Rail, first: u8, part: usize, size: f64) -> Operation {
    let n = f64::from(rail.size);
    let goes_both_ways = rail.kind == DimensionKind::Ring && rail.size > 2;
    // Bytes over the busiest link, or over all links together where they are used alike; and steps.
    let (sent, steps) = match rail.kind {
        DimensionKind::Ring if goes_both_ways => {
            let odd = f64::from(rail.size % 2);
            // Both parts go both ways: each server serves half of each part.
            (size * (n * n - odd) / (4.0 * n), rail.size / 2)
        }
        DimensionKind::Line if rail.size > 2 => (size * n / 4.0, rail.size - 1),
        _ => (size * (n - 1.0) / n, 1),
    };
    let time = sent * 1e12 / rail.bandwidth as f64;
    // Parts share a ring's two servers: one each, at half of the bandwidth.
    let time = if goes_both_ways { 2.0 * time } else { time };
    Operation {
        server: first + if goes_both_ways { fit(part) } else { 0 },
        held: whole(size),
        steps: vec![whole((time / f64::from(steps)).ceil()); steps as usize],
    }
}

/// Latency and links from an NPU to the next one. Of a line, a schedule's steps reach as far as two.
fn next_way(rail: &Rail) -> (u64, u64) {
    match rail.kind {
        DimensionKind::Line => (rail.step_latency.as_ps() / rail.hops(), 1),
        _ => (rail.step_latency.as_ps(), rail.hops()),
    }
}

/// Returns what one link of a rail carries, in bytes per second: all of it through a switch.
fn link_bandwidth(rail: &Rail) -> f64 {
    let links = match rail.kind {
        DimensionKind::Ring if rail.size > 2 => 2,
        DimensionKind::FullyConnected => rail.size.max(2) - 1,
        _ => 1,
    };
    rail.bandwidth as f64 / f64::from(links)
}
