//! Any bytes as files of NCCL: machines, what nvidia-smi prints, graphs, tables for tuners.
//!
//! What is read is joined to networks, written and read again; a refusal is one line.

use hocket_formats::FormatError;
use hocket_formats::nccl_graph::Graphs;
use hocket_formats::nccl_topology::{System, join, read_smi};
use hocket_formats::nccl_tuner::{Question, Table};

/// A door: what it is called, and what runs it.
pub type Target = (&'static str, fn(&[u8]));

/// Every target, by the name of its binary and of its archive in the corpus.
pub const TARGETS: [Target; 4] = [
    ("nccl_topology", topology),
    ("nvidia_smi", smi),
    ("nccl_graph", graph),
    ("nccl_tuner", tuner),
];

fn told<T>(read: Result<T, FormatError>) -> Option<T> {
    match read {
        Ok(read) => Some(read),
        Err(fault) => {
            assert_eq!(fault.to_string().lines().count(), 1, "{fault}");
            None
        }
    }
}

/// A dump of a machine.
pub fn topology(bytes: &[u8]) {
    if let Some(system) = told(System::parse(bytes)) {
        joined(&system);
    }
}

/// What nvidia-smi prints.
pub fn smi(bytes: &[u8]) {
    if let Some(system) = told(read_smi(bytes)) {
        joined(&system);
    }
}

fn joined(system: &System) {
    for count in 1..=2 {
        let Some(network) = told(join(&vec![system; count])) else {
            continue;
        };
        assert_eq!(network.npus, count * system.gpus.len());
        let devices = network.names.len();
        let mut names = network.names.clone();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), devices, "names are of one device each");
        for link in &network.links {
            assert!(link.src < devices && link.dst < devices && link.src != link.dst);
            assert!(link.bandwidth > 0);
        }
    }
}

/// A file of graphs: one that can be written is read as it was.
pub fn graph(bytes: &[u8]) {
    let Some(read) = told(Graphs::parse(bytes)) else {
        return;
    };
    if let Some(text) = told(read.write()) {
        let again = told(Graphs::parse(text.as_bytes())).expect("it was written");
        assert_eq!(again.write(), Ok(text));
    }
}

/// A table for a tuner: one that can be written is read as it was, and answers for every size.
pub fn tuner(bytes: &[u8]) {
    let Some(read) = told(Table::parse(bytes)) else {
        return;
    };
    let Some(text) = told(read.write()) else {
        return;
    };
    assert_eq!(Table::parse(text.as_bytes()), Ok(read.clone()));
    for row in &read.rows {
        let asked = |bytes| Question {
            collective: row.collective,
            bytes,
            nodes: row.nodes.unwrap_or(1),
            ranks: row.ranks.unwrap_or(1),
            pipe_ops: 1,
            registered: 0,
        };
        for bytes in [0, row.least, row.most, u64::MAX] {
            assert!(read.pick(&asked(bytes)).is_some());
        }
    }
}
