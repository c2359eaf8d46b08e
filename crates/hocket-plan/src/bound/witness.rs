//! What proves a bound: a node, a cut, a partition, the traffic or a path.

use crate::id::{DeviceId, NpuId};
use crate::topology::Topology;
use crate::units::{Bandwidth, Time};

/// What proves a lower bound.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Witness {
    /// No demand needs the network.
    Nothing,
    /// There is no way from one participant to another that needs its data.
    Unreachable {
        /// NPU that holds the data.
        from: NpuId,
        /// NPU that needs the data.
        to: NpuId,
    },
    /// Bytes that must enter an NPU.
    Ingress {
        /// The NPU.
        npu: NpuId,
        /// Number of bytes.
        bytes: u128,
        /// Bandwidth of all links into the NPU together.
        bandwidth: Bandwidth,
        /// Latency of the shortest way that any of these bytes can come.
        latency: Time,
    },
    /// Bytes that must leave an NPU.
    Egress {
        /// The NPU.
        npu: NpuId,
        /// Number of bytes.
        bytes: u128,
        /// Bandwidth of all links out of the NPU together.
        bandwidth: Bandwidth,
        /// Latency of the shortest way that any of these bytes can go.
        latency: Time,
    },
    /// Bytes that must leave or enter a set of devices.
    Cut {
        /// NPUs of the set: the side that has fewer, or a node.
        npus: Vec<NpuId>,
        /// Switches of the set. One that is cut through inside counts where its inputs are.
        switches: Vec<DeviceId>,
        /// Whether the bytes leave the set; otherwise they enter it.
        leaving: bool,
        /// Number of bytes; of a node that is looked at for one NPU of it, those of this NPU.
        bytes: u128,
        /// Bandwidth of all links (and insides of limited switches) that cross in that direction.
        bandwidth: Bandwidth,
    },
    /// Bytes that must pass between the parts of the network.
    Partition {
        /// Devices of each part.
        parts: Vec<Vec<DeviceId>>,
        /// Whether the bytes are counted where they leave a part; otherwise where they enter one.
        leaving: bool,
        /// How many bytes, all parts together.
        bytes: u128,
        /// Of all links that enter (or leave) a part, all parts together. What leads into (or out of) a switch that sums
        /// or multicasts and has only n NPUs around it counts for 1 - 1 / n.
        bandwidth: Bandwidth,
    },
    /// Bytes times hops, over the bandwidth of the hops that count.
    Traffic {
        /// Lengths of the links.
        lengths: Lengths,
        /// Sum of bytes times length of the shortest way.
        work: u128,
        /// Sum of bandwidth times length.
        capacity: u128,
    },
    /// Bytes that must leave an NPU for several others, or enter it from several, and serve one of them
    /// alone where little time is left.
    FanOut {
        /// The NPU.
        npu: NpuId,
        /// Whether the bytes leave the NPU; otherwise they enter it.
        leaving: bool,
        /// Number of bytes.
        bytes: u128,
        /// How many others want them, or contribute.
        others: usize,
        /// Bandwidth of all links out of the NPU (or into it) together.
        bandwidth: Bandwidth,
        /// Latency of the shortest way by another place that copies or sums.
        latency: Time,
    },
    /// Bytes of an NPU that must get to other nodes, or to it from other nodes, each over links between nodes of its
    /// own.
    Nodes {
        /// The NPU.
        npu: NpuId,
        /// Whether the bytes leave the NPU; otherwise they enter it.
        leaving: bool,
        /// Number of bytes.
        bytes: u128,
        /// How many other nodes want them, or contribute.
        others: usize,
        /// Bandwidth of all links out of nodes (or into them) together.
        bandwidth: Bandwidth,
        /// Latency of the shortest way.
        latency: Time,
    },
    /// Bytes of an NPU that must leave its node for several others, or enter it from several, and serve one of them
    /// alone where little time is left.
    FirstOut {
        /// The NPU.
        npu: NpuId,
        /// Whether the bytes leave the node; otherwise they enter it.
        leaving: bool,
        /// Number of bytes.
        bytes: u128,
        /// How many other nodes want them, or contribute.
        others: usize,
        /// Bandwidth of all links out of the node (or into it) together.
        bandwidth: Bandwidth,
        /// Latency of a way from the NPU by a place in another node.
        latency: Time,
    },
    /// Bytes that an NPU must get from others, or give to others, over the quickest ways through the network.
    Quickest {
        /// The NPU.
        npu: NpuId,
        /// Whether the bytes leave the NPU; otherwise they come to it.
        leaving: bool,
        /// Number of bytes.
        bytes: u128,
        /// Where they come from or go to, if that is one NPU.
        other: Option<NpuId>,
        /// How many NPUs they come from or go to, one of them each.
        others: usize,
        /// What the ways carry together.
        bandwidth: Bandwidth,
        /// Latencies of the shortest and of the longest of the ways.
        latencies: [Time; 2],
    },
    /// A sum that goes to several NPUs by switches that cannot both make it and copy it.
    OneTrip {
        /// Bytes that each NPU contributes.
        bytes: u128,
        /// How many NPUs contribute.
        npus: usize,
        /// Bandwidth of all links out of these NPUs together.
        bandwidth: Bandwidth,
        /// Latency of the shortest way by another NPU.
        latency: Time,
    },
    /// A shortest way, by latency, that some data must go.
    Latency {
        /// NPU that holds the data.
        from: NpuId,
        /// NPU that needs the data.
        to: NpuId,
        /// Latency of the whole route.
        latency: Time,
    },
}

/// Lengths of links under which traffic is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// Every link 1.
    Hops,
    /// Every link, and every limited switch, its time for a byte.
    Slowness,
    /// Every switch with a limit of its own 1, links 0.
    LimitedSwitches,
    /// Some links, from one device to another, these lengths, and all others 0. A switch with a limit of its own is a link
    /// to itself.
    Prices(Vec<([DeviceId; 2], u64)>),
}

impl Witness {
    /// Sets of devices whose borders the argument counts: one for an NPU or a cut, several for a partition, none where
    /// it counts something else.
    pub fn sides(&self) -> Vec<Vec<DeviceId>> {
        match self {
            Witness::Ingress { npu, .. }
            | Witness::Egress { npu, .. }
            | Witness::FanOut { npu, .. }
            | Witness::Quickest { npu, .. } => vec![vec![npu.device()]],
            Witness::Cut { npus, switches, .. } => {
                let npus = npus.iter().map(|npu| npu.device());
                vec![npus.chain(switches.iter().copied()).collect()]
            }
            Witness::Partition { parts, .. } => parts.clone(),
            Witness::Nothing
            | Witness::Unreachable { .. }
            | Witness::Traffic { .. }
            | Witness::Nodes { .. }
            | Witness::FirstOut { .. }
            | Witness::OneTrip { .. }
            | Witness::Latency { .. } => Vec::new(),
        }
    }

    /// One line, with the devices' names.
    pub fn describe(&self, topology: &Topology) -> String {
        let name = |npu: &NpuId| topology.device(npu.device()).name.as_str();
        match self {
            Witness::Nothing => "nothing has to move".to_owned(),
            Witness::Unreachable { from, to } => {
                format!("there is no way from {} to {}", name(from), name(to))
            }
            Witness::Ingress {
                npu,
                bytes,
                bandwidth,
                latency,
            } => format!(
                "ingress of {}: {} must enter over {bandwidth}{}",
                name(npu),
                show_bytes(*bytes),
                show_latency(*latency)
            ),
            Witness::Egress {
                npu,
                bytes,
                bandwidth,
                latency,
            } => format!(
                "egress of {}: {} must leave over {bandwidth}{}",
                name(npu),
                show_bytes(*bytes),
                show_latency(*latency)
            ),
            Witness::Cut {
                npus,
                switches,
                leaving,
                bytes,
                bandwidth,
            } => {
                let npus = npus.iter().map(|npu| npu.device());
                let devices: Vec<DeviceId> = npus.chain(switches.iter().copied()).collect();
                format!(
                    "cut {}: {} must {} over {bandwidth}",
                    show_devices(topology, &devices),
                    show_bytes(*bytes),
                    if *leaving { "leave" } else { "enter" },
                )
            }
            Witness::Partition {
                parts,
                leaving,
                bytes,
                bandwidth,
            } => format!(
                "partition {}: {} must {} its parts over {bandwidth}",
                show_parts(topology, parts),
                show_bytes(*bytes),
                if *leaving { "leave" } else { "enter" },
            ),
            Witness::Traffic {
                lengths,
                work,
                capacity,
            } => lengths.describe(topology, *work, *capacity),
            Witness::FanOut {
                npu,
                leaving,
                bytes,
                others,
                bandwidth,
                latency,
            } => {
                let [noun, must, way, does] = match leaving {
                    true => ["out", "leave", "for", "serves"],
                    false => ["in", "enter", "from", "holds"],
                };
                format!(
                    "fan-{noun} of {}: {} must {must} over {bandwidth} {way} {others} others, of which a byte {does} \
                     several no sooner than {latency}",
                    name(npu),
                    show_bytes(*bytes),
                )
            }
            Witness::Nodes {
                npu,
                leaving,
                bytes,
                others,
                bandwidth,
                latency,
            } => {
                let [does, way] = match leaving {
                    true => ["get from", "to"],
                    false => ["get to", "from"],
                };
                let nodes = match others {
                    1 => "the other node".to_owned(),
                    _ => format!("each of {others} other nodes"),
                };
                format!(
                    "nodes: {} must {does} {} {way} {nodes}, {latency} away, over {bandwidth} of all nodes together, and \
                     others send only what they have",
                    show_bytes(*bytes),
                    name(npu),
                )
            }
            Witness::FirstOut {
                npu,
                leaving,
                bytes,
                others,
                bandwidth,
                latency,
            } => {
                let [must, whose, which, way, does] = match leaving {
                    true => [
                        "leave",
                        "for",
                        "what leaves it less than",
                        "before the end",
                        "reaches",
                    ],
                    false => [
                        "enter",
                        "from",
                        "what enters it less than",
                        "after the start",
                        "is of",
                    ],
                };
                format!(
                    "nodes: {} must {must} the node of {} over {bandwidth} {whose} {others} other nodes, and {which} \
                     {latency} {way} {does} one of them alone",
                    show_bytes(*bytes),
                    name(npu),
                )
            }
            Witness::Quickest {
                npu,
                leaving,
                bytes,
                other,
                others,
                bandwidth,
                latencies: [shortest, longest],
            } => {
                let [into, from] = if *leaving {
                    ["out of", "to"]
                } else {
                    ["into", "from"]
                };
                let whom = match other {
                    Some(other) => name(other).to_owned(),
                    None => format!("{others} others"),
                };
                let long = if shortest == longest {
                    format!("{shortest}")
                } else {
                    format!("{shortest} to {longest}")
                };
                format!(
                    "fastest flow {into} {}: {} {from} {whom} over paths of {bandwidth} together, {long} long",
                    name(npu),
                    show_bytes(*bytes),
                )
            }
            Witness::OneTrip {
                bytes,
                npus,
                bandwidth,
                latency,
            } => format!(
                "one trip: {} of each of {npus} NPUs over {bandwidth} of all together, by switches that sum or multicast; \
                 doing both takes two trips, {latency}",
                show_bytes(*bytes)
            ),
            Witness::Latency { from, to, latency } => {
                format!("latency from {} to {}: {latency}", name(from), name(to))
            }
        }
    }
}

impl Lengths {
    fn describe(&self, topology: &Topology, work: u128, capacity: u128) -> String {
        let rate = saturating_bandwidth(capacity);
        let work = show_bytes(work);
        match self {
            Lengths::Hops => {
                format!("traffic: {work} x hops over {rate}, the bandwidth of all links")
            }
            Lengths::Slowness => "traffic: links busy on the fastest ways, all together".to_owned(),
            Lengths::LimitedSwitches => {
                format!("traffic: {work} x switches over {rate}, the limits of all switches")
            }
            Lengths::Prices(priced) => {
                let name = |device: DeviceId| &topology.device(device).name;
                let link = |&([src, dst], price): &([DeviceId; 2], u64)| match src == dst {
                    true => format!("{price} x {}", name(src)),
                    false => format!("{price} x {} -> {}", name(src), name(dst)),
                };
                let links: Vec<String> = priced.iter().map(link).collect();
                format!(
                    "prices: {work} x price over {rate} x price of {}",
                    abbreviate(&links)
                )
            }
        }
    }
}

/// Returns a sum of bandwidths, in the type that prints; sums beyond 64 bits are cut off.
pub fn saturating_bandwidth(bytes_per_second: u128) -> Bandwidth {
    let bytes = u64::try_from(bytes_per_second).unwrap_or(u64::MAX).max(1);
    Bandwidth::from_bytes_per_second(bytes).expect("at least 1")
}

fn show_latency(latency: Time) -> String {
    if latency == Time::ZERO {
        String::new()
    } else {
        format!(", {latency} away")
    }
}

fn show_bytes(bytes: u128) -> String {
    let units = [
        (1_000_000_000_000, "TB"),
        (1_000_000_000, "GB"),
        (1_000_000, "MB"),
        (1_000, "kB"),
    ];
    for (size, unit) in units {
        if bytes >= size {
            let number = format!("{:.3}", bytes as f64 / size as f64);
            let number = number.trim_end_matches('0').trim_end_matches('.');
            return format!("{number} {unit}");
        }
    }
    format!("{bytes} B")
}

/// Names of devices as `{a, b, ...}`, shortened where there are many.
pub fn show_devices(topology: &Topology, devices: &[DeviceId]) -> String {
    let name = |device: &DeviceId| topology.device(*device).name.clone();
    let names: Vec<String> = devices.iter().map(name).collect();
    format!("{{{}}}", abbreviate(&names))
}

/// Names of the devices of each part, shortened where there are many.
pub fn show_parts(topology: &Topology, parts: &[Vec<DeviceId>]) -> String {
    if parts.iter().all(|part| part.len() == 1) {
        return format!("into {} single NPUs", parts.len());
    }
    let sets: Vec<String> = parts
        .iter()
        .map(|part| show_devices(topology, part))
        .collect();
    abbreviate(&sets)
}

/// Returns the first few of a long list, the last one and how many there are.
fn abbreviate(items: &[String]) -> String {
    match items {
        [first @ .., last] if items.len() > 8 => {
            format!(
                "{}, ... {last} ({} in all)",
                first[..4].join(", "),
                items.len()
            )
        }
        _ => items.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::abbreviate;

    #[test]
    fn lists_of_more_than_eight_are_cut_short() {
        let list = |count: usize| {
            let items: Vec<String> = (1..=count).map(|i| i.to_string()).collect();
            abbreviate(&items)
        };
        assert_eq!(list(0), "");
        assert_eq!(list(8), "1, 2, 3, 4, 5, 6, 7, 8");
        assert_eq!(list(9), "1, 2, 3, 4, ... 9 (9 in all)");
        assert_eq!(list(12), "1, 2, 3, 4, ... 12 (12 in all)");
    }
}
