//! What programs on the hosts do: flows come and go, jobs iterate.

use std::time::Duration;

use hocket_control::agent::Input;
use hocket_control::message::{NewFlow, PatternFlow};

use super::faults::HOSTS;
use super::site::address;
use super::world::World;

/// Programs of all hosts.
pub(crate) struct Programs {
    pub seed: u64,
    /// By host: open flows, and the jobs that it leads with whether they are live.
    open: Vec<Vec<u64>>,
    jobs: Vec<Vec<(u32, bool)>>,
}

impl Programs {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            open: vec![Vec::new(); HOSTS as usize],
            jobs: vec![Vec::new(); HOSTS as usize],
        }
    }

    pub(crate) fn crash(&mut self, host: u32) {
        self.open[host as usize].clear();
        self.jobs[host as usize].clear();
    }

    pub(crate) fn refused(&mut self, host: u32, job: u32) {
        self.jobs[host as usize].retain(|(id, _)| *id != job);
    }

    /// A host's programs do something.
    pub(crate) fn work(world: &mut World, host: u32) {
        match world.random.below(12) {
            0..5 => {
                for _ in 0..1 + world.random.below(3) {
                    Self::open(world, host);
                }
            }
            5..8 => {
                for _ in 0..1 + world.random.below(3) {
                    let open = &mut world.programs.open[host as usize];
                    if !open.is_empty() {
                        let at = world.random.below(open.len() as u64) as usize;
                        let flow = open.swap_remove(at);
                        world.tell_host(host, Input::Close { flow });
                    }
                }
            }
            8 => {
                let open = &world.programs.open[host as usize];
                if let Some(&flow) = open.last() {
                    let rtt = Duration::from_micros(50);
                    let loss_ppm = if world.random.one_in(2) { 500_000 } else { 0 };
                    let left = 1 + world.random.below(1 << 20);
                    world.tell_host(host, Input::Progress { flow, left });
                    let input = match world.random.one_in(2) {
                        true => Input::Measured {
                            flow,
                            loss_ppm,
                            rtt,
                        },
                        false => Input::PathMeasured {
                            flow,
                            loss_ppm,
                            rtt: Some(rtt),
                        },
                    };
                    world.tell_host(host, input);
                }
            }
            _ => Self::job(world, host),
        }
        if !world.random.one_in(4) {
            world.tell_host(host, Input::Flush);
        }
    }

    fn open(world: &mut World, host: u32) {
        let job = match world.random.below(10) {
            0..2 => 1,
            2 => 2,
            // Of host 0 alone.
            3 => 3,
            _ => 0,
        };
        let dst = match job {
            1 | 2 => (host + job) % HOSTS,
            _ => world.random.below(HOSTS.into()) as u32,
        };
        // One address in forty is nobody's.
        let dst = if world.random.one_in(40) { 200 } else { dst };
        let small = world.random.one_in(8);
        let opened = NewFlow {
            job,
            src: address(host),
            dst: address(dst),
            bytes: if small { 10 } else { 1 << 20 },
            is_fixed: world.random.one_in(3),
        };
        if let Some(flow) = world.open(host, opened) {
            world.programs.open[host as usize].push(flow);
        }
    }

    /// Hosts 0 and 5 lead jobs 1 and 2, rings of all hosts; host 3 tries what it may not.
    fn job(world: &mut World, host: u32) {
        let job = match host {
            0 => 1,
            5 => 2,
            3 => 3,
            _ => return,
        };
        let jobs = &mut world.programs.jobs[host as usize];
        let Some(known) = jobs.iter_mut().find(|(id, _)| *id == job) else {
            jobs.push((job, false));
            let bytes = 1 << world.random.below(3);
            let pattern = (0..HOSTS).map(|from| PatternFlow {
                src: address(from),
                dst: address((from + job) % HOSTS),
                bytes,
            });
            let pattern = pattern.collect();
            return world.tell_host(host, Input::JobComes { job, pattern });
        };
        if !known.1 && world.random.one_in(5) {
            jobs.retain(|(id, _)| *id != job);
            return world.tell_host(host, Input::JobGoes { job });
        }
        known.1 = !known.1;
        let input = match known.1 {
            true => Input::JobStarts { job },
            false => Input::JobStops { job },
        };
        world.tell_host(host, input);
    }
}
