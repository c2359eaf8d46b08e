//! The agent's own probes: small packets along the paths of local flows, to the agents of their receivers.
//!
//! ```text
//! paths of flows -> prober (when, and what answers say) -> sockets, one a path -> the receiver's agent
//!                      +-> loss and round-trip time of each path -> agent_owner
//! ```
//!
//! There is one probe for each path and interval, however many flows take the path. A probe is a packet of UDP whose
//! source port leads along the path, as that of a flow does. An agent sends back what it is sent, with another first
//! word, so that nobody answers an answer.
//!
//! # Source
//! Cohen et al., Routing for large ML models, section 3.5.5: hosts probe their paths and go back to ECMP.

mod prober;

pub use prober::{Options, Prober, Tally, Verdict, Way};

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hocket_control::message::Path;
use hocket_wire::setup::SetupError;
use tokio::net::UdpSocket;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::agent_owner::AgentOwner;
use crate::datagrams::{Ends, Protocol};

/// How often it is looked which paths there are, and what is known of them.
const LOOK: Duration = Duration::from_millis(250);
/// How often it is said how much was done.
const SAY: Duration = Duration::from_secs(60);
/// First word of a probe, and of its answer.
const PROBE: [u8; 8] = *b"hocket1?";
const ANSWER: [u8; 8] = *b"hocket1!";
/// A word, whose probe it is, its number.
const BYTES: usize = 24;

/// What probes need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The port of UDP at which agents answer; the same on all hosts.
    pub port: u16,
    /// How paths are probed.
    pub options: Options,
}

/// Answers probes of other hosts.
#[derive(Debug)]
pub struct Echo(UdpSocket);

impl Echo {
    /// Listens on a port, at all addresses.
    ///
    /// # Errors
    /// [`SetupError`] where that cannot be.
    pub async fn bind(port: u16) -> Result<Self, SetupError> {
        let both = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        let four = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let socket = match UdpSocket::bind(both).await {
            // A host may be without IPv6.
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => UdpSocket::bind(four).await,
            bound => bound,
        };
        socket.map(Self).map_err(|error| {
            let name = format!("[probe] port {port}");
            SetupError::new(name, error.to_string(), "set a port of UDP that is free")
        })
    }

    /// Answers.
    pub async fn serve(self) {
        let mut buffer = [0; BYTES + 1];
        loop {
            match self.0.recv_from(&mut buffer).await {
                Ok((BYTES, from)) if buffer.starts_with(&PROBE) => {
                    buffer[..PROBE.len()].copy_from_slice(&ANSWER);
                    // An answer that cannot be sent is lost as others are.
                    let _ = self.0.try_send_to(&buffer[..BYTES], from);
                }
                Ok(_) => {}
                Err(_) => sleep(Duration::from_millis(10)).await,
            }
        }
    }
}

/// Probes the paths of the agent owner's flows, until it is dropped.
pub async fn run(agent_owner: Arc<AgentOwner>, settings: Settings) {
    let mut probes = Probes {
        agent_owner,
        settings,
        start: Instant::now(),
        nonce: std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0),
        prober: Arc::new(Mutex::new(Prober::new(settings.options))),
        sockets: BTreeMap::new(),
    };
    let turn = (settings.options.every / 4).clamp(Duration::from_millis(5), LOOK / 5);
    let (mut look, mut say) = (Instant::now(), Instant::now() + SAY);
    loop {
        let now = Instant::now();
        if now >= look {
            look = now + LOOK;
            probes.look().await;
        }
        probes.send();
        if now >= say {
            say = now + SAY;
            let Tally {
                sent,
                answered,
                ways,
                left_out,
            } = probes.lock().tally();
            info!(sent, answered, ways, left_out, "probes");
        }
        sleep(turn).await;
    }
}

struct Probes {
    agent_owner: Arc<AgentOwner>,
    settings: Settings,
    start: Instant,
    /// Of this agent's probes, so that nobody else answers for others.
    nonce: u64,
    prober: Arc<Mutex<Prober>>,
    sockets: BTreeMap<Way, Socket>,
}

/// The socket whose packets take a way.
struct Socket {
    socket: Arc<UdpSocket>,
    /// The path and the port that leads there.
    leased: Option<(Arc<Path>, Ends, u16)>,
    hears: AbortHandle,
}

impl Probes {
    fn lock(&self) -> MutexGuard<'_, Prober> {
        self.prober.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which paths there are now, and what is known of them.
    async fn look(&mut self) {
        let now = self.start.elapsed();
        let paths = self.agent_owner.paths();
        let ways: BTreeMap<Way, _> = paths
            .into_iter()
            .map(|((src, dst, choice), wanted)| {
                let choice = Some(choice);
                (Way { src, dst, choice }, wanted)
            })
            .collect();
        let (mut added, gone) = self.lock().want(now, ways.keys().copied());
        gone.into_iter().for_each(|way| self.close(way));
        for way in self.lock().to_turn(now) {
            added.push(way);
        }
        // A path may be led otherwise, as switches have other ways left.
        for (way, wanted) in &ways {
            let leased = self.sockets.get(way).and_then(|at| at.leased.as_ref());
            if leased.is_some_and(|(path, ..)| *path != wanted.path) {
                added.push(*way);
            }
        }
        for way in added {
            self.close(way);
            let path = ways.get(&way).map(|wanted| &wanted.path);
            if let Err(why) = self.open(way, path).await {
                warn!(src = %way.src, dst = %way.dst, choice = way.choice, why, "a path is not probed");
            }
        }
        for (way, wanted) in &ways {
            let Some(verdict) = self.lock().verdict(now, *way) else {
                continue;
            };
            let left = self
                .agent_owner
                .probed(&wanted.flows, verdict.loss_ppm, verdict.rtt);
            if left > 0 {
                info!(
                    src = %way.src,
                    dst = %way.dst,
                    choice = way.choice,
                    links = ?wanted.path.links,
                    loss_ppm = verdict.loss_ppm,
                    rtt_us = verdict.rtt.map(|rtt| rtt.as_micros()),
                    flows = left,
                    "probes find a path bad: its flows leave it",
                );
            }
        }
    }

    async fn open(&mut self, way: Way, path: Option<&Arc<Path>>) -> Result<(), String> {
        let ends = Ends {
            protocol: Protocol::Udp,
            src: way.src,
            dst: way.dst,
            dport: self.settings.port,
        };
        let leased = match path {
            None => None,
            Some(path) => {
                let port = self.agent_owner.lease(&ends, path);
                let port = port.map_err(|error| error.to_string())?;
                Some((path.clone(), ends, port))
            }
        };
        let port = leased.as_ref().map_or(0, |(_, _, port)| *port);
        let bound = UdpSocket::bind(SocketAddr::new(way.src, port)).await;
        let socket = match bound {
            Ok(socket) => Arc::new(socket),
            Err(error) => {
                if let Some((_, ends, port)) = leased {
                    self.agent_owner.release(&ends, port);
                }
                return Err(error.to_string());
            }
        };
        let hears = hear(
            socket.clone(),
            self.prober.clone(),
            way,
            self.nonce,
            self.start,
        );
        let hears = tokio::spawn(hears).abort_handle();
        let opened = Socket {
            socket,
            leased,
            hears,
        };
        self.sockets.insert(way, opened);
        Ok(())
    }

    fn close(&mut self, way: Way) {
        if let Some(socket) = self.sockets.remove(&way) {
            socket.hears.abort();
            if let Some((_, ends, port)) = socket.leased {
                self.agent_owner.release(&ends, port);
            }
        }
    }

    fn send(&mut self) {
        let due = self.lock().due(self.start.elapsed());
        for (way, number) in due {
            let Some(socket) = self.sockets.get(&way) else {
                continue;
            };
            let mut bytes = [0; BYTES];
            bytes[..8].copy_from_slice(&PROBE);
            bytes[8..16].copy_from_slice(&self.nonce.to_le_bytes());
            bytes[16..].copy_from_slice(&number.to_le_bytes());
            // A probe that cannot be sent is lost as others are.
            let to = SocketAddr::new(way.dst, self.settings.port);
            let _ = socket.socket.try_send_to(&bytes, to);
        }
    }
}

/// Hears the answers at a socket.
async fn hear(
    socket: Arc<UdpSocket>,
    prober: Arc<Mutex<Prober>>,
    way: Way,
    nonce: u64,
    start: Instant,
) {
    let mut buffer = [0; BYTES + 1];
    loop {
        let received = socket.recv(&mut buffer).await;
        let now = start.elapsed();
        match received {
            Ok(BYTES) => {
                if let Some(number) = answer(&buffer[..BYTES], nonce) {
                    let mut prober = prober.lock().unwrap_or_else(PoisonError::into_inner);
                    prober.answered(now, way, number);
                }
            }
            Ok(_) => {}
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Returns the number of an answered probe of this agent.
fn answer(bytes: &[u8], nonce: u64) -> Option<u64> {
    let (word, rest) = bytes.split_first_chunk::<8>()?;
    let (of, number) = rest.split_first_chunk::<8>()?;
    let number = u64::from_le_bytes(number.try_into().ok()?);
    (*word == ANSWER && *of == nonce.to_le_bytes()).then_some(number)
}
