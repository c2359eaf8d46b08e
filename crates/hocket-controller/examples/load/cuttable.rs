//! A connection that is cut without a goodbye of TLS, as where a process or a host's system is ended.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

pub(crate) struct Cuttable {
    io: TcpStream,
    cut: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_cut: bool,
}

impl Cuttable {
    pub(crate) fn new(io: TcpStream, cut: Arc<Notify>) -> Self {
        let cut = Box::pin(async move { cut.notified().await });
        Self {
            io,
            cut,
            is_cut: false,
        }
    }
}

impl AsyncRead for Cuttable {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.is_cut {
            self.is_cut = self.cut.as_mut().poll(context).is_ready();
        }
        match self.is_cut {
            true => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            false => Pin::new(&mut self.io).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Cuttable {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.is_cut {
            true => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            false => Pin::new(&mut self.io).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
