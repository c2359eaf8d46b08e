//! Unix sockets that keep the bounds of messages: one call reads or writes one message.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::path::Path;

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use tokio::net::{UnixListener, UnixStream};

/// Connections that wait to be accepted.
const WAITING: i32 = 128;

fn open(flags: SocketFlags) -> io::Result<OwnedFd> {
    let flags = flags | SocketFlags::CLOEXEC;
    Ok(socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        flags,
        None,
    )?)
}

/// Returns a connection that waits for answers.
pub(crate) fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let socket = open(SocketFlags::empty())?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// A listener.
#[derive(Debug)]
pub(crate) struct Listener(UnixListener);

impl Listener {
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        let socket = open(SocketFlags::NONBLOCK)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        listen(&socket, WAITING)?;
        UnixListener::from_std(net::UnixListener::from(socket)).map(Self)
    }

    pub(crate) async fn accept(&self) -> io::Result<Connection> {
        let (socket, _) = self.0.accept().await?;
        Ok(Connection(socket))
    }
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Connection(UnixStream);

impl Connection {
    /// Returns the next message, 0 bytes at the end; one that is longer than the buffer is cut.
    pub(crate) async fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.0.readable().await?;
            if let Some(received) = self.receive_now(buffer) {
                return received;
            }
        }
    }

    /// Returns the next message if it is there.
    pub(crate) fn receive_now(&self, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        match self.0.try_read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            received => Some(received),
        }
    }

    pub(crate) async fn send(&self, message: &[u8]) -> io::Result<()> {
        loop {
            self.0.writable().await?;
            match self.0.try_write(message) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return sent.map(drop),
            }
        }
    }
}
