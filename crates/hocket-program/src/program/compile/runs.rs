//! Which consecutive chunks of memory each transfer carries, from where to where.

use super::place::{At, Places};
use super::units::Units;
use super::{CompileOptions, Moves};
use crate::graph::Lists;
use crate::id::narrow;
use crate::program::{Buffer, Mode, Span, Task};

/// Consecutive chunks of a transfer: from where, with which own chunks if they are summed, to where.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub transfer: u32,
    pub from: At,
    pub own: Option<At>,
    pub to: At,
    pub count: u32,
}

/// The runs of all transfers in their order, in 24 bytes each, and in 28 where there are sums.
pub(super) struct Runs {
    transfer: Vec<u32>,
    from: Vec<u32>,
    /// Empty where nothing is summed.
    own: Vec<u32>,
    to: Vec<u32>,
    count: Vec<u32>,
    /// The runs that each rank sends, and those that it receives.
    sent: Lists<u32>,
    received: Lists<u32>,
    /// Where each slice ends.
    slices: Vec<u32>,
    /// Scratch chunks of each rank.
    pub scratch: Vec<u32>,
}

/// Transfers of a level of which all sends are added before all receives: a block that sends its own first can send on
/// what it receives in one step.
const AT_ONCE: usize = 1 << 13;

/// Returns a place in four bytes: chunks of a buffer are far fewer than 2^30.
fn packed(at: At) -> u32 {
    (at.0 as u32) << 30 | at.1
}

fn unpacked(bits: u32) -> At {
    let buffer = Buffer::ALL[(bits >> 30) as usize];
    (buffer, bits & ((1 << 30) - 1))
}

/// `own` of a run that is no sum.
const NONE: u32 = u32::MAX;

/// Returns whether a place lies directly behind a run of chunks that starts at `first`.
fn follows(first: At, at: At, run: u32) -> bool {
    first.0 == at.0 && first.1 + run == at.1
}

impl Runs {
    pub(super) fn of(
        moves: &Moves<'_>,
        levels: &Lists<u32>,
        units: &Units,
        task: Task,
        mode: Mode,
    ) -> Self {
        let mut places = Places::new(moves, levels, units, task, mode);
        let transfers = moves.plan.len();
        let room = || Vec::with_capacity(transfers);
        let has_sums = moves.plan.op().iter().any(|&op| op != 0);
        let mut runs = Self {
            transfer: room(),
            from: room(),
            own: if has_sums { room() } else { Vec::new() },
            to: room(),
            count: room(),
            sent: Lists::default(),
            received: Lists::default(),
            slices: Vec::with_capacity(levels.len()),
            scratch: Vec::new(),
        };
        let mut position = 0;
        for slice in levels.iter().flat_map(|level| level.chunks(AT_ONCE)) {
            for &transfer in slice {
                runs.add(moves, transfer, &mut places, units, has_sums);
            }
            for &transfer in slice {
                let each = moves.at(transfer);
                for chunk in each.first..each.first + each.count {
                    places.end(each.src, chunk, position);
                    places.end(each.dst, chunk, position);
                }
                position += 1;
            }
            runs.slices.push(narrow(runs.transfer.len()));
        }
        runs.scratch = places.sizes;
        let ranks = task.ranks as usize;
        let numbered = || (0..).zip(&runs.transfer);
        let sent = numbered().map(|(run, &transfer)| (moves.at(transfer).src as usize, run));
        let sent = Lists::grouped(ranks, sent);
        let received = numbered().map(|(run, &transfer)| (moves.at(transfer).dst as usize, run));
        runs.received = Lists::grouped(ranks, received);
        runs.sent = sent;
        runs
    }

    /// Adds the runs of one transfer.
    fn add(
        &mut self,
        moves: &Moves<'_>,
        transfer: u32,
        places: &mut Places<'_>,
        units: &Units,
        has_sums: bool,
    ) {
        let each = moves.at(transfer);
        let before = self.transfer.len();
        for chunk in each.first..each.first + each.count {
            let from = places.now(each.src, chunk);
            let own = each.is_sum.then(|| places.now(each.dst, chunk));
            let to = places.next(each.dst, chunk);
            let len = units.len[chunk as usize];
            if self.transfer.len() > before {
                let last = self.get(narrow(self.transfer.len()) - 1);
                let run = last.count;
                let goes_on = follows(last.from, from, run)
                    && follows(last.to, to, run)
                    && (last.own.zip(own)).is_none_or(|(last, own)| follows(last, own, run));
                if goes_on {
                    *self.count.last_mut().expect("there is one") += len;
                    continue;
                }
            }
            self.transfer.push(transfer);
            self.from.push(packed(from));
            if has_sums {
                self.own.push(own.map_or(NONE, packed));
            }
            self.to.push(packed(to));
            self.count.push(len);
        }
    }

    /// Returns how many there are.
    pub(super) fn len(&self) -> usize {
        self.transfer.len()
    }

    /// Returns how many parts all of them have.
    pub(super) fn parts_of_all(&self, options: &CompileOptions) -> u64 {
        let of = |&count: &u32| (count / options.instances).div_ceil(longest(options));
        let parts: u64 = self.count.iter().map(|count| u64::from(of(count))).sum();
        parts * u64::from(options.instances)
    }

    pub(super) fn get(&self, run: u32) -> Run {
        let i = run as usize;
        let own = self.own.get(i).copied().unwrap_or(NONE);
        Run {
            transfer: self.transfer[i],
            from: unpacked(self.from[i]),
            own: (own != NONE).then(|| unpacked(own)),
            to: unpacked(self.to[i]),
            count: self.count[i],
        }
    }

    /// Returns the runs that a rank sends and those that it receives, slice by slice; slices without either are left
    /// out.
    pub(super) fn slices_of(&self, rank: u32) -> impl Iterator<Item = (&[u32], &[u32])> {
        let mut sent = self.sent.get(rank as usize);
        let mut received = self.received.get(rank as usize);
        std::iter::from_fn(move || {
            let first = [sent.first(), received.first()];
            let &first = first.into_iter().flatten().min()?;
            let slice = self.slices.partition_point(|&end| end <= first);
            let end = self.slices[slice];
            let (sends, more) = sent.split_at(sent.partition_point(|&run| run < end));
            sent = more;
            let (receives, more) = received.split_at(received.partition_point(|&run| run < end));
            received = more;
            Some((sends, receives))
        })
    }

    /// Returns the parts of a run, each with its instance: at most `max_count` chunks, as places and the number of
    /// chunks.
    pub(super) fn parts(run: Run, options: &CompileOptions) -> impl Iterator<Item = (u32, Run)> {
        let part = run.count / options.instances;
        let max_count = longest(options);
        (0..options.instances).flat_map(move |instance| {
            (0..part).step_by(max_count as usize).map(move |done| {
                let offset = instance * part + done;
                let at = |place: At| (place.0, place.1 + offset);
                let piece = Run {
                    transfer: run.transfer,
                    from: at(run.from),
                    own: run.own.map(at),
                    to: at(run.to),
                    count: (part - done).min(max_count),
                };
                (instance, piece)
            })
        })
    }
}

/// Most chunks of a step.
pub(super) fn longest(options: &CompileOptions) -> u32 {
    options.max_count.min(Span::MAX_COUNT)
}
