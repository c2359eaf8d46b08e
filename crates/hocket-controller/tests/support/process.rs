//! A controller as a process of its own, and what its operators' listener answers.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);

/// An address that nobody listens on, and that no outgoing connection gets before it is used: below the ports that
/// Linux hands out by itself, which begin at 32,768.
pub(crate) fn free() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const FIRST: u32 = 12_000;
    const PORTS: u32 = 20_000;
    // Processes that test at the same time begin far apart.
    let begin = std::process::id().wrapping_mul(997);
    loop {
        let next = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = (FIRST + next % PORTS) as u16;
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            return listener.local_addr().unwrap();
        }
    }
}

pub(crate) struct Process {
    child: Child,
    log: PathBuf,
    operator: SocketAddr,
    /// Where hosts connect.
    pub listen: SocketAddr,
    pub state: PathBuf,
}

impl Process {
    /// Starts a controller whose settings are `text` with the addresses and the state's folder put in.
    pub(crate) fn start(folder: &Path, name: &str, text: &str) -> Self {
        let operator = free();
        let state = folder.join(format!("state-{name}"));
        Self::start_at(folder, name, text, (operator, state), &[])
    }

    pub(crate) fn start_at(
        folder: &Path,
        name: &str,
        text: &str,
        (operator, state): (SocketAddr, PathBuf),
        more: &[&str],
    ) -> Self {
        let listen = free();
        let text = text
            .replace("listen = '127.0.0.1:0'", &format!("listen = '{listen}'"))
            .replace(
                "operator = '127.0.0.1:0'",
                &format!("operator = '{operator}'"),
            )
            .replace("state = 'state'", &format!("state = '{}'", state.display()));
        let path = folder.join(format!("{name}.toml"));
        fs::write(&path, text).unwrap();
        let log = folder.join(format!("{name}.log"));
        let child = Command::new(env!("CARGO_BIN_EXE_hocket-controller"))
            .args(["serve", "--config"])
            .arg(&path)
            .args(more)
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Self {
            child,
            log,
            operator,
            listen,
            state,
        }
    }

    /// Status and body of an answer; 0 where there is none.
    pub(crate) fn ask(&self, request: &str, headers: &str, body: &str) -> (u16, String) {
        let ask = || {
            let mut stream = TcpStream::connect(self.operator)?;
            let length = body.len();
            write!(
                stream,
                "{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
            )?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok::<_, std::io::Error>(answer)
        };
        let answer = ask().unwrap_or_default();
        let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok());
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status.unwrap_or(0), body.to_owned())
    }

    /// An answer to who shows the token.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.ask(&format!("GET {path}"), &self.bearer(), "")
    }

    pub(crate) fn bearer(&self) -> String {
        let token = fs::read_to_string(self.state.join("operator.token")).unwrap_or_default();
        format!("Authorization: Bearer {}\r\n", token.trim())
    }

    pub(crate) fn epoch(&self) -> u64 {
        let (_, text) = self.get("/metrics");
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix("hocket_controller_epoch "));
        value.map_or(0, |value| value.parse().unwrap())
    }

    /// Waits for the readiness to be so.
    pub(crate) fn until(&mut self, wanted: &str) {
        let start = Instant::now();
        loop {
            let (_, body) = self.ask("GET /readyz", "", "");
            if body.trim() == wanted || body.starts_with(&format!("{wanted},")) {
                return;
            }
            let ended = self.child.try_wait().unwrap().is_some();
            if ended || start.elapsed() >= PATIENCE {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                panic!("ended: {ended}; it said {body:?} and never {wanted}; its log:\n{log}");
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// Waits for something to be so.
    pub(crate) fn wait(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !is_so(self) {
            assert!(start.elapsed() < PATIENCE, "it never was so that {what}");
            sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id() as i32).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Ends it as an operator would.
    pub(crate) fn end(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.child.wait().unwrap()
    }

    /// As a machine that loses its power does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
