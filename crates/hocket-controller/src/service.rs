//! Sessions of hosts: one stream of batches each way.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use hocket_control::message::ToHost;
use hocket_wire::setup::deepest;
use hocket_wire::v1::controller_server::{Controller, ControllerServer};
use hocket_wire::v1::{ControllerBatch, HostBatch};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use tracing::info;

use crate::accept::{Connection, Peer};
use crate::server_owner::{Ending, ServedSession, ServerOwner};

/// Messages to a host that are sent at once.
const TOGETHER: usize = 64;
/// How long a connection is quiet before it is asked whether it is there; sessions have leases besides.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Serves connections until `stop` says so; sessions are then ended.
///
/// # Errors
/// What tonic cannot go on after.
pub async fn serve<I: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    server_owner: Arc<ServerOwner>,
    connections: mpsc::Receiver<io::Result<Connection<I>>>,
    most_bytes: usize,
    mut stop: watch::Receiver<bool>,
) -> Result<(), tonic::transport::Error> {
    let service = Service {
        server_owner,
        stop: stop.clone(),
    };
    let service = ControllerServer::new(service).max_decoding_message_size(most_bytes);
    let stopped = async move {
        let _ = stop.wait_for(|stop| *stop).await;
    };
    tonic::transport::Server::builder()
        .max_concurrent_streams(4)
        .initial_connection_window_size(1 << 20)
        .initial_stream_window_size(1 << 20)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .http2_max_header_list_size(8 << 10)
        .add_service(service)
        .serve_with_incoming_shutdown(ReceiverStream::new(connections), stopped)
        .await
}

struct Service {
    server_owner: Arc<ServerOwner>,
    stop: watch::Receiver<bool>,
}

#[tonic::async_trait]
impl Controller for Service {
    type SessionStream = Outgoing;

    async fn session(
        &self,
        request: Request<Streaming<HostBatch>>,
    ) -> Result<Response<Outgoing>, Status> {
        let peer = request.extensions().get::<Peer>().cloned();
        let peer = peer.ok_or_else(|| Status::unauthenticated("no certificate"))?;
        let Peer {
            host,
            from,
            has_session,
        } = peer;
        let ServedSession {
            session,
            messages,
            ending,
        } = self.server_owner.connect(&host, from).map_err(|why| {
            info!(target: "audit", host = &*host, %from, why, "session refused");
            Status::permission_denied(why)
        })?;
        has_session.store(true, Ordering::Relaxed);
        info!(target: "audit", host = &*host, %from, session, "session opened");
        let reading = Reading {
            server_owner: self.server_owner.clone(),
            host,
            session,
            ending: ending.clone(),
        };
        tokio::spawn(reading.run(request.into_inner(), self.stop.clone()));
        Ok(Response::new(Outgoing {
            messages,
            next: Vec::with_capacity(TOGETHER),
            ending: Some(ending),
        }))
    }
}

/// What a host says.
struct Reading {
    server_owner: Arc<ServerOwner>,
    host: Arc<str>,
    session: u64,
    ending: Ending,
}

impl Reading {
    async fn run(self, mut batches: Streaming<HostBatch>, mut stop: watch::Receiver<bool>) {
        let why = loop {
            let next = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break "the controller stops".to_owned(),
                next = batches.message() => next,
            };
            match next {
                Ok(Some(batch)) => match hocket_wire::read_host_batch(batch) {
                    Ok(messages) => {
                        if !self.server_owner.receive(self.session, messages) {
                            break "the session was over".to_owned();
                        }
                    }
                    Err(error) => {
                        self.server_owner.metrics().bad_messages.add(1);
                        break error.to_string();
                    }
                },
                Ok(None) => break "the host ended it".to_owned(),
                Err(status) => {
                    if status.code() == tonic::Code::OutOfRange {
                        self.server_owner.metrics().bad_messages.add(1);
                    }
                    break broken(&status);
                }
            }
        };
        self.server_owner.disconnect(self.session, &why);
        // Whoever ended it first has said why.
        let why = self.ending.get().unwrap_or(&why);
        let host = &*self.host;
        info!(target: "audit", host, session = self.session, why, "session ended");
    }
}

/// Returns why nothing more comes: what is wrong with a message, or that the connection was cut.
fn broken(status: &Status) -> String {
    match std::error::Error::source(status) {
        Some(cause) => format!("the connection was cut: {}", deepest(cause)),
        None => status.message().to_owned(),
    }
}

/// What is said to a host; all that waits is one batch.
pub struct Outgoing {
    messages: mpsc::Receiver<Arc<ToHost>>,
    next: Vec<Arc<ToHost>>,
    /// `None` once it has been said.
    ending: Option<Ending>,
}

impl Stream for Outgoing {
    type Item = Result<ControllerBatch, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self {
            messages,
            next,
            ending,
        } = &mut *self;
        match messages.poll_recv_many(context, next, TOGETHER) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(0) => {
                let why = ending.take().and_then(|ending| ending.get().cloned());
                Poll::Ready(why.map(|why| Err(Status::aborted(why))))
            }
            Poll::Ready(_) => {
                let batch = hocket_wire::controller_batch(next.iter().map(|message| &**message));
                next.clear();
                Poll::Ready(Some(Ok(batch)))
            }
        }
    }
}
