//! How long a set of links takes to carry some bytes, each link starting after a delay of its own.

use crate::units::Time;

const PS_PER_SECOND: u128 = 1_000_000_000_000;

/// A link that may carry bytes from `delay` ps on, or all but the last `delay` ps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pipe {
    pub delay: u64,
    /// Bytes per second.
    pub capacity: u128,
}

/// Returns the least t, rounded down to picoseconds, with sum of capacity x max(0, t - delay) >= amount / parts bytes.
///
/// The left side is increasing and piecewise linear in t: with the pipes by rising delay, the first
/// k alone need t_k = (amount / parts + sum of capacity x delay) / sum of capacity, and the answer is the
/// first t_k that ends before pipe k + 1 opens. Sums saturate, which can only lower the result.
/// [`Time::MAX`] where there is no pipe. `pipes` is left sorted.
pub(super) fn fill(pipes: &mut [Pipe], amount: u128, parts: u64) -> Time {
    pipes.sort_unstable();
    if amount == 0 {
        return Time::ZERO;
    }
    let mut work = amount.saturating_mul(PS_PER_SECOND);
    let mut capacity: u128 = 0;
    for (i, pipe) in pipes.iter().enumerate() {
        let more = pipe.capacity.saturating_mul(parts.into());
        capacity = capacity.saturating_add(more);
        work = work.saturating_add(more.saturating_mul(pipe.delay.into()));
        let time = work / capacity;
        // Compare without rounding: work / capacity <= delay.
        let opens_in_time = |next: &Pipe| work > capacity.saturating_mul(next.delay.into());
        if !pipes.get(i + 1).is_some_and(opens_in_time) {
            return Time::from_ps(u64::try_from(time).unwrap_or(u64::MAX));
        }
    }
    Time::MAX
}

/// Returns the capacity of all pipes, in bytes per second.
pub(super) fn capacity(pipes: &[Pipe]) -> u128 {
    pipes.iter().map(|pipe| pipe.capacity).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;

    fn pipe(delay: u64, capacity: u128) -> Pipe {
        Pipe { delay, capacity }
    }

    #[test]
    fn pipes_fill_as_by_hand() {
        let giga = 1_000_000_000;
        // 1 kB over 1 GB/s after 5 ns: 1 us + 5 ns.
        assert_eq!(fill(&mut [pipe(5_000, giga)], 1_000, 1).as_ps(), 1_005_000);
        assert_eq!(fill(&mut [pipe(5_000, giga)], 10_000, 3).as_ps(), 3_338_333);
        // A second pipe opens at 500 ns: 500 B are left, shared by two: 250 ns more.
        let mut two = [pipe(500_000, giga), pipe(0, giga)];
        assert_eq!(fill(&mut two, 1_000, 1).as_ps(), 750_000);
        // It opens too late to matter.
        let mut late = [pipe(0, giga), pipe(1_000_000, giga)];
        assert_eq!(fill(&mut late, 1_000, 1).as_ps(), 1_000_000);
        assert_eq!(fill(&mut [], 1, 1), Time::MAX);
        assert_eq!(fill(&mut [], 0, 1), Time::ZERO);
    }

    #[test]
    fn the_answer_is_the_least_time_that_carries_everything() {
        let mut seed = Seed(7);
        for _ in 0..500 {
            let count = 1 + seed.below(5);
            let mut pipes: Vec<Pipe> = (0..count)
                .map(|_| {
                    pipe(
                        seed.below(50) as u64,
                        (1 + seed.below(9) as u128) * 1_000_000_000_000,
                    )
                })
                .collect();
            let bytes = 1 + seed.below(200) as u128;
            let carried = |t: u64| -> u128 {
                let one = |p: &Pipe| p.capacity * u128::from(t.saturating_sub(p.delay));
                pipes.iter().map(one).sum()
            };
            let enough = |t: u64| carried(t) >= bytes * PS_PER_SECOND;
            let least = (0..).find(|&t| enough(t)).expect("time is not bounded");
            let answer = fill(&mut pipes.clone(), bytes, 1).as_ps();
            // Rounded down: the least whole time, or one less where the exact time is not whole.
            assert!(answer == least || answer + 1 == least, "{answer} {least}");
            pipes.reverse();
            assert_eq!(fill(&mut pipes, bytes, 1).as_ps(), answer);
        }
    }
}
