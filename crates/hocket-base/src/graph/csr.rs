//! Compressed adjacency: the lists of all nodes in one column, and where each starts.

use crate::id::narrow;

/// Lists of `T`, packed into two columns: the items of all lists, and where each list starts.
///
/// As the adjacency of a graph this is the compressed sparse row format: list `v` holds the arcs or the
/// neighbours of node `v`, in 4 bytes a node besides the items.
///
/// ```
/// use hocket_base::graph::Lists;
///
/// let arcs = [(0, 'a'), (2, 'b'), (0, 'c')];
/// let lists = Lists::grouped(3, arcs.iter().copied());
/// assert_eq!(lists.get(0), ['a', 'c']);
/// assert!(lists.get(1).is_empty());
/// assert_eq!(lists.offsets(), [0, 2, 2, 3]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lists<T> {
    offsets: Vec<u32>,
    items: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self {
            offsets: vec![0],
            items: Vec::new(),
        }
    }
}

impl<T: Copy> Lists<T> {
    /// Sorts items into `groups` lists, each in the order in which the items come. The iterator is run
    /// twice; each item comes with the list that it belongs to.
    ///
    /// # Panics
    /// If an item belongs to no list, or there are 2^32 items or more.
    ///
    /// # Complexity
    /// O(items + lists), see [`Counts`].
    pub fn grouped(groups: usize, items: impl Iterator<Item = (usize, T)> + Clone) -> Self {
        let mut counts = Counts::new(groups);
        items.clone().for_each(|(group, _)| counts.add(group));
        let mut slots = counts.into_slots();
        let mut sorted = match items.clone().next() {
            Some((_, any)) => vec![any; slots.len()],
            None => Vec::new(),
        };
        items.for_each(|(group, item)| sorted[slots.take(group)] = item);
        Self {
            offsets: slots.into_offsets(),
            items: sorted,
        }
    }

    /// Lists from columns that are known to fit: `offsets` starts at 0, never falls and ends at the items' end.
    pub fn from_parts(offsets: Vec<u32>, items: Vec<T>) -> Self {
        debug_assert!(offsets.is_sorted());
        debug_assert_eq!(offsets.first(), Some(&0));
        debug_assert_eq!(offsets.last().map(|&end| end as usize), Some(items.len()));
        Self { offsets, items }
    }

    /// Adds a list, giving its position.
    ///
    /// # Panics
    /// If the items of all lists together pass 2^32.
    pub fn push(&mut self, items: &[T]) -> u32 {
        self.items.extend_from_slice(items);
        let end = u32::try_from(self.items.len()).expect("lists hold at most 2^32 items");
        self.offsets.push(end);
        narrow(self.offsets.len() - 2)
    }

    /// Adds a list of what an iterator gives, giving its position.
    ///
    /// # Panics
    /// If the items of all lists together pass 2^32.
    pub fn push_all(&mut self, items: impl Iterator<Item = T>) -> u32 {
        self.items.extend(items);
        self.push(&[])
    }

    /// Forgets all but the first `len` lists.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len() {
            self.items.truncate(self.offsets[len] as usize);
            self.offsets.truncate(len + 1);
        }
    }

    /// Returns how many lists.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One list.
    #[inline]
    pub fn get(&self, index: usize) -> &[T] {
        &self.items[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }

    /// Returns every list, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[T]> + DoubleEndedIterator {
        (0..self.len()).map(|i| self.get(i))
    }

    /// Returns all items, list after list.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// Where each list starts in [`items`](Self::items); one more than there are lists.
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }
}

/// A position in a column of items: `u32` wherever 2^32 items are enough, else `usize`.
pub trait Offset: Copy + Default {
    /// One more.
    fn next(self) -> Self;

    /// Returns the sum; `None` if it does not fit.
    fn plus(self, other: Self) -> Option<Self>;

    /// For indexing.
    fn index(self) -> usize;
}

macro_rules! offset {
    ($type:ty) => {
        impl Offset for $type {
            #[inline]
            fn next(self) -> Self {
                self + 1
            }

            #[inline]
            fn plus(self, other: Self) -> Option<Self> {
                self.checked_add(other)
            }

            #[inline]
            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

offset!(u32);
offset!(usize);

/// The first half of a counting sort: how many items each group gets. Then [`Slots`] says where each goes.
///
/// [`Lists::grouped`] does both where one iterator gives all items. The two halves by hand serve where the
/// items are found in another way or another order the second time, or go into several columns.
///
/// ```
/// use hocket_base::graph::Counts;
///
/// let arcs = [(2, 7.0), (0, 8.0), (2, 9.0)];
/// let mut counts = Counts::<u32>::new(3);
/// arcs.iter().for_each(|&(node, _)| counts.add(node));
/// let mut slots = counts.into_slots();
/// let mut lengths = vec![0.0; slots.len()];
/// arcs.iter().for_each(|&(node, length)| lengths[slots.take(node)] = length);
/// assert_eq!(lengths, [8.0, 7.0, 9.0]);
/// assert_eq!(slots.into_offsets(), [0, 1, 1, 3]);
/// ```
///
/// # Complexity
/// O(items + groups) time; one offset a group, and none copied.
///
/// # Source
/// Distribution counting: Knuth, The Art of Computer Programming, volume 3, section 5.2.
#[derive(Clone, Debug)]
pub struct Counts<O = u32> {
    /// The count of group g is at g + 2: its start is to be at g + 1 while it fills up, and at g when it is full.
    counts: Vec<O>,
}

impl<O: Offset> Counts<O> {
    /// No item yet.
    pub fn new(groups: usize) -> Self {
        Self {
            counts: vec![O::default(); groups + 2],
        }
    }

    /// Counts an item.
    ///
    /// # Panics
    /// If there is no such group.
    #[inline]
    pub fn add(&mut self, group: usize) {
        let count = &mut self.counts[group + 2];
        *count = count.next();
    }

    /// Cuts a column of items into a range for each group.
    ///
    /// # Panics
    /// If there are more items than `O` can tell.
    pub fn into_slots(mut self) -> Slots<O> {
        let mut end = O::default();
        for count in &mut self.counts {
            end = end.plus(*count).expect("offsets fit their type");
            *count = end;
        }
        Slots { next: self.counts }
    }
}

/// The second half of a counting sort: where each item goes. See [`Counts`].
#[derive(Clone, Debug)]
pub struct Slots<O = u32> {
    /// The next free place of group g is at g + 1; the last entry is the number of items.
    next: Vec<O>,
}

impl<O: Offset> Slots<O> {
    /// Returns how many items there are in all.
    pub fn len(&self) -> usize {
        self.next[self.next.len() - 1].index()
    }

    /// Returns whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the place of a group's next item. As many must be taken for each group as were counted.
    #[inline]
    pub fn take(&mut self, group: usize) -> usize {
        let next = &mut self.next[group + 1];
        let place = next.index();
        *next = next.next();
        place
    }

    /// Where each group starts, and where the last ends, once all places are taken.
    pub fn into_offsets(mut self) -> Vec<O> {
        let len = self.len();
        self.next.pop();
        debug_assert_eq!(self.next[self.next.len() - 1].index(), len);
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Seed;

    #[test]
    fn groups_are_those_of_a_stable_sort() {
        let mut seed = Seed(1);
        for _ in 0..200 {
            let groups = 1 + seed.below(9);
            let count = seed.below(40);
            let items: Vec<(usize, usize)> = (0..count).map(|i| (seed.below(groups), i)).collect();
            let lists = Lists::grouped(groups, items.iter().copied());
            let mut sorted = items.clone();
            sorted.sort_by_key(|&(group, _)| group);
            let sorted: Vec<usize> = sorted.into_iter().map(|(_, item)| item).collect();
            assert_eq!(lists.items(), sorted);
            assert_eq!(lists.len(), groups);
            for (group, list) in lists.iter().enumerate() {
                assert!(list.iter().all(|&item| items[item].0 == group));
            }
        }
    }

    #[test]
    fn no_items_are_empty_lists() {
        let lists = Lists::<u32>::grouped(2, std::iter::empty());
        assert_eq!(lists.iter().collect::<Vec<_>>(), [&[] as &[u32], &[]]);
        let none = Lists::<u32>::grouped(0, std::iter::empty());
        assert_eq!(none, Lists::default());
    }

    #[test]
    fn wide_and_narrow_offsets_agree() {
        let groups = [1, 0, 1, 1];
        let mut narrow = Counts::<u32>::new(2);
        let mut wide = Counts::<usize>::new(2);
        for group in groups {
            narrow.add(group);
            wide.add(group);
        }
        let (mut narrow, mut wide) = (narrow.into_slots(), wide.into_slots());
        for group in groups {
            assert_eq!(narrow.take(group), wide.take(group));
        }
        assert_eq!(narrow.into_offsets(), [0, 1, 4]);
        assert_eq!(wide.into_offsets(), [0, 1, 4]);
    }
}
