//! Flows that are steered by segments (SRv6): the kernel writes them into the packets of a flow.
//!
//! ```text
//! agent_owner -- which flow crosses which segments --> slots, one a flow --> thread: rules --> kernel (netlink)
//!  ^------------------ in force, or why not ------------------------------+
//! ```
//!
//! The kernel is asked by a thread of its own, so that nobody waits for it. What is wanted is kept by flow, the latest
//! alone: there is never more to be done than there are slots.
//!
//! # Source
//! RFC 8754 for the header, which the sender of a packet may write; RFC 8986 for what segments do.

mod netlink;
mod rules;
mod takes;
#[cfg(test)]
pub(crate) mod tests;

pub use netlink::{Netlink, PROTOCOL};
pub use rules::{Kernel, Packets, Rules, Steer, There, Way};

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::RangeInclusive;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hocket_wire::setup::SetupError;
use tokio::sync::mpsc;
use tracing::{info, warn};

/// How often it is looked whether rules and routes are still there, and what the kernel refused is asked again.
pub const RENEW: Duration = Duration::from_secs(10);
/// How often it is said how much was done.
const SAY: Duration = Duration::from_secs(60);

/// How flows are steered by segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The first of the tables.
    pub table: u32,
    /// Most flows that are steered by segments at a time.
    pub most: u32,
    /// The priority of rules: below that of the table `main`, 32,766.
    pub priority: u32,
    /// How often rules and routes are renewed: [`RENEW`].
    pub renew: Duration,
}

impl Settings {
    /// Returns its tables: one for each flow, and one more for the flow that moves.
    pub fn tables(&self) -> RangeInclusive<u32> {
        self.table..=self.table + self.most
    }

    /// Returns the kernel of this host. What an agent before this one has left behind is removed.
    ///
    /// # Errors
    /// [`SetupError`] where the agent has no right to do so.
    pub fn clear(&self) -> Result<Netlink, SetupError> {
        let cleared = Netlink::open(self.tables(), self.priority).and_then(|mut netlink| {
            let left = netlink.clear()?;
            if left > 0 {
                info!(left, "rules and routes of an earlier agent are removed");
            }
            Ok(netlink)
        });
        cleared.map_err(|error| wrong(&error))
    }

    /// Returns the same, and the kernel is tried out.
    ///
    /// # Errors
    /// [`SetupError`] where the agent has no right to set rules, or the kernel has no segments or takes none.
    pub fn open(&self) -> Result<Netlink, SetupError> {
        let mut netlink = self.clear()?;
        takes::check()?;
        netlink.try_out().map_err(|error| wrong(&error))?;
        Ok(netlink)
    }
}

fn wrong(error: &io::Error) -> SetupError {
    let (why, remedy) = match error.kind() {
        io::ErrorKind::PermissionDenied => (
            "the agent has no right to set rules and routes".to_owned(),
            "give it CAP_NET_ADMIN, or leave the section out",
        ),
        _ => (
            format!("the kernel does not set routes with segments: {error}"),
            "take one with CONFIG_IPV6_SEG6_LWTUNNEL, or leave the section out",
        ),
    };
    SetupError::new("[srv6]", why, remedy)
}

/// What has been done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Flows that have a rule, are about to, or wait until the kernel is asked again.
    pub flows: usize,
    /// Tables in use.
    pub tables: usize,
    /// Times that a flow was led by segments.
    pub set: u64,
    /// Times that the kernel did not do as it was asked.
    pub failed: u64,
    /// Flows that were left to switches, as there are as many as there may be.
    pub left_out: u64,
}

/// What has become of something that was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The flow.
    pub flow: u64,
    /// Which of the things that were wanted.
    pub turn: u64,
    /// Whether it is in force; if not, the flow goes as switches hash it until the kernel, which is asked again, does it.
    pub result: Result<(), String>,
}

#[derive(Debug, Default)]
struct Slots {
    /// By flow: what is wanted of it, or `None` until what it had is gone.
    wanted: BTreeMap<u64, (u64, Option<Steer>)>,
    changed: BTreeSet<u64>,
    turns: u64,
    counts: Counts,
    is_over: bool,
}

#[derive(Debug, Default)]
struct Shared {
    slots: Mutex<Slots>,
    wake: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Steers flows by segments while it is there. Its rules go with it.
#[derive(Debug)]
pub struct Srv6 {
    shared: Arc<Shared>,
    most: usize,
    thread: Option<JoinHandle<()>>,
}

impl Srv6 {
    /// Starts; what becomes of what is wanted is told by the channel.
    ///
    /// # Errors
    /// What the system says where there can be no more threads.
    pub fn start<K: Kernel + Send + 'static>(
        kernel: K,
        settings: &Settings,
        tell: mpsc::UnboundedSender<Done>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let rules = Rules::new(kernel, settings.tables());
        let worker = Worker {
            shared: shared.clone(),
            rules,
            every: settings.renew,
            refused: BTreeMap::new(),
            tell,
            warned: None,
        };
        let named = std::thread::Builder::new().name("segments".to_owned());
        Ok(Self {
            shared,
            most: settings.most as usize,
            thread: Some(named.spawn(|| worker.work())?),
        })
    }

    /// A flow is to cross segments from now on: which of the things wanted this is, or `None` where there are as many
    /// flows as there may be.
    pub fn want(&self, flow: u64, steer: Steer) -> Option<u64> {
        let mut slots = self.shared.lock();
        if slots.wanted.len() >= self.most && !slots.wanted.contains_key(&flow) {
            slots.counts.left_out += 1;
            return None;
        }
        slots.turns += 1;
        let turn = slots.turns;
        slots.wanted.insert(flow, (turn, Some(steer)));
        slots.changed.insert(flow);
        self.shared.wake.notify_one();
        Some(turn)
    }

    /// A flow goes as switches hash it from now on.
    pub fn forget(&self, flow: u64) {
        let mut slots = self.shared.lock();
        if let Some((_, wanted)) = slots.wanted.get_mut(&flow) {
            *wanted = None;
            slots.changed.insert(flow);
            self.shared.wake.notify_one();
        }
    }

    /// Returns what has been done so far.
    pub fn counts(&self) -> Counts {
        let slots = self.shared.lock();
        Counts {
            flows: slots.wanted.len(),
            ..slots.counts
        }
    }
}

impl Drop for Srv6 {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// The one that asks the kernel.
struct Worker<K> {
    shared: Arc<Shared>,
    rules: Rules<K>,
    /// How often they are renewed.
    every: Duration,
    /// By flow: what the kernel refused, and is asked for again.
    refused: BTreeMap<u64, u64>,
    tell: mpsc::UnboundedSender<Done>,
    /// When it was said last that the kernel refuses.
    warned: Option<Instant>,
}

impl<K: Kernel> Worker<K> {
    fn work(mut self) {
        let (mut renew, mut say) = (Instant::now() + self.every, Instant::now() + SAY);
        while let Some(changed) = self.next(renew) {
            self.change(changed);
            let now = Instant::now();
            if now >= renew {
                renew = now + self.every;
                let renewed = self.rules.renew();
                let mut slots = self.shared.lock();
                slots.changed.extend(self.refused.keys());
                slots.counts.failed += u64::from(renewed.is_err());
                drop(slots);
                if let Err(error) = renewed {
                    warn!(%error, "rules or routes of flows that cross segments are gone, or stay");
                }
            }
            if now >= say {
                say = now + SAY;
                let Counts {
                    tables,
                    set,
                    failed,
                    left_out,
                    ..
                } = self.shared.lock().counts;
                info!(tables, set, failed, left_out, "segments");
            }
        }
        if let Err(error) = self.rules.clear() {
            warn!(%error, "rules of flows that crossed segments stay");
        }
    }

    /// Returns what has changed, or nothing once it is time to renew; `None` at the end.
    fn next(&self, until: Instant) -> Option<Vec<(u64, u64, Option<Steer>)>> {
        let mut slots = self.shared.lock();
        loop {
            if slots.is_over {
                return None;
            }
            let left = until.saturating_duration_since(Instant::now());
            if !slots.changed.is_empty() || left.is_zero() {
                let changed = std::mem::take(&mut slots.changed);
                let wanted = changed.into_iter().filter_map(|flow| {
                    let (turn, steer) = slots.wanted.get(&flow)?;
                    Some((flow, *turn, steer.clone()))
                });
                return Some(wanted.collect());
            }
            let waited = self.shared.wake.wait_timeout(slots, left);
            slots = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn change(&mut self, mut changed: Vec<(u64, u64, Option<Steer>)>) {
        // Ports of flows that are gone may be those of others now.
        changed.sort_by_key(|(_, _, steer)| steer.is_some());
        for (flow, turn, steer) in changed {
            let result = self.rules.set(flow, steer.as_ref());
            let mut slots = self.shared.lock();
            slots.counts.tables = self.rules.tables();
            slots.counts.set += u64::from(steer.is_some() && result.is_ok());
            slots.counts.failed += u64::from(result.is_err());
            let is_over = steer.is_none();
            let is_wanted = |(_, wanted): &(u64, Option<Steer>)| wanted.is_some();
            if is_over && !slots.wanted.get(&flow).is_some_and(is_wanted) {
                slots.wanted.remove(&flow);
            }
            drop(slots);
            if let Err(error) = &result
                && self.warned.is_none_or(|said| said.elapsed() > self.every)
            {
                self.warned = Some(Instant::now());
                warn!(flow, %error, is_over, "the kernel does not do what a flow needs; others are not named for a while");
            }
            let refused = self.refused.remove(&flow);
            if is_over {
                continue;
            }
            if result.is_err() {
                self.refused.insert(flow, turn);
                if refused == Some(turn) {
                    // It has been told.
                    continue;
                }
            }
            let result = result.map_err(|error| error.to_string());
            // Nobody listens at the end.
            let _ = self.tell.send(Done { flow, turn, result });
        }
    }
}
