//! Who sends what when: the result of a synthesis, before it is a plan.

use super::delivery::{Bits, Delivery, Wanted};
use super::network::{Timing, UnwoundNetwork};
use crate::id::narrow;

/// One chunk on one edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// Chunk that is sent.
    pub chunk: u32,
    /// Over which edge.
    pub edge: u32,
    /// Start of the send, in picoseconds.
    pub start: u64,
}

impl std::fmt::Display for Send {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Send { chunk, edge, start } = self;
        write!(f, "chunk {chunk} over edge {edge} at {start} ps")
    }
}

/// Sends in the order of their starts, and when the last has arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timetable {
    /// The sends.
    pub sends: Vec<Send>,
    /// When all is done, in picoseconds.
    pub end: u64,
}

impl Timetable {
    /// Orders the sends; those of no chunk are dropped.
    pub(super) fn new(mut sends: Vec<Send>, timings: &[Timing], spread: &Delivery) -> Self {
        sends.retain(|send| send.chunk != u32::MAX);
        sends.sort_by_key(|send| send.start);
        let mut timetable = Self { sends, end: 0 };
        let ends = timetable.sends.iter();
        let ends = ends.map(|send| send.start + timing(timings, spread, send).delay);
        timetable.end = ends.max().unwrap_or(0);
        timetable
    }

    /// The same sends, run backwards in time over edges turned round: what spread flows together.
    pub(super) fn mirrored(&self, timings: &[Timing], spread: &Delivery) -> Self {
        let mirrored = |send: &Send| Send {
            start: self.end - send.start - timing(timings, spread, send).delay,
            ..*send
        };
        let sends = self.sends.iter().rev().map(mirrored).collect();
        Self::new(sends, timings, spread)
    }

    /// Checks that every chunk is held where it is sent from, comes once and comes to all who want
    /// it, and that no two chunks share an edge at a time. Gives what is wrong.
    ///
    /// # Complexity
    /// O(sends log sends).
    pub fn check(
        &self,
        network: &UnwoundNetwork,
        spread: &Delivery,
        timings: &[Timing],
    ) -> Result<(), String> {
        let chunks = spread.chunks();
        let mut arrivals: Vec<(u64, u32)> = Vec::with_capacity(self.sends.len());
        for (i, send) in self.sends.iter().enumerate() {
            arrivals.push((send.start + timing(timings, spread, send).delay, narrow(i)));
        }
        arrivals.sort_unstable();
        let mut arrivals = arrivals.into_iter().peekable();
        let mut have = Bits::new(spread.npus, chunks);
        let mut free = vec![0; network.edges().len()];
        for &(chunk, npu) in &spread.others {
            have.set(npu as usize, chunk as usize);
        }
        let release = |chunk: u32| spread.holders[chunk as usize];
        let arrive = |have: &mut Bits, i: u32| {
            let send = self.sends[i as usize];
            let dst = network.edges()[send.edge as usize].dst.0;
            let chunk = send.chunk as usize;
            if have.get(dst as usize, chunk) || release(send.chunk).0 == dst {
                return Err(format!("chunk {chunk} comes to NPU {dst} twice"));
            }
            have.set(dst as usize, chunk);
            Ok(())
        };
        for send in &self.sends {
            while arrivals.peek().is_some_and(|&(time, _)| time <= send.start) {
                let (_, i) = arrivals.next().expect("looked at just now");
                arrive(&mut have, i)?;
            }
            let (src, at) = (network.edges()[send.edge as usize].src.0, send.start);
            let (holder, from) = release(send.chunk);
            let held = holder == src && from <= at;
            if !held && !have.get(src as usize, send.chunk as usize) {
                let chunk = send.chunk;
                return Err(format!("NPU {src} does not hold chunk {chunk} at {at} ps"));
            }
            let free = &mut free[send.edge as usize];
            if *free > at {
                let edge = send.edge;
                return Err(format!("edge {edge} is still busy at {at} ps"));
            }
            *free = at + timing(timings, spread, send).occupied;
        }
        for (_, i) in arrivals {
            arrive(&mut have, i)?;
        }
        let lacks = |npu: u32, chunk: u32| {
            release(chunk).0 != npu && !have.get(npu as usize, chunk as usize)
        };
        for chunk in 0..narrow(chunks) {
            let lacking = match &spread.wanted {
                Wanted::All => (0..narrow(spread.npus)).find(|&npu| lacks(npu, chunk)),
                Wanted::Listed(wanted) => {
                    let npus = wanted.get(chunk as usize).iter().copied();
                    npus.into_iter().find(|&npu| lacks(npu, chunk))
                }
            };
            if let Some(npu) = lacking {
                return Err(format!("NPU {npu} never gets chunk {chunk}"));
            }
        }
        Ok(())
    }
}

#[inline]
pub(super) fn timing(timings: &[Timing], spread: &Delivery, send: &Send) -> Timing {
    let class = spread.class[send.chunk as usize] as usize;
    timings[send.edge as usize * spread.sizes.len() + class]
}
