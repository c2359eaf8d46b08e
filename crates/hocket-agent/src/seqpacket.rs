//! Unix sockets that keep the bounds of messages, without waiting.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind,
    connect, listen, recv, send, socket_with,
};
use tokio::io::unix::AsyncFd;

/// Connections that wait to be accepted.
const WAITING: i32 = 128;

fn open(flags: SocketFlags) -> io::Result<OwnedFd> {
    let flags = flags | SocketFlags::CLOEXEC;
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

/// A connection that waits for answers.
pub(crate) fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let socket = open(SocketFlags::empty())?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket)
}

/// A listener.
#[derive(Debug)]
pub(crate) struct Listener(AsyncFd<OwnedFd>);

impl Listener {
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        let socket = open(SocketFlags::NONBLOCK)?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        listen(&socket, WAITING)?;
        Ok(Self(AsyncFd::new(socket)?))
    }

    pub(crate) async fn accept(&self) -> io::Result<Connection> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        loop {
            let mut ready = self.0.readable().await?;
            let accepted = ready.try_io(|socket| Ok(accept_with(socket.get_ref(), flags)?));
            if let Ok(socket) = accepted {
                return Ok(Connection(AsyncFd::new(socket?)?));
            }
        }
    }
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Connection(AsyncFd<OwnedFd>);

impl Connection {
    /// The next message, 0 bytes at the end; one that is longer than the buffer is cut.
    pub(crate) async fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.0.readable().await?;
            let received = ready.try_io(|socket| {
                let (count, _) = recv(socket.get_ref(), &mut *buffer, RecvFlags::empty())?;
                Ok(count)
            });
            if let Ok(count) = received {
                return count;
            }
        }
    }

    /// The next message if it is there.
    pub(crate) fn receive_now(&self, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        match recv(self.0.get_ref(), buffer, RecvFlags::DONTWAIT) {
            Err(rustix::io::Errno::WOULDBLOCK) => None,
            Err(error) => Some(Err(error.into())),
            Ok((count, _)) => Some(Ok(count)),
        }
    }

    pub(crate) async fn send(&self, message: &[u8]) -> io::Result<()> {
        loop {
            let mut ready = self.0.writable().await?;
            let sent = ready.try_io(|socket| {
                send(socket.get_ref(), message, SendFlags::NOSIGNAL)?;
                Ok(())
            });
            if let Ok(sent) = sent {
                return sent;
            }
        }
    }
}
