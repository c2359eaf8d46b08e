//! Reads what `nvidia-smi topo -m` prints, and after it, where it is there, what `nvidia-smi nvlink -s` prints.
//!
//! The matrix says for each pair of GPUs how many NVLinks join them, or how far apart they are on PCI. It does not say
//! what a link carries, nor which GPU it is; `nvlink -s` says both. Where NVLinks hide how far apart two GPUs are, the
//! columns of affinity say whether they share a processor.
//!
//! # Source
//! Both commands of NVIDIA's driver 525 to 580, as their own legends explain them.

use std::collections::{HashMap, HashSet};

use hocket_base::id::narrow;
use hocket_base::units::whole;

use super::rates::{self, Medium};
use super::{Gpu, Kind, Link, System, network};
use crate::elements::{LARGEST, quoted};
use crate::error::FormatError;

/// NVLinks of a GPU at most, so that more in a row of the matrix go to a switch: 18 of Hopper and Blackwell.
const MOST_LINKS: u32 = 18;
/// GPUs and NICs at most.
const MOST: usize = 640;
/// What an NVLink carries where nothing says it: the rate of Volta, Ampere and Hopper.
const USUAL: u64 = 25_000_000_000;
/// Escape sequences of terminals.
const ESCAPE: char = '\u{1b}';

/// How near two devices are on PCI, the nearest first.
const NEAR: [&str; 5] = ["PIX", "PXB", "PHB", "NODE", "SYS"];

const WHAT: &str =
    "give what NCCL writes to NCCL_TOPO_DUMP_FILE, or what nvidia-smi topo -m prints";

/// Reads the text of one or both commands, in this order.
///
/// # Errors
/// A fault with the line, where there is no matrix or one that contradicts itself.
pub fn read_smi(bytes: &[u8]) -> Result<System, FormatError> {
    if bytes.len() > LARGEST {
        return Err(FormatError::new(format!("it has {} bytes", bytes.len())));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|_| FormatError::new("it is not text in UTF-8").remedy(WHAT))?;
    let matrix = Matrix::read(text)?;
    let listed = listed(text)?;
    build(&matrix, &listed)
}

/// Columns behind the cells, in this order as far as they are there.
const COLUMNS: [&str; 3] = ["CPU Affinity", "NUMA Affinity", "GPU NUMA ID"];

/// Numbers from the first to the last, of processor cores or of parts of the memory.
type Ranges = Vec<(u32, u32)>;

/// Rows of GPUs and NICs, and the cells between them.
struct Matrix {
    names: Vec<String>,
    gpus: usize,
    cells: Vec<Vec<String>>,
    lines: Vec<u64>,
    /// Of each row, the cores and the parts of memory that are near, where they are stated.
    near: Vec<[Option<Ranges>; 2]>,
}

impl Matrix {
    fn read(text: &str) -> Result<Self, FormatError> {
        let mut lines = (1..).zip(text.lines());
        let head = lines.find(|(_, line)| plain(line).split_whitespace().next() == Some("GPU0"));
        let Some((_, head)) = head else {
            let why = "it is no XML, and has no line that begins with GPU0, the head of a matrix";
            return Err(FormatError::new(why).remedy(WHAT));
        };
        let head = plain(head);
        let is_device = |name: &&str| {
            let digits = name.trim_start_matches(|c: char| c.is_ascii_uppercase());
            let is_named = name.starts_with("GPU") || name.starts_with("NIC") || name.contains('_');
            is_named && !digits.is_empty()
        };
        let names: Vec<String> = head
            .split_whitespace()
            .take_while(is_device)
            .map(str::to_owned)
            .collect();
        if names.len() > MOST {
            return Err(
                FormatError::new(format!("its matrix has {} columns", names.len()))
                    .remedy(format!("{MOST} at most")),
            );
        }
        let gpus = names
            .iter()
            .take_while(|name| name.starts_with("GPU"))
            .count();
        let columns: Vec<usize> = (0..COLUMNS.len())
            .filter(|&column| {
                let words = head.split_whitespace().collect::<Vec<_>>().join(" ");
                words.contains(COLUMNS[column])
            })
            .collect();
        let mut cells = Vec::new();
        let mut at = Vec::new();
        let mut near = Vec::new();
        for (number, line) in lines {
            let line = plain(line);
            let mut words = line.split_whitespace();
            let Some(name) = names.get(cells.len()) else {
                break;
            };
            if words.next() != Some(name) {
                continue;
            }
            let row: Vec<String> = words
                .by_ref()
                .take(names.len())
                .map(str::to_owned)
                .collect();
            near.push(affinity(&words.collect::<Vec<_>>(), &columns));
            if row.len() < names.len() || row[cells.len()] != "X" {
                let why = format!(
                    "the row of {} has no X below its own column",
                    names[cells.len()]
                );
                return Err(FormatError::at(number, why).remedy("give the matrix whole"));
            }
            cells.push(row);
            at.push(number);
        }
        if cells.len() < gpus {
            let why = format!(
                "its matrix has {} columns, but {} rows",
                names.len(),
                cells.len()
            );
            return Err(FormatError::new(why).remedy("give what nvidia-smi topo -m prints, whole"));
        }
        Ok(Self {
            names,
            gpus,
            cells,
            lines: at,
            near,
        })
    }

    /// NVLinks between two GPUs.
    fn links(&self, a: usize, b: usize) -> Result<u32, FormatError> {
        let cell = &self.cells[a][b];
        let Some(count) = cell.strip_prefix("NV") else {
            return match NEAR.contains(&cell.as_str()) || a == b {
                true => Ok(0),
                false => Err(FormatError::at(
                    self.lines[a],
                    format!("there is no {}", quoted(cell)),
                )
                .remedy("cells are NV1 and so on, PIX, PXB, PHB, NODE or SYS")),
            };
        };
        let count = count.parse().ok().filter(|&it| it <= 1000);
        let same = self.cells[b][a] == *cell;
        count.filter(|_| same).ok_or_else(|| {
            let (one, other) = (&self.names[a], &self.names[b]);
            let why = format!("{one} has {cell} to {other}, and {} back", self.cells[b][a]);
            FormatError::at(self.lines[a], why).remedy("give the matrix as it was printed")
        })
    }

    /// Returns whether two devices are near the same processor, by their affinity; `None` where it does not tell.
    fn is_near_same(&self, a: usize, b: usize) -> Option<bool> {
        let meets = |of: usize| {
            let (a, b) = (self.near[a][of].as_ref()?, self.near[b][of].as_ref()?);
            let meet = |x: &(u32, u32)| b.iter().any(|y| x.0 <= y.1 && y.0 <= x.1);
            Some(a.iter().any(meet))
        };
        meets(1).or_else(|| meets(0))
    }

    /// Devices in sets that share a processor: by their cells, and where NVLinks hide those, by their affinity. Says as well whether
    /// there are GPUs of which neither tells; they are taken to share one.
    fn processors(&self) -> (Vec<usize>, bool) {
        let mut set = self.sets(3);
        let mut is_guessed = false;
        let mut known_apart = HashSet::new();
        for is_guess in [false, true] {
            for a in 0..self.gpus {
                for b in 0..a {
                    let told = self.is_near_same(a, b);
                    let (from, to) = (set[a].max(set[b]), set[a].min(set[b]));
                    let hidden = self.cells[a][b].starts_with("NV") && from != to;
                    let is_asked = told != Some(false) && told.is_none() == is_guess;
                    if !hidden || !is_asked || known_apart.contains(&(from, to)) {
                        continue;
                    }
                    let rows = 0..self.cells.len();
                    let apart = rows.clone().filter(|&x| set[x] == from).any(|x| {
                        let mut others = rows.clone().filter(|&y| set[y] == to);
                        others.any(|y| self.cells[x][y] == "SYS" || self.cells[y][x] == "SYS")
                    });
                    if apart {
                        known_apart.insert((from, to));
                    } else {
                        set.iter_mut()
                            .filter(|it| **it == from)
                            .for_each(|it| *it = to);
                        is_guessed |= is_guess;
                    }
                }
            }
        }
        (set, is_guessed)
    }

    /// Devices in sets, each of which is at most so far apart on PCI: a number of the set for each.
    fn sets(&self, farthest: usize) -> Vec<usize> {
        let mut set: Vec<usize> = (0..self.names.len()).collect();
        for (a, row) in self.cells.iter().enumerate() {
            for (b, cell) in row.iter().enumerate() {
                let near = NEAR.iter().position(|it| it == cell);
                if near.is_some_and(|near| near <= farthest) && set[a] != set[b] {
                    let (from, to) = (set[a].max(set[b]), set[a].min(set[b]));
                    set.iter_mut()
                        .filter(|it| **it == from)
                        .for_each(|it| *it = to);
                }
            }
        }
        set
    }
}

/// Returns what a row says behind its cells: near cores, and near parts of the memory.
fn affinity(words: &[&str], columns: &[usize]) -> [Option<Ranges>; 2] {
    if words.len() != columns.len() {
        return [None, None];
    }
    let of = |column: usize| {
        let at = columns.iter().position(|&it| it == column)?;
        let parts = words[at].split(',').map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some((first.parse().ok()?, last.parse().ok()?))
        });
        parts.collect::<Option<Ranges>>()
    };
    [of(0), of(1)]
}

/// Returns a line without the colours of a terminal.
fn plain(line: &str) -> String {
    let mut parts = line.split(ESCAPE);
    let mut found = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.find(|c: char| c.is_ascii_alphabetic());
        found.push_str(rest.map_or("", |at| &part[at + 1..]));
    }
    found
}

/// A GPU as `nvlink -s` lists it.
#[derive(Default)]
struct Listed {
    name: String,
    /// What each link that works carries.
    rates: Vec<u64>,
}

fn listed(text: &str) -> Result<Vec<Listed>, FormatError> {
    let mut found: Vec<Listed> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = plain(line);
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("GPU ").filter(|rest| rest.contains(": ")) {
            let name = rest.split_once(": ").map_or("", |(_, name)| name);
            let name = name.split(" (UUID").next().unwrap_or_default().to_owned();
            found.push(Listed {
                name,
                rates: Vec::new(),
            });
            if found.len() > MOST {
                return Err(FormatError::at(
                    number,
                    format!("there are more than {MOST} GPUs"),
                ));
            }
        } else if let Some((link, rate)) = line.split_once(": ")
            && link.starts_with("Link ")
            && let Some(rate) = rate.strip_suffix(" GB/s")
        {
            let read: Option<f64> = rate.trim().parse().ok();
            let Some(read) = read.filter(|rate| (0.1..=1000.0).contains(rate)) else {
                let why = format!("{} is no rate of a link", quoted(rate));
                return Err(FormatError::at(number, why).remedy("it is as 25 GB/s"));
            };
            let Some(gpu) = found.last_mut() else {
                return Err(FormatError::at(
                    number,
                    "a link stands before the first GPU",
                ));
            };
            gpu.rates.push(nominal(read));
        }
    }
    Ok(found)
}

/// Returns what makers state of a link whose raw rate is 26.562 GB/s, as that of Hopper, or 53.125.
fn nominal(rate: f64) -> u64 {
    let known = [
        (26.562, 25.0),
        (53.125, 50.0),
        (25.781, 25.0),
        (19.531, 20.0),
    ];
    let same = known.iter().find(|(raw, _)| (raw - rate).abs() < 0.01);
    whole(same.map_or(rate, |(_, stated)| *stated) * 1e9)
}

/// Returns the compute capability of a GPU by its name; 0 where it is not known.
fn capability(name: &str) -> i64 {
    let known = [
        ("B300", 103),
        ("B200", 100),
        ("B100", 100),
        ("H100", 90),
        ("H200", 90),
        ("H800", 90),
        ("H20", 90),
        ("A100", 80),
        ("A800", 80),
        ("V100", 70),
        ("P100", 60),
    ];
    let found = known.iter().find(|(part, _)| name.contains(part));
    found.map_or(0, |(_, sm)| *sm)
}

fn build(matrix: &Matrix, listed: &[Listed]) -> Result<System, FormatError> {
    let count = matrix.gpus;
    if !listed.is_empty() && listed.len() != count {
        let why = format!(
            "the matrix has {count} GPUs, the list of links {}",
            listed.len()
        );
        return Err(FormatError::new(why).remedy("give both of one machine"));
    }
    let mut system = System::default();
    for dev in 0..count {
        let device = system.device(format!("gpu{dev}"), Kind::Gpu);
        let sm = listed.get(dev).map_or(0, |gpu| capability(&gpu.name));
        system.gpus.push(Gpu {
            device,
            host: 0,
            dev: dev as i64,
            rank: dev as i64,
            sm,
            arch: None,
            links: 0,
            bus: None,
        });
    }
    nvlinks(&mut system, matrix, listed)?;
    let is_joined = network::joins(&system, &system.links);
    let is_guessed = pci(&mut system, matrix);
    if !is_joined {
        let note = "of PCI the matrix says only what is near: PCIe 4.0 x16, and 16 GB/s between processors, are assumed";
        system.notes.push(note.to_owned());
        if is_guessed {
            let note = "of GPUs that NVLinks join nothing says whether they share a processor: it is assumed";
            system.notes.push(note.to_owned());
        }
    }
    Ok(system)
}

fn nvlinks(system: &mut System, matrix: &Matrix, listed: &[Listed]) -> Result<(), FormatError> {
    let count = matrix.gpus;
    let mut rows = Vec::new();
    for a in 0..count {
        let row: Result<Vec<u32>, FormatError> = (0..count).map(|b| matrix.links(a, b)).collect();
        rows.push(row?);
    }
    let works = |gpu: usize| {
        listed
            .get(gpu)
            .map_or(MOST_LINKS, |it| narrow(it.rates.len()))
    };
    let is_switched = |gpu: usize| rows[gpu].iter().sum::<u32>() > works(gpu);
    let rate = |gpu: usize| {
        let rates = listed
            .get(gpu)
            .map(|it| it.rates.as_slice())
            .unwrap_or_default();
        rates.iter().min().copied().unwrap_or(USUAL)
    };
    let has_links = rows.iter().flatten().any(|&links| links > 0);
    if listed.is_empty() && has_links {
        let note = "the matrix does not say what an NVLink carries: 25 GB/s each way is assumed, as of V100, A100 and H100";
        system.notes.push(format!(
            "{note}; what nvidia-smi nvlink -s prints, after it, says it"
        ));
    }
    if (0..count).any(is_switched) {
        let switch = system.device("nvs".to_owned(), Kind::NvSwitch);
        for (gpu, row) in rows.iter().enumerate() {
            let links = match listed.get(gpu) {
                Some(listed) => narrow(listed.rates.len()),
                None => row.iter().copied().max().unwrap_or(0),
            };
            system.gpus[gpu].links = links;
            if links > 0 {
                let device = system.gpus[gpu].device;
                let sum = rate(gpu) * u64::from(links);
                system.both_ways(device, switch, sum, Medium::NvSwitch);
            }
        }
        return Ok(());
    }
    if listed.is_empty() {
        system.notes.extend(may_be_switched(&rows));
    }
    for (a, row) in rows.iter().enumerate() {
        system.gpus[a].links = row.iter().sum();
        for (b, &links) in row.iter().enumerate().filter(|(_, links)| **links > 0) {
            system.links.push(Link {
                src: system.gpus[a].device,
                dst: system.gpus[b].device,
                bandwidth: rate(a) * u64::from(links),
                medium: Medium::NvLink,
            });
        }
    }
    Ok(())
}

/// Returns a note for three or more GPUs with equally many NVLinks between any two: a switch would give the same
/// matrix.
fn may_be_switched(rows: &[Vec<u32>]) -> Option<String> {
    rows.iter().find_map(|row| {
        let members: Vec<usize> = (0..rows.len())
            .filter(|&gpu| row[gpu] > 0 || std::ptr::eq(&rows[gpu], row))
            .collect();
        let links = row.iter().copied().max().filter(|&links| links > 0)?;
        let alike = |&gpu: &usize| {
            let own = &rows[gpu];
            let count = own.iter().filter(|&&it| it > 0).count() + 1;
            let mut others = members.iter().filter(|&&other| other != gpu);
            count == members.len() && others.all(|&other| own[other] == links)
        };
        let count = members.len();
        (count > 2 && members.iter().all(alike)).then(|| {
            let all = links * (narrow(count) - 1);
            format!(
                "NV{links} between any two of {count} GPUs is read as links from GPU to GPU, {all} of each; {links} links of each to a switch would look the same: what nvidia-smi nvlink -s prints, after it, tells which"
            )
        })
    })
}

/// Returns a PCI switch for every set of devices that are near, and a processor for every set of those; whether some of
/// these were guessed.
fn pci(system: &mut System, matrix: &Matrix) -> bool {
    let switches = matrix.sets(1);
    let (processors, is_guessed) = matrix.processors();
    let rate = rates::pcie("16 GT/s", 16);
    let mut cpus: HashMap<usize, usize> = HashMap::new();
    let mut bridges: HashMap<usize, usize> = HashMap::new();
    for gpu in 0..matrix.gpus {
        let count = cpus.len();
        let at = *cpus.entry(processors[gpu]).or_insert_with(|| {
            system.devices.push(super::Device {
                name: format!("cpu{count}"),
                kind: Kind::Cpu,
            });
            system.devices.len() - 1
        });
        let count = bridges.len();
        let mut is_new = false;
        let bridge = *bridges.entry(switches[gpu]).or_insert_with(|| {
            is_new = true;
            system.device(format!("pci{count}"), Kind::Pci)
        });
        if is_new {
            system.both_ways(bridge, at, rate, Medium::Pcie);
        }
        let device = system.gpus[gpu].device;
        system.both_ways(device, bridge, rate, Medium::Pcie);
    }
    let mut all: Vec<usize> = cpus.into_values().collect();
    all.sort_unstable();
    for (i, &a) in all.iter().enumerate() {
        for &b in &all[i + 1..] {
            system.both_ways(
                a,
                b,
                rates::between_processors("", "AuthenticAMD", 0, 0),
                Medium::Upi,
            );
        }
    }
    is_guessed
}
