//! Many hosts that announce flows: less than agents, so that the generator does not outweigh the server.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hocket_control::digest::Digest;
use hocket_control::message::{
    Change, FlowName, FromHost, Hello, HostFlow, NewFlow, ToHost, VERSION,
};
use hocket_wire::tls::{CONTROLLER, End, Files};
use hocket_wire::v1::controller_client::ControllerClient;
use hocket_wire::v1::{ControllerBatch, HostBatch};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::time_provider::DefaultTimeProvider;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Streaming;
use tonic::transport::{Endpoint, Uri};

use super::cluster::{address, name};
use super::cuttable::Cuttable;

/// Flows of a host whose answers may be under way at once.
const UNDER_WAY: usize = 2_048;
/// Connections that are made at once; in a storm all are.
const TOGETHER: usize = 64;
/// How long an agent waits for a connection, and the longest pause before its next try.
const CONNECT: Duration = Duration::from_secs(4);
const LONGEST: Duration = Duration::from_secs(5);

/// What was measured.
pub(crate) struct Sample {
    pub sent: usize,
    /// When it was answered since the beginning, and after how long [ns].
    answers: Vec<(u64, u64)>,
}

impl Sample {
    pub(crate) fn count(&self) -> usize {
        self.answers.len()
    }

    pub(crate) fn at(&self, percent: usize) -> u64 {
        percentile(
            self.answers.iter().map(|answer| answer.1).collect(),
            percent,
        )
    }

    /// The 99th percentile of each quarter of a second.
    pub(crate) fn windows(&self) -> Vec<u64> {
        let mut windows: Vec<Vec<u64>> = Vec::new();
        for &(at, took) in &self.answers {
            let window = (at / 250_000_000) as usize;
            if windows.len() <= window {
                windows.resize(window + 1, Vec::new());
            }
            windows[window].push(took);
        }
        let full = windows.into_iter().filter(|window| !window.is_empty());
        full.map(|window| percentile(window, 99)).collect()
    }
}

fn percentile(mut all: Vec<u64>, percent: usize) -> u64 {
    all.sort_unstable();
    all.get(all.len().saturating_sub(1) * percent / 100)
        .copied()
        .unwrap_or(0)
}

/// What is common to all hosts.
struct Common {
    start: Instant,
    answers: Mutex<Vec<(u64, u64)>>,
    waiting: AtomicUsize,
    /// Tries to connect that failed.
    refused: AtomicUsize,
    done: Notify,
}

struct Host {
    index: usize,
    peers: usize,
    config: Arc<ClientConfig>,
    to: SocketAddr,
    /// By flow, in a circle: when it was announced [ns since the start]; 0: not under way.
    sent: Vec<AtomicU64>,
    state: Mutex<State>,
    common: Arc<Common>,
    synced: Notify,
}

#[derive(Default)]
struct State {
    say: Option<mpsc::UnboundedSender<HostBatch>>,
    /// Ends the connection.
    cut: Arc<Notify>,
    session: u64,
    sequence: u64,
    next: u64,
    flows: VecDeque<HostFlow>,
    digest: Digest,
    heard: Option<(u64, u64)>,
    acknowledged: Option<(u64, u64)>,
}

pub(crate) struct Fleet {
    hosts: Vec<Arc<Host>>,
    common: Arc<Common>,
    /// So many hosts, the first, run here, so that they do not wait for the others' work.
    pub calm: (usize, Handle),
}

impl Fleet {
    pub(crate) async fn connect(
        folder: &Path,
        count: usize,
        to: SocketAddr,
        calm: (usize, Handle),
    ) -> Self {
        let common = Arc::new(Common {
            start: Instant::now(),
            answers: Mutex::default(),
            waiting: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            done: Notify::new(),
        });
        let host = |index| {
            let files = Files {
                ca: folder.join("ca.pem"),
                certificate: folder.join(format!("{}.pem", name(index))),
                key: folder.join(format!("{}.key", name(index))),
            };
            let identity = files
                .read(End::Host, UnixTime::now())
                .expect("certificates");
            let config = identity
                .client(Arc::new(DefaultTimeProvider))
                .expect("a key");
            Arc::new(Host {
                index,
                peers: count,
                config: Arc::new(config),
                to,
                sent: (0..UNDER_WAY).map(|_| AtomicU64::new(0)).collect(),
                state: Mutex::default(),
                common: common.clone(),
                synced: Notify::new(),
            })
        };
        let fleet = Self {
            hosts: (0..count).map(host).collect(),
            common: common.clone(),
            calm,
        };
        fleet.open(0, TOGETHER).await;
        let hosts = fleet.hosts.clone();
        tokio::spawn(async move {
            // Beats of 10 s, spread over time.
            for turn in 0.. {
                for host in hosts.iter().skip(turn % 400).step_by(400) {
                    host.beat();
                }
                sleep(Duration::from_millis(25)).await;
            }
        });
        fleet
    }

    /// Sessions of all hosts but the first few, as fast as they come.
    async fn open(&self, from: usize, together: usize) {
        let turns = Arc::new(Semaphore::new(together));
        let mut opening = Vec::new();
        for host in self.hosts.iter().skip(from).cloned() {
            let turn = turns.clone().acquire_owned().await.expect("it is open");
            let at = match host.index < self.calm.0 {
                true => self.calm.1.clone(),
                false => Handle::current(),
            };
            opening.push(at.spawn(async move {
                host.open().await;
                drop(turn);
            }));
        }
        for each in opening {
            each.await.expect("it opens");
        }
    }

    /// Tries to connect that failed so far.
    pub(crate) fn refused(&self) -> usize {
        self.common.refused.load(Ordering::SeqCst)
    }

    /// The connections of all but the calm are cut, and they come back with their flows.
    pub(crate) async fn reconnect(&self) {
        let stay = self.calm.0;
        for host in self.hosts.iter().skip(stay) {
            let mut state = host.state.lock().expect("no panic");
            state.session += 1;
            state.cut.notify_one();
        }
        self.open(stay, Semaphore::MAX_PERMITS).await;
    }

    /// The last host announces a flow that it has, again and again, as fast as it is let; gives messages and sessions.
    pub(crate) async fn flood(&self, time: Duration) -> (usize, usize) {
        let host = self.hosts.last().expect("there are hosts").clone();
        let start = Instant::now();
        let (mut messages, mut sessions) = (0, 1);
        while start.elapsed() < time {
            if host.repeat(100) {
                messages += 100;
                sleep(Duration::from_micros(500)).await;
            } else {
                host.state.lock().expect("no panic").session += 1;
                host.clone().open().await;
                sessions += 1;
            }
        }
        (messages, sessions)
    }

    /// Each host has so many flows from now on.
    pub(crate) async fn fill(&self, flows: usize) {
        self.begin();
        for host in &self.hosts {
            host.announce(flows, 0);
        }
        self.finish().await;
    }

    /// Flows come and go at a rate, so many in a message; as many as come go.
    pub(crate) async fn announce(&self, rate: usize, batch: usize, time: Duration) -> Sample {
        self.announce_among(self.hosts.len(), rate, batch, time)
            .await
    }

    pub(crate) async fn announce_among(
        &self,
        hosts: usize,
        rate: usize,
        batch: usize,
        time: Duration,
    ) -> Sample {
        self.begin();
        let start = Instant::now();
        let mut sent = 0;
        let mut host = 0;
        while start.elapsed() < time {
            let due = (start.elapsed().as_secs_f64() * rate as f64) as usize;
            while sent + batch <= due {
                self.hosts[host].announce(batch, batch);
                host = (host + 1) % hosts;
                sent += batch;
            }
            sleep(Duration::from_millis(1)).await;
        }
        let answers = self.finish().await;
        let first = start.duration_since(self.common.start).as_nanos() as u64;
        let answers = answers
            .into_iter()
            .map(|(at, took)| (at.saturating_sub(first), took));
        Sample {
            sent,
            answers: answers.collect(),
        }
    }

    /// From the first flow's announcement to the last one's answer, again and again.
    pub(crate) async fn iterations(
        &self,
        hosts: usize,
        flows: usize,
        times: usize,
    ) -> Vec<Duration> {
        let mut all = Vec::new();
        for _ in 0..times {
            self.begin();
            let start = Instant::now();
            for host in self.hosts.iter().take(hosts) {
                host.announce(flows, flows);
            }
            let answers = self.finish().await;
            let last = answers.iter().map(|answer| answer.0).max().unwrap_or(0);
            let first = start.duration_since(self.common.start).as_nanos() as u64;
            all.push(Duration::from_nanos(last.saturating_sub(first)));
            sleep(Duration::from_millis(100)).await;
        }
        all
    }

    fn begin(&self) {
        self.common.answers.lock().expect("no panic").clear();
        self.common.waiting.store(0, Ordering::SeqCst);
    }

    /// All answers, once they are there or long overdue.
    async fn finish(&self) -> Vec<(u64, u64)> {
        let all = async {
            while self.common.waiting.load(Ordering::SeqCst) > 0 {
                let done = self.common.done.notified();
                if self.common.waiting.load(Ordering::SeqCst) > 0 {
                    let _ = tokio::time::timeout(Duration::from_millis(50), done).await;
                }
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(30), all).await;
        std::mem::take(&mut *self.common.answers.lock().expect("no panic"))
    }
}

impl Host {
    async fn open(self: Arc<Self>) {
        let mut tries = 0;
        loop {
            let opened = timeout(CONNECT, self.try_open()).await;
            match opened.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
                Ok(hear) => {
                    let session = self.state.lock().expect("no panic").session;
                    let synced = self.clone();
                    tokio::spawn(self.clone().hear(session, hear));
                    synced.synced.notified().await;
                    return;
                }
                Err(_) => {
                    // As agents do.
                    self.common.refused.fetch_add(1, Ordering::SeqCst);
                    let draw = (self.index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
                    let pause = Duration::from_millis(100 << tries).min(LONGEST);
                    sleep(pause / 2 + pause / 2 * draw as u32 / 1_024).await;
                    tries = (tries + 1).min(6);
                }
            }
        }
    }

    async fn try_open(&self) -> Result<Streaming<ControllerBatch>, String> {
        let connector = TlsConnector::from(self.config.clone());
        let (to, cut) = (self.to, Arc::new(Notify::new()));
        self.state.lock().expect("no panic").cut = cut.clone();
        let shaken = tower::service_fn(move |_: Uri| {
            let (connector, cut) = (connector.clone(), cut.clone());
            async move {
                let stream = TcpStream::connect(to).await?;
                stream.set_nodelay(true)?;
                let stream = Cuttable::new(stream, cut);
                let controller = ServerName::try_from(CONTROLLER).expect("a name");
                Ok::<_, std::io::Error>(TokioIo::new(connector.connect(controller, stream).await?))
            }
        });
        let endpoint = Endpoint::from_static("http://hocket-controller");
        let channel = endpoint.connect_with_connector(shaken).await;
        let mut client = ControllerClient::new(channel.map_err(|error| error.to_string())?);
        let (say, said) = mpsc::unbounded_channel();
        let hello = {
            let mut state = self.state.lock().expect("no panic");
            state.sequence += 1;
            state.heard = None;
            Hello {
                version: VERSION,
                epoch: 0,
                sequence: state.sequence,
                flows: state.flows.iter().copied().collect(),
                ..Hello::default()
            }
        };
        let _ = say.send(hocket_wire::host_batch([&FromHost::Hello(hello)]));
        let hear = client.session(UnboundedReceiverStream::new(said)).await;
        let hear = hear
            .map_err(|status| status.message().to_owned())?
            .into_inner();
        self.state.lock().expect("no panic").say = Some(say);
        Ok(hear)
    }

    async fn hear(self: Arc<Self>, session: u64, mut hear: Streaming<ControllerBatch>) {
        while let Ok(Some(batch)) = hear.message().await {
            let now = self.common.start.elapsed().as_nanos() as u64;
            for message in hocket_wire::read_controller_batch(batch).expect("messages") {
                self.take(now, message);
            }
            if self.state.lock().expect("no panic").session != session {
                return;
            }
        }
    }

    fn take(&self, now: u64, message: ToHost) {
        if let Some(heard) = message.revision() {
            self.state.lock().expect("no panic").heard = Some(heard);
        }
        match message {
            ToHost::Welcome { .. } => self.synced.notify_one(),
            ToHost::Changes { changes, .. } => {
                let answered = changes.iter().filter_map(|change| match change {
                    Change::Path {
                        flow: FlowName::Own(id),
                        path,
                        ..
                    } => Some((*id, path.choice)),
                    Change::Revoke {
                        flow: FlowName::Own(id),
                        ..
                    } => Some((*id, u32::MAX)),
                    _ => None,
                });
                let mut state = self.state.lock().expect("no panic");
                for (id, choice) in answered {
                    if let Some(first) = state.flows.front().map(|flow| flow.id)
                        && let Some(at) = id.checked_sub(first)
                        && let Some(flow) = state.flows.get_mut(at as usize)
                    {
                        flow.held = (choice != u32::MAX).then_some(choice);
                    }
                    let sent = self.sent[id as usize % UNDER_WAY].swap(0, Ordering::SeqCst);
                    if sent > 0 {
                        let mut answers = self.common.answers.lock().expect("no panic");
                        answers.push((now, now - sent));
                        drop(answers);
                        if self.common.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
                            self.common.done.notify_one();
                        }
                    }
                }
            }
            ToHost::Resync { why } => {
                eprintln!("{}: asked to say all again: {why:?}", name(self.index))
            }
            ToHost::Synced { .. } | ToHost::Taken { .. } => {}
        }
    }

    /// So many flows end, the oldest, and so many start, in one batch.
    fn announce(&self, start: usize, end: usize) {
        let mut state = self.state.lock().expect("no panic");
        let mut messages = Vec::with_capacity(3);
        messages.extend(state.acknowledge());
        if end > 0 {
            let end = end.min(state.flows.len());
            let over: Vec<HostFlow> = state.flows.drain(..end).collect();
            over.iter().for_each(|flow| state.digest.remove_flow(flow));
            state.sequence += 1;
            messages.push(FromHost::Ends {
                sequence: state.sequence,
                flows: over.iter().map(|flow| flow.id).collect(),
            });
        }
        let mut flows = Vec::with_capacity(start);
        for _ in 0..start {
            let id = state.next;
            state.next += 1;
            let step =
                1 + (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize % (self.peers - 1);
            let flow = HostFlow {
                id,
                opened: NewFlow {
                    job: 0,
                    src: address(self.index).into(),
                    dst: address((self.index + step) % self.peers).into(),
                    bytes: 1 << 30,
                    is_fixed: false,
                },
                held: None,
            };
            state.digest.add_flow(&flow);
            state.flows.push_back(flow);
            flows.push(flow);
        }
        state.sequence += 1;
        let sequence = state.sequence;
        let ids: Vec<u64> = flows.iter().map(|flow| flow.id).collect();
        messages.push(FromHost::Starts { sequence, flows });
        let batch = hocket_wire::host_batch(&messages);
        let now = self.common.start.elapsed().as_nanos() as u64;
        self.common.waiting.fetch_add(start, Ordering::SeqCst);
        for id in ids {
            self.sent[id as usize % UNDER_WAY].store(now, Ordering::SeqCst);
        }
        state.send(batch);
    }

    /// Says again that a flow starts, in so many messages; false where the session is over.
    fn repeat(&self, times: usize) -> bool {
        let mut state = self.state.lock().expect("no panic");
        let flows: Vec<HostFlow> = state.flows.front().copied().into_iter().collect();
        for _ in 0..times {
            state.sequence += 1;
            let sequence = state.sequence;
            let flows = flows.clone();
            state.send(hocket_wire::host_batch(&[FromHost::Starts {
                sequence,
                flows,
            }]));
        }
        state.say.as_ref().is_some_and(|say| !say.is_closed())
    }

    fn beat(&self) {
        let mut state = self.state.lock().expect("no panic");
        state.acknowledged = None;
        let mut messages: Vec<FromHost> = state.acknowledge().into_iter().collect();
        messages.push(FromHost::Beat {
            sequence: state.sequence,
            flows: state.digest.flows,
            digest: state.digest.sum,
        });
        state.send(hocket_wire::host_batch(&messages));
    }
}

impl State {
    fn acknowledge(&mut self) -> Option<FromHost> {
        let (epoch, revision) = self.heard.filter(|_| self.heard != self.acknowledged)?;
        self.acknowledged = self.heard;
        Some(FromHost::Acknowledged { epoch, revision })
    }

    fn send(&self, batch: HostBatch) {
        if let Some(say) = &self.say {
            let _ = say.send(batch);
        }
    }
}
