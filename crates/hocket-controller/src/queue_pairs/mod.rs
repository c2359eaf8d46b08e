//! Queue pairs of RoCE as they run: the port and the path of each by its numbers, where they collide, and ports
//! that would lead them along assigned paths. Nothing is changed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;
use std::path::Path;

use hocket_base::explain::Explain;
use hocket_base::id::LinkId;
use hocket_base::units::Seed;
use hocket_control::directory::{Directory, read_address};
use hocket_control::stages::Stages;
use hocket_fabric::steering::{self, Header, ROCE_PORT, SourcePort, queue_pair_port};
use hocket_fabric::{Flow, Scheme, assign};
use hocket_wire::settings::Section;
use hocket_wire::setup::SetupError;
use serde::Serialize;

use crate::cluster::{Hashes, Network};
use crate::config::directory;

const COLUMNS: &str = "src,dst,src_qpn,dst_qpn,flow_label";
const UDP: u8 = 17;
/// Numbers of queue pairs, and labels, are below these.
const MOST_NUMBER: u32 = 1 << 24;
const MOST_LABEL: u32 = 1 << 20;

/// A queue pair as a listing has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct QueuePair {
    /// Address of the sender.
    pub src: IpAddr,
    /// Address of the receiver.
    pub dst: IpAddr,
    /// The sender's number of it.
    pub src_qpn: u32,
    /// The receiver's.
    pub dst_qpn: u32,
    /// The flow label of its address handle; 0: none is set.
    pub flow_label: u32,
}

/// What is foreseen of a queue pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Foreseen {
    /// What the listing has.
    #[serde(flatten)]
    pub queue_pair: QueuePair,
    /// UDP port that it sends from.
    pub port: u16,
    /// The switches that it crosses, in order.
    pub path: Vec<String>,
    /// The switches that it would cross as assigned.
    pub assigned: Vec<String>,
    /// A port that leads it there; `None` where none does, or where it leads there already.
    pub assigned_port: Option<u16>,
}

/// Queue pairs on one link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shared {
    /// Where the link starts.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// The queue pairs' places in the listing, from 0.
    pub queue_pairs: Vec<usize>,
}

/// What of the settings is needed: the fabric, how its switches hash, and who has which address.
#[derive(Clone, Debug)]
pub struct Site {
    network: Network,
    hashes: Hashes,
    directory: Directory,
}

impl Site {
    /// Reads a file; what is not needed may be missing from it.
    ///
    /// # Errors
    /// [`SetupError`] for what is wrong with the fabric, the hashes and the hosts.
    pub fn read(path: &Path) -> Result<Self, SetupError> {
        let file = Section::read(path)?;
        let network = Network::read(&file.needed_path("fabric")?)?;
        Ok(Self {
            hashes: Hashes::settings(&file, &network)?,
            directory: directory(&file, &network)?,
            network,
        })
    }
}

/// What is foreseen of all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Each, in the order of the listing.
    pub queue_pairs: Vec<Foreseen>,
    /// Links between switches that carry more than assigned paths need, busiest first.
    pub collisions: Vec<Shared>,
    /// Most queue pairs on a link between switches, as it is.
    pub most: u64,
    /// As assigned.
    pub most_assigned: u64,
    /// What no assignment goes below.
    pub least: u64,
}

/// Reads a listing: CSV with the columns `src,dst,src_qpn,dst_qpn` and, where labels are set, `flow_label`.
///
/// # Errors
/// [`SetupError`] with the line, for a file that cannot be read, other columns, and values that are no addresses or
/// numbers.
pub fn read(path: &Path) -> Result<Vec<QueuePair>, SetupError> {
    let origin = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        SetupError::new(&origin, error.to_string(), "name a file that can be read")
    })?;
    parse(&origin, &text)
}

fn parse(origin: &str, text: &str) -> Result<Vec<QueuePair>, SetupError> {
    let mut lines = text
        .lines()
        .zip(1..)
        .filter(|(line, _)| !line.trim().is_empty());
    let header = lines.next().map_or("", |(line, _)| line.trim());
    let has_label = header == COLUMNS;
    if !has_label && Some(header) != COLUMNS.strip_suffix(",flow_label") {
        let why = "its first line does not name the columns";
        return Err(SetupError::new(
            origin,
            why,
            format!("begin with {COLUMNS}"),
        ));
    }
    let count = if has_label { 5 } else { 4 };
    let listed = lines.map(|(line, number)| {
        let values: Vec<&str> = line.split(',').map(str::trim).collect();
        queue_pair(&values, count)
            .map_err(|(why, remedy)| SetupError::new(format!("{origin}:{number}"), why, remedy))
    });
    listed.collect()
}

type Wrong = (String, String);

fn queue_pair(values: &[&str], count: usize) -> Result<QueuePair, Wrong> {
    if values.len() != count {
        let why = format!("there are {} values", values.len());
        return Err((why, format!("give {count}, as the first line has")));
    }
    let address = |text: &str| {
        let remedy = || "write 10.0.1.1".to_owned();
        read_address(text).map_err(|why| (format!("{text:?} {why}"), remedy()))
    };
    let (src, dst) = (address(values[0])?, address(values[1])?);
    if src.is_ipv4() != dst.is_ipv4() {
        let why = format!("{src} and {dst} are of two families");
        return Err((why, "give both of one".to_owned()));
    }
    Ok(QueuePair {
        src,
        dst,
        src_qpn: number(values[2], MOST_NUMBER)?,
        dst_qpn: number(values[3], MOST_NUMBER)?,
        flow_label: values
            .get(4)
            .map_or(Ok(0), |text| number(text, MOST_LABEL))?,
    })
}

/// Returns a number below a limit, decimal or 0x....
fn number(text: &str, limit: u32) -> Result<u32, Wrong> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    parsed.filter(|&number| number < limit).ok_or_else(|| {
        let why = format!("{text:?} is not a number below {limit}");
        (why, "write 282 or 0x11a".to_owned())
    })
}

/// Foresees where queue pairs go, and assigns paths to them.
///
/// Paths are assigned by balanced colouring, each queue pair as one flow of weight 1.
///
/// # Errors
/// [`SetupError`] for addresses that no host has, and for hosts that no path joins.
///
/// # Complexity
/// O(queue pairs x choices between two ToRs).
pub fn foresee(site: &Site, origin: &str, listed: &[QueuePair]) -> Result<Report, SetupError> {
    let network = &site.network;
    let stages = Stages::new(
        network.fabric.clone(),
        network.topology(),
        |switch| site.hashes.of(switch),
        false,
    );
    let ends = listed.iter().zip(0..).map(|(pair, place)| {
        let tors = [pair.src, pair.dst].map(|address| tor_of(site, address));
        let named = |error| SetupError::new(format!("{origin}, queue pair {place}"), error, LISTED);
        let [src, dst] = tors;
        Ok([src.map_err(named)?, dst.map_err(named)?])
    });
    let ends: Vec<[u32; 2]> = ends.collect::<Result<_, SetupError>>()?;
    // Those below one ToR cross no link between switches.
    let across = ends.iter().filter(|[src, dst]| src != dst);
    let flows: Vec<Flow> = across.map(|&[src, dst]| Flow::new(src, dst)).collect();
    let assigned = assign(&network.fabric, &flows, Scheme::EdgeColoring, Seed(0))
        .map_err(|error| SetupError::new(origin, error.parts().why, "join all hosts"))?;
    let mut given = assigned.choices().iter();
    let mut foreseer = Foreseer {
        network,
        stages,
        on: BTreeMap::new(),
        ports: BTreeMap::new(),
    };
    let mut queue_pairs = Vec::with_capacity(listed.len());
    for (place, (&pair, &[src, dst])) in listed.iter().zip(&ends).enumerate() {
        let choice = (src != dst).then(|| given.next().copied()).flatten();
        queue_pairs.push(foreseer.one(place, pair, [src, dst], choice));
    }
    let most_assigned = assigned.max_link_load();
    Ok(Report {
        queue_pairs,
        most: foreseer.most(),
        collisions: foreseer.collisions(most_assigned),
        most_assigned,
        least: assigned.load_bound().load,
    })
}

const LISTED: &str = "list the host with its nics in the settings";

fn tor_of(site: &Site, address: IpAddr) -> Result<u32, String> {
    let nic = site.directory.at(address).map(|(_, nic)| nic);
    let nic = nic.ok_or_else(|| format!("no host has the address {address}"))?;
    let tor = site.network.fabric.tor_of(nic);
    tor.ok_or_else(|| format!("the NIC of {address} has no ToR"))
}

struct Foreseer<'a> {
    network: &'a Network,
    stages: Stages,
    /// Queue pairs by link.
    on: BTreeMap<LinkId, Vec<usize>>,
    /// Ports that are suggested, by pair of addresses, sorted.
    ports: BTreeMap<[IpAddr; 2], Vec<u16>>,
}

impl Foreseer<'_> {
    fn one(
        &mut self,
        place: usize,
        pair: QueuePair,
        tors: [u32; 2],
        choice: Option<u32>,
    ) -> Foreseen {
        let port = queue_pair_port([pair.src_qpn, pair.dst_qpn], pair.flow_label);
        let header = Header {
            src: pair.src,
            dst: pair.dst,
            protocol: UDP,
            sport: port,
            dport: ROCE_PORT,
            label: pair.flow_label,
        };
        let taken = match choice {
            Some(_) => self.stages.hashed(tors[0], tors[1], &header),
            None => None,
        };
        let links = self.links(tors, taken);
        for &link in &links {
            self.on.entry(link).or_default().push(place);
        }
        let assigned = self.links(tors, choice);
        let assigned_port = match choice {
            Some(choice) if links != assigned => self.port(tors, choice, &header),
            _ => None,
        };
        Foreseen {
            queue_pair: pair,
            port,
            path: self.crossed(&links),
            assigned: self.crossed(&assigned),
            assigned_port,
        }
    }

    fn links(&self, [src, dst]: [u32; 2], choice: Option<u32>) -> Vec<LinkId> {
        let mut links = Vec::new();
        if let Some(choice) = choice {
            self.stages.fabric().route(src, dst, choice, &mut links);
        }
        links
    }

    fn crossed(&self, links: &[LinkId]) -> Vec<String> {
        let starts = links.iter().map(|&link| self.network.ends(link)[0]);
        let end = links.last().map(|&link| self.network.ends(link)[1]);
        let switches = starts.chain(end);
        switches
            .map(|id| self.network.device(id).to_owned())
            .collect()
    }

    /// Returns a port that no other queue pair of the two hosts is given.
    fn port(&mut self, [src, dst]: [u32; 2], choice: u32, header: &Header) -> Option<u16> {
        let path = self.stages.path(src, dst, choice)?;
        let taken = self.ports.entry([header.src, header.dst]).or_default();
        let source = SourcePort {
            first: header.sport,
            taken: taken.clone(),
            ports: SourcePort::ROCE,
        };
        let stages = steering::Stages {
            forth: &path.forth,
            back: &[],
        };
        let port = source.find(header, stages).ok()?;
        let at = taken.partition_point(|&other| other < port);
        taken.insert(at, port);
        Some(port)
    }

    fn most(&self) -> u64 {
        self.on.values().map(Vec::len).max().unwrap_or(0) as u64
    }

    fn collisions(self, most_assigned: u64) -> Vec<Shared> {
        let network = self.network;
        let over = self.on.into_iter();
        let over = over.filter(|(_, pairs)| pairs.len() as u64 > most_assigned);
        let mut shared: Vec<Shared> = over
            .map(|(link, queue_pairs)| {
                let [from, to] = network.ends(link).map(|id| network.device(id).to_owned());
                Shared {
                    from,
                    to,
                    queue_pairs,
                }
            })
            .collect();
        shared.sort_by_key(|link| std::cmp::Reverse(link.queue_pairs.len()));
        shared
    }
}

impl Report {
    /// As JSON, with its format and version.
    pub fn json(&self) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            format: &'static str,
            version: u32,
            #[serde(flatten)]
            report: &'a Report,
        }
        let document = Document {
            format: "hocket.queue-pairs",
            version: 1,
            report: self,
        };
        let text = serde_json::to_string_pretty(&document);
        text.expect("its keys are text") + "\n"
    }

    /// As a table, and what collides.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let path = |switches: &[String]| match switches {
            [] => "below one ToR".to_owned(),
            switches => switches.join(" "),
        };
        let rows = self.queue_pairs.iter().map(|each| {
            let QueuePair {
                src,
                dst,
                src_qpn,
                dst_qpn,
                ..
            } = each.queue_pair;
            let advice = match (each.assigned_port, each.path == each.assigned) {
                (_, true) => "stays".to_owned(),
                (Some(port), _) => format!("{} by port {port}", path(&each.assigned)),
                (None, _) => format!("{} by no port", path(&each.assigned)),
            };
            [
                src.to_string(),
                dst.to_string(),
                format!("{src_qpn:#x}"),
                format!("{dst_qpn:#x}"),
                each.port.to_string(),
                path(&each.path),
                advice,
            ]
        });
        let names = [
            "src",
            "dst",
            "src_qpn",
            "dst_qpn",
            "port",
            "path",
            "as assigned",
        ];
        let rows: Vec<[String; 7]> = std::iter::once(names.map(str::to_owned))
            .chain(rows)
            .collect();
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let widths: [usize; 7] = std::array::from_fn(width);
        for row in &rows {
            let cells = row
                .iter()
                .zip(widths)
                .map(|(cell, width)| format!("{cell:<width$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let _ = writeln!(
            text,
            "\nqueue pairs on the busiest link: {} as hashed, {} as assigned (no assignment goes below {})",
            self.most, self.most_assigned, self.least,
        );
        for Shared {
            from,
            to,
            queue_pairs,
        } in &self.collisions
        {
            let _ = writeln!(text, "{from} to {to}: {} queue pairs", queue_pairs.len());
        }
        text
    }
}

#[cfg(test)]
mod tests;
