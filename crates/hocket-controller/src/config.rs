//! What the controller is set to: a file in TOML.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hocket_control::directory::{Directory, HostEntry};
use hocket_core::routing::controller::{Options, Policy};
use hocket_wire::settings::Section;
use hocket_wire::setup::SetupError;
use hocket_wire::tls::{Files, is_host};

use crate::fabric::{Hashes, Network};

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
    pub network: Network,
    /// How its switches hash.
    pub hashes: Hashes,
    /// Hosts, their addresses and jobs.
    pub directory: Directory,
    /// How flows are given paths.
    pub policy: Options,
    /// What hosts are told and allowed.
    pub session: Session,
    /// Who is active where there are several controllers.
    pub standby: Standby,
}

/// What hosts are told and allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// A host that is silent for so long is gone.
    pub lease: Duration,
    /// How often hosts say that they are there.
    pub beat: Duration,
    /// How long hosts may take to come back after the controller starts.
    pub recovery: Duration,
    /// Flows of fewer bytes are not announced.
    pub least_bytes: u64,
    /// Most live flows of a host.
    pub flows: u32,
    /// Most flows that a host announces in a second.
    pub flows_per_second: u32,
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
        let network = Network::read(&file.needed_path("fabric")?)?;
        let config = Self {
            listen: file.socket("listen")?.unwrap_or(([0, 0, 0, 0], 7400).into()),
            operator: file.socket("operator")?.unwrap_or(([127, 0, 0, 1], 7401).into()),
            tls: Files::settings(file.section("tls")?)?,
            state: file.needed_path("state")?,
            hashes: Hashes::settings(&file, &network)?,
            directory: directory(&file, &network)?,
            policy: policy(file.section("policy")?)?,
            session: Session::settings(file.section("session")?)?,
            standby: standby(file.section("standby")?)?,
            network,
        };
        file.finish()?;
        Ok(config)
    }
}

impl Session {
    fn settings(section: Section) -> Result<Self, SetupError> {
        let number = |key, default, bounds| section.number(key, default, bounds);
        let session = Self {
            lease: section.time("lease", Duration::from_secs(10))?,
            beat: section.time("beat", Duration::from_secs(2))?,
            recovery: section.time("recovery", Duration::from_secs(15))?,
            least_bytes: section.bytes("least_bytes", 1_000_000)?,
            flows: number("flows", 65_536, [1, 1 << 24])? as u32,
            flows_per_second: number("flows_per_second", 100_000, [1, 1 << 30])? as u32,
            message_bytes: section.bytes("message_bytes", 4 << 20)? as usize,
            handshakes: number("handshakes", 64, [1, 10_000])? as usize,
            queue: number("queue", 256, [1, 1 << 20])? as usize,
        };
        if session.beat * 2 > session.lease {
            let why = "it is more than half of the lease";
            return Err(section.wrong("beat", why, "let hosts beat at least twice a lease"));
        }
        if !(1024..=hocket_wire::MOST_BATCH_BYTES).contains(&session.message_bytes) {
            let why = "it is not between 1 KiB and 8 MiB";
            return Err(section.wrong("message_bytes", why, "write such as \"4 MiB\""));
        }
        section.finish()?;
        Ok(session)
    }
}

fn policy(section: Section) -> Result<Options, SetupError> {
    let default = Options::default();
    let number = |key, default: u32, most: u32| {
        let number = section.number(key, default.into(), [0, most.into()])?;
        Ok::<_, SetupError>(number as u32)
    };
    let rates = match section.has("rate_slack_ppm") {
        true => Some(number("rate_slack_ppm", 0, 1_000_000_000)?),
        false => None,
    };
    let options = Options {
        policy: [Policy::Balanced, Policy::Greedy][section.word("kind", &["balanced", "greedy"])?],
        most_moves: number("most_moves", default.most_moves, u32::MAX)?,
        tries: number("tries", default.tries, 1 << 16)?,
        slack: number("slack", default.slack.into(), u16::MAX.into())? as u16,
        rate_slack_ppm: rates,
        look_ahead: number("look_ahead", default.look_ahead, 1 << 16)?,
        failover: section.flag("failover", default.failover)?,
    };
    section.finish()?;
    Ok(options)
}

fn directory(file: &Section, network: &Network) -> Result<Directory, SetupError> {
    let mut hosts = Vec::new();
    for (name, section) in file.sections("hosts")? {
        if !is_host(&name) {
            let remedy = "take letters, digits, dots, dashes and underscores";
            return Err(SetupError::new(section.origin(), "it is no name of a host", remedy));
        }
        let mut nics = Vec::new();
        for text in section.texts("nics")? {
            let wrong = |why: String| section.wrong("nics", why, "write [\"ADDRESS NPU\", ...]");
            let mut words = text.split_whitespace();
            let (Some(address), Some(npu), None) = (words.next(), words.next(), words.next()) else {
                return Err(wrong(format!("{text:?} is not an address and an NPU")));
            };
            let address = address.parse().map_err(|_| wrong(format!("{address:?} is no address")))?;
            let npu = network.npu(npu).ok_or_else(|| {
                wrong(format!("the fabric has no NPU {npu:?}"))
            })?;
            nics.push((address, npu));
        }
        section.finish()?;
        hosts.push(HostEntry { name, nics });
    }
    let mut jobs = Vec::new();
    let mut are_open = true;
    for (number, section) in file.sections("jobs")? {
        are_open = false;
        let number = number.parse().map_err(|_| {
            SetupError::new(section.origin(), "it is no number of a job", "write [jobs.1]")
        })?;
        jobs.push((number, section.texts("hosts")?));
        section.finish()?;
    }
    if hosts.is_empty() {
        let remedy = "write [hosts.NAME] with nics = [\"ADDRESS NPU\"]";
        return Err(file.wrong("hosts", "there are none", remedy));
    }
    Directory::new(hosts, jobs, are_open).map_err(|error| file.wrong("hosts", error.to_string(), ""))
}

fn standby(section: Section) -> Result<Standby, SetupError> {
    let kinds = ["alone", "lock", "etcd"];
    let standby = match kinds[section.word("kind", &kinds)?] {
        "alone" => Standby::Alone,
        "lock" => Standby::Lock,
        _ => Standby::Etcd {
            endpoint: section.socket("endpoint")?.unwrap_or(([127, 0, 0, 1], 2379).into()),
            key: section.text("key")?.unwrap_or_else(|| "hocket/controller".to_owned()),
            ttl: section.time("ttl", Duration::from_secs(5))?,
        },
    };
    section.finish()?;
    Ok(standby)
}
