//! What the controller is set to: a file in TOML.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hocket_control::directory::{Directory, HostEntry, read_address};
use hocket_control::message::Terms;
use hocket_control::server::Options as ServerOptions;
use hocket_fabric::controller::{self, Policy};
use hocket_wire::settings::Section;
use hocket_wire::setup::SetupError;
use hocket_wire::tls::{Files, is_host};

use crate::cluster::{Hashes, Network};
use crate::linkfile;

/// Everything that the controller is set to.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where hosts connect.
    pub listen: SocketAddr,
    /// Where operators connect.
    pub operator: SocketAddr,
    /// Certificates.
    pub tls: Files,
    /// The folder of what outlives a restart.
    pub state: PathBuf,
    /// The fabric.
    pub network: Arc<Network>,
    /// How its switches hash.
    pub hashes: Hashes,
    /// Hosts, their addresses and jobs.
    pub directory: Directory,
    /// What hosts are told and allowed.
    pub session: Session,
    /// Who is active where there are several controllers.
    pub standby: Standby,
    /// A file that says which links have failed, in place of operators.
    pub links: Option<PathBuf>,
    /// Most bytes of the event log; 0: none is written.
    pub events: u64,
}

/// What hosts are told and allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// What the server heeds.
    pub options: ServerOptions,
    /// Most bytes of a message.
    pub message_bytes: usize,
    /// Most TLS handshakes at once.
    pub handshakes: usize,
    /// Most messages that wait for a host; a slower one is dropped.
    pub queue: usize,
}

/// Who is active where there are several controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standby {
    /// There is one.
    Alone,
    /// Whoever has the lock on a file in the state's folder.
    Lock,
    /// Whoever has a key in etcd.
    Etcd {
        /// Where etcd is.
        endpoint: SocketAddr,
        /// The key.
        key: String,
        /// How long a controller stays active without being heard.
        ttl: Duration,
    },
}

impl Config {
    /// Reads a file and all that it names.
    ///
    /// # Errors
    /// [`SetupError`] for whatever is wrong with it; nothing is written.
    pub fn read(path: &Path) -> Result<Self, SetupError> {
        let file = Section::read(path)?;
        let network = Arc::new(Network::read(&file.needed_path("fabric")?)?);
        let events = file.bytes("events", 0)?;
        let directory = directory(&file, &network)?;
        let config = Self {
            listen: file
                .socket("listen")?
                .unwrap_or(([0, 0, 0, 0], 7400).into()),
            operator: file
                .socket("operator")?
                .unwrap_or(([127, 0, 0, 1], 7401).into()),
            tls: Files::settings(file.section("tls")?)?,
            state: file.needed_path("state")?,
            hashes: Hashes::settings(&file, &network)?,
            session: Session::settings(
                file.section("session")?,
                policy(file.section("policy")?)?,
                directory.len(),
                events > 0,
            )?,
            directory,
            standby: standby(file.section("standby")?)?,
            links: links(&file, &network)?,
            events,
            network,
        };
        let (a, b) = (config.listen, config.operator);
        let is_any = a.ip().is_unspecified() || b.ip().is_unspecified();
        if a.port() > 0 && a.port() == b.port() && (is_any || a.ip() == b.ip()) {
            let why = format!("{b} is where hosts connect, {a}");
            return Err(file.wrong("operator", why, "give operators another port"));
        }
        file.finish()?;
        Ok(config)
    }
}

impl Session {
    fn settings(
        section: Section,
        policy: controller::Options,
        hosts: usize,
        keeps_log: bool,
    ) -> Result<Self, SetupError> {
        let number = |key, default: usize, most| section.number(key, default, [1, most]);
        let default = ServerOptions::default();
        let terms = Terms {
            lease: section.time("lease", default.terms.lease)?,
            beat: section.time("beat", default.terms.beat)?,
            least_bytes: section.bytes("least_bytes", default.terms.least_bytes)?,
        };
        if terms.beat * 2 > terms.lease {
            let why = "it is more than half of the lease";
            return Err(section.wrong("beat", why, "let hosts beat at least twice a lease"));
        }
        let options = ServerOptions {
            policy,
            terms,
            grace: section.time("grace", default.grace)?,
            recovery: section.time("recovery", default.recovery)?,
            most_host_flows: number("flows", default.most_host_flows, 1 << 20)?,
            most_host_jobs: number("jobs", default.most_host_jobs, 1 << 10)?,
            most_flows: number("all_flows", default.most_flows, 1 << 24)?,
            rate: section.number("rate", default.rate, [1, 1 << 30])?,
            burst: section.number("burst", default.burst, [1, 1 << 30])?,
            reporters: number("reporters", default.reporters.min(hosts), 1 << 10)?,
            keeps_log,
            ..default
        };
        if options.reporters > hosts {
            let why = format!(
                "{} hosts must say it, and there are {hosts}",
                options.reporters
            );
            return Err(section.wrong("reporters", why, "ask for fewer"));
        }
        let session = Self {
            options,
            message_bytes: usize::try_from(section.bytes("message_bytes", 4 << 20)?)
                .unwrap_or(usize::MAX),
            handshakes: number("handshakes", 8, 10_000)?,
            queue: number("queue", 1_024, 1 << 20)?,
        };
        if !(1024..=hocket_wire::MOST_BATCH_BYTES).contains(&session.message_bytes) {
            let why = "it is not between 1 KiB and 8 MiB";
            return Err(section.wrong("message_bytes", why, "write such as \"4 MiB\""));
        }
        section.finish()?;
        Ok(session)
    }
}

fn policy(section: Section) -> Result<controller::Options, SetupError> {
    let default = controller::Options::default();
    let number = |key, default: u32, most| section.number(key, default, [0, most]);
    let rates = match section.has("rate_slack_ppm") {
        true => Some(number("rate_slack_ppm", 0, 1_000_000_000)?),
        false => None,
    };
    let options = controller::Options {
        policy: [Policy::Balanced, Policy::Greedy]
            [section.word("kind", &["balanced", "greedy"])?],
        most_moves: number("most_moves", default.most_moves, u32::MAX)?,
        tries: number("tries", default.tries, 1 << 16)?,
        reliefs: number("reliefs", default.reliefs, 1 << 16)?,
        slack: section.number("slack", default.slack, [0, u16::MAX])?,
        rate_slack_ppm: rates,
        look_ahead: number("look_ahead", default.look_ahead, 1 << 16)?,
        failover: section.flag("failover", default.failover)?,
    };
    section.finish()?;
    Ok(options)
}

pub(crate) fn directory(file: &Section, network: &Network) -> Result<Directory, SetupError> {
    let mut hosts = Vec::new();
    for (name, section) in file.sections("hosts")? {
        if !is_host(&name) {
            let remedy = "take letters and digits, then also dots, dashes and underscores";
            return Err(SetupError::new(
                section.origin(),
                "it is no name of a host",
                remedy,
            ));
        }
        let mut nics = Vec::new();
        for text in section.texts("nics")? {
            let wrong = |why: String| section.wrong("nics", why, "write [\"ADDRESS NPU\", ...]");
            let mut words = text.split_whitespace();
            let (Some(address), Some(npu), None) = (words.next(), words.next(), words.next())
            else {
                return Err(wrong(format!("{text:?} is not an address and an NPU")));
            };
            let address = read_address(address);
            let address = address.map_err(|why| wrong(format!("{text:?}: its address {why}")))?;
            let name = npu;
            let npu = network
                .npu(name)
                .ok_or_else(|| wrong(format!("the fabric has no NPU {name:?}")))?;
            nics.push((address, npu));
        }
        if nics.is_empty() {
            return Err(section.missing("nics", "write [\"ADDRESS NPU\", ...]"));
        }
        section.finish()?;
        hosts.push(HostEntry { name, nics });
    }
    let mut jobs = Vec::new();
    let mut are_open = true;
    for (number, section) in file.sections("jobs")? {
        are_open = false;
        let number = number.parse().map_err(|_| {
            SetupError::new(
                section.origin(),
                "it is no number of a job",
                "write [jobs.1]",
            )
        })?;
        jobs.push((number, section.texts("hosts")?));
        section.finish()?;
    }
    if hosts.is_empty() {
        let remedy = "write [hosts.NAME] with nics = [\"ADDRESS NPU\"]";
        return Err(file.missing("hosts", remedy));
    }
    Directory::new(hosts, jobs, are_open)
        .map_err(|error| file.wrong("hosts", error.to_string(), ""))
}

fn links(file: &Section, network: &Network) -> Result<Option<PathBuf>, SetupError> {
    if !file.has("links") {
        return Ok(None);
    }
    let section = file.section("links")?;
    let path = section.needed_path("file")?;
    section.finish()?;
    linkfile::read(&path, network)?;
    Ok(Some(path))
}

fn standby(section: Section) -> Result<Standby, SetupError> {
    let kinds = ["alone", "lock", "etcd"];
    let standby = match kinds[section.word("kind", &kinds)?] {
        "alone" => Standby::Alone,
        "lock" => Standby::Lock,
        _ => Standby::Etcd {
            endpoint: section
                .socket("endpoint")?
                .unwrap_or(([127, 0, 0, 1], 2379).into()),
            key: section
                .text("key")?
                .unwrap_or_else(|| "hocket/controller".to_owned()),
            ttl: section.time("ttl", Duration::from_secs(5))?,
        },
    };
    section.finish()?;
    Ok(standby)
}
