//! The session to the controller: connects when the agent wants it, to whichever controller answers.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hocket_control::agent::Input;
use hocket_control::message::FromHost;
use hocket_wire::setup::{SetupError, deepest};
use hocket_wire::tls::{CONTROLLER, End, Files};
use hocket_wire::v1::HostBatch;
use hocket_wire::v1::controller_client::ControllerClient;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::time_provider::DefaultTimeProvider;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_stream::Stream;
use tonic::Streaming;
use tonic::transport::{Endpoint, Uri};
use tracing::{info, warn};

use crate::agent_owner::AgentOwner;

/// Messages that are sent at once.
const TOGETHER: usize = 64;
/// How long a connection may take, the handshake included.
const CONNECT: Duration = Duration::from_secs(2);

/// How a controller is reached: TCP, or a simulation of it.
pub trait Dial: Send + Sync + 'static {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Connects to `host:port`.
    fn dial(&self, to: &str) -> impl Future<Output = io::Result<Self::Io>> + Send;
}

/// TCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tcp;

impl Dial for Tcp {
    type Io = TcpStream;

    async fn dial(&self, to: &str) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Who the agent is. It is read anew for each connection, so that other files take effect without a restart.
pub trait Identify: Send + Sync + 'static {
    /// Returns how it connects.
    ///
    /// # Errors
    /// [`SetupError`] for files that cannot be read or do not fit each other.
    fn client(&self) -> Result<ClientConfig, SetupError>;
}

impl Identify for Files {
    fn client(&self) -> Result<ClientConfig, SetupError> {
        let identity = self.read(End::Host, UnixTime::now())?;
        identity.client(Arc::new(DefaultTimeProvider))
    }
}

impl Identify for Arc<ClientConfig> {
    fn client(&self) -> Result<ClientConfig, SetupError> {
        Ok((**self).clone())
    }
}

/// Connects each time that the owner of the agent asks for it, until it is gone.
pub async fn run<D: Dial>(
    agent_owner: Arc<AgentOwner>,
    mut asked: mpsc::UnboundedReceiver<()>,
    controllers: Vec<String>,
    identity: impl Identify,
    dial: D,
) {
    let dial = Arc::new(dial);
    // Where the last session was, and from there on the others.
    let mut first = 0;
    while asked.recv().await.is_some() {
        let mut streams = None;
        for turn in 0..controllers.len() {
            let at = (first + turn) % controllers.len();
            match connect(&agent_owner, &controllers[at], &identity, &dial).await {
                Ok(session) => {
                    first = at;
                    streams = Some(session);
                    break;
                }
                Err(why) => warn!(controller = controllers[at], why, "no session"),
            }
        }
        match streams {
            Some((session, batches)) => {
                info!(controller = controllers[first], "session opened");
                let agent_owner = agent_owner.clone();
                tokio::spawn(hear(agent_owner, session, batches));
            }
            None => agent_owner.handle(Input::Unreachable),
        }
    }
}

type Session = (
    hocket_control::agent::SessionId,
    Streaming<hocket_wire::v1::ControllerBatch>,
);

async fn connect<D: Dial>(
    agent_owner: &AgentOwner,
    to: &str,
    identity: &impl Identify,
    dial: &Arc<D>,
) -> Result<Session, String> {
    let config = identity.client().map_err(|error| error.to_string())?;
    let connector = TlsConnector::from(Arc::new(config));
    let (dial, to) = (dial.clone(), to.to_owned());
    let shaken = tower::service_fn(move |_: Uri| {
        let (dial, to, connector) = (dial.clone(), to.clone(), connector.clone());
        async move {
            let name = ServerName::try_from(CONTROLLER).map_err(io::Error::other)?;
            let io = connector.connect(name, dial.dial(&to).await?).await?;
            Ok::<_, io::Error>(TokioIo::new(io))
        }
    });
    // TLS is the connector's: tonic is not to add its own.
    let endpoint = Endpoint::from_static("http://hocket-controller")
        .http2_keep_alive_interval(Duration::from_secs(10))
        .keep_alive_timeout(Duration::from_secs(5))
        .keep_alive_while_idle(true)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(1 << 20);
    let channel = timeout(CONNECT, endpoint.connect_with_connector(shaken)).await;
    let channel = channel
        .map_err(|_| "no answer in time")?
        .map_err(|error| deepest(&error))?;
    let mut client =
        ControllerClient::new(channel).max_decoding_message_size(hocket_wire::MOST_BATCH_BYTES);
    let (session, messages) = agent_owner.connected();
    let outgoing = Outgoing {
        messages,
        next: Vec::with_capacity(TOGETHER),
    };
    match timeout(CONNECT, client.session(outgoing)).await {
        Ok(Ok(answer)) => Ok((session, answer.into_inner())),
        failed => {
            agent_owner.lost(session);
            Err(match failed {
                Ok(Err(status)) => status.message().to_owned(),
                _ => "no answer in time".to_owned(),
            })
        }
    }
}

async fn hear(
    agent_owner: Arc<AgentOwner>,
    session: hocket_control::agent::SessionId,
    mut batches: Streaming<hocket_wire::v1::ControllerBatch>,
) {
    let why = loop {
        match batches.message().await {
            Ok(Some(batch)) => match hocket_wire::read_controller_batch(batch) {
                Ok(messages) => {
                    if !agent_owner.received(session, messages) {
                        break "the agent ended it".to_owned();
                    }
                }
                Err(error) => {
                    break format!("the controller says what this agent does not know: {error}");
                }
            },
            Ok(None) => break "the controller ended it".to_owned(),
            Err(status) => break status.message().to_owned(),
        }
    };
    warn!(why, "session ended");
    agent_owner.lost(session);
}

/// What is said to the controller; all that waits is one batch.
struct Outgoing {
    messages: mpsc::Receiver<FromHost>,
    next: Vec<FromHost>,
}

impl Stream for Outgoing {
    type Item = HostBatch;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<HostBatch>> {
        let Self { messages, next } = &mut *self;
        match messages.poll_recv_many(context, next, TOGETHER) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(0) => Poll::Ready(None),
            Poll::Ready(_) => {
                let batch = hocket_wire::host_batch(&*next);
                next.clear();
                Poll::Ready(Some(batch))
            }
        }
    }
}
