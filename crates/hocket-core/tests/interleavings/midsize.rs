//! Random plans of hundreds of transfers around one busy NPU, with waits in every form that plans use.
//!
//! What the NPU holds is read, added to and overwritten in phases. Each transfer of a phase waits for
//! the whole phase before: through a shared group, a list of its own, barriers, groups nested one in
//! the next, or groups that part the phase between them. Then members are dropped.

use std::sync::Arc;

use hocket_core::collective::{Collective, Demand, NpuSet};
use hocket_core::id::{NpuId, TransferId, narrow};
use hocket_core::plan::{Chunks, Columns, Lists, Op, Plan, Wait};
use hocket_core::units::Seed;

use crate::board::{percent, pick};

/// The NPU that phases are about.
const BUSY: usize = 0;
/// A contributor whose place is only read.
const SPARE: usize = 1;

/// How a phase waits for the one before.
#[derive(Clone, Copy, Debug)]
enum Form {
    Shared,
    SharedAndOne,
    Own,
    Barrier,
    Barriers,
    Nested,
    Parts,
}

const FORMS: [Form; 7] = [
    Form::Shared,
    Form::SharedAndOne,
    Form::Own,
    Form::Barrier,
    Form::Barriers,
    Form::Nested,
    Form::Parts,
];

/// A plan while it is made: who holds what (of all chunks), and the transfers so far.
struct Draft {
    draw: Seed,
    /// Whether sums come one after the other, so that every run rounds them alike.
    sums_in_turn: bool,
    chunks: usize,
    contributors: usize,
    /// Contributions that each NPU holds; NPUs that hold none come after the contributors.
    held: Vec<Vec<bool>>,
    /// The last write of each NPU's place, for those written once.
    written_by: Vec<Wait>,
    columns: Columns,
    groups: Lists<u32>,
    /// Transfers of the current phase and of the one before.
    phase: Vec<Wait>,
    before: Vec<Wait>,
}

/// The random plan of a seed, and among how many NPUs.
pub(crate) fn plan(seed: u64) -> (Arc<Plan>, usize) {
    let mut draft = Draft::new(Seed(Seed(!seed).next_u64()));
    for _ in 0..1 + draft.draw.below(11) {
        match draft.draw.below(5) {
            0 | 1 => draft.reads(),
            2 | 3 => draft.sums(false),
            _ => draft.copy(),
        }
    }
    draft.sums(true);
    draft.finish()
}

impl Draft {
    fn new(mut draw: Seed) -> Self {
        let contributors = 3 + draw.below(90);
        let chunks = [1, 1, 2, 3][draw.below(4)];
        let own = |npu| (0..contributors).map(|other| other == npu).collect();
        Self {
            sums_in_turn: percent(30, &mut draw),
            draw,
            chunks,
            contributors,
            held: (0..contributors).map(own).collect(),
            written_by: vec![Wait::NOTHING; contributors],
            columns: Columns::default(),
            groups: Lists::default(),
            phase: Vec::new(),
            before: Vec::new(),
        }
    }

    /// Many NPUs get what the busy one holds.
    fn reads(&mut self) {
        self.next_phase();
        let readers = 1 + self.draw.below(80);
        let in_turn = percent(10, &mut self.draw);
        let mut waits = self.waits_for_phase_before(readers);
        for i in 0..readers {
            let reader = self.fresh();
            let made = self.send(BUSY, reader, Op::Copy, waits[i]);
            self.written_by[reader] = made;
            if in_turn && i + 1 < readers {
                waits[i + 1] = made;
            }
        }
    }

    /// Contributors add what they have: some of those that are missing, or all.
    fn sums(&mut self, all: bool) {
        let mut missing: Vec<usize> = (SPARE..self.contributors)
            .filter(|&npu| !self.held[BUSY][npu])
            .collect();
        if !all {
            let keep = self.draw.below(missing.len() + 1);
            while missing.len() > keep {
                missing.swap_remove(self.draw.below(missing.len()));
            }
        }
        if missing.is_empty() {
            return;
        }
        self.next_phase();
        let in_turn = self.sums_in_turn || percent(10, &mut self.draw);
        let mut waits = self.waits_for_phase_before(missing.len());
        for (i, &npu) in missing.iter().enumerate() {
            let made = self.send(npu, BUSY, Op::Reduce, waits[i]);
            if in_turn && i + 1 < missing.len() {
                waits[i + 1] = made;
            }
        }
    }

    /// The busy NPU gets back what an NPU has that read it earlier, if that is something else.
    fn copy(&mut self) {
        let other = |&npu: &usize| self.held[npu] != self.held[BUSY] && self.held[npu][BUSY];
        let sources: Vec<usize> = (self.contributors..self.held.len()).filter(other).collect();
        let Some(&source) = pick(&sources, &mut self.draw) else {
            return;
        };
        self.next_phase();
        let wait = self.waits_for_phase_before(1)[0];
        let wait = self.group(&[wait, self.written_by[source]]);
        self.send(source, BUSY, Op::Copy, wait);
    }

    fn next_phase(&mut self) {
        self.before = std::mem::take(&mut self.phase);
    }

    /// For each of so many transfers a wait for all of the phase before.
    fn waits_for_phase_before(&mut self, transfers: usize) -> Vec<Wait> {
        let before = self.before.clone();
        if before.is_empty() {
            return vec![Wait::NOTHING; transfers];
        }
        let form = FORMS[self.draw.below(FORMS.len())];
        match form {
            Form::Shared => vec![self.group(&before); transfers],
            Form::SharedAndOne => {
                let shared = self.group(&before);
                let and_one = |draft: &mut Self| {
                    let one = Wait::on(draft.draw.below(draft.columns.src.len()).into());
                    draft.group(&[shared, one])
                };
                (0..transfers).map(|_| and_one(self)).collect()
            }
            Form::Own => (0..transfers).map(|_| self.group(&before)).collect(),
            Form::Barrier => {
                let all = self.group(&before);
                vec![self.barrier(all); transfers]
            }
            Form::Barriers => {
                let mut last = self.group(&before);
                let mut next = |draft: &mut Self| {
                    last = draft.barrier(last);
                    last
                };
                (0..transfers).map(|_| next(self)).collect()
            }
            Form::Nested => {
                let mut all = before[0];
                for &member in &before[1..] {
                    all = self.group(&[all, member]);
                }
                vec![all; transfers]
            }
            Form::Parts => {
                let size = 1 + self.draw.below(before.len());
                let parts: Vec<Wait> = before.chunks(size).map(|part| self.group(part)).collect();
                (0..transfers).map(|_| self.group(&parts)).collect()
            }
        }
    }

    fn group(&mut self, members: &[Wait]) -> Wait {
        let mut members: Vec<u32> = members.iter().map(|wait| wait.to_bits()).collect();
        members.retain(|&bits| bits != Wait::NOTHING.to_bits());
        shuffle(&mut members, &mut self.draw);
        Wait::group(self.groups.push(&members))
    }

    /// A transfer that touches nobody else's places.
    fn barrier(&mut self, wait: Wait) -> Wait {
        let dst = self.fresh();
        self.held[dst] = self.held[SPARE].clone();
        self.push(SPARE, dst, Op::Copy, wait, 0..self.chunks)
    }

    fn fresh(&mut self) -> usize {
        self.held.push(vec![false; self.contributors]);
        self.written_by.push(Wait::NOTHING);
        self.held.len() - 1
    }

    /// Sends all chunks, in one transfer or in two, and gives a wait for them.
    fn send(&mut self, src: usize, dst: usize, op: Op, wait: Wait) -> Wait {
        let sent = self.held[src].clone();
        match op {
            Op::Copy => self.held[dst] = sent,
            Op::Reduce => {
                let there = &mut self.held[dst];
                there
                    .iter_mut()
                    .zip(sent)
                    .for_each(|(there, sent)| *there |= sent);
            }
        }
        let cut = self.draw.below(self.chunks);
        if cut == 0 || self.draw.below(2) == 0 {
            let whole = self.push(src, dst, op, wait, 0..self.chunks);
            self.phase.push(whole);
            return whole;
        }
        let first = self.push(src, dst, op, wait, 0..cut);
        let second = self.push(src, dst, op, wait, cut..self.chunks);
        self.phase.extend([first, second]);
        self.group(&[first, second])
    }

    fn push(
        &mut self,
        src: usize,
        dst: usize,
        op: Op,
        wait: Wait,
        chunks: std::ops::Range<usize>,
    ) -> Wait {
        let columns = &mut self.columns;
        columns.chunk.push(narrow(chunks.start));
        columns.chunk_count.push(narrow(chunks.len()));
        columns.src.push(narrow(src));
        columns.dst.push(narrow(dst));
        columns.op.push(op as u8);
        columns.wait.push(wait.to_bits());
        columns.path.push(Plan::DEFAULT_ROUTE);
        Wait::on(TransferId::from(columns.src.len() - 1))
    }

    fn finish(mut self) -> (Arc<Plan>, usize) {
        let npus = self.held.len();
        let all = (0..npus).map(NpuId::from);
        let demand = Demand {
            bytes: 1 << 20,
            reduced: true,
            holders: NpuSet::of((0..self.contributors).map(NpuId::from)),
            wanted: NpuSet::One(NpuId::from(BUSY)),
        };
        let chunks = Chunks::split(std::slice::from_ref(&demand), self.chunks).expect("chunks");
        let collective = Collective::custom(all.collect(), vec![demand]).expect("a collective");
        self.drop_members();
        if percent(6, &mut self.draw) {
            self.change_a_row();
        }
        if percent(30, &mut self.draw) {
            self.shuffle_rows();
        }
        let (columns, groups) = (self.columns, self.groups);
        let plan = Plan::from_columns(
            "mid-size",
            collective,
            chunks,
            columns,
            groups,
            Lists::default(),
        );
        (Arc::new(plan.expect("a plan")), npus)
    }

    /// Takes none, one or two members out of groups.
    fn drop_members(&mut self) {
        let mut lists: Vec<Vec<u32>> = self.groups.iter().map(<[u32]>::to_vec).collect();
        for _ in 0..self.draw.below(3) {
            let full: Vec<usize> = (0..lists.len()).filter(|&g| !lists[g].is_empty()).collect();
            if let Some(&g) = pick(&full, &mut self.draw) {
                let i = self.draw.below(lists[g].len());
                lists[g].remove(i);
            }
        }
        self.groups = Lists::default();
        lists.iter().for_each(|list| {
            self.groups.push(list);
        });
    }

    /// Makes one transfer another: the other op, or another receiver.
    fn change_a_row(&mut self) {
        let t = self.draw.below(self.columns.src.len());
        if self.draw.below(2) == 0 {
            self.columns.op[t] ^= 1;
        } else {
            let others = self.held.len() - 1;
            let other = self.columns.src[t] as usize + 1 + self.draw.below(others);
            self.columns.dst[t] = narrow(other % self.held.len());
        }
    }

    /// Puts the transfers in any order, so that waits point forward too.
    fn shuffle_rows(&mut self) {
        let mut from: Vec<usize> = (0..self.columns.src.len()).collect();
        shuffle(&mut from, &mut self.draw);
        let mut place = vec![0; from.len()];
        from.iter().enumerate().for_each(|(i, &t)| place[t] = i);
        let columns = &mut self.columns;
        for column in [
            &mut columns.chunk,
            &mut columns.chunk_count,
            &mut columns.src,
            &mut columns.dst,
            &mut columns.wait,
        ] {
            *column = from.iter().map(|&t| column[t]).collect();
        }
        columns.op = from.iter().map(|&t| columns.op[t]).collect();
        // Transfers keep their number as bits; groups and nothing lie above.
        let moved = |bits: u32| place.get(bits as usize).map_or(bits, |&i| narrow(i));
        columns
            .wait
            .iter_mut()
            .for_each(|bits| *bits = moved(*bits));
        let mut groups = Lists::default();
        for list in self.groups.iter() {
            groups.push(&list.iter().map(|&bits| moved(bits)).collect::<Vec<u32>>());
        }
        self.groups = groups;
    }
}

fn shuffle<T>(items: &mut [T], draw: &mut Seed) {
    for i in (1..items.len()).rev() {
        items.swap(i, draw.below(i + 1));
    }
}
