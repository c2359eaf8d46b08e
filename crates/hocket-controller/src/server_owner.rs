//! Where all sessions meet: the one owner of the server's machine.
//!
//! A message is handled by whoever brings it, behind a lock that is never held while waiting, and what follows is
//! put into the queues of the sessions. A queue that is full ends its session: a host that does not read holds up
//! nobody.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hocket_control::directory::HostId;
use hocket_control::message::{FromHost, ToHost};
use hocket_control::server::{Close, Input, Output, Server, SessionId};
use hocket_control::store::Record;
use hocket_fabric::controller::Log;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tracing::{error, warn};

use crate::audit;
use crate::cluster::Network;
use crate::metrics::Metrics;

/// What is written to disk, in order.
#[derive(Debug)]
pub enum Keep {
    /// A record of the store, by its number.
    Record(u64, Record),
    /// Events of the policy.
    Events(Log),
}

/// Where what is to be kept goes; it must not wait.
pub type StoreWriter = std::sync::mpsc::Sender<Keep>;

/// The owner of the server.
#[derive(Debug)]
pub struct ServerOwner {
    state: Mutex<State>,
    start: Instant,
    metrics: Arc<Metrics>,
    network: Arc<Network>,
    queue: usize,
}

#[derive(Debug)]
struct State {
    server: Server,
    lines: HashMap<SessionId, OpenSession>,
    /// The session that each host opened last.
    last: HashMap<HostId, SessionId>,
    sessions: u64,
    /// Hosts that have obeyed a later epoch, and which.
    later: BTreeMap<HostId, u64>,
    /// `None` once nothing more is kept.
    store_writer: Option<StoreWriter>,
    /// Who waits until what was said before is on disk, by question.
    asked: HashMap<u64, oneshot::Sender<bool>>,
    questions: u64,
}

/// An open session.
#[derive(Debug)]
struct OpenSession {
    host: HostId,
    from: SocketAddr,
    /// When it said something last.
    heard: Instant,
    queue: mpsc::Sender<Arc<ToHost>>,
    ending: Ending,
}

/// Why a session ended, for its host to hear; it is there before the queue of messages is closed.
pub type Ending = Arc<OnceLock<String>>;

/// A session as whoever serves it has it.
#[derive(Debug)]
#[doc(alias = "Opened")]
pub struct ServedSession {
    /// Its number.
    pub session: u64,
    /// What is said to the host.
    pub messages: mpsc::Receiver<Arc<ToHost>>,
    /// What is said at the end.
    pub ending: Ending,
}

impl ServerOwner {
    /// Returns an owner whose sessions may have so many messages waiting. The server has been told nothing yet.
    pub fn new(
        server: Server,
        network: Arc<Network>,
        store_writer: StoreWriter,
        metrics: Arc<Metrics>,
        queue: usize,
    ) -> Self {
        let state = State {
            server,
            lines: HashMap::new(),
            last: HashMap::new(),
            sessions: 0,
            later: BTreeMap::new(),
            store_writer: Some(store_writer),
            asked: HashMap::new(),
            questions: 0,
        };
        Self {
            state: Mutex::new(state),
            start: Instant::now(),
            metrics,
            network,
            queue,
        }
    }

    /// Returns what is counted.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Looks at the server.
    pub fn view<T>(&self, look: impl FnOnce(&Server) -> T) -> T {
        look(&self.lock().server)
    }

    /// Opens a session of a host that connects from somewhere.
    ///
    /// A host has one session. While its last one is alive, another is refused: two agents with one certificate would
    /// end each other's sessions for ever. The host that connects anew since its last connection broke comes back when
    /// that one has been silent for two beats.
    ///
    /// # Errors
    /// Why there is none.
    pub fn connect(&self, host: &str, from: SocketAddr) -> Result<ServedSession, String> {
        let mut state = self.lock();
        let Some(host) = state.server.directory().host(host) else {
            self.metrics.unknown_hosts.add(1);
            return Err("the controller's configuration has no such host".to_owned());
        };
        let now = Instant::now();
        let patience = state.server.options().terms.beat * 2;
        let last = state.last.get(&host).and_then(|last| state.lines.get(last));
        if let Some(last) = last.filter(|last| now - last.heard < patience) {
            self.metrics.second_sessions.add(1);
            return Err(format!(
                "an agent at {} has this host's session and is alive: two agents use one certificate, or the \
                 connection before this one has not ended yet",
                last.from,
            ));
        }
        state.sessions += 1;
        let session = SessionId(state.sessions);
        let (queue, messages) = mpsc::channel(self.queue);
        let ending = Ending::default();
        let line = OpenSession {
            host,
            from,
            heard: now,
            queue,
            ending: ending.clone(),
        };
        state.lines.insert(session, line);
        state.last.insert(host, session);
        self.drive(&mut state, vec![Input::Connected { host, session }]);
        Ok(ServedSession {
            session: session.0,
            messages,
            ending,
        })
    }

    /// Takes messages in, and says whether the session is still there.
    pub fn receive(&self, session: u64, messages: Vec<FromHost>) -> bool {
        let session = SessionId(session);
        let start = std::time::Instant::now();
        let mut state = self.lock();
        if let Some(line) = state.lines.get_mut(&session) {
            line.heard = Instant::now();
        }
        for message in &messages {
            if let FromHost::Hello(hello) = message {
                self.compare_epochs(&mut state, session, hello.epoch);
            }
        }
        let received = |message| Input::Received { session, message };
        let inputs = messages.into_iter().map(received).collect();
        self.drive(&mut state, inputs);
        let is_there = state.lines.contains_key(&session);
        drop(state);
        self.metrics.handling.add(start.elapsed());
        is_there
    }

    /// A session is over, and why, if it is not already.
    pub fn disconnect(&self, session: u64, why: &str) {
        let session = SessionId(session);
        let mut state = self.lock();
        if state.end(session, why) {
            self.drive(&mut state, vec![Input::Disconnected { session }]);
        }
    }

    /// Anything else happened.
    pub fn tell(&self, input: Input) {
        self.drive(&mut self.lock(), vec![input]);
    }

    /// Operators say that links fail and that others return. The answer comes once a restart would not forget it: false
    /// where it is in effect and cannot be written to disk.
    pub fn operate(&self, fail: Vec<u32>, back: Vec<u32>) -> oneshot::Receiver<bool> {
        let (sender, answer) = oneshot::channel();
        let mut state = self.lock();
        state.questions += 1;
        let question = state.questions;
        state.asked.insert(question, sender);
        let inputs = vec![
            Input::LinksFail { links: fail },
            Input::LinksReturn { links: back },
            Input::Ask { question },
        ];
        self.drive(&mut state, inputs);
        answer
    }

    /// Nothing more is kept.
    pub fn close(&self) {
        self.lock().store_writer = None;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn drive(&self, state: &mut State, inputs: Vec<Input>) {
        let now = self.now();
        let mut more = Vec::new();
        let mut outputs = Vec::new();
        for input in inputs {
            outputs.append(&mut state.server.handle(now, input));
            if outputs.len() > self.queue {
                self.act(state, std::mem::take(&mut outputs), &mut more);
            }
        }
        self.act(state, outputs, &mut more);
        while let Some(session) = more.pop() {
            let outputs = state.server.handle(now, Input::Disconnected { session });
            self.act(state, outputs, &mut more);
        }
        let log = state.server.take_log();
        if !log.events.is_empty() {
            state.keep(Keep::Events(log));
        }
        self.metrics.sessions.set(state.lines.len() as u64);
    }

    /// A host says which epoch it has obeyed. One that has obeyed a later one never obeys this controller.
    fn compare_epochs(&self, state: &mut State, session: SessionId, obeyed: u64) {
        let Some(host) = state.lines.get(&session).map(|line| line.host) else {
            return;
        };
        let epoch = state.server.epoch();
        let before = match obeyed > epoch {
            true => state.later.insert(host, obeyed),
            false => state.later.remove(&host),
        };
        if obeyed > epoch && before != Some(obeyed) {
            let host = &state.server.directory().entry(host).name;
            error!(
                host,
                obeyed,
                epoch,
                "the host has obeyed a later epoch and refuses this controller: another one is active, or the state \
                 was lost and it must start with a later --epoch"
            );
        }
        let latest = state.later.values().max().copied();
        self.metrics.later_epoch.set(latest.unwrap_or(0));
        self.metrics.later_hosts.set(state.later.len() as u64);
    }

    /// Does what the server wants; sessions that do not read are to be said to be gone.
    fn act(&self, state: &mut State, outputs: Vec<Output>, gone: &mut Vec<SessionId>) {
        for output in outputs {
            match output {
                Output::Send { session, message } => {
                    let Some(line) = state.lines.get(&session) else {
                        continue;
                    };
                    if line.queue.try_send(message).is_err() {
                        state.end(session, audit::close(Close::Slow));
                        gone.push(session);
                        self.metrics.slow_readers.add(1);
                        warn!(target: "audit", session = session.0, "the host does not read");
                    }
                }
                Output::Close { session, why } => {
                    state.end(session, audit::close(why));
                }
                Output::Record { number, record } => {
                    state.keep(Keep::Record(number, record));
                }
                Output::Answer {
                    question,
                    is_stored,
                } => {
                    if let Some(asked) = state.asked.remove(&question) {
                        // Whoever asked has perhaps gone.
                        let _ = asked.send(is_stored);
                    }
                }
                Output::Audit(audit) => audit::write(&audit, &state.server, &self.network),
            }
        }
    }
}

impl State {
    /// Forgets a session, and says to its host why; false if it was forgotten already.
    fn end(&mut self, session: SessionId, why: &str) -> bool {
        let Some(line) = self.lines.remove(&session) else {
            return false;
        };
        // It is set once: the line is in no other place.
        let _ = line.ending.set(why.to_owned());
        if self.last.get(&line.host) == Some(&session) {
            self.last.remove(&line.host);
        }
        true
    }

    fn keep(&self, what: Keep) {
        if let Some(store_writer) = &self.store_writer {
            let _ = store_writer.send(what);
        }
    }
}
