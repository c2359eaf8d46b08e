//! Connections of operators: a bounded number, and none keeps its place by saying nothing or half of it.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::{Extension, Router};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt::set_tcp_user_timeout;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tracing::warn;

use super::PATIENCE;

/// Most connections: a flood of them must not take the file descriptors that hosts need.
const MOST: u32 = 256;
/// A connection whose other end takes nothing for so long is gone [ms].
const UNREAD: u32 = 30_000;

/// Serves until told to stop, and returns when all connections have ended.
pub(super) async fn serve(listener: TcpListener, router: Router, mut stop: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(MOST as usize));
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE);
    let builder = Arc::new(builder);
    loop {
        let next = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            next = next => next,
        };
        let (stream, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!(%error, "no connection of an operator could be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (builder, stop) = (builder.clone(), stop.clone());
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        let router = router.clone().layer(Extension(ConnectInfo(from)));
        tokio::spawn(async move {
            connection(&builder, stream, router, stop).await;
            drop(place);
        });
    }
    drop(listener);
    let _ = places.acquire_many(MOST).await;
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn connection(
    builder: &Builder<TokioExecutor>,
    stream: TcpStream,
    router: Router,
    mut stop: watch::Receiver<bool>,
) {
    // Without either, answers are only slower, and who reads nothing is noticed later.
    let _ = stream.set_nodelay(true);
    let _ = set_tcp_user_timeout(&stream, UNREAD);
    let service = TowerToHyperService::new(router);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // Whatever breaks a connection ends it, and concerns nobody else.
    tokio::select! {
        biased;
        _ = served.as_mut() => {}
        () = stopped(&mut stop) => {
            served.as_mut().graceful_shutdown();
            let _ = served.await;
        }
    }
}
