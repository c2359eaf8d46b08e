//! Does one transfer always end before another starts?

use super::forest::Forest;
use super::structure::Order;
use crate::id::TransferId;
use crate::plan::{Plan, Wait, WaitOn};

/// Answers questions about the order that a plan's waits enforce.
///
/// Quick looks come first: at the wait itself and the groups nested in it, then, once searches have
/// cost as much as it takes to build one, at a [`Forest`]. What these leave open is searched for in
/// everything that comes before, all of it at once. The answers are exact.
pub(super) struct Ordering<'a> {
    plan: &'a Plan,
    order: &'a Order,
    /// Position of each transfer in the wait order; `None` where that is the plan's own.
    position: Option<Vec<u32>>,
    forest: Option<Forest>,
    /// Transfers and members of groups that searches went through.
    searched: u64,
    /// Transfers that were compared with a wait.
    #[cfg(test)]
    compared: u64,
    seen: Vec<u32>,
    seen_groups: Vec<u32>,
    mark: u32,
    stack: Vec<u32>,
    open: Vec<u32>,
    /// How many transfers the last question was about.
    asked: usize,
}

/// Members of groups that a short look goes through before it gives up.
const LOOK: usize = 64;
/// Transfers that are looked for in a list one by one.
pub(super) const FEW: usize = 16;
/// Members of a wait that are looked at one by one.
const MEMBERS: usize = 8;

impl<'a> Ordering<'a> {
    pub(super) fn new(plan: &'a Plan, order: &'a Order) -> Self {
        Self {
            plan,
            order,
            position: order.positions(),
            forest: None,
            searched: 0,
            #[cfg(test)]
            compared: 0,
            seen: Vec::new(),
            seen_groups: Vec::new(),
            mark: 0,
            stack: Vec::new(),
            open: Vec::new(),
            asked: 0,
        }
    }

    /// Returns how many transfers the last question was about.
    #[inline]
    pub(super) fn asked(&self) -> usize {
        self.asked
    }

    /// Returns what was gone through so far, in transfers and members: a measure of the work.
    #[cfg(test)]
    pub(super) fn work(&self) -> u64 {
        self.searched + self.compared
    }

    /// Returns the first of `transfers` that may not have ended when whoever waits for `wait` starts.
    pub(super) fn first_open(
        &mut self,
        transfers: impl Iterator<Item = TransferId>,
        wait: Wait,
    ) -> Option<TransferId> {
        self.open_all(transfers);
        self.strike(wait);
        if wait != Wait::NOTHING && !self.open.is_empty() {
            self.strike_above(wait);
            self.search(wait, u64::MAX);
        }
        self.open.first().map(|&open| TransferId(open))
    }

    fn open_all(&mut self, transfers: impl Iterator<Item = TransferId>) {
        self.open.clear();
        self.open.extend(transfers.map(|transfer| transfer.0));
        self.asked = self.open.len();
        #[cfg(test)]
        {
            self.compared += self.asked as u64;
        }
    }

    /// Takes what `wait` names, itself or in groups nested in it, off the list `open`.
    fn strike(&mut self, wait: Wait) {
        match wait.target() {
            WaitOn::Nothing => {}
            WaitOn::Transfer(id) => self.open.retain(|&open| open != id.0),
            WaitOn::Group(group) if self.open.len() <= FEW => self.strike_few(group),
            WaitOn::Group(group) => self.strike_many(group),
        }
    }

    /// Takes the members of a group, nested ones included, off a short list `open`.
    fn strike_few(&mut self, group: u32) {
        let mut looks = LOOK;
        self.stack.clear();
        self.stack.push(group);
        while let Some(group) = self.stack.pop() {
            for &bits in self.plan.groups().get(group as usize) {
                match Wait::from_bits(bits).target() {
                    WaitOn::Nothing => {}
                    WaitOn::Group(nested) => self.stack.push(nested),
                    WaitOn::Transfer(id) => {
                        let found = self.open.iter().position(|&open| open == id.0);
                        if let Some(found) = found {
                            self.open.swap_remove(found);
                        }
                    }
                }
                looks -= 1;
                if looks == 0 || self.open.is_empty() {
                    return;
                }
            }
        }
    }

    /// As [`Self::strike_few`], for a long list.
    fn strike_many(&mut self, group: u32) {
        let mark = self.mark_open();
        let mut looks = LOOK + 2 * self.open.len();
        self.stack.clear();
        self.stack.push(group);
        while let Some(group) = self.stack.pop() {
            let members = self.plan.groups().get(group as usize);
            looks = looks.saturating_sub(members.len());
            if looks == 0 {
                break;
            }
            for &bits in members {
                match Wait::from_bits(bits).target() {
                    WaitOn::Nothing => {}
                    WaitOn::Group(nested) => self.stack.push(nested),
                    WaitOn::Transfer(id) => self.seen[id.index()] = 0,
                }
            }
        }
        self.open.retain(|&open| self.seen[open as usize] == mark);
    }

    /// Returns a fresh mark, set on all transfers of `open`.
    fn mark_open(&mut self) -> u32 {
        let mark = self.fresh_mark();
        for &open in &self.open {
            self.seen[open as usize] = mark;
        }
        mark
    }

    fn fresh_mark(&mut self) -> u32 {
        self.seen.resize(self.plan.len(), 0);
        if self.mark == u32::MAX {
            // Marks of long ago must not pass for one of those to come.
            self.seen.fill(0);
            self.seen_groups.fill(0);
            self.mark = 0;
        }
        self.mark += 1;
        self.mark
    }

    /// Takes what the forest tells off the list `open`, if there is a forest.
    fn strike_above(&mut self, wait: Wait) {
        if let Some(forest) = &self.forest {
            let above = |open: u32| is_above(self.plan, forest, Wait::on(TransferId(open)), wait);
            self.open.retain(|&open| !above(open));
        }
    }

    /// Takes everything that ends before `wait` is over off the list `open`, by a search back to
    /// the earliest of them that goes through `budget` transfers and members at most.
    fn search(&mut self, wait: Wait, budget: u64) {
        let Some(earliest) = self.open.iter().map(|&open| self.position_of(open)).min() else {
            return;
        };
        self.seen_groups.resize(self.plan.groups().len(), 0);
        let mark = self.fresh_mark();
        let end = self.searched.saturating_add(budget);
        self.stack.clear();
        self.stack.push(wait.to_bits());
        while let Some(bits) = self.stack.pop() {
            self.searched += 1;
            if self.searched > end {
                break;
            }
            match Wait::from_bits(bits).target() {
                WaitOn::Nothing => {}
                WaitOn::Transfer(id) => {
                    let seen = std::mem::replace(&mut self.seen[id.index()], mark);
                    if seen != mark && self.position_of(id.0) > earliest {
                        self.stack.push(self.plan.wait()[id.index()]);
                    }
                }
                WaitOn::Group(group) => {
                    let group = group as usize;
                    let seen = std::mem::replace(&mut self.seen_groups[group], mark);
                    if seen != mark {
                        self.stack.extend_from_slice(self.plan.groups().get(group));
                    }
                }
            }
        }
        self.open.retain(|&open| self.seen[open as usize] != mark);
        let nodes = self.plan.len() + self.plan.groups().len();
        if self.forest.is_none() && self.searched > nodes as u64 {
            self.forest = Some(Forest::new(self.plan, self.order, self.position.as_deref()));
        }
    }

    /// Returns whether `inner` is always over when `outer` is, as far as a short look tells; `false` may only mean that
    /// it was not found.
    pub(super) fn covers(&mut self, inner: Wait, outer: Wait) -> bool {
        self.is_near(inner, outer)
            || self
                .forest
                .as_ref()
                .is_some_and(|forest| is_above(self.plan, forest, inner, outer))
    }

    /// Returns whether `inner` is `outer`, or a member of it or of a group nested in it; where `outer` is a transfer,
    /// then of what that waits for. A short look.
    fn is_near(&mut self, inner: Wait, outer: Wait) -> bool {
        let mut looks = LOOK;
        self.stack.clear();
        self.stack.push(outer.to_bits());
        if let WaitOn::Transfer(id) = outer.target() {
            self.stack.push(self.plan.wait()[id.index()]);
        }
        while let Some(bits) = self.stack.pop() {
            if bits == inner.to_bits() {
                return true;
            }
            if let WaitOn::Group(group) = Wait::from_bits(bits).target() {
                let members = self.plan.groups().get(group as usize);
                looks = looks.saturating_sub(members.len());
                if looks == 0 {
                    return members.contains(&inner.to_bits());
                }
                self.stack.extend_from_slice(members);
            }
        }
        false
    }

    /// Returns a wait that is over no later than `wait`, but like it not before all of `transfers` have ended: the part
    /// of it that the waits of others are likely to share.
    ///
    /// # Complexity
    /// A small multiple of the number of `transfers`, all of which end before `wait` is over.
    pub(super) fn narrow(
        &mut self,
        transfers: impl Iterator<Item = TransferId> + Clone,
        mut wait: Wait,
    ) -> Wait {
        let positions = transfers.clone().map(|id| self.position_of(id.0));
        let (mut steps, mut latest) = (LOOK, 0);
        positions.for_each(|position| {
            steps += 1;
            latest = latest.max(position);
        });
        let mut tries = 2 * MEMBERS;
        while steps > 0 {
            steps -= 1;
            let next = match wait.target() {
                WaitOn::Nothing => None,
                // What ends before this transfer has ended, itself apart, ends before it starts.
                WaitOn::Transfer(id) if self.position_of(id.0) > latest => {
                    Some(self.plan.wait()[id.index()])
                }
                WaitOn::Transfer(_) => None,
                WaitOn::Group(group) => {
                    self.sole_member(transfers.clone(), group, latest, &mut tries)
                }
            };
            match next {
                Some(bits) => wait = Wait::from_bits(bits),
                None => break,
            }
        }
        wait
    }

    /// Returns a member of a group that is not over before all of `transfers`, which end by position `latest`, have
    /// ended; as far as a number of `tries` finds one.
    fn sole_member(
        &mut self,
        transfers: impl Iterator<Item = TransferId> + Clone,
        group: u32,
        latest: u32,
        tries: &mut usize,
    ) -> Option<u32> {
        let members = self.plan.groups().get(group as usize);
        for &bits in &members[..members.len().min(LOOK)] {
            let member = Wait::from_bits(bits);
            let is_late = match member.target() {
                WaitOn::Nothing => false,
                WaitOn::Transfer(id) => self.position_of(id.0) > latest,
                WaitOn::Group(_) => true,
            };
            if !is_late {
                continue;
            }
            if *tries == 0 {
                return None;
            }
            *tries -= 1;
            self.open_all(transfers.clone());
            self.strike(member);
            self.strike_above(member);
            if matches!(member.target(), WaitOn::Transfer(_)) {
                self.search(member, (LOOK + 4 * self.open.len()) as u64);
            }
            if self.open.is_empty() {
                return Some(bits);
            }
        }
        None
    }

    fn position_of(&self, transfer: u32) -> u32 {
        match &self.position {
            None => transfer,
            Some(position) => position[transfer as usize],
        }
    }
}

/// Returns whether `above` lies above `below`, or above one of its first members if it is a group.
fn is_above(plan: &Plan, forest: &Forest, above: Wait, below: Wait) -> bool {
    let members = match below.target() {
        WaitOn::Group(group) => plan.groups().get(group as usize),
        _ => &[],
    };
    let few = &members[..members.len().min(MEMBERS)];
    forest.is_above(above, below)
        || few
            .iter()
            .any(|&bits| forest.is_above(above, Wait::from_bits(bits)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{Collective, CollectiveKind};
    use crate::id::NpuId;
    use crate::plan::{Chunks, Op, PlanBuilder};

    /// Returns a plan of transfers that wait for the one before, and of one, the last, that waits for nothing.
    fn chain(length: usize) -> (Plan, Vec<TransferId>) {
        let npus: Vec<NpuId> = (0..2).map(NpuId::from).collect();
        let collective = Collective::new(CollectiveKind::AllReduce, npus.clone(), 8, None)
            .expect("two NPUs and some bytes are a collective");
        let chunks = Chunks::split(&collective.demands(), 1).expect("8 bytes make a chunk");
        let mut builder = PlanBuilder::new("test", &collective, chunks);
        let mut send = |wait| builder.send((0, 1), npus[0], npus[1], Op::Copy, wait);
        let mut sent = vec![send(Wait::NOTHING)];
        while sent.len() < length {
            sent.push(send(Wait::on(sent[sent.len() - 1])));
        }
        sent.push(send(Wait::NOTHING));
        (builder.finish(), sent)
    }

    #[test]
    fn marks_that_run_out_begin_anew() {
        let (plan, sent) = chain(3);
        let [first, _, last, apart] = sent[..] else {
            unreachable!("a chain of three and one apart")
        };
        let order = Order::Plan;
        let mut ordering = Ordering::new(&plan, &order);
        for (mark, after) in [(0, 4), (u32::MAX - 2, 2)] {
            ordering.mark = mark;
            for _ in 0..4 {
                let open = ordering.first_open([first, apart].into_iter(), Wait::on(last));
                assert_eq!(open, Some(apart));
            }
            assert_eq!(ordering.mark, after, "each search takes a mark");
        }
    }

    #[test]
    fn a_search_ends_at_the_earliest_that_is_looked_for() {
        let (plan, sent) = chain(1000);
        let order = Order::Plan;
        let mut ordering = Ordering::new(&plan, &order);
        let mut ask = |earlier: usize, later: usize| {
            let before = ordering.work();
            let open = ordering.first_open([sent[earlier]].into_iter(), Wait::on(sent[later]));
            (open.is_none(), ordering.work() - before)
        };
        assert_eq!(ask(999, 999), (true, 1), "it is the wait itself");
        assert_eq!(ask(997, 999), (true, 4), "one comparison, three transfers");
        assert_eq!(ask(1000, 999), (false, 2), "nothing after it needs a look");
    }

    #[test]
    fn questions_about_a_chain_cost_little_once_there_is_a_forest() {
        let (plan, sent) = chain(1000);
        let order = Order::Plan;
        let mut ordering = Ordering::new(&plan, &order);
        for later in 1..1000 {
            let earlier = [sent[later / 2], sent[1000]];
            let wait = Wait::on(sent[later]);
            let open = ordering.first_open(earlier[..1].iter().copied(), wait);
            assert_eq!(open, None);
        }
        assert!(ordering.forest.is_some());
        // As much by searches as there are transfers, and one search more; then a comparison each.
        assert!(ordering.work() < 3_000, "{}", ordering.work());
    }

    /// Transfers, in order, that end before each wait is over: itself, for a transfer, and what it
    /// waits for.
    fn over_before(plan: &Plan, wait: Wait) -> Vec<bool> {
        let mut over = vec![false; plan.len()];
        let mut left = vec![wait.to_bits()];
        while let Some(bits) = left.pop() {
            match Wait::from_bits(bits).target() {
                WaitOn::Nothing => {}
                WaitOn::Group(group) => left.extend(plan.groups().get(group as usize)),
                WaitOn::Transfer(id) => {
                    if !std::mem::replace(&mut over[id.index()], true) {
                        left.push(plan.wait()[id.index()]);
                    }
                }
            }
        }
        over
    }

    #[test]
    fn a_narrowed_wait_is_not_over_before_its_transfers() {
        use crate::units::Seed;
        let npus: Vec<NpuId> = (0..2).map(NpuId::from).collect();
        let collective = Collective::new(CollectiveKind::AllReduce, npus.clone(), 8, None)
            .expect("two NPUs and some bytes are a collective");
        let mut seed = Seed(3);
        let (mut narrowed, mut kept) = (0, 0);
        for _ in 0..400 {
            let chunks = Chunks::split(&collective.demands(), 1).expect("8 bytes make a chunk");
            let mut builder = PlanBuilder::new("test", &collective, chunks);
            let mut waits = vec![Wait::NOTHING];
            for _ in 0..4 + seed.below(30) {
                // Mostly the latest, so that there are long chains to go back along.
                let near = waits.len().min(1 + seed.below(4));
                let wait = waits[waits.len() - 1 - seed.below(near)];
                waits.push(if seed.below(3) == 0 {
                    let mut members = vec![wait];
                    for _ in 0..seed.below(4) {
                        members.push(waits[seed.below(waits.len())]);
                    }
                    builder.all_of(&members)
                } else {
                    Wait::on(builder.send((0, 1), npus[0], npus[1], Op::Copy, wait))
                });
            }
            let plan = builder.finish();
            let order = Order::Plan;
            let mut ordering = Ordering::new(&plan, &order);
            for _ in 0..10 {
                let wait = waits[seed.below(waits.len())];
                let over = over_before(&plan, wait);
                let share = 1 + seed.below(4);
                let transfers: Vec<TransferId> = (0..plan.len())
                    .filter(|&id| over[id] && seed.below(share) == 0)
                    .map(TransferId::from)
                    .collect();
                let found = ordering.narrow(transfers.iter().copied(), wait);
                let still = over_before(&plan, found);
                for id in &transfers {
                    assert!(still[id.index()], "{id} of {transfers:?} after {found:?}");
                }
                for (id, &earlier) in still.iter().enumerate() {
                    assert!(
                        over[id] || !earlier,
                        "{found:?} is over later than {wait:?}"
                    );
                }
                narrowed += usize::from(found != wait);
                kept += usize::from(found == wait && !transfers.is_empty());
            }
        }
        assert!(narrowed > 500 && kept > 500, "{narrowed} {kept}");
    }
}
