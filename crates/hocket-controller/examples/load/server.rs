//! The server as a process of its own, and what it takes.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

pub(crate) struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    pub(crate) fn start(folder: &Path) -> Self {
        let own = std::env::current_exe().expect("a path");
        let program = own
            .parent()
            .and_then(Path::parent)
            .expect("target/PROFILE/examples");
        let address: SocketAddr = ([127, 0, 0, 1], 17_400).into();
        let child = Command::new(program.join("hocket-controller"))
            .args(["serve", "--config"])
            .arg(folder.join("controller.toml"))
            .stderr(File::create(folder.join("log")).expect("a log"))
            .spawn()
            .expect("build hocket-controller in the same profile first");
        let server = Self { child, address };
        for _ in 0..300 {
            if std::net::TcpStream::connect(address).is_ok() {
                return server;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!(
            "the server does not start; see {}",
            folder.join("log").display()
        );
    }

    fn read(&self, name: &str) -> String {
        let path = format!("/proc/{}/{name}", self.child.id());
        std::fs::read_to_string(path).unwrap_or_default()
    }

    /// CPU time so far; the system counts hundredths of a second.
    pub(crate) fn cpu(&self) -> Duration {
        let text = self.read("stat");
        let after = text.rsplit(") ").next().unwrap_or_default();
        let ticks = after.split(' ').skip(11).take(2);
        let ticks: u64 = ticks.filter_map(|word| word.parse::<u64>().ok()).sum();
        Duration::from_millis(10 * ticks)
    }

    pub(crate) fn memory(&self) -> String {
        let text = self.read("status");
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        format!("RSS {}", line.unwrap_or("?").trim())
    }

    /// Ends it as an operator would.
    pub(crate) fn stop(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
