//! What programs use to have their flows steered.
//!
//! ```no_run
//! use hocket_agent::client::Agent;
//! use hocket_agent::datagrams::{Ends, Protocol};
//!
//! let mut agent = Agent::connect("/run/hocket/agent.sock")?;
//! let ends = Ends {
//!     protocol: Protocol::Tcp,
//!     src: None,
//!     dst: "10.0.1.1".parse()?,
//!     dport: 4791,
//! };
//! let flow = agent.open(&ends, 1 << 30, 0)?;
//! if let Ok(port) = &flow.port {
//!     println!("bind to {port} before connecting");
//! }
//! agent.close(&flow)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::datagrams::{Answer, Ends, MOST_BYTES};
use crate::seqpacket::connect_to;

/// A flow that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "Opened")]
pub struct OpenFlow {
    /// Its number.
    pub id: u64,
    /// The source port to bind to before connecting, or why switches are to hash it as any other.
    pub port: Result<u16, String>,
}

/// A connection to this host's agent. Flows end with it.
#[derive(Debug)]
pub struct Agent {
    socket: OwnedFd,
}

impl Agent {
    /// Connects.
    ///
    /// # Errors
    /// What the system says: no agent listens there, or this program may not connect.
    pub fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        let socket = connect_to(path.as_ref())?;
        Ok(Self { socket })
    }

    /// Opens a flow of so many bytes, which the controller hears of; job 0: none.
    ///
    /// # Errors
    /// What the agent finds wrong, and what the system says.
    pub fn open(
        &mut self,
        ends: &Ends<Option<IpAddr>>,
        bytes: u64,
        job: u32,
    ) -> io::Result<OpenFlow> {
        match self.ask(&format!("open {ends} {bytes} {job}"))? {
            Answer::Flow(id, port) => Ok(OpenFlow { id, port }),
            other => Err(odd(&other)),
        }
    }

    /// Returns a port for a socket whose flow ends with it.
    ///
    /// # Errors
    /// As [`Agent::open`].
    pub fn port(&mut self, ends: &Ends<Option<IpAddr>>) -> io::Result<Result<u16, String>> {
        match self.ask(&format!("port {ends}"))? {
            Answer::Port(port) => Ok(port),
            other => Err(odd(&other)),
        }
    }

    /// Reports how many bytes a flow has left.
    ///
    /// # Errors
    /// What the system says.
    pub fn progress(&mut self, flow: &OpenFlow, left: u64) -> io::Result<()> {
        self.tell(&format!("progress {} {left}", flow.id))
    }

    /// Ends a flow.
    ///
    /// # Errors
    /// What the system says.
    pub fn close(&mut self, flow: &OpenFlow) -> io::Result<()> {
        self.tell(&format!("close {}", flow.id))
    }

    fn tell(&self, line: &str) -> io::Result<()> {
        send(&self.socket, line.as_bytes(), SendFlags::NOSIGNAL)?;
        Ok(())
    }

    fn ask(&self, line: &str) -> io::Result<Answer> {
        let mut buffer = [0; MOST_BYTES];
        // Errors of lines without an answer may still lie there.
        while matches!(
            recv(&self.socket, &mut buffer, RecvFlags::DONTWAIT),
            Ok((1.., _))
        ) {}
        self.tell(line)?;
        let (count, _) = recv(&self.socket, &mut buffer, RecvFlags::empty())?;
        if count == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the agent is gone",
            ));
        }
        let text = std::str::from_utf8(&buffer[..count]).map_err(io::Error::other)?;
        text.parse().map_err(io::Error::other)
    }
}

fn odd(answer: &Answer) -> io::Error {
    match answer {
        Answer::Error(why) => io::Error::new(io::ErrorKind::InvalidInput, why.clone()),
        other => io::Error::other(format!("the agent answers {:?}", other.to_string())),
    }
}
