//! Requests and handshakes that never end hold their places for a time, and nobody else up.
//!
//! The clock stands still while anything can be done, so that waiting takes no time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hocket_controller::operator::Operators;
use hocket_wire::tls::{CONTROLLER, End};
use rustls::pki_types::{ServerName, UnixTime};
use rustls::time_provider::DefaultTimeProvider;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsConnector;

use super::support::{Bench, Service, host};

const TOKEN: &str = "Authorization: Bearer 0123456789abcdef\r\n";

struct Shown {
    bench: Bench,
    service: Service,
    operators: SocketAddr,
    _stop: watch::Sender<bool>,
}

async fn show() -> Shown {
    let bench = Bench::new();
    let service = bench.start(1, None).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let operators = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    let all = Operators {
        server_owner: watch::channel(Some(service.server_owner.clone())).1,
        network: bench.config.network.clone(),
        token: "0123456789abcdef".into(),
        links: None,
        news: watch::channel(Arc::from("")).0,
        stop: stopped,
    };
    tokio::spawn(all.serve(listener));
    Shown {
        bench,
        service,
        operators,
        _stop: stop,
    }
}

/// What is answered to pieces that are a second apart, until the connection ends; and after how many seconds it does.
async fn answer(to: SocketAddr, pieces: &[&[u8]]) -> (u64, String) {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let start = Instant::now();
    let (mut reads, mut writes) = stream.split();
    let mut answer = Vec::new();
    let say = async {
        for (at, piece) in (0_u32..).zip(pieces) {
            sleep((start + Duration::from_secs(1) * at).saturating_duration_since(Instant::now()))
                .await;
            if writes.write_all(piece).await.is_err() {
                break;
            }
        }
        std::future::pending::<()>().await;
    };
    // A reset is an end as well.
    tokio::select! {
        _ = reads.read_to_end(&mut answer) => {}
        () = say => {}
    }
    let text = String::from_utf8(answer).unwrap();
    (start.elapsed().as_secs(), text)
}

#[tokio::test(start_paused = true)]
async fn half_a_request_ends_its_connection() {
    let shown = show().await;
    let post = format!("POST /links HTTP/1.1\r\nHost: x\r\n{TOKEN}Content-Length: 90\r\n\r\n");
    let whole = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    let body = "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 90\r\n\r\n";
    let no_token = "POST /links HTTP/1.1\r\nHost: x\r\nContent-Length: 90\r\n\r\n";
    let slow = [b"GET / HTTP/1.1\r\nX: ", &[b'x'; 80][..]].concat();
    let slow: Vec<&[u8]> = slow.chunks(1).collect();
    let slow_body: Vec<&[u8]> = std::iter::once(post.as_bytes())
        .chain([&b" "[..]; 80])
        .collect();
    for (pieces, seconds, begins) in [
        (&[][..], 10..11, ""),
        (&[&b"GET /hea"[..]], 10..11, ""),
        (&[b"GET / HTTP/1.1\r\nHost: x\r\nX: "], 10..11, ""),
        (&slow, 10..11, ""),
        // A connection that asks for nothing more.
        (&[whole.as_bytes()], 10..11, "HTTP/1.1 200 OK"),
        (
            &[post.as_bytes(), b"{"],
            10..11,
            "HTTP/1.1 408 Request Timeout",
        ),
        (&slow_body, 10..11, "HTTP/1.1 408 Request Timeout"),
        // Bodies that nobody wants are not waited for.
        (&[body.as_bytes()], 0..11, "HTTP/1.1 200 OK"),
        (&[no_token.as_bytes()], 0..11, "HTTP/1.1 401 Unauthorized"),
    ] {
        let (ended, answer) = answer(shown.operators, pieces).await;
        let said = String::from_utf8_lossy(pieces.first().unwrap_or(&&b""[..]));
        assert!(seconds.contains(&ended), "{said:?}: {ended} s");
        assert!(answer.starts_with(begins), "{said:?}: {answer:?}");
        assert_eq!(answer.is_empty(), begins.is_empty(), "{said:?}: {answer:?}");
    }
    shown.service.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_half_requests_keeps_nobody_out_for_long() {
    let shown = show().await;
    let mut flood = Vec::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(shown.operators).await.unwrap();
        stream.write_all(b"GET /").await.unwrap();
        flood.push(stream);
    }
    let whole = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let (ended, answer) = answer(shown.operators, &[whole]).await;
    assert!(answer.ends_with("\r\n\r\nok\n"), "{answer:?}");
    assert!(ended <= 11, "{ended} s");
    shown.service.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_does_not_go_on_is_refused() {
    let shown = show().await;
    let files = shown.bench.files(&host(0));
    let identity = files.read(End::Host, UnixTime::now()).unwrap();
    let config = identity.client(Arc::new(DefaultTimeProvider)).unwrap();
    let name = ServerName::try_from(CONTROLLER).unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    let (first, rest) = hello.split_at(hello.len() / 2);
    let at = shown.service.address;
    let slow: Vec<&[u8]> = hello.chunks(8).collect();
    for (pieces, seconds) in [
        (&[][..], 5),
        (&[first], 5),
        (&slow[..], 5),
        // It has had its turn then, and is answered with the controller's certificate.
        (&[first, rest], 2),
    ] {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let start = Instant::now();
        for piece in pieces {
            if stream.write_all(piece).await.is_err() {
                break;
            }
            sleep(Duration::from_secs(1)).await;
        }
        let _ = stream.read_to_end(&mut Vec::new()).await;
        let ended = start.elapsed();
        let limit = Duration::from_secs(seconds);
        let is_slow = pieces.len() > 2;
        assert!(
            ended >= limit || is_slow,
            "{} pieces: {ended:?}",
            pieces.len()
        );
        assert!(
            ended < limit + Duration::from_secs(1) || is_slow,
            "{} pieces: {ended:?}",
            pieces.len()
        );
    }
    let metrics = shown.service.server_owner.metrics();
    assert_eq!(metrics.refused_handshakes.get(), 4);
    assert_eq!(metrics.handshakes.get(), 0);
    shown.service.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_opens_no_session_does_not_keep_its_connection() {
    let shown = show().await;
    let files = shown.bench.files(&host(0));
    let identity = files.read(End::Host, UnixTime::now()).unwrap();
    let config = identity.client(Arc::new(DefaultTimeProvider)).unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    // As HTTP/2 begins: its preface, and settings of none.
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for said in [&b""[..], &preface[..10], preface] {
        let stream = TcpStream::connect(shown.service.address).await.unwrap();
        let name = ServerName::try_from(CONTROLLER).unwrap();
        let mut stream = connector.connect(name, stream).await.unwrap();
        let start = Instant::now();
        stream.write_all(said).await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
        let ended = start.elapsed().as_secs();
        assert!((10..12).contains(&ended), "{said:?}: {ended} s");
    }
    // One with a session stays.
    let agent = shown.bench.agent(0, shown.service.address);
    agent.welcomed(1).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(agent.agent_owner.metrics().welcomes, 1);
    assert_eq!(shown.service.server_owner.metrics().sessions.get(), 1);
    shown.service.end().await;
}
