//! How many plans there were of which something is true.

use std::fmt;

/// Counts by name, in the order in which the names first came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(Vec<(&'static str, u64)>);

impl Tally {
    /// Counts one plan: the same names in the same order every time, the first true of all plans.
    pub(crate) fn count(&mut self, facts: impl IntoIterator<Item = (&'static str, bool)>) {
        let facts = facts
            .into_iter()
            .map(|(name, holds)| (name, u64::from(holds)));
        self.add(&Tally(facts.collect()));
    }

    /// Adds the counts of another.
    pub(crate) fn add(&mut self, other: &Tally) {
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
            return;
        }
        for ((name, count), (other, more)) in self.0.iter_mut().zip(&other.0) {
            assert_eq!(name, other);
            *count += more;
        }
    }

    /// Of how many plans a thing is true.
    pub(crate) fn of(&self, name: &str) -> u64 {
        let found = self.0.iter().find(|(other, _)| *other == name);
        found.unwrap_or_else(|| panic!("nothing counts {name:?}")).1
    }

    /// Of which share of all plans.
    pub(crate) fn share(&self, name: &str) -> f64 {
        self.of(name) as f64 / self.0[0].1 as f64
    }

    /// What is counted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(name, _)| *name)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in &self.0 {
            writeln!(
                f,
                "{name:<56} {count:>9} {:>6.2} %",
                100.0 * self.share(name)
            )?;
        }
        Ok(())
    }
}
