//! Connections of hosts: TCP, then TLS with certificates of both ends, a bounded number of handshakes at once.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use hocket_wire::tls::host_of;
use rustls::ServerConfig;
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Sleep, sleep, timeout};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;
use tracing::{info, warn};

use crate::in_turn::InTurn;
use crate::metrics::Metrics;

/// How long a connection may take to say the first of its handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Most connections that have not shown a certificate yet.
const STRANGERS: usize = 4096;
/// Most connections of a host.
const PER_HOST: usize = 4;
/// Connections that end at once.
const ENDINGS: usize = 2;
/// How long a connection waits until its handshake goes on: whoever made it has given up by then.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a handshake may take once it is its turn.
const TURN: Duration = Duration::from_secs(1);
/// How long a host that has shown its certificate may take to open a session.
const SESSION: Duration = Duration::from_secs(10);

/// Where connections come from: TCP, or a simulation of it.
pub trait Listener: Send + 'static {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Returns the next one, and who connects.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Io, SocketAddr)>> + Send;
}

impl Listener for TcpListener {
    type Io = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, from) = TcpListener::accept(self).await?;
        stream.set_nodelay(true)?;
        Ok((stream, from))
    }
}

/// How the controller shows who it is; another file takes effect with the next connection.
pub type Shown = Arc<RwLock<Arc<ServerConfig>>>;

/// Who is at the other end.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The name of the host, as its certificate has it.
    pub host: Arc<str>,
    /// Where it connects from.
    pub from: SocketAddr,
    /// Whether it has opened a session; a connection without one ends after a time.
    pub has_session: Arc<AtomicBool>,
}

/// A connection of a known host.
#[derive(Debug)]
pub struct Connection<I> {
    io: InTurn<TlsStream<I>>,
    peer: Peer,
    /// Until when it may be without a session; `None` once it has one.
    waits: Option<Pin<Box<Sleep>>>,
    _slot: Slot,
}

/// A host's connections are counted.
#[derive(Debug)]
struct Slot {
    counts: Arc<Mutex<HashMap<Arc<str>, usize>>>,
    name: Arc<str>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.name);
            }
        }
    }
}

impl<I> Connected for Connection<I> {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncRead for Connection<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.peer.has_session.load(Ordering::Relaxed) {
            self.waits = None;
        }
        if let Some(waits) = &mut self.waits
            && waits.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Connection<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

/// Accepts connections until the receiver is dropped.
pub async fn accept<L: Listener>(
    listener: L,
    shown: Shown,
    handshakes: usize,
    metrics: Arc<Metrics>,
    known: mpsc::Sender<io::Result<Connection<L::Io>>>,
) {
    let handshakes = Arc::new(Semaphore::new(handshakes));
    let strangers = Arc::new(Semaphore::new(STRANGERS));
    let counts = Arc::new(Mutex::new(HashMap::new()));
    let ends = Arc::new(Semaphore::new(ENDINGS));
    loop {
        let stranger = strangers.clone().acquire_owned().await;
        let accepted = tokio::select! {
            biased;
            () = known.closed() => return,
            accepted = listener.accept() => accepted,
        };
        let (io, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, mostly: those that are there are served on.
                metrics.accept_errors.add(1);
                warn!(%error, "no connection could be accepted");
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        let shown = shown.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (handshakes, metrics, known) = (handshakes.clone(), metrics.clone(), known.clone());
        let (counts, ends) = (counts.clone(), ends.clone());
        tokio::spawn(async move {
            let _stranger = stranger;
            let why = match shake(io, shown, &handshakes).await {
                Ok(io) => match connection(io, from, &counts, ends) {
                    Ok(connection) => {
                        metrics.handshakes.add(1);
                        let _ = known.send(Ok(connection)).await;
                        return;
                    }
                    Err(why) => why.to_owned(),
                },
                Err(why) => why,
            };
            metrics.refused_handshakes.add(1);
            info!(target: "audit", %from, why, "connection refused");
        });
    }
}

/// A bounded number of handshakes goes on at once, and none of those that have said nothing yet.
async fn shake<I: AsyncRead + AsyncWrite + Unpin>(
    io: I,
    shown: Arc<ServerConfig>,
    handshakes: &Semaphore,
) -> Result<TlsStream<I>, String> {
    let said = timeout(HANDSHAKE, LazyConfigAcceptor::new(Acceptor::default(), io)).await;
    let said = said.map_err(|_| "it said nothing")?;
    let started = said.map_err(|error| error.to_string())?;
    let turn = timeout(PATIENCE, handshakes.acquire()).await;
    let _turn = turn.map_err(|_| "too many handshakes were before it")?;
    match timeout(TURN, started.into_stream(shown)).await {
        Ok(shaken) => shaken.map_err(|error| error.to_string()),
        Err(_) => Err("the handshake took too long".to_owned()),
    }
}

fn connection<I>(
    io: TlsStream<I>,
    from: SocketAddr,
    counts: &Arc<Mutex<HashMap<Arc<str>, usize>>>,
    ends: Arc<Semaphore>,
) -> Result<Connection<I>, &'static str> {
    let certificates = io.get_ref().1.peer_certificates();
    let host = certificates.and_then(|chain| host_of(chain.first()?));
    let name: Arc<str> = host.ok_or("its certificate names no host")?.into();
    let mut all = counts.lock().unwrap_or_else(PoisonError::into_inner);
    let count = all.entry(name.clone()).or_default();
    if *count >= PER_HOST {
        return Err("the host has as many connections as it may");
    }
    *count += 1;
    drop(all);
    let counts = counts.clone();
    Ok(Connection {
        io: InTurn::new(io, ends),
        peer: Peer {
            host: name.clone(),
            from,
            has_session: Arc::default(),
        },
        waits: Some(Box::pin(sleep(SESSION))),
        _slot: Slot { counts, name },
    })
}
