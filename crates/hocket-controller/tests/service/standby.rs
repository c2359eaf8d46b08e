//! One of two controllers is active, and the other takes over with a later epoch.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::process::{Process, free};
use super::support::Bench;

fn settings(bench: &Bench, standby: &str) -> String {
    let text = fs::read_to_string(bench.folder.0.join("controller.toml")).unwrap();
    format!("{text}[standby]\n{standby}\n[session]\nrecovery = '100 ms'\n")
}

#[test]
fn a_restart_has_a_later_epoch() {
    let bench = Bench::new();
    let text = settings(&bench, "kind = 'alone'");
    let state = bench.folder.0.join("state-a");
    for epoch in 1..=3 {
        let at = (free(), state.clone());
        let mut process = Process::start_at(&bench.folder.0, "a", &text, at, &[]);
        process.until("ready");
        assert_eq!(process.epoch(), epoch);
        match epoch {
            2 => process.kill(),
            _ => assert!(process.end().success()),
        }
    }
}

#[test]
fn the_lock_of_a_folder_goes_to_the_one_that_waits() {
    let bench = Bench::new();
    let folder = &bench.folder.0;
    let text = settings(&bench, "kind = 'lock'");
    let state = folder.join("state-both");
    let mut one = Process::start_at(folder, "a", &text, (free(), state.clone()), &[]);
    one.until("ready");
    let mut other = Process::start_at(folder, "b", &text, (free(), state), &[]);
    other.until("standby");
    assert_eq!(one.epoch(), 1);
    one.kill();
    other.until("ready");
    assert_eq!(other.epoch(), 2);
    assert!(other.end().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_that_is_lost_is_noticed_and_made_good() {
    let bench = Bench::new();
    let folder = &bench.folder.0;
    let text = settings(&bench, "kind = 'alone'");
    let start = |listen: Option<std::net::SocketAddr>, more: &[&str]| {
        let text = match listen {
            Some(at) => text.replace("listen = '127.0.0.1:0'", &format!("listen = '{at}'")),
            None => text.clone(),
        };
        Process::start_at(folder, "a", &text, (free(), folder.join("state-a")), more)
    };
    let mut first = start(None, &["--epoch", "7"]);
    first.until("ready");
    assert_eq!(first.epoch(), 7);
    let agent = bench.agent(0, first.listen);
    agent.welcomed(1).await;
    let at = first.listen;
    first.kill();
    fs::remove_dir_all(folder.join("state-a")).unwrap();

    let mut forgetful = start(Some(at), &[]);
    forgetful.until(
        "1 of 4 hosts refuse this controller, of epoch 1, since they have obeyed epoch 7: where no other is active, \
         start it with --epoch 8",
    );
    let (_, metrics) = forgetful.get("/metrics");
    assert!(
        metrics.contains("\nhocket_controller_later_epoch 7\n"),
        "{metrics}"
    );
    assert!(forgetful.end().success());
    let log = fs::read_to_string(folder.join("a.log")).unwrap();
    let said = log.matches("the host has obeyed a later epoch").count();
    assert_eq!(said, 1, "{log}");

    let mut known = start(Some(at), &["--epoch", "8"]);
    agent.welcomed(2).await;
    known.until("ready");
    assert_eq!(known.epoch(), 8);
    assert!(known.end().success());
    // It is recorded, and is no less than the next.
    let mut next = start(None, &["--epoch", "8"]);
    next.until("ready");
    assert_eq!(next.epoch(), 9);
    assert!(next.end().success());
}

/// The process, and the folder of its data.
struct Etcd(Child, PathBuf);

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        let _ = fs::remove_dir_all(&self.1);
    }
}

/// An etcd that answers may not have a leader yet.
fn wait_for_leader(client: SocketAddr) {
    let health = || {
        let mut stream = TcpStream::connect(client)?;
        write!(stream, "GET /health HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    let start = Instant::now();
    loop {
        let answer = health().unwrap_or_default();
        if answer.contains(r#""health":"true""#) {
            return;
        }
        let waited = start.elapsed();
        assert!(waited < Duration::from_secs(60), "etcd: {answer:?}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_key_in_etcd_goes_to_the_one_that_waits() {
    let bench = Bench::new();
    let folder = &bench.folder.0;
    let (client, peer) = (free(), free());
    // In memory where that is possible: a disk that takes seconds to write costs a controller its lease.
    let data = match Path::new("/dev/shm") {
        memory if memory.is_dir() => memory.join(format!("hocket-etcd-{}", client.port())),
        _ => folder.join("etcd"),
    };
    let started = Command::new("etcd")
        .arg("--data-dir")
        .arg(&data)
        .args(["--listen-client-urls", &format!("http://{client}")])
        .args(["--advertise-client-urls", &format!("http://{client}")])
        .args(["--listen-peer-urls", &format!("http://{peer}")])
        .args(["--initial-advertise-peer-urls", &format!("http://{peer}")])
        .args(["--initial-cluster", &format!("default=http://{peer}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(etcd) = started else {
        println!("skipped: there is no etcd; Debian's package is etcd-server");
        return;
    };
    let _etcd = Etcd(etcd, data);
    wait_for_leader(client);
    let text = settings(
        &bench,
        &format!("kind = 'etcd'\nendpoint = '{client}'\nttl = '4 s'"),
    );
    let mut one = Process::start(folder, "a", &text);
    one.until("ready");
    let mut other = Process::start(folder, "b", &text);
    other.until("standby");
    let first = one.epoch();
    assert!(first > 0);
    one.kill();
    other.until("ready");
    let second = other.epoch();
    assert!(second > first, "{second} after {first}");
    // One that is told to stop gives its key back.
    let mut third = Process::start(folder, "c", &text);
    third.until("standby");
    assert!(other.end().success());
    third.until("ready");
    assert!(third.epoch() > second);
}
