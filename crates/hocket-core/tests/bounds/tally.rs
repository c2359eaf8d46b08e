//! What the attack found, by fidelity.

use std::collections::BTreeMap;
use std::fmt;

use hocket_core::bound::Bound;
use hocket_core::units::Time;

/// Runs at one fidelity.
#[derive(Clone, Copy, Debug)]
struct Row {
    runs: u64,
    below: u64,
    /// Runs that took just the bound, but for 10 ps.
    met: u64,
    /// Least of time / bound.
    least: f64,
    /// Sum of bound / time.
    share: f64,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            runs: 0,
            below: 0,
            met: 0,
            least: f64::INFINITY,
            share: 0.0,
        }
    }
}

/// Figures of many cases, and what is wrong in the first few that are.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    rows: BTreeMap<&'static str, Row>,
    /// Plans and runs that came to nothing, by why.
    refused: BTreeMap<&'static str, u64>,
    /// By what made the plan: how many.
    plans: BTreeMap<String, u64>,
    cases: u64,
    wrong: Vec<String>,
    seed: u64,
    is_told: bool,
}

/// Violations that are told; the others are counted.
const MAX_KEPT: usize = 20;

impl Tally {
    /// A case begins.
    pub(crate) fn begin(&mut self, seed: u64, is_told: bool) {
        (self.seed, self.is_told) = (seed, is_told);
        self.cases += 1;
    }

    /// A run at a fidelity took so long; `what` says which run it was.
    pub(crate) fn run(
        &mut self,
        fidelity: &'static str,
        time: Time,
        bound: &Bound,
        what: &dyn fmt::Debug,
    ) {
        let row = self.rows.entry(fidelity).or_default();
        row.runs += 1;
        let (ps, least) = (time.as_ps() as f64, bound.time.as_ps() as f64);
        if least > 0.0 {
            row.share += least / ps.max(1.0);
            row.least = row.least.min(ps / least);
        }
        row.met += u64::from(time.saturating_sub(bound.time) <= Time::from_ps(10));
        let text = || {
            format!(
                "case {}: {fidelity} {} of {}, by {:?}: {what:?}",
                self.seed, time, bound.time, bound.witness
            )
        };
        if self.is_told {
            println!("{}\n{:?}", text(), bound.components);
        }
        if time < bound.time {
            row.below += 1;
            if self.wrong.len() < MAX_KEPT {
                self.wrong.push(text());
            }
        }
    }

    /// A plan or run came to nothing.
    pub(crate) fn refuse(&mut self, why: &'static str) {
        *self.refused.entry(why).or_default() += 1;
    }

    /// A plan was made.
    pub(crate) fn plan(&mut self, algorithm: &str) {
        *self.plans.entry(algorithm.to_owned()).or_default() += 1;
    }

    /// Something else than a time is wrong.
    pub(crate) fn wrong(&mut self, what: String) {
        self.wrong.push(format!("case {}: {what}", self.seed));
    }

    pub(crate) fn runs(&self) -> u64 {
        self.rows.values().map(|row| row.runs).sum()
    }

    /// Adds another's figures.
    pub(crate) fn add(&mut self, other: Tally) {
        for (fidelity, more) in other.rows {
            let row = self.rows.entry(fidelity).or_default();
            row.runs += more.runs;
            row.below += more.below;
            row.met += more.met;
            row.least = row.least.min(more.least);
            row.share += more.share;
        }
        for (why, more) in other.refused {
            *self.refused.entry(why).or_default() += more;
        }
        for (algorithm, more) in other.plans {
            *self.plans.entry(algorithm).or_default() += more;
        }
        self.cases += other.cases;
        self.wrong.extend(other.wrong);
        self.wrong.truncate(MAX_KEPT);
    }

    /// Nothing is wrong, and every fidelity had its runs.
    pub(crate) fn check(&self) {
        assert!(
            self.wrong.is_empty(),
            "{} wrong:\n{}",
            self.wrong.len(),
            self.wrong.join("\n")
        );
        assert!(self.rows.values().all(|row| row.below == 0));
        if self.runs() >= 10_000 {
            for fidelity in ["link", "flow", "packet", "dimension"] {
                let row = self.rows.get(fidelity).copied().unwrap_or_default();
                assert!(row.runs >= 500 && row.met > 0, "{fidelity}: {row:?}");
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} cases; plans: {:?}", self.cases, self.plans)?;
        writeln!(f, "came to nothing: {:?}", self.refused)?;
        writeln!(
            f,
            "{:10} {:>10} {:>8} {:>10} {:>12} {:>14}",
            "fidelity", "runs", "below", "met", "least", "mean bound"
        )?;
        for (fidelity, row) in &self.rows {
            let share = 100.0 * row.share / row.runs as f64;
            writeln!(
                f,
                "{fidelity:10} {:>10} {:>8} {:>10} {:>12.9} {share:>12.1} %",
                row.runs, row.below, row.met, row.least
            )?;
        }
        write!(f, "{:10} {:>10}", "all", self.runs())
    }
}
