//! A rank's connection to the store.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::error::{Code, Failure};
use crate::fork::{self, Kept};
use crate::wire::{self, Frame, Member, Proof};

/// How long the store may take to give a verdict: much longer than it collects reports, so that a busy machine does not
/// change who is blamed.
const VERDICT: Duration = Duration::from_secs(5);

/// A connection to the store, as long as the rank is in the group.
#[derive(Debug)]
pub(crate) struct Control {
    _kept: Kept,
    socket: TcpStream,
    arrived: Vec<u8>,
    /// Ranks that have left the group.
    left: BTreeSet<u32>,
}

/// Why a store was not reached, and whether that may change.
struct Refusal {
    why: String,
    passes: bool,
}

impl Control {
    /// Connects to the store, which may not listen yet, and greets it.
    pub(crate) fn connect(
        address: &str,
        secret: &[u8],
        patience: Duration,
    ) -> Result<Self, Failure> {
        let join = |why: String| Failure::new(Code::Join, format!("{address}: {why}"));
        let until = Instant::now() + patience;
        let addresses: Vec<SocketAddr> = address
            .to_socket_addrs()
            .map_err(|error| join(format!("is not an address: {}", crate::says(&error))))?
            .collect();
        let mut last = String::from("is not an address");
        let mut pause = Duration::from_millis(10);
        loop {
            for each in &addresses {
                let left = until.saturating_duration_since(Instant::now());
                let left = left.max(Duration::from_millis(1));
                let refused = |error| Refusal {
                    why: crate::says(&error),
                    passes: true,
                };
                let came = TcpStream::connect_timeout(each, left).map_err(refused);
                match came.and_then(|socket| Self::greet(socket, secret, left)) {
                    Ok(control) => return Ok(control),
                    Err(refusal) if refusal.passes => last = refusal.why,
                    Err(refusal) => return Err(join(refusal.why)),
                }
            }
            if Instant::now() >= until {
                let time = crate::seconds(patience);
                return Err(join(format!("no store there within {time}: {last}")));
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(Duration::from_millis(200));
        }
    }

    /// Greets who listens there. A store that is asked by too many at once closes connections without a word.
    fn greet(mut socket: TcpStream, secret: &[u8], patience: Duration) -> Result<Self, Refusal> {
        let never = |why: &str| {
            Err(Refusal {
                why: why.to_owned(),
                passes: false,
            })
        };
        let ours = wire::challenge();
        let mut exchange = || -> io::Result<Option<[Proof; 2]>> {
            socket.set_nodelay(true)?;
            socket.set_read_timeout(Some(patience.max(Duration::from_millis(1))))?;
            socket.write_all(&wire::GREETING)?;
            socket.write_all(&ours)?;
            let mut greeting = [0; wire::GREETING.len()];
            socket.read_exact(&mut greeting)?;
            if greeting != wire::GREETING {
                return Ok(None);
            }
            let mut answer = [[0; wire::PROOF]; 2];
            socket.read_exact(answer.as_flattened_mut())?;
            Ok(Some(answer))
        };
        let answer = match exchange() {
            Ok(answer) => answer,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return never("who listens there is no store: it says nothing");
            }
            Err(error) => {
                let says = crate::says(&error);
                return Err(Refusal {
                    why: format!(
                        "who listens there is no store, is too busy, or is of another version of hocket: {says}"
                    ),
                    passes: true,
                });
            }
        };
        let Some([theirs, proof]) = answer else {
            return never("who listens there is no store of this version of hocket");
        };
        if !wire::proves(secret, "store", &[&ours, &theirs], &proof) {
            return never("the store has another secret");
        }
        let answer = wire::prove(secret, "rank", &[&theirs, &ours]);
        let written = socket.write_all(&answer);
        written.map_err(|error| Refusal {
            why: crate::says(&error),
            passes: true,
        })?;
        Ok(Self {
            _kept: fork::keep(&socket),
            socket,
            arrived: Vec::new(),
            left: BTreeSet::new(),
        })
    }

    /// Returns the address of this host from which the store is reached.
    pub(crate) fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Joins or rejoins a group; gives its number and who is in it.
    pub(crate) fn join(
        &mut self,
        frame: &Frame,
        patience: Duration,
    ) -> Result<(u64, Vec<Member>), Failure> {
        let lost = |error: io::Error| {
            let why = format!("the store did not answer: {}", crate::says(&error));
            Failure::new(Code::Join, why)
        };
        frame.send(&self.socket).map_err(lost)?;
        // The store says first who is missing.
        let patience = patience + Duration::from_secs(2);
        self.socket.set_read_timeout(Some(patience)).map_err(lost)?;
        match Frame::receive(&self.socket).map_err(lost)? {
            Frame::Table { id, members } => {
                self.socket.set_nonblocking(true).map_err(lost)?;
                Ok((id, members))
            }
            Frame::Failed(failure) => Err(failure),
            _ => Err(Failure::new(
                Code::Join,
                "the store answered something else",
            )),
        }
    }

    /// Returns what the store has said, if it has; an error if it is gone.
    pub(crate) fn poll(&mut self) -> Result<Option<Failure>, Failure> {
        let mut buffer = [0; 4096];
        loop {
            match self.socket.read(&mut buffer) {
                Ok(0) => return self.next(true),
                Ok(read) => self.arrived.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.next(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.next(true),
            }
        }
    }

    fn next(&mut self, ended: bool) -> Result<Option<Failure>, Failure> {
        let lost = || Failure::new(Code::StoreLost, "the store, where ranks meet, is gone");
        loop {
            match Frame::split(&self.arrived).map_err(|_| lost())? {
                Some((Frame::Failed(failure), used)) => {
                    self.arrived.drain(..used);
                    return Ok(Some(failure));
                }
                Some((Frame::Left { rank }, used)) => {
                    self.arrived.drain(..used);
                    self.left.insert(rank);
                }
                Some(_) => return Err(lost()),
                None if ended => return Err(lost()),
                None => return Ok(None),
            }
        }
    }

    /// Returns whether the store has said that a rank has left.
    pub(crate) fn has_left(&self, rank: u32) -> bool {
        self.left.contains(&rank)
    }

    /// Tells the store something and waits for its verdict; `None` if it says nothing in time.
    fn ask(&mut self, frame: &Frame) -> Option<Failure> {
        self.say(frame);
        let until = Instant::now() + VERDICT;
        loop {
            match self.poll() {
                Ok(None) => {}
                Ok(Some(failure)) | Err(failure) => return Some(failure),
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            crate::poll::wait_readable(&self.socket, left);
        }
    }

    /// Tells the store whom this rank waits for, and asks who is to blame.
    pub(crate) fn stalled(&mut self, call: u64, awaited: &[u32]) -> Failure {
        let frame = Frame::Stalled {
            call,
            awaited: awaited.to_vec(),
        };
        self.ask(&frame).unwrap_or_else(|| {
            let waited = crate::ranks(awaited);
            let why = format!("{waited}: nothing came in time, and the store does not say why");
            Failure::new(Code::Stalled, why).of(None, call)
        })
    }

    /// Tells the store that a connection broke, and asks which rank has died. Whoever holds the other end may live: it lets
    /// go of its connections when it hears of a death.
    pub(crate) fn lost(&mut self, call: u64, peer: u32, how: &str) -> Failure {
        let frame = Frame::Lost {
            call,
            peer,
            how: how.to_owned(),
        };
        self.ask(&frame).unwrap_or_else(|| {
            let why = format!("{how}; the store does not say why");
            Failure::new(Code::Lost, why).of(None, call)
        })
    }

    /// Sends something to the store; whether it is gone shows when it is asked.
    pub(crate) fn say(&self, frame: &Frame) {
        let bytes = frame.encode();
        let mut sent = 0;
        let until = Instant::now() + Duration::from_millis(200);
        while sent < bytes.len() && Instant::now() < until {
            match (&self.socket).write(&bytes[sent..]) {
                Ok(more) => sent += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(_) => return,
            }
        }
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }
}

/// Binds a free port on an address, by default the one from which the store is reached.
pub(crate) fn listen(
    control: &Control,
    local: Option<IpAddr>,
    everywhere: bool,
) -> Result<(TcpListener, SocketAddr), Failure> {
    let made = || {
        let mut address = control.local()?;
        if let Some(local) = local {
            address = SocketAddr::new(local, 0);
        }
        address.set_port(0);
        let own = address.ip();
        if everywhere {
            address.set_ip(match own {
                IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            });
        }
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let mut address = listener.local_addr()?;
        address.set_ip(own);
        Ok((listener, address))
    };
    made().map_err(|error: io::Error| {
        let why = format!("cannot listen for other ranks: {}", crate::says(&error));
        Failure::new(Code::Join, why)
    })
}
