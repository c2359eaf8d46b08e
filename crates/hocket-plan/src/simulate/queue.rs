//! A queue of timed events that is emptied in time order, whatever time is counted in.

/// A radix heap: events are pushed at or after the time of the last batch taken, and taken in
/// batches of equal time.
///
/// An event moves to a finer bucket at most once per bit in which its time differs from the present,
/// always by appending, which is faster than a binary heap once the events outgrow the cache.
///
/// # Source
/// Ahuja, Mehlhorn, Orlin, Tarjan: Faster algorithms for the shortest path problem, J. ACM 1990.
pub(super) struct EventQueue<T> {
    /// Bucket 0 holds the present; bucket b > 0 the events whose time differs from it in bit b - 1
    /// first, from above.
    buckets: Vec<Vec<(u64, T)>>,
    now: u64,
    len: usize,
}

impl<T: Copy> EventQueue<T> {
    pub(super) fn new() -> Self {
        Self {
            buckets: (0..=u64::BITS).map(|_| Vec::new()).collect(),
            now: 0,
            len: 0,
        }
    }

    /// Adds an event, not before the last batch.
    #[inline]
    pub(super) fn push(&mut self, time: u64, event: T) {
        debug_assert!(time >= self.now, "events do not happen in the past");
        self.len += 1;
        let bucket = self.bucket(time);
        self.buckets[bucket].push((time, event));
    }

    #[inline]
    fn bucket(&self, time: u64) -> usize {
        (u64::BITS - (time ^ self.now).leading_zeros()) as usize
    }

    /// Moves the events of the earliest time into `batch` (emptied first) and gives that time.
    pub(super) fn pop(&mut self, batch: &mut Vec<T>) -> Option<u64> {
        batch.clear();
        let first = self.buckets.iter().position(|bucket| !bucket.is_empty())?;
        if first > 0 {
            let mut events = std::mem::take(&mut self.buckets[first]);
            let times = events.iter().map(|&(time, _)| time);
            self.now = times.min().expect("the bucket is not empty");
            for &(time, event) in &events {
                let bucket = self.bucket(time);
                self.buckets[bucket].push((time, event));
            }
            events.clear();
            // Keep the memory for the next events of this bucket.
            self.buckets[first] = events;
        }
        batch.extend(self.buckets[0].drain(..).map(|(_, event)| event));
        self.len -= batch.len();
        Some(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;

    #[test]
    fn agrees_with_a_sorted_list() {
        let mut seed = Seed(7);
        let mut queue = EventQueue::new();
        let mut expected: Vec<(u64, u32)> = Vec::new();
        let mut now = 0;
        let mut batch = Vec::new();
        for event in 0..5000u32 {
            for _ in 0..seed.below(3) {
                let time = now + (seed.next_u64() >> (40 + seed.below(24)));
                queue.push(time, event);
                expected.push((time, event));
            }
            if seed.below(2) == 0
                && let Some(time) = queue.pop(&mut batch)
            {
                now = time;
                assert_eq!(Some(now), expected.iter().map(|&(time, _)| time).min());
                let mut due: Vec<u32> = Vec::new();
                expected.retain(|&(time, event)| {
                    let is_due = time == now;
                    due.extend(is_due.then_some(event));
                    !is_due
                });
                batch.sort_unstable();
                due.sort_unstable();
                assert_eq!(batch, due);
            }
        }
        while queue.pop(&mut batch).is_some() {
            expected.drain(..batch.len());
        }
        assert!(expected.is_empty());
        assert_eq!(queue.len, 0);
    }
}
