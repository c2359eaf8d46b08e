//! A rank's connection to the store.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use crate::error::{Code, Failure};
use crate::wire::{self, Frame, Member, Proof};

/// A connection to the store, as long as the rank is in the group.
#[derive(Debug)]
pub(crate) struct Control {
    socket: TcpStream,
    arrived: Vec<u8>,
}

impl Control {
    /// Connects to the store, which may not listen yet, and greets it.
    pub fn connect(address: &str, secret: &[u8], patience: Duration) -> Result<Self, Failure> {
        let join = |why: String| Failure::new(Code::Join, format!("{address}: {why}"));
        let until = Instant::now() + patience;
        let addresses: Vec<SocketAddr> = address
            .to_socket_addrs()
            .map_err(|error| join(format!("is not an address: {}", crate::says(&error))))?
            .collect();
        let mut last = String::from("is not an address");
        loop {
            for each in &addresses {
                let left = until.saturating_duration_since(Instant::now());
                match TcpStream::connect_timeout(each, left.max(Duration::from_millis(1))) {
                    Ok(socket) => return Self::greet(socket, secret, patience).map_err(join),
                    Err(error) => last = crate::says(&error),
                }
            }
            if Instant::now() >= until {
                let time = crate::seconds(patience);
                return Err(join(format!("no store there within {time}: {last}")));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn greet(mut socket: TcpStream, secret: &[u8], patience: Duration) -> Result<Self, String> {
        let ours = wire::challenge();
        let mut exchange = || {
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
        let answer = exchange().map_err(|error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                "who listens there is no store: it says nothing".to_owned()
            }
            _ => {
                let says = crate::says(&error);
                format!(
                    "who listens there is no store, or one of another version of hocket: {says}"
                )
            }
        })?;
        let Some([theirs, proof]): Option<[Proof; 2]> = answer else {
            return Err("who listens there is no store of this version of hocket".to_owned());
        };
        if !wire::proves(secret, "store", &[&ours, &theirs], &proof) {
            return Err("the store has another secret".to_owned());
        }
        let answer = wire::prove(secret, "rank", &[&theirs, &ours]);
        let written = socket.write_all(&answer);
        written.map_err(|error| crate::says(&error))?;
        Ok(Self {
            socket,
            arrived: Vec::new(),
        })
    }

    /// The address of this host from which the store is reached.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Joins or rejoins a group; gives its number and who is in it.
    pub fn join(
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

    /// What the store has said, if it has; an error if it is gone.
    pub fn poll(&mut self) -> Result<Option<Failure>, Failure> {
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
        match Frame::split(&self.arrived).map_err(|_| lost())? {
            Some((Frame::Failed(failure), used)) => {
                self.arrived.drain(..used);
                Ok(Some(failure))
            }
            Some(_) => Err(lost()),
            None if ended => Err(lost()),
            None => Ok(None),
        }
    }

    /// Waits a moment for the store to say what has happened.
    pub fn await_verdict(&mut self, patience: Duration) -> Option<Failure> {
        let until = Instant::now() + patience;
        loop {
            match self.poll() {
                Ok(Some(failure)) => return Some(failure),
                Err(_) => return None,
                Ok(None) => {}
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            crate::poll::wait_readable(&self.socket, left);
        }
    }

    /// Says something to the store; whether it is gone shows when it is asked.
    pub fn say(&self, frame: &Frame) {
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

    pub fn socket(&self) -> &TcpStream {
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
