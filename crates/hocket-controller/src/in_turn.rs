//! Connections that end in turn: where thousands are cut together, those that stay are served in between.
//!
//! Ending a connection takes about as long as serving an announcement does, and ends come by the thousand where a switch or
//! a room of hosts fails. A connection hears that there is no more to be read when it is its turn, and has the turn until it is
//! dropped.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A connection whose end waits for its turn. Nothing is written once it has heard of its end: a host that does not
/// read must not keep the turn.
pub(crate) struct InTurn<I> {
    io: I,
    turns: Arc<Semaphore>,
    end: End,
}

enum End {
    /// There may be more to be read.
    No,
    Waits(Turn, io::Result<()>),
    Came {
        _turn: Option<OwnedSemaphorePermit>,
    },
}

type Turn = Pin<Box<dyn Future<Output = Option<OwnedSemaphorePermit>> + Send + Sync>>;

impl<I> InTurn<I> {
    /// As many connections end at once as there are turns.
    pub(crate) fn new(io: I, turns: Arc<Semaphore>) -> Self {
        let end = End::No;
        Self { io, turns, end }
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let End::Waits(turn, how) = &mut self.end else {
            return Poll::Ready(Ok(()));
        };
        let turn = ready!(turn.as_mut().poll(context));
        let how = std::mem::replace(how, Ok(()));
        self.end = End::Came { _turn: turn };
        Poll::Ready(how)
    }

    fn has_ended(&self) -> bool {
        matches!(self.end, End::Came { .. })
    }
}

impl<I: fmt::Debug> fmt::Debug for InTurn<I> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("InTurn").field(&self.io).finish()
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for InTurn<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !matches!(self.end, End::No) {
            return self.poll_end(context);
        }
        let (before, space) = (buffer.filled().len(), buffer.remaining());
        let how = ready!(Pin::new(&mut self.io).poll_read(context, buffer));
        if how.is_ok() && (buffer.filled().len() > before || space == 0) {
            return Poll::Ready(how);
        }
        let turns = self.turns.clone();
        let turn = Box::pin(async move {
            let turn = turns.acquire_owned().await.ok();
            // Whoever woke before is served before.
            tokio::task::yield_now().await;
            turn
        });
        self.end = End::Waits(turn, how);
        self.poll_end(context)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for InTurn<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.has_ended() {
            true => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            false => Pin::new(&mut self.io).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.has_ended() {
            true => Poll::Ready(Ok(())),
            false => Pin::new(&mut self.io).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.has_ended() {
            true => Poll::Ready(Ok(())),
            false => Pin::new(&mut self.io).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::timeout;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().build().unwrap()
    }

    fn cut(turns: &Arc<Semaphore>) -> InTurn<DuplexStream> {
        InTurn::new(duplex(64).0, turns.clone())
    }

    async fn hears_its_end(connection: &mut InTurn<DuplexStream>) -> bool {
        let wait = Duration::from_millis(50);
        let read = timeout(wait, connection.read(&mut [0; 8])).await;
        matches!(read, Ok(Ok(0)))
    }

    #[test]
    fn a_connection_ends_once_one_of_those_before_it_is_gone() {
        runtime().block_on(async {
            let turns = Arc::new(Semaphore::new(2));
            let [mut first, mut second, mut third] = [(); 3].map(|()| cut(&turns));
            assert!(hears_its_end(&mut first).await);
            assert!(hears_its_end(&mut second).await);
            assert!(!hears_its_end(&mut third).await);
            // Both have heard it, and keep their turns.
            assert!(hears_its_end(&mut first).await);
            assert!(!hears_its_end(&mut third).await);
            drop(first);
            assert!(hears_its_end(&mut third).await);
        });
    }

    #[test]
    fn a_connection_that_goes_on_needs_no_turn() {
        runtime().block_on(async {
            let turns = Arc::new(Semaphore::new(1));
            let mut ended = cut(&turns);
            assert!(hears_its_end(&mut ended).await);
            let (io, mut peer) = duplex(64);
            let mut connection = InTurn::new(io, turns);
            peer.write_all(b"flow").await.unwrap();
            let mut heard = [0; 4];
            connection.read_exact(&mut heard).await.unwrap();
            connection.write_all(b"path").await.unwrap();
            assert_eq!(&heard, b"flow");
        });
    }

    #[test]
    fn a_peer_that_does_not_read_does_not_keep_the_turn() {
        runtime().block_on(async {
            let turns = Arc::new(Semaphore::new(1));
            let (io, mut peer) = duplex(8);
            let mut connection = InTurn::new(io, turns);
            connection.write_all(&[0; 8]).await.unwrap();
            peer.shutdown().await.unwrap();
            assert!(hears_its_end(&mut connection).await);
            let written = timeout(Duration::from_secs(5), connection.write_all(&[0])).await;
            let error = written.expect("it does not wait").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
            timeout(Duration::from_secs(5), connection.shutdown())
                .await
                .expect("it does not wait")
                .unwrap();
        });
    }
}
