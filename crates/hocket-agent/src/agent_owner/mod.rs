//! Where programs and the controller meet: the one owner of the agent's machine.

mod epoch;
mod jobs;
mod probes;
mod segments;
#[cfg(test)]
mod tests;
mod no_path;

pub use probes::Wanted;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hocket_control::agent::{Agent, Input, Metrics, Output, SessionId, Why};
use hocket_control::message::{FromHost, NewFlow, Path, Refusal, ToHost};
use hocket_wire::setup::SetupError;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::datagrams::{Answer, Ends};
use crate::ports::{Ports, header};
use crate::sockets;
use crate::srv6::Srv6;
use jobs::Jobs;
use no_path::{refusal, word};

/// A flow of `port` whose socket was never seen is over after so long.
const UNSEEN: Duration = Duration::from_secs(5);
/// A refusal is not logged again for so long.
const QUIET: Duration = Duration::from_secs(10);
/// Messages to the controller that may wait.
const WAITING: usize = 4_096;

/// Who opened a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A connection of a program, with which it ends.
    Connection(u64),
    /// A socket, with which it ends; whether it was seen, and since when it is waited for.
    Socket(bool, Instant),
}

/// What a program waits for: a port, or why there is none.
pub type Port = Result<u16, String>;

/// A flow of a program: who waits for its port, and how it is made to take its path.
#[derive(Debug)]
struct ProgramFlow {
    ends: Ends,
    owner: Owner,
    waits: Option<oneshot::Sender<Port>>,
    port: Option<u16>,
    path: Option<Arc<Path>>,
    /// What was asked of the kernel, where it writes segments into the flow's packets.
    led: Option<u64>,
    /// Whether the last answer was a port.
    has_port: bool,
}

#[derive(Debug)]
struct State {
    agent: Agent,
    ports: Ports,
    flows: BTreeMap<u64, ProgramFlow>,
    session: Option<(SessionId, mpsc::Sender<FromHost>)>,
    sessions: u64,
    /// Programs that are told of changes, by connection.
    watching: BTreeMap<u64, mpsc::Sender<Answer>>,
    jobs: Jobs,
    observed: Observed,
    /// When it was said last that flows are refused, by reason.
    refused: HashMap<Refusal, Instant>,
}

/// What was seen of flows that were left alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Flows that took the path that they would have been given.
    pub as_wanted: u64,
    /// Flows that took another.
    pub otherwise: u64,
}

/// The owner of the agent.
#[derive(Debug)]
pub struct AgentOwner {
    state: Mutex<State>,
    start: Instant,
    epoch_file: Option<PathBuf>,
    /// Whether flows are left alone, and only looked at.
    observes: bool,
    connect: mpsc::UnboundedSender<()>,
    /// Steers flows whose paths have segments.
    srv6: Option<Srv6>,
    /// A session is over.
    over: Notify,
}

impl AgentOwner {
    /// Returns an owner that says by the channel when a connection is to be made. `epoch_file` outlives a restart.
    ///
    /// # Errors
    /// [`SetupError`] where the file holds no epoch.
    pub fn new(
        options: hocket_control::agent::Options,
        ports: Ports,
        epoch_file: Option<PathBuf>,
        observes: bool,
        connect: mpsc::UnboundedSender<()>,
    ) -> Result<Self, SetupError> {
        let epoch = epoch_file.as_deref().map_or(Ok(0), epoch::read)?;
        let state = State {
            agent: Agent::new(options, epoch, Duration::ZERO),
            ports,
            flows: BTreeMap::new(),
            session: None,
            sessions: 0,
            watching: BTreeMap::new(),
            jobs: Jobs::default(),
            observed: Observed::default(),
            refused: HashMap::new(),
        };
        Ok(Self {
            state: Mutex::new(state),
            start: Instant::now(),
            epoch_file,
            observes,
            connect,
            srv6: None,
            over: Notify::new(),
        })
    }

    /// A program opens a flow: its number, and what to wait for.
    pub fn open(
        &self,
        ends: Ends,
        bytes: u64,
        job: u32,
        owner: Owner,
    ) -> (u64, oneshot::Receiver<Port>) {
        let (waits, answer) = oneshot::channel();
        let mut state = self.lock();
        let watches = matches!(owner, Owner::Connection(id) if state.watching.contains_key(&id));
        let opened = NewFlow {
            job,
            src: ends.src,
            dst: ends.dst,
            bytes,
            // A program that does not hear of changes keeps the port that it is given.
            is_fixed: !watches && !self.may_lead(&ends),
        };
        let (flow, outputs) = state.agent.open(self.now(), opened);
        let local = ProgramFlow {
            ends,
            owner,
            waits: Some(waits),
            port: None,
            path: None,
            led: None,
            has_port: false,
        };
        state.flows.insert(flow, local);
        self.act(&mut state, outputs);
        (flow, answer)
    }

    /// Whoever opened a flow waits no longer. A program that does not hear of changes goes as switches hash it, and
    /// the controller hears of that.
    pub fn give_up(&self, flow: u64) {
        let mut state = self.lock();
        let watches = state.watcher(flow).is_some();
        if let Some(local) = state.flows.get_mut(&flow) {
            local.waits = None;
            if !watches {
                self.unlead(flow, local);
                self.drive(&mut state, Input::Close { flow });
                self.drive(&mut state, Input::Flush);
            }
        }
    }

    /// A flow ends, if it is the connection's.
    pub fn close(&self, connection: u64, flow: u64) {
        let mut state = self.lock();
        if state.owns(connection, flow) {
            self.end(&mut state, flow);
        }
    }

    /// A program says something of a flow, if it is the connection's; false if it is not.
    pub fn tell(&self, connection: u64, flow: u64, input: Input) -> bool {
        let mut state = self.lock();
        let owns = state.owns(connection, flow);
        if owns {
            self.drive(&mut state, input);
        }
        owns
    }

    /// Changes of a connection's flows are to be told.
    pub fn watch(&self, connection: u64, tell: mpsc::Sender<Answer>) {
        self.lock().watching.insert(connection, tell);
    }

    /// A program is gone, and its flows with it.
    pub fn gone(&self, connection: u64) {
        let mut state = self.lock();
        state.watching.remove(&connection);
        self.forget_jobs(&mut state, connection);
        let of = |(flow, local): (&u64, &ProgramFlow)| {
            (local.owner == Owner::Connection(connection)).then_some(*flow)
        };
        let flows: Vec<u64> = state.flows.iter().filter_map(of).collect();
        flows
            .into_iter()
            .for_each(|flow| self.end(&mut state, flow));
        self.drive(&mut state, Input::Flush);
    }

    /// A session is there: what is to be sent, and its number.
    pub fn connected(&self) -> (SessionId, mpsc::Receiver<FromHost>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let mut state = self.lock();
        state.sessions += 1;
        let session = SessionId(state.sessions);
        state.session = Some((session, sender));
        self.drive(&mut state, Input::Connected { session });
        (session, receiver)
    }

    /// Messages came; false if the session is over.
    pub fn received(&self, session: SessionId, messages: Vec<ToHost>) -> bool {
        let mut state = self.lock();
        for message in messages {
            let message = Arc::new(message);
            self.drive(&mut state, Input::Received { session, message });
        }
        state.session.as_ref().is_some_and(|(id, _)| *id == session)
    }

    /// A session is over.
    pub fn lost(&self, session: SessionId) {
        let mut state = self.lock();
        if state.session.as_ref().is_some_and(|(id, _)| *id == session) {
            state.session = None;
        }
        self.drive(&mut state, Input::Lost { session });
        self.over.notify_waiters();
    }

    /// Ends the session with the controller, and returns when it has heard it.
    pub async fn leave(&self) {
        let over = self.over.notified();
        if self.lock().session.take().is_some() {
            over.await;
        }
    }

    /// Anything else happened.
    pub fn handle(&self, input: Input) {
        self.drive(&mut self.lock(), input);
    }

    /// Returns what the agent has counted.
    pub fn metrics(&self) -> Metrics {
        *self.lock().agent.metrics()
    }

    /// Returns what was seen of flows that were left alone.
    pub fn observed(&self) -> Observed {
        self.lock().observed
    }

    /// Looks at the agent.
    pub fn view<T>(&self, look: impl FnOnce(&Agent) -> T) -> T {
        look(&self.lock().agent)
    }

    /// Ends flows whose sockets are gone, and looks which ways others take.
    pub fn sweep(&self) {
        let now = Instant::now();
        let is_socket = |local: &ProgramFlow| matches!(local.owner, Owner::Socket(..));
        if !self.lock().flows.values().any(is_socket) {
            return;
        }
        let connected = sockets::connected();
        let mut state = self.lock();
        let State {
            flows, observed, ..
        } = &mut *state;
        let mut over = Vec::new();
        for (&flow, local) in flows.iter_mut() {
            let Owner::Socket(was_seen, since) = local.owner else {
                continue;
            };
            let port = match local.port {
                Some(port) => connected.contains(&(local.ends, port)).then_some(port),
                None => port_of(&connected, &local.ends),
            };
            match port {
                Some(port) if !was_seen => {
                    local.owner = Owner::Socket(true, now);
                    observe(local, port, observed);
                }
                Some(_) => {}
                None if was_seen || now - since > UNSEEN => over.push(flow),
                None => {}
            }
        }
        over.into_iter().for_each(|flow| self.end(&mut state, flow));
        self.drive(&mut state, Input::Flush);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn end(&self, state: &mut State, flow: u64) {
        if let Some(mut local) = state.flows.remove(&flow) {
            self.unlead(flow, &mut local);
            if let Some(port) = local.port {
                state.ports.release(&local.ends, port);
            }
            self.drive(state, Input::Close { flow });
        }
    }

    fn drive(&self, state: &mut State, input: Input) {
        let outputs = state.agent.handle(self.now(), input);
        self.act(state, outputs);
    }

    fn act(&self, state: &mut State, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Connect => {
                    let _ = self.connect.send(());
                }
                Output::Send { session, message } => self.send(state, session, message),
                Output::Disconnect { session } => {
                    if state.session.as_ref().is_some_and(|(id, _)| *id == session) {
                        state.session = None;
                    }
                }
                Output::Remember { epoch } => {
                    if let Some(path) = &self.epoch_file {
                        epoch::keep(path, epoch);
                    }
                }
                Output::Steer { flow, path } => self.steer(state, flow, path),
                Output::Ecmp { flow, why } => {
                    if let Some(local) = state.flows.get_mut(&flow) {
                        local.path = None;
                        self.unlead(flow, local);
                    }
                    if let Why::Refused(why) = why
                        && state.is_news(why)
                    {
                        let why = refusal(why);
                        warn!(
                            flow,
                            why,
                            "the controller does not take a flow; others are not named for a while"
                        );
                    }
                    state.answer(flow, Err(word(why).to_owned()));
                }
                Output::Rate {
                    flow,
                    bytes_per_second,
                } => {
                    if let Some(tell) = state.watcher(flow) {
                        let _ = tell.try_send(Answer::Rate(flow, bytes_per_second));
                    }
                }
                Output::JobRefused { job, why } => state.jobs.refused(job, refusal(why)),
            }
        }
    }

    fn send(&self, state: &mut State, session: SessionId, message: FromHost) {
        let Some((id, sender)) = &state.session else {
            return;
        };
        if *id == session && sender.try_send(message).is_err() {
            state.session = None;
            self.drive(state, Input::Lost { session });
        }
    }

    fn steer(&self, state: &mut State, flow: u64, path: Arc<Path>) {
        let watches = state.watcher(flow).is_some();
        let Some(local) = state.flows.get_mut(&flow) else {
            return;
        };
        local.path = Some(path.clone());
        if !self.observes && self.lead(state, flow, &path) {
            return;
        }
        let Some(local) = state.flows.get_mut(&flow) else {
            return;
        };
        self.unlead(flow, local);
        if local.port.is_some() && !watches {
            // The program has bound its port, and does not hear of another.
            return;
        }
        if self.observes {
            return state.answer(flow, Err("only observing".to_owned()));
        }
        let before = local.port.take();
        let found = state.ports.lease(&local.ends, &path);
        if let (Some(port), Ok(_)) = (before, &found) {
            state.ports.release(&local.ends, port);
        }
        local.port = found.as_ref().ok().copied().or(before);
        state.answer(flow, found.map_err(|error| error.to_string()));
    }
}

impl State {
    /// Returns whether a refusal is to be logged: one of a kind in a while.
    fn is_news(&mut self, why: Refusal) -> bool {
        let now = Instant::now();
        let is_news = self
            .refused
            .get(&why)
            .is_none_or(|said| now - *said > QUIET);
        if is_news {
            self.refused.insert(why, now);
        }
        is_news
    }

    fn owns(&self, connection: u64, flow: u64) -> bool {
        let local = self.flows.get(&flow);
        local.is_some_and(|local| local.owner == Owner::Connection(connection))
    }

    /// Where a flow's program hears of changes, if it does.
    fn watcher(&self, flow: u64) -> Option<&mpsc::Sender<Answer>> {
        match self.flows.get(&flow)?.owner {
            Owner::Connection(id) => self.watching.get(&id),
            Owner::Socket(..) => None,
        }
    }

    fn answer(&mut self, flow: u64, port: Port) {
        let Some(local) = self.flows.get_mut(&flow) else {
            return;
        };
        local.has_port = port.is_ok();
        match local.waits.take() {
            Some(waits) => {
                let _ = waits.send(port);
            }
            None => {
                if let Some(tell) = self.watcher(flow) {
                    // A program that does not listen hears of the next change.
                    let _ = tell.try_send(Answer::Path(flow, port));
                }
            }
        }
    }
}

/// Returns the port of a socket to a receiver that no other flow has, if there is one.
fn port_of(connected: &std::collections::BTreeSet<(Ends, u16)>, ends: &Ends) -> Option<u16> {
    let mut to = connected.range((*ends, 0)..=(*ends, u16::MAX));
    to.next().map(|&(_, port)| port)
}

/// Whether a flow takes the path that the controller wants.
fn observe(local: &ProgramFlow, port: u16, observed: &mut Observed) {
    let Some(path) = local.path.as_ref().filter(|_| local.led.is_none()) else {
        return;
    };
    let header = header(&local.ends, port);
    let mut stages = path.forth.iter();
    let is_wanted = stages.all(|stage| stage.hash.way(&header, stage.ways) == stage.wanted);
    match is_wanted {
        true => observed.as_wanted += 1,
        false => observed.otherwise += 1,
    }
    if local.port.is_none() {
        let (dst, dport) = (local.ends.dst, local.ends.dport);
        info!(%dst, dport, port, is_wanted, "observed");
    }
}
