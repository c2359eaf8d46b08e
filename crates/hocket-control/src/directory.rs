//! Which hosts there are, which addresses they have, and for which jobs they may speak.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use hocket_base::explain::Explain;
use hocket_base::id::NpuId;

use crate::message::{JOB_IDS, MOST_NAME_BYTES};

/// Hosts are numbered below this, so that the number and a flow's fit one of 63 bits.
pub const MOST_HOSTS: usize = 1 << 23;

/// Reads an address. IPv6 may stand in brackets, and IPv4 may be written as IPv6 (`::ffff:10.0.0.1`).
///
/// # Errors
/// What is wrong, as words to be put after the text.
pub fn read_address(text: &str) -> Result<IpAddr, &'static str> {
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let read = match bare {
        Some(bare) => bare.parse::<Ipv6Addr>().map(IpAddr::from).ok(),
        None => text.parse::<IpAddr>().ok(),
    };
    match read {
        Some(address) => Ok(address.to_canonical()),
        None if text.contains('%') => Err("has a zone, which no other host knows"),
        None => Err("is not an IP address"),
    }
}

/// A host, by its place in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u32);

impl HostId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A host as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEntry {
    /// Its name, as its certificate has it.
    pub name: String,
    /// The address of each of its NICs.
    pub nics: Vec<(IpAddr, NpuId)>,
}

/// A directory that contradicts itself.
#[derive(Clone, Debug, PartialEq, Eq, Explain)]
pub enum BadDirectory {
    /// More hosts than can be numbered.
    #[explain(
        why("there are {_0} hosts"),
        remedy("at most {MOST_HOSTS} can be numbered")
    )]
    TooMany(usize),
    /// A name that is empty or too long.
    #[explain(
        why("the host {_0:?} has a name of {len} bytes", len = _0.len()),
        remedy("give it 1 to {MOST_NAME_BYTES}")
    )]
    BadName(String),
    /// Two hosts with one name.
    #[explain(
        why("two hosts are called {_0:?}"),
        remedy("give each a name of its own")
    )]
    DuplicateName(String),
    /// An address that two NICs have.
    #[explain(
        origin("host {name:?}"),
        why("the address {address} is already given"),
        remedy("give each NIC its own")
    )]
    DuplicateAddress {
        /// The second host with it.
        name: String,
        /// The address.
        address: IpAddr,
    },
    /// A NIC that two addresses or hosts have.
    #[explain(
        origin("host {name:?}"),
        why("NIC {nic} is already given"),
        remedy("name each NIC once")
    )]
    DuplicateNic {
        /// The second host with it.
        name: String,
        /// The NIC.
        nic: NpuId,
    },
    /// A job that cannot be.
    #[explain(
        why("there is no job {_0}"),
        remedy("jobs are numbered from 1 to {last}", last = JOB_IDS - 1)
    )]
    BadJob(u32),
    /// A job of a host that is not there.
    #[explain(
        why("job {job} names the host {name:?}, which is not there"),
        remedy("name hosts as they are listed")
    )]
    UnknownHost {
        /// The job.
        job: u32,
        /// The name.
        name: String,
    },
}

/// Which hosts there are.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    hosts: Vec<HostEntry>,
    by_name: BTreeMap<String, HostId>,
    by_address: BTreeMap<IpAddr, (HostId, NpuId)>,
    jobs: BTreeMap<u32, BTreeSet<HostId>>,
    is_open: bool,
}

impl Directory {
    /// Returns a directory of hosts, and of jobs with the hosts that may speak for them. `is_open`: any host may speak
    /// for a job that is not listed; else none may. An address of IPv4 that is written as IPv6 is that of IPv4.
    ///
    /// # Errors
    /// [`BadDirectory`] for names, addresses and NICs given twice, and for jobs of hosts that are not there.
    pub fn new(
        mut hosts: Vec<HostEntry>,
        jobs: Vec<(u32, Vec<String>)>,
        is_open: bool,
    ) -> Result<Self, BadDirectory> {
        for (address, _) in hosts.iter_mut().flat_map(|host| &mut host.nics) {
            *address = address.to_canonical();
        }
        if hosts.len() > MOST_HOSTS {
            return Err(BadDirectory::TooMany(hosts.len()));
        }
        let mut directory = Self {
            is_open,
            ..Self::default()
        };
        let mut nics = BTreeSet::new();
        for (host, id) in hosts.iter().zip(0..) {
            directory.add(host, HostId(id), &mut nics)?;
        }
        directory.hosts = hosts;
        for (job, names) in jobs {
            if job == 0 || job >= JOB_IDS {
                return Err(BadDirectory::BadJob(job));
            }
            let mut members = BTreeSet::new();
            for name in names {
                match directory.host(&name) {
                    Some(id) => members.insert(id),
                    None => return Err(BadDirectory::UnknownHost { job, name }),
                };
            }
            directory.jobs.insert(job, members);
        }
        Ok(directory)
    }

    fn add(
        &mut self,
        host: &HostEntry,
        id: HostId,
        nics: &mut BTreeSet<NpuId>,
    ) -> Result<(), BadDirectory> {
        let name = &host.name;
        if name.is_empty() || name.len() > MOST_NAME_BYTES {
            return Err(BadDirectory::BadName(name.clone()));
        }
        if self.by_name.insert(name.clone(), id).is_some() {
            return Err(BadDirectory::DuplicateName(name.clone()));
        }
        for &(address, nic) in &host.nics {
            if self.by_address.insert(address, (id, nic)).is_some() {
                let name = name.clone();
                return Err(BadDirectory::DuplicateAddress { name, address });
            }
            if !nics.insert(nic) {
                let name = name.clone();
                return Err(BadDirectory::DuplicateNic { name, nic });
            }
        }
        Ok(())
    }

    /// Returns the host of a name.
    pub fn host(&self, name: &str) -> Option<HostId> {
        self.by_name.get(name).copied()
    }

    /// Returns a host's entry.
    ///
    /// # Panics
    /// If the host is of another directory.
    pub fn entry(&self, host: HostId) -> &HostEntry {
        &self.hosts[host.index()]
    }

    /// Returns the number of hosts.
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Returns whether there is no host.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Returns the host and the NIC that have an address.
    pub fn at(&self, address: IpAddr) -> Option<(HostId, NpuId)> {
        self.by_address.get(&address.to_canonical()).copied()
    }

    /// Returns whether a host may speak for a job; each may for 0, which is none.
    pub fn may(&self, host: HostId, job: u32) -> bool {
        let members = self.jobs.get(&job);
        job == 0 || members.map_or(self.is_open, |members| members.contains(&host))
    }
}
