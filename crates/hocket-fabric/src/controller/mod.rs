//! The routing controller of a cluster, without input and output: what it is told, and what it says.
//!
//! ```text
//! Event (hosts, jobs, flows, links) -> Controller::handle -> Commands (paths, rates) and why
//! ```
//!
//! It is a plain struct behind one owner: it has no clock, no threads and no randomness, so that the same
//! events give the same commands ([`Log`], [`replay`]). A service feeds it what hosts announce.
//!
//! A flow keeps its path unless there is a [`Reason`], each move is counted, and no command names a link
//! that has failed. A flow that [`AnnouncedFlow::is_fixed`] keeps its path as long as that works.
//!
//! # Source
//! Cohen, Yallouz, Schapira, Belkar, Mizrahi: Routing for large ML models, sections 3.2 (what controller and
//! hosts tell each other), 3.3 and 3.4.1 (the objective and Algorithm 1), 3.4.2 (looking ahead, failures),
//! 3.5.4 (what a host asks) and 8 (rates). What differs: the paper assigns all flows anew whenever one
//! starts or ends. Here others stay where they are but for the few that [`Options::most_moves`] allows.

mod chains;
mod changes;
mod event;
pub mod failover;
mod flows;
mod jobs;
mod loads;
mod log;
mod options;
mod placing;
mod rates;

pub use event::{AnnouncedFlow, Command, Event, FlowId, JobId, Reason};
pub use log::{BadLog, Log, replay};
pub use options::{Options, Policy};

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Fabric;
use crate::id::{LinkId, narrow};
use crate::units::Time;
use chains::Chains;
use failover::Repairs;
use flows::{Flows, NONE, Row, Waiting};
use jobs::Job;
use loads::{Loads, Side};

/// What the controller has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events that were handled.
    pub events: u64,
    /// By reason, in the order of [`Reason::ALL`]: flows that were told another path than they had.
    pub moves: [u64; Reason::ALL.len()],
    /// Paths computed ahead, whether they were needed or not.
    pub computed_ahead: u64,
}

impl Tally {
    /// Moves for a reason.
    pub fn moves_for(&self, reason: Reason) -> u64 {
        self.moves[reason as usize]
    }

    /// Returns all moves.
    pub fn total_moves(&self) -> u64 {
        self.moves.iter().sum()
    }
}

/// Gives the flows of a cluster their paths, event by event.
///
/// # Examples
/// Two flows leave one ToR, and get an uplink each; then one spine fails:
/// ```
/// use hocket_base::id::NpuId;
/// use hocket_fabric::Fabric;
/// use hocket_fabric::controller::{
///     AnnouncedFlow, Command, Controller, Event, FlowId, JobId, Options, Reason,
/// };
/// use hocket_topology::build::Clos;
/// use hocket_base::units::{Bandwidth, Time};
///
/// let bandwidth = Bandwidth::from_bytes_per_second(12_500_000_000).unwrap();
/// let clos = Clos {
///     spines: 2,
///     tors: 2,
///     hosts_per_tor: 2,
///     host_bandwidth: bandwidth,
///     bandwidth,
///     latency: Time::ZERO,
/// }.build()?;
/// let mut controller = Controller::new(Fabric::new(&clos)?, Options::default());
/// let flow = |id: u32| AnnouncedFlow {
///     id: FlowId(id.into()),
///     job: JobId(0),
///     src: NpuId(id),
///     dst: NpuId(id + 2),
///     bytes: 1 << 30,
///     held: None,
///     is_fixed: false,
/// };
/// let start = Event::FlowsStart(vec![flow(0), flow(1)]);
/// let path = |flow: u64, choice, reason| Command::Path { flow: FlowId(flow), choice, reason };
/// assert_eq!(
///     controller.handle(Time::ZERO, &start),
///     [path(0, 0, Reason::New), path(1, 1, Reason::New)],
/// );
/// let mut links = Vec::new();
/// controller.fabric().route(0, 1, 1, &mut links);
/// let fail = Event::LinksFail(links);
/// assert_eq!(
///     controller.handle(Time::from_ns(5), &fail),
///     [path(1, 0, Reason::Failure)],
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Controller {
    fabric: Fabric,
    options: Options,
    flows: Flows,
    loads: Loads,
    chains: Chains,
    jobs: BTreeMap<JobId, Job>,
    /// Flows whose receivers are gone.
    waiting: Waiting,
    /// Flows that no path is left for.
    stranded: BTreeSet<FlowId>,
    /// ToRs with links that carry more than their share, as less would be too dear; and whether a ToR is
    /// among them, by side and ToR.
    pending: VecDeque<(Side, u32)>,
    is_pending: Vec<bool>,
    /// Slot of each link; `NONE` for links of hosts.
    slot_of: Vec<u32>,
    /// By link.
    is_dead: Vec<bool>,
    /// By NIC.
    is_gone: Vec<bool>,
    is_recovering: bool,
    outages: Vec<Vec<LinkId>>,
    repairs: Repairs,
    revision: u64,
    tally: Tally,
    /// Of the event under way: flows whose path may have changed, ToRs whose shares may have fallen, slots
    /// whose load changed.
    touched: Vec<u32>,
    fallen: Vec<(Side, u32)>,
    fullness: Vec<u32>,
}

impl Controller {
    /// Returns a controller that knows of no flow yet.
    pub fn new(fabric: Fabric, options: Options) -> Self {
        let count = fabric.links.iter().flatten().map(|link| link.index() + 1);
        let mut slot_of = vec![NONE; count.max().unwrap_or(0)];
        for (slot, link) in fabric.links.iter().enumerate() {
            if let Some(link) = link {
                slot_of[link.index()] = narrow(slot);
            }
        }
        let width = if fabric.upper.is_some() { 4 } else { 2 };
        let outages = match options.failover {
            true => failover::outages(&fabric),
            false => Vec::new(),
        };
        Self {
            flows: Flows::new(fabric.links.len(), fabric.hosts.len(), width),
            loads: Loads::new(&fabric, options.slack),
            chains: Chains::default(),
            jobs: BTreeMap::new(),
            waiting: Waiting::default(),
            stranded: BTreeSet::new(),
            pending: VecDeque::new(),
            is_pending: vec![false; 2 * fabric.tors],
            is_dead: vec![false; slot_of.len()],
            slot_of,
            is_gone: vec![false; fabric.hosts.len()],
            is_recovering: false,
            outages,
            repairs: Repairs::new(),
            revision: 0,
            tally: Tally::default(),
            touched: Vec::new(),
            fallen: Vec::new(),
            fullness: Vec::new(),
            fabric,
            options,
        }
    }

    /// Takes note of something that happened at a time, and says what hosts are to do now.
    ///
    /// Times must not go back; only what is foreseen depends on them.
    ///
    /// # Complexity
    /// For each flow that starts or loses its path O(columns), and O(tries x chain) where no path has room.
    pub fn handle(&mut self, now: Time, event: &Event) -> Vec<Command> {
        self.tally.events += 1;
        let mut commands = Vec::new();
        let ready = match event {
            Event::FlowsProgress(_) | Event::Acknowledged(..) | Event::Prepare => Repairs::new(),
            // What was computed for the flows as they were is of use now or never.
            _ => std::mem::take(&mut self.repairs),
        };
        match event {
            Event::FlowsStart(flows) => self.start(flows, &mut commands),
            Event::FlowsProgress(left) => self.progress(left),
            Event::FlowsEnd(flows) => flows.iter().for_each(|&id| self.end_id(id)),
            Event::JobComes(job, flows) => self.register(*job, flows),
            Event::JobStarts(job) => self.start_job(now, *job, &mut commands),
            Event::JobStops(job) => self.stop_job(now, *job),
            Event::JobGoes(job) => self.forget(now, *job),
            Event::HostsCome(nics) => self.come(nics, &mut commands),
            Event::HostsGo(nics) => self.go(nics),
            Event::LinksFail(links) => self.fail(links, ready),
            Event::LinksReturn(links) => self.restore(links),
            Event::Acknowledged(revision, flows) => self.acknowledged(*revision, flows),
            Event::Recovering => self.is_recovering = true,
            Event::Recovered => self.recovered(),
            Event::Prepare => self.prepare(now, &mut commands),
        }
        self.settle();
        self.tell(&mut commands);
        commands
    }

    /// Returns the fabric, nothing failed.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Returns how it decides.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Counts events with commands: those of the last such event have this revision.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns what it has done so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Returns the number of live flows between ToRs.
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }

    /// Returns the choice of a live flow; `None` for others and where no path is left.
    pub fn choice(&self, flow: FlowId) -> Option<u32> {
        let choice = self.flows.row(self.flows.find(flow)?).choice;
        (choice != NONE).then_some(choice)
    }

    /// Live flows, each with its choice where it has one; in no order of note.
    pub fn choices(&self) -> impl Iterator<Item = (FlowId, Option<u32>)> {
        let choice = |row: &Row| (row.choice != NONE).then_some(row.choice);
        self.flows.live().map(move |(_, row)| (row.id, choice(row)))
    }

    /// Returns the number of flows on a link between switches; 0 for others.
    pub fn load(&self, link: LinkId) -> u16 {
        match self.slot_of.get(link.index()) {
            None | Some(&NONE) => 0,
            Some(&slot) => self.loads.count(slot as usize),
        }
    }

    /// By how many flows links exceed their shares, all ToRs together; 0 on three levels and where
    /// links differ in bandwidth.
    pub fn excess(&self) -> u64 {
        if !self.loads.is_flat() {
            return 0;
        }
        let mut excess = 0;
        for side in Side::BOTH {
            for tor in 0..narrow(self.loads.tors()) {
                let share = self.loads.share(side, tor);
                let over = |column: u32| {
                    let load = self.loads.count(self.loads.slot(side, tor, column));
                    u64::from(load.saturating_sub(share))
                };
                excess += (0..narrow(self.loads.columns())).map(over).sum::<u64>();
            }
        }
        excess
    }

    /// Returns what hosts have not acknowledged, to be said again; with the revision of each.
    pub fn unacknowledged(&self) -> impl Iterator<Item = (u64, Command)> {
        let rows = self.flows.live().map(|(_, row)| row);
        let waiting = rows.filter(|row| !row.is_acknowledged && row.revision > 0);
        waiting.map(|row| (row.revision, command(row)))
    }

    /// Notes that a flow's path may change in this event, and why.
    fn touch(&mut self, flow: u32, reason: Reason) {
        let row = self.flows.row_mut(flow);
        row.reason = reason;
        row.is_asked |= matches!(reason, Reason::Held | Reason::NoPath);
        if !std::mem::replace(&mut row.is_touched, true) {
            self.touched.push(flow);
        }
    }

    /// Links keep to their shares again where flows ended or links returned, as far as that is worth it.
    fn settle(&mut self) {
        let mut fallen = std::mem::take(&mut self.fallen);
        if self.is_balancing() && !self.is_recovering && !fallen.is_empty() {
            let mut left = u64::from(self.options.reliefs).saturating_mul(fallen.len() as u64);
            if fallen.len() > 2 {
                fallen.sort_unstable_by_key(|&(side, tor)| (side as u8, tor));
                fallen.dedup();
            }
            for &(side, tor) in &fallen {
                self.balance(side, tor, &mut left);
            }
            // Flows that end make room elsewhere.
            self.catch_up(fallen.len(), &mut left);
        }
        fallen.clear();
        self.fallen = fallen;
    }

    /// Commands for the flows whose paths changed, and for those that asked.
    fn tell(&mut self, commands: &mut Vec<Command>) {
        let touched = std::mem::take(&mut self.touched);
        for &flow in &touched {
            let row = self.flows.row_mut(flow);
            let is_touched = std::mem::replace(&mut row.is_touched, false);
            let is_asked = std::mem::replace(&mut row.is_asked, false);
            if !row.is_live || !is_touched || (row.choice == row.told && !is_asked) {
                continue;
            }
            if row.choice == row.told && row.choice != NONE {
                // It may have made room for others and come back.
                row.reason = Reason::Held;
            }
            if row.told != NONE && row.choice != NONE && row.choice != row.told {
                self.tally.moves[row.reason as usize] += 1;
            }
            row.told = row.choice;
            row.revision = self.revision + 1;
            row.is_acknowledged = false;
            commands.push(command(row));
        }
        self.touched = touched;
        self.touched.clear();
        self.tell_rates(commands);
        self.fullness.clear();
        self.revision += u64::from(!commands.is_empty());
    }
}

/// Returns what the host of a flow is told.
fn command(row: &Row) -> Command {
    let &Row {
        id: flow,
        choice,
        reason,
        ..
    } = row;
    match choice {
        NONE => Command::Revoke { flow, reason },
        _ => Command::Path {
            flow,
            choice,
            reason,
        },
    }
}
