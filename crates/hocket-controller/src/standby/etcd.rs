//! An election in etcd: whoever makes a key is active as long as its lease lives, and the revision that made it is
//! the epoch.

use std::net::SocketAddr;
use std::time::Duration;

use hocket_wire::setup::{SetupError, deepest};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};
use tracing::{info, warn};

use super::etcd_api as proto;
use proto::compare::{CompareResult, CompareTarget, TargetUnion};
use proto::kv_client::KvClient;
use proto::lease_client::LeaseClient;
use proto::request_op::Request;
use proto::{
    Compare, LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest, PutRequest, RequestOp,
    TxnRequest,
};

/// How long etcd may take to answer at start.
const START: Duration = Duration::from_secs(2);
/// How often a waiting controller tries to win.
const POLL: Duration = Duration::from_millis(200);

/// What the active controller holds.
#[derive(Debug)]
pub struct Held {
    /// The revision that made the key.
    pub epoch: u64,
    channel: Channel,
    lease: i64,
    ttl: Duration,
    /// Until when the lease lives for certain.
    until: Instant,
}

/// Waits until the key is this controller's.
pub(super) async fn win(
    endpoint: SocketAddr,
    key: &str,
    ttl: Duration,
) -> Result<Held, SetupError> {
    let wrong = |why: String| {
        let remedy = "start it, or name another with standby.endpoint";
        SetupError::new(format!("etcd at {endpoint}"), why, remedy)
    };
    let uri = Endpoint::from_shared(format!("http://{endpoint}"));
    let uri = uri
        .map_err(|error| wrong(error.to_string()))?
        .connect_timeout(START);
    let connected = timeout(START, uri.connect()).await;
    let channel = connected
        .map_err(|_| wrong("no answer".to_owned()))?
        .map_err(|error| wrong(deepest(&error)))?;
    let mut waits = false;
    loop {
        match run_for(&channel, key, ttl).await {
            Ok(Some(held)) => return Ok(held),
            Ok(None) if !waits => {
                waits = true;
                info!("another controller is active; this one waits for its key in etcd");
            }
            Ok(None) => {}
            Err(status) if !waits => return Err(wrong(status.message().to_owned())),
            Err(status) => warn!(why = status.message(), "etcd does not answer"),
        }
        sleep(POLL).await;
    }
}

/// Takes the key if nobody has it.
async fn run_for(channel: &Channel, key: &str, ttl: Duration) -> Result<Option<Held>, Status> {
    let mut kv = KvClient::new(channel.clone());
    let there = kv
        .range(proto::RangeRequest {
            key: key.as_bytes().to_vec(),
        })
        .await?;
    if !there.into_inner().kvs.is_empty() {
        return Ok(None);
    }
    let asked = Instant::now();
    let mut leases = LeaseClient::new(channel.clone());
    let seconds = i64::try_from(ttl.as_secs().max(1)).unwrap_or(i64::MAX);
    let granted = leases
        .lease_grant(LeaseGrantRequest { ttl: seconds })
        .await?
        .into_inner();
    let key = key.as_bytes().to_vec();
    let put = PutRequest {
        key: key.clone(),
        value: std::process::id().to_string().into_bytes(),
        lease: granted.id,
    };
    let is_new = Compare {
        result: CompareResult::Equal.into(),
        target: CompareTarget::Create.into(),
        key,
        target_union: Some(TargetUnion::CreateRevision(0)),
    };
    let done = kv
        .txn(TxnRequest {
            compare: vec![is_new],
            success: vec![RequestOp {
                request: Some(Request::RequestPut(put)),
            }],
        })
        .await?
        .into_inner();
    if !done.succeeded {
        leases
            .lease_revoke(LeaseRevokeRequest { id: granted.id })
            .await?;
        return Ok(None);
    }
    let revision = done.header.map_or(0, |header| header.revision);
    let ttl = Duration::from_secs(granted.ttl.max(1).unsigned_abs());
    Ok(Some(Held {
        epoch: revision.max(1).unsigned_abs(),
        channel: channel.clone(),
        lease: granted.id,
        ttl,
        until: asked + ttl,
    }))
}

impl Held {
    /// Keeps the lease alive, and returns when it no longer is for certain: a little before etcd gives the key to
    /// another.
    pub async fn until_lost(&mut self) {
        loop {
            let margin = self.ttl / 5;
            let deadline = self.until - margin;
            match timeout_at(deadline, self.keep_alive()).await {
                Err(_) => return,
                Ok(Err(status)) => {
                    warn!(why = status.message(), "etcd does not answer");
                    if status.code() == tonic::Code::NotFound {
                        return;
                    }
                    let pause = Instant::now() + self.ttl / 10;
                    if pause >= deadline {
                        return;
                    }
                    sleep(self.ttl / 10).await;
                }
                Ok(Ok(())) => sleep(self.ttl / 5).await,
            }
        }
    }

    /// One round; the lease lives from when it was asked for, not from when the answer came.
    async fn keep_alive(&mut self) -> Result<(), Status> {
        let asked = Instant::now();
        let (sender, receiver) = mpsc::channel(1);
        let _ = sender.send(LeaseKeepAliveRequest { id: self.lease }).await;
        let mut leases = LeaseClient::new(self.channel.clone());
        let answers = leases
            .lease_keep_alive(ReceiverStream::new(receiver))
            .await?;
        let answer = answers.into_inner().message().await?;
        match answer {
            Some(answer) if answer.ttl > 0 => {
                self.until = asked + Duration::from_secs(answer.ttl.unsigned_abs()).min(self.ttl);
                Ok(())
            }
            _ => Err(Status::not_found("the lease is over")),
        }
    }

    /// Returns the key, so that another controller takes over at once.
    pub async fn give_back(self) {
        let mut leases = LeaseClient::new(self.channel.clone());
        let revoke = leases.lease_revoke(LeaseRevokeRequest { id: self.lease });
        let _ = timeout(Duration::from_secs(1), revoke).await;
    }
}
