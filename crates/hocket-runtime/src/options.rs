//! How ranks find and treat each other, and what of that makes no sense.

use std::collections::BTreeMap;
use std::net::{IpAddr, ToSocketAddrs};
use std::time::Duration;

use crate::error::{Code, Failure};
use crate::pace::Pace;

/// Most ranks of a group.
pub const MAX_RANKS: u32 = 4096;

/// Most streams of a link.
pub const MAX_STREAMS: u32 = 64;

/// How ranks find and treat each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupOptions {
    /// Where the store is.
    pub address: String,
    /// Name of the group.
    pub group: String,
    /// Rank of the caller.
    pub rank: u32,
    /// Number of ranks.
    pub size: u32,
    /// What all ranks and the store know.
    pub secret: Vec<u8>,
    /// How long the others may take to come.
    pub patience: Duration,
    /// How long a call may stand still.
    pub timeout: Duration,
    /// Whether ranks of one host share memory.
    pub shares: bool,
    /// TCP connections of each link, over which channels are spread.
    pub streams: u32,
    /// What it chooses plans by, which all must: equal for equal tables; 0 for none.
    pub table: u64,
    /// Where streams to ranks connect, by rank and stream, instead of where those ranks meet the store. If there are any, this
    /// rank listens at all its addresses.
    pub ways: BTreeMap<(u32, u32), IpAddr>,
    /// Where this rank listens for others; by default the address from which it reaches the store.
    pub local: Option<IpAddr>,
    /// Whether odd streams are opened by the lower of two ranks, so that who sends can open each.
    pub outward: bool,
    /// Links that streams are to share and not exceed, if there are any.
    pub pace: Option<Pace>,
}

/// Refuses options without meaning.
pub(crate) fn check(options: &GroupOptions) -> Result<(), Failure> {
    let refuse = |why: String| Err(Failure::new(Code::Invalid, why));
    let (rank, size) = (options.rank, options.size);
    if !(1..=MAX_RANKS).contains(&size) {
        return refuse(format!("size: {size} ranks; give 1 to {MAX_RANKS}"));
    }
    if rank >= size {
        return refuse(format!(
            "rank: {rank} of {size} ranks; give 0 to {}",
            size - 1
        ));
    }
    if !(1..=MAX_STREAMS).contains(&options.streams) {
        let streams = options.streams;
        return refuse(format!("streams: {streams}; give 1 to {MAX_STREAMS}"));
    }
    if options.timeout.is_zero() || options.patience.is_zero() {
        return refuse("timeout: is 0; give a time".to_owned());
    }
    if let Some(pace) = &options.pace {
        let links = pace.pacer.len();
        let mut used = pace.routes.values().flatten();
        if let Some(link) = used.find(|&&link| link as usize >= links) {
            return refuse(format!("pace: there is no link {link} of {links}"));
        }
    }
    if let Some(local) = options.local
        && (local.is_unspecified() || local.is_multicast())
    {
        return refuse(format!(
            "local: others reach nobody at {local}; give an address of this host"
        ));
    }
    if let Some(local) = options.local
        && options.secret.is_empty()
        && !local.is_loopback()
    {
        return refuse(format!(
            "local: {local} is not an address of this host alone; give a secret that all ranks know"
        ));
    }
    needs_secret(&options.address, &options.secret)
}

/// Refuses to go without a secret where strangers could reach it.
///
/// # Errors
/// [`Code::Invalid`].
pub fn needs_secret(address: &str, secret: &[u8]) -> Result<(), Failure> {
    let refuse = |why: String| Err(Failure::new(Code::Invalid, why));
    let addresses = match address.to_socket_addrs() {
        Ok(addresses) => addresses,
        Err(error) => {
            let says = crate::says(&error);
            return refuse(format!("{address}: is not an address and port: {says}"));
        }
    };
    for each in addresses {
        if secret.is_empty() && !each.ip().is_loopback() {
            return refuse(format!(
                "{address}: is not an address of this host alone; give a secret that all ranks know"
            ));
        }
    }
    Ok(())
}
