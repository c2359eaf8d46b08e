//! Links of many flows, one list after the other.

use crate::id::LinkId;

/// The links that each flow takes, in the order in which it crosses them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    ends: Vec<usize>,
    links: Vec<LinkId>,
}

impl Paths {
    pub(super) fn with_capacity(paths: usize) -> Self {
        Self {
            ends: Vec::with_capacity(paths),
            links: Vec::with_capacity(2 * paths),
        }
    }

    /// Adds a path of the links that `add` appends.
    pub(super) fn push(&mut self, add: impl FnOnce(&mut Vec<LinkId>)) {
        add(&mut self.links);
        self.ends.push(self.links.len());
    }

    /// Returns the number of paths.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the links of a path.
    ///
    /// # Panics
    /// If there are not so many paths.
    pub fn get(&self, path: usize) -> &[LinkId] {
        let start = path.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.links[start..self.ends[path]]
    }

    /// Returns the links of each path.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[LinkId]> {
        (0..self.len()).map(|path| self.get(path))
    }

    /// Returns all links, path after path.
    pub fn links(&self) -> &[LinkId] {
        &self.links
    }

    /// Where each path ends in [`Paths::links`].
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }
}
