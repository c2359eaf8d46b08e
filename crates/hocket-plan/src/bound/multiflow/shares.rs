//! Flows cut into parts that each take one way.

use std::ops::Range;

use super::Flow;
use crate::collective::block_start;
use crate::id::{fit, narrow};

/// Flows cut into parts of about the same size.
#[derive(Clone, Debug)]
pub struct Shares {
    /// Where the parts of each flow begin.
    first: Vec<u32>,
    /// The flow of each part.
    pub flow: Vec<u32>,
    /// The bytes of each part.
    pub bytes: Vec<u64>,
}

impl Shares {
    /// The largest flow has so many parts (one for each byte, where it has fewer), smaller ones fewer.
    pub fn new(flows: &[Flow], most: u64) -> Self {
        let largest = flows.iter().map(|flow| flow.bytes).max().unwrap_or(1);
        let grain = largest.div_ceil(most.max(1));
        Self::of_each(flows.iter().map(|flow| {
            let count: usize = fit(flow.bytes.div_ceil(grain));
            let start = move |i| block_start(flow.bytes, i, count);
            (0..count).map(move |i| start(i + 1) - start(i))
        }))
    }

    /// Flows cut into parts of the sizes given.
    pub fn of_each<Sizes>(flows: impl IntoIterator<Item = Sizes>) -> Self
    where
        Sizes: IntoIterator<Item = u64>,
    {
        let mut parts = Self {
            first: vec![0],
            flow: Vec::new(),
            bytes: Vec::new(),
        };
        for (f, sizes) in (0..).zip(flows) {
            parts.bytes.extend(sizes);
            parts.flow.resize(parts.bytes.len(), f);
            parts.first.push(narrow(parts.flow.len()));
        }
        parts
    }

    /// Returns the parts of a flow.
    pub fn of(&self, flow: usize) -> Range<usize> {
        self.first[flow] as usize..self.first[flow + 1] as usize
    }
}
