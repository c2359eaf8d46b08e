//! Which rules and routes there are, and the steps from those to the ones that are wanted.
//!
//! A flow has a rule that leads its packets to a table, and a table has one route, which writes the segments. All flows
//! to a receiver by the same segments share a table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::io;
use std::net::Ipv6Addr;
use std::ops::RangeInclusive;

/// What the packets of a flow have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packets {
    /// The number of their protocol.
    pub protocol: u8,
    /// The sender.
    pub src: Ipv6Addr,
    /// The receiver.
    pub dst: Ipv6Addr,
    /// The sender's port.
    pub sport: u16,
    /// The receiver's port.
    pub dport: u16,
}

/// Where the route of a table leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    /// The receiver.
    pub dst: Ipv6Addr,
    /// What packets cross on the way there, in this order; not empty.
    pub segments: Vec<Ipv6Addr>,
}

/// A flow that is to cross segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steer {
    /// Its packets.
    pub packets: Packets,
    /// What they cross on the way, in this order; not empty.
    pub segments: Vec<Ipv6Addr>,
}

impl Steer {
    pub(super) fn way(&self) -> Way {
        Way {
            dst: self.packets.dst,
            segments: self.segments.clone(),
        }
    }
}

/// What there is of this agent in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct There {
    /// By table: where its route leads, unless it leaves by an interface that no longer leads there.
    pub routes: BTreeMap<u32, Way>,
    /// Packets that are led to a table.
    pub rules: BTreeSet<(u32, Packets)>,
}

/// What runs in the kernel. Where several rules are for the same packets, the one that came first holds. What is added twice is there once; what is removed may be gone already.
pub trait Kernel: Debug {
    /// Removes all rules and routes of this agent and of those before it; says how many there were.
    ///
    /// # Errors
    /// What the system says; so do all others.
    fn clear(&mut self) -> io::Result<usize>;
    /// Returns what there is.
    fn list(&mut self) -> io::Result<There>;
    /// Puts a route into a table that has no other.
    fn add_route(&mut self, table: u32, way: &Way) -> io::Result<()>;
    /// Removes it.
    fn remove_route(&mut self, table: u32, way: &Way) -> io::Result<()>;
    /// Leads packets to a table.
    fn add_rule(&mut self, table: u32, packets: &Packets) -> io::Result<()>;
    /// Leads them there no longer.
    fn remove_rule(&mut self, table: u32, packets: &Packets) -> io::Result<()>;
}

/// A rule that is there.
#[derive(Clone, Debug)]
struct Placed {
    steer: Steer,
    table: u32,
}

/// A table with a route.
#[derive(Clone, Copy, Debug)]
struct Table {
    number: u32,
    /// Rules that lead there. Without any, the kernel did not remove its route.
    rules: usize,
}

/// The rules and routes that are there.
#[derive(Debug)]
pub struct Rules<K> {
    kernel: K,
    numbers: RangeInclusive<u32>,
    flows: BTreeMap<u64, Placed>,
    tables: BTreeMap<Way, Table>,
    /// Rules of no flow, which the kernel did not remove.
    stale: Vec<Placed>,
}

impl<K: Kernel> Rules<K> {
    /// None yet, in tables of these numbers.
    pub fn new(kernel: K, numbers: RangeInclusive<u32>) -> Self {
        Self {
            kernel,
            numbers,
            flows: BTreeMap::new(),
            tables: BTreeMap::new(),
            stale: Vec::new(),
        }
    }

    /// Tables that are in use.
    pub fn tables(&self) -> usize {
        self.tables.len()
    }

    /// A flow is to cross segments, or to go as switches hash it. After an error it has no rule but one that the kernel
    /// does not remove, which is tried again by [`Rules::renew`].
    ///
    /// # Errors
    /// What the kernel says, or that all tables are in use.
    ///
    /// # Complexity
    /// O(tables) where a table is needed that is not there, else O(log flows + log tables + rules that the kernel did
    /// not remove).
    pub fn set(&mut self, flow: u64, wanted: Option<&Steer>) -> io::Result<()> {
        if self.flows.get(&flow).map(|placed| &placed.steer) == wanted {
            return Ok(());
        }
        // The new rule is there before the one before it goes, so that no packet takes a third way.
        let placed = wanted.map(|steer| self.place(steer)).transpose();
        let before = self.flows.remove(&flow);
        let removed = before.map_or(Ok(()), |before| self.remove(before));
        match (placed?, removed) {
            // The kernel obeys the rule before it.
            (Some(placed), Err(error)) => self.remove(placed).and(Err(error)),
            (Some(placed), Ok(())) => {
                self.flows.insert(flow, placed);
                Ok(())
            }
            (None, removed) => removed,
        }
    }

    fn place(&mut self, steer: &Steer) -> io::Result<Placed> {
        // A rule of a flow before it would hold, and not this one.
        self.remove_stale(|stale| stale.steer.packets == steer.packets)?;
        let way = steer.way();
        let number = match self.tables.get(&way) {
            Some(table) => table.number,
            None => {
                let number = self.unused()?;
                self.kernel.add_route(number, &way)?;
                self.tables.insert(way.clone(), Table { number, rules: 0 });
                number
            }
        };
        let added = self.kernel.add_rule(number, &steer.packets);
        if let Some(table) = self.tables.get_mut(&way) {
            table.rules += usize::from(added.is_ok());
        }
        self.drop_unused(&way);
        added.map(|()| Placed {
            steer: steer.clone(),
            table: number,
        })
    }

    fn unused(&self) -> io::Result<u32> {
        let used: BTreeSet<u32> = self.tables.values().map(|table| table.number).collect();
        let mut unused = self.numbers.clone().filter(|number| !used.contains(number));
        let full = || io::Error::other("all tables are in use");
        unused.next().ok_or_else(full)
    }

    fn remove(&mut self, placed: Placed) -> io::Result<()> {
        let removed = self.kernel.remove_rule(placed.table, &placed.steer.packets);
        if let Err(error) = removed {
            self.stale.push(placed);
            return Err(error);
        }
        let way = placed.steer.way();
        if let Some(table) = self.tables.get_mut(&way) {
            table.rules -= 1;
        }
        self.drop_unused(&way);
        Ok(())
    }

    /// Removes some of what could not be removed before. No flow has the same rule: it was removed before such a flow
    /// was given one.
    fn remove_stale(&mut self, is_meant: impl Fn(&Placed) -> bool) -> io::Result<()> {
        let (meant, others) = std::mem::take(&mut self.stale)
            .into_iter()
            .partition(is_meant);
        self.stale = others;
        let meant: Vec<Placed> = meant;
        let removed = meant.into_iter().map(|placed| self.remove(placed));
        removed.fold(Ok(()), io::Result::and)
    }

    /// A table that no rule leads to goes.
    fn drop_unused(&mut self, way: &Way) {
        if let Some(table) = self.tables.get(way)
            && table.rules == 0
            && self.kernel.remove_route(table.number, way).is_ok()
        {
            self.tables.remove(way);
        }
    }

    /// Puts back what others have removed, such as the routes of an interface that was down, and removes what could not be
    /// removed before.
    ///
    /// # Errors
    /// What the kernel said first of something that it did not put back or remove.
    ///
    /// # Complexity
    /// O(flows) to look; the kernel is asked for what there is, and for what is missing.
    pub fn renew(&mut self) -> io::Result<()> {
        let mut renewed = self.remove_stale(|_| true);
        let unused = self.tables.iter().filter(|(_, table)| table.rules == 0);
        let unused: Vec<Way> = unused.map(|(way, _)| way.clone()).collect();
        unused.iter().for_each(|way| self.drop_unused(way));
        let there = self.kernel.list()?;
        for (way, table) in &self.tables {
            if there.routes.get(&table.number) != Some(way) {
                renewed = renewed.and(self.kernel.add_route(table.number, way));
            }
        }
        for placed in self.flows.values() {
            let packets = placed.steer.packets;
            if !there.rules.contains(&(placed.table, packets)) {
                renewed = renewed.and(self.kernel.add_rule(placed.table, &packets));
            }
        }
        renewed
    }

    /// Removes all.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn clear(&mut self) -> io::Result<usize> {
        self.flows.clear();
        self.tables.clear();
        self.stale.clear();
        self.kernel.clear()
    }
}
