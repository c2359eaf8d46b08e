//! Who may not, is refused and counted, and nobody else notices.

use std::net::SocketAddr;
use std::sync::Arc;

use hocket_control::message::{FromHost, Hello, HostFlow, NewFlow, Refusal, VERSION};
use hocket_control::server::Close;
use hocket_wire::tls::{CONTROLLER, End, Files};
use hocket_wire::v1::controller_client::ControllerClient;
use hocket_wire::v1::{ControllerBatch, HostBatch};
use hyper_util::rt::TokioIo;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::time_provider::DefaultTimeProvider;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::{Endpoint, Uri};

use super::support::{Agent, Bench, Folder, Service, address, host, make_certs, until};

/// A session that says anything.
struct Raw {
    say: mpsc::Sender<HostBatch>,
    hear: Streaming<ControllerBatch>,
}

impl Raw {
    async fn new(files: &Files, end: End, to: SocketAddr) -> Result<Self, String> {
        let identity = files.read(end, UnixTime::now()).unwrap();
        let config = identity.client(Arc::new(DefaultTimeProvider)).unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let shaken = tower::service_fn(move |_: Uri| {
            let connector = connector.clone();
            async move {
                let stream = TcpStream::connect(to).await?;
                let name = ServerName::try_from(CONTROLLER).unwrap();
                Ok::<_, std::io::Error>(TokioIo::new(connector.connect(name, stream).await?))
            }
        });
        let endpoint = Endpoint::from_static("http://hocket-controller");
        let channel = endpoint.connect_with_connector(shaken).await;
        let client = ControllerClient::new(channel.map_err(|error| error.to_string())?);
        let mut client = client.max_decoding_message_size(hocket_wire::MOST_BATCH_BYTES);
        let (say, said) = mpsc::channel(64);
        let hear = client.session(ReceiverStream::new(said)).await;
        let hear = hear
            .map_err(|status| status.message().to_owned())?
            .into_inner();
        Ok(Self { say, hear })
    }

    async fn say(&self, message: FromHost) -> bool {
        self.say
            .send(hocket_wire::host_batch([&message]))
            .await
            .is_ok()
    }

    async fn hello(&self) {
        let hello = Hello {
            version: VERSION,
            sequence: 1,
            ..Hello::default()
        };
        assert!(self.say(FromHost::Hello(hello)).await);
    }

    /// Returns when the session has ended: what the host is told of it.
    async fn ended(&mut self) -> String {
        loop {
            match self.hear.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return "nothing".to_owned(),
                Err(status) => return status.message().to_owned(),
            }
        }
    }
}

/// Another host is served as if nothing was.
async fn is_served(agent: &Agent) {
    let (flow, port) = agent.open(agent.ends(3, 6_000)).await;
    assert!(port.is_ok(), "{port:?}");
    agent.agent_owner.close(1, flow);
}

fn starts(sequence: u64, count: u64) -> FromHost {
    let flow = |id| HostFlow {
        id: sequence << 16 | id,
        opened: NewFlow {
            job: 0,
            src: address(0),
            dst: address(2),
            bytes: 1 << 30,
            is_fixed: false,
        },
        held: None,
    };
    FromHost::Starts {
        sequence,
        flows: (0..count).map(flow).collect(),
    }
}

async fn pair() -> (Bench, Service, Agent) {
    let bench = Bench::new();
    let service = bench.start(1, None).await;
    let other = bench.agent(1, service.address);
    is_served(&other).await;
    (bench, service, other)
}

#[tokio::test]
async fn certificates_that_are_wrong_are_refused_and_counted() {
    let (bench, service, other) = pair().await;
    // Of another authority.
    let stranger = Folder::new();
    make_certs(&stranger.0, &[host(0)], false);
    let foreign = Files {
        ca: bench.folder.0.join("ca.pem"),
        certificate: stranger.0.join("h0.pem"),
        key: stranger.0.join("h0.key"),
    };
    let own_ca = Files {
        ca: stranger.0.join("ca.pem"),
        ..foreign.clone()
    };
    let error = foreign
        .read(End::Host, UnixTime::now())
        .unwrap_err()
        .to_string();
    assert!(error.contains("was not issued by"), "{error}");
    // It does not take the controller for one, either.
    assert!(Raw::new(&own_ca, End::Host, service.address).await.is_err());
    // The controller's own is no host's.
    assert!(
        Raw::new(&bench.files("controller"), End::Controller, service.address)
            .await
            .is_err()
    );
    // Nothing but bytes.
    let mut noise = TcpStream::connect(service.address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut noise, &[7; 500])
        .await
        .unwrap();
    let refused = || service.server_owner.metrics().refused_handshakes.get();
    until("three connections were refused", || refused() >= 3).await;
    // One that the configuration does not know.
    make_certs(&bench.folder.0, &["h9".to_owned()], false);
    let unknown = Raw::new(&bench.files("h9"), End::Host, service.address).await;
    assert_eq!(
        unknown.err().as_deref(),
        Some("the controller's configuration has no such host")
    );
    assert_eq!(service.server_owner.metrics().unknown_hosts.get(), 1);
    is_served(&other).await;
    service.end().await;
}

#[tokio::test]
async fn strangers_that_say_nothing_keep_nobody_out() {
    let (bench, service, other) = pair().await;
    let mut strangers = Vec::new();
    for _ in 0..3 * bench.config.session.handshakes {
        strangers.push(TcpStream::connect(service.address).await.unwrap());
    }
    let agent = bench.agent(0, service.address);
    is_served(&agent).await;
    // Nor did it wait until they were refused.
    assert_eq!(service.server_owner.metrics().refused_handshakes.get(), 0);
    is_served(&other).await;
    drop(strangers);
    service.end().await;
}

#[tokio::test]
async fn a_host_speaks_for_its_own_addresses_alone() {
    let (bench, service, other) = pair().await;
    let agent = bench.agent(0, service.address);
    let (_, port) = agent.open(other.ends(2, 5_000)).await;
    assert_eq!(port, Err("refused: not an address of this host".to_owned()));
    let mut unknown = agent.ends(2, 5_000);
    unknown.dst = [10, 9, 9, 9].into();
    let (_, port) = agent.open(unknown).await;
    assert_eq!(
        port,
        Err("refused: the receiver is not in the fabric".to_owned())
    );
    let refused = service.server_owner.view(|server| server.metrics().refused);
    assert_eq!(refused[Refusal::NotItsAddress as usize], 1);
    assert_eq!(refused[Refusal::UnknownAddress as usize], 1);
    is_served(&other).await;
    service.end().await;
}

#[tokio::test]
async fn messages_that_are_too_long_or_none_end_their_session_alone() {
    let (bench, service, other) = pair().await;
    let files = bench.files(&host(0));
    let bad = || service.server_owner.metrics().bad_messages.get();
    let mut long = Raw::new(&files, End::Host, service.address).await.unwrap();
    long.hello().await;
    let batch = hocket_wire::host_batch(&vec![starts(2, 60_000); 4]);
    assert!(prost::Message::encoded_len(&batch) > bench.config.session.message_bytes);
    long.say.send(batch).await.unwrap();
    let why = long.ended().await;
    assert!(why.contains("decoded message length too large"), "{why}");
    assert_eq!(bad(), 1);
    let mut none = Raw::new(&files, End::Host, service.address).await.unwrap();
    let message = hocket_wire::v1::FromHost { kind: None };
    let messages = vec![message];
    none.say.send(HostBatch { messages }).await.unwrap();
    let why = none.ended().await;
    assert!(
        why.starts_with("a message of a host is missing or of a kind"),
        "{why}"
    );
    assert_eq!(bad(), 2);
    is_served(&other).await;
    service.end().await;
}

#[tokio::test]
async fn a_flood_ends_its_session_alone() {
    let (bench, service, other) = pair().await;
    let mut raw = Raw::new(&bench.files(&host(0)), End::Host, service.address)
        .await
        .unwrap();
    raw.hello().await;
    let mut sequence = 2;
    while raw.say(starts(sequence, 20_000)).await && sequence < 200 {
        sequence += 1;
        if service
            .server_owner
            .view(|server| server.metrics().closed[Close::Flood as usize])
            > 0
        {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(raw.ended().await, "the host said far more than it may");
    let (closed, refused) = service.server_owner.view(|server| {
        let metrics = server.metrics();
        (metrics.closed, metrics.refused)
    });
    assert_eq!(closed[Close::Flood as usize], 1);
    assert!(refused[Refusal::TooFast as usize] + refused[Refusal::TooMany as usize] > 0);
    is_served(&other).await;
    service.end().await;
}

#[tokio::test]
async fn a_host_that_does_not_read_is_dropped_alone() {
    let (bench, service, other) = pair().await;
    let raw = Raw::new(&bench.files(&host(0)), End::Host, service.address)
        .await
        .unwrap();
    raw.hello().await;
    let slow = || {
        let closed = service
            .server_owner
            .view(|server| server.metrics().closed[Close::Slow as usize]);
        closed + service.server_owner.metrics().slow_readers.get()
    };
    // The same flows again and again: each time the host is told their paths, and it never reads.
    for sequence in 2..3_000 {
        let FromHost::Starts { flows, .. } = starts(1, 10) else {
            unreachable!("it is one");
        };
        if slow() > 0 || !raw.say(FromHost::Starts { sequence, flows }).await {
            break;
        }
        tokio::task::yield_now().await;
    }
    until("the slow host is dropped", || slow() > 0).await;
    is_served(&other).await;
    service.end().await;
}

#[tokio::test]
async fn a_second_agent_with_the_same_certificate_is_refused_while_the_first_is_alive() {
    let (bench, service, other) = pair().await;
    let first = bench.agent(0, service.address);
    first.welcomed(1).await;
    let second = bench.agent(0, service.address);
    let refused = || service.server_owner.metrics().second_sessions.get();
    until("the second has tried several times", || refused() >= 3).await;
    assert_eq!(second.agent_owner.metrics().welcomes, 0);
    // The host is told, and which other has the session.
    let files = bench.files(&host(0));
    let why = Raw::new(&files, End::Host, service.address).await.err();
    let why = why.unwrap_or_default();
    assert!(
        why.starts_with("an agent at 127.0.0.1:") && why.contains("two agents use one certificate"),
        "{why}"
    );
    assert_eq!(first.agent_owner.metrics().welcomes, 1);
    first.leave().await;
    second.welcomed(1).await;
    is_served(&other).await;
    service.end().await;
}
