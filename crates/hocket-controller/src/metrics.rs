//! What happened, in numbers, as Prometheus reads them.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that grows, or goes up and down.
#[derive(Debug, Default)]
pub struct Number(AtomicU64);

impl Number {
    /// Adds to it.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Sets it.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Returns its value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds of the buckets of [`Times`] [us].
const BOUNDS: [u64; 14] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000, 20_000, 100_000, 1_000_000,
];

/// How long something took, in buckets.
#[derive(Debug, Default)]
pub struct Times {
    counts: [Number; BOUNDS.len() + 1],
    sum_ns: Number,
}

impl Times {
    /// One more.
    pub fn add(&self, time: Duration) {
        let micros = time.as_micros();
        self.counts[BOUNDS.partition_point(|&bound| u128::from(bound) < micros)].add(1);
        self.sum_ns
            .add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }
}

macro_rules! numbers {
    ($($kind:literal $name:ident: $help:literal,)*) => {
        /// All numbers of the service; those of the policy and of the sessions are the server's.
        #[derive(Debug, Default)]
        pub struct Metrics {
            $(#[doc = $help] pub $name: Number,)*
            /// Time to handle a message, waiting for others included.
            pub handling: Times,
        }

        impl Metrics {
            /// As text that Prometheus reads.
            pub fn write(&self, text: &mut String) {
                $(number(text, $kind, stringify!($name), $help, self.$name.get());)*
                self.write_times(text);
            }
        }
    };
}

numbers! {
    "counter" accept_errors: "Connections that could not be accepted.",
    "counter" handshakes: "Handshakes that were completed.",
    "counter" refused_handshakes: "Connections that were refused: no certificate, a wrong one, too slow.",
    "counter" unknown_hosts: "Sessions refused since the host is not in the configuration.",
    "counter" second_sessions: "Sessions refused since the host has one that is alive.",
    "gauge" sessions: "Sessions that are open.",
    "counter" bad_messages: "Messages of hosts that were none; each ended its session.",
    "counter" slow_readers: "Sessions that were ended since the host did not read.",
    "counter" certificates_loaded: "Times that other certificates were taken up.",
    "counter" certificate_errors: "Times that other certificates were there and could not be taken up.",
    "counter" log_records: "Records written to the log.",
    "counter" log_syncs: "Times that the log was brought to disk.",
    "gauge" log_failed: "1 where the log cannot be written: a restart would forget what is new.",
    "gauge" later_epoch: "The latest epoch that a host has obeyed and that is later than this controller's; 0: none.",
    "gauge" later_hosts: "Hosts that refuse this controller since they have obeyed a later epoch.",
    "gauge" links_file_broken: "1 where the file of links cannot be taken up; what it said before holds on.",
    "gauge" active: "1 where this controller is the active one.",
}

impl Metrics {
    fn write_times(&self, text: &mut String) {
        let name = "hocket_controller_handling_seconds";
        let _ = writeln!(
            text,
            "# HELP {name} Time to handle a batch of a host, waiting included."
        );
        let _ = writeln!(text, "# TYPE {name} histogram");
        let mut total = 0;
        for (bound, count) in BOUNDS.iter().zip(&self.handling.counts) {
            total += count.get();
            let seconds = *bound as f64 / 1e6;
            let _ = writeln!(text, "{name}_bucket{{le=\"{seconds}\"}} {total}");
        }
        total += self.handling.counts[BOUNDS.len()].get();
        let seconds = self.handling.sum_ns.get() as f64 / 1e9;
        let _ = writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {total}");
        let _ = writeln!(text, "{name}_sum {seconds}\n{name}_count {total}");
    }
}

/// One number with its help; a counter's name ends so.
pub fn number(text: &mut String, kind: &str, name: &str, help: &str, value: u64) {
    let end = if kind == "counter" { "_total" } else { "" };
    let name = format!("hocket_controller_{name}{end}");
    let _ = writeln!(
        text,
        "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}"
    );
}

/// One number for each value of a label.
pub fn labelled(
    text: &mut String,
    (kind, name, help): (&str, &str, &str),
    label: &str,
    values: impl Iterator<Item = (String, u64)>,
) {
    let end = if kind == "counter" { "_total" } else { "" };
    let name = format!("hocket_controller_{name}{end}");
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (value, count) in values {
        let _ = writeln!(text, "{name}{{{label}=\"{value}\"}} {count}");
    }
}
