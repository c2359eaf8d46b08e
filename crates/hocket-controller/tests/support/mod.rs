//! A small fabric with a controller and agents, in a folder of its own.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use hocket_agent::agent_owner::{AgentOwner, Owner, Port};
use hocket_agent::datagrams::{Ends, Protocol};
use hocket_agent::ports::Ports;
use hocket_agent::session::{self, Tcp};
use hocket_control::agent::{Input as AgentInput, Options as AgentOptions};
use hocket_control::server::Input;
use hocket_control::store::Saved;
use hocket_controller::accept::{Shown, accept};
use hocket_controller::certs::{self, Request};
use hocket_controller::config::Config;
use hocket_controller::server_owner::{Keep, ServerOwner};
use hocket_controller::service::serve;
use hocket_controller::{rotation, run};
use hocket_wire::tls::Files;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder that is removed at the end.
pub(crate) struct Folder(pub PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hocket-controller-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A Clos as `hocket topology show --json` prints it; switches are named so that names tell nothing.
pub(crate) fn clos(spines: usize, tors: usize, hosts: usize) -> String {
    let npus: Vec<String> = (0..tors * hosts).map(|i| format!("nic{i}")).collect();
    let switches: Vec<String> = (0..tors + spines).map(|i| format!("sw{i}")).collect();
    let mut links = Vec::new();
    let mut join = |a: &str, b: &str| {
        for (src, dst) in [(a, b), (b, a)] {
            links.push(json!({
                "src": src, "dst": dst, "bandwidth_bytes_per_s": 12_500_000, "latency_ps": 1_000,
            }));
        }
    };
    for (i, npu) in npus.iter().enumerate() {
        join(npu, &switches[i / hosts]);
    }
    for tor in 0..tors {
        for spine in 0..spines {
            join(&switches[tor], &switches[tors + spine]);
        }
    }
    let all = json!({
        "format": "hocket.topology", "version": 1, "name": "clos",
        "npus": npus, "switches": switches, "links": links,
    });
    all.to_string()
}

/// Host `i` of a bench, and its address.
pub(crate) fn host(i: usize) -> String {
    format!("h{i}")
}

pub(crate) fn address(i: usize) -> IpAddr {
    [127, 0, 1, i as u8 + 1].into()
}

/// Two ToRs with two hosts each, four spines.
pub(crate) struct Bench {
    pub folder: Folder,
    pub config: Config,
}

pub(crate) const HOSTS: usize = 4;

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    /// With more settings.
    pub(crate) fn with(more: &str) -> Self {
        let folder = Folder::new();
        let names: Vec<String> = (0..HOSTS).map(host).collect();
        make_certs(&folder.0, &names, false);
        fs::write(folder.0.join("fabric.json"), clos(4, 2, 2)).unwrap();
        let path = folder.0.join("controller.toml");
        fs::write(&path, settings(more)).unwrap();
        let config = Config::read(&path).unwrap();
        Self { folder, config }
    }

    pub(crate) fn files(&self, name: &str) -> Files {
        Files {
            ca: self.folder.0.join("ca.pem"),
            certificate: self.folder.0.join(format!("{name}.pem")),
            key: self.folder.0.join(format!("{name}.key")),
        }
    }

    /// Starts the controller.
    pub(crate) async fn start(&self, epoch: u64, listen: Option<SocketAddr>) -> Service {
        let (store_writer, kept) = std::sync::mpsc::channel();
        let server_owner = run::server_owner(
            &self.config,
            epoch,
            &Saved::default(),
            store_writer,
            Arc::default(),
        );
        let server_owner = Arc::new(server_owner);
        let shown = rotation::show(&self.config.tls).unwrap();
        let listen = listen.unwrap_or(([127, 0, 0, 1], 0).into());
        let listener = TcpListener::bind(listen).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let (known, connections) = mpsc::channel(64);
        let session = self.config.session;
        let accepting = accept(
            listener,
            shown.clone(),
            session.handshakes,
            server_owner.metrics().clone(),
            known,
        );
        let ticking = server_owner.clone();
        let serving = serve(
            server_owner.clone(),
            connections,
            session.message_bytes,
            stopped,
        );
        let tasks = vec![
            tokio::spawn(accepting),
            tokio::spawn(async move {
                serving.await.unwrap();
            }),
            tokio::spawn(async move {
                loop {
                    ticking.tell(Input::Tick);
                    sleep(Duration::from_millis(10)).await;
                }
            }),
        ];
        Service {
            server_owner,
            shown,
            address,
            kept,
            stop,
            tasks,
        }
    }

    /// Starts the agent of a host.
    pub(crate) fn agent(&self, i: usize, controller: SocketAddr) -> Agent {
        let options = AgentOptions {
            patience: Duration::from_secs(10),
            backoff: [Duration::from_millis(5), Duration::from_millis(50)],
            seed: i as u64,
            ..AgentOptions::default()
        };
        let (connect, asked) = mpsc::unbounded_channel();
        let ports = Ports::new(61_000..=65_535);
        let agent_owner = Arc::new(AgentOwner::new(options, ports, None, false, connect).unwrap());
        let session = session::run(
            agent_owner.clone(),
            asked,
            vec![controller.to_string()],
            self.files(&host(i)),
            Tcp,
        );
        let ticking = agent_owner.clone();
        let tasks = vec![
            tokio::spawn(session),
            tokio::spawn(async move {
                loop {
                    ticking.handle(AgentInput::Tick);
                    sleep(Duration::from_millis(5)).await;
                }
            }),
        ];
        Agent {
            agent_owner,
            tasks,
            i,
        }
    }
}

fn settings(more: &str) -> String {
    use std::fmt::Write;
    let mut text = format!(
        "fabric = 'fabric.json'\nstate = 'state'\nlisten = '127.0.0.1:0'\n\
         operator = '127.0.0.1:0'\n{more}\n\
         [tls]\nca = 'ca.pem'\ncertificate = 'controller.pem'\nkey = 'controller.key'\n\
         [hash]\nseed = 42\n"
    );
    for i in 0..HOSTS {
        let (name, address) = (host(i), address(i));
        let _ = writeln!(text, "[hosts.{name}]\nnics = ['{address} nic{i}']");
    }
    text
}

pub(crate) fn make_certs(folder: &Path, hosts: &[String], renew: bool) {
    let request = Request {
        folder,
        hosts,
        valid: Duration::from_secs(3_600),
        renew,
    };
    certs::make(&request).unwrap();
}

/// A controller that runs.
pub(crate) struct Service {
    pub server_owner: Arc<ServerOwner>,
    pub shown: Shown,
    pub address: SocketAddr,
    pub kept: Receiver<Keep>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Service {
    /// Ends sessions, as a controller does that is told to stop.
    pub(crate) async fn end(self) {
        self.stop.send_replace(true);
        self.tasks.iter().for_each(JoinHandle::abort);
        for task in self.tasks {
            let _ = task.await;
        }
    }

    /// The choice that each flow was told, by sender, receiver and job.
    pub(crate) fn choices(&self) -> Vec<(String, u64, u32)> {
        self.server_owner.view(|server| {
            let flows = server.flows().filter_map(|(host, flow, choice)| {
                let host = server.directory().entry(host).name.clone();
                Some((host, flow.id, choice?))
            });
            let mut all: Vec<_> = flows.collect();
            all.sort_unstable();
            all
        })
    }
}

/// An agent that runs.
pub(crate) struct Agent {
    pub agent_owner: Arc<AgentOwner>,
    tasks: Vec<JoinHandle<()>>,
    pub i: usize,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Agent {
    pub(crate) fn ends(&self, to: usize, dport: u16) -> Ends {
        Ends {
            protocol: Protocol::Tcp,
            src: address(self.i),
            dst: address(to),
            dport,
        }
    }

    /// Opens a flow and waits for its port.
    pub(crate) async fn open(&self, ends: Ends) -> (u64, Port) {
        self.welcomed(1).await;
        let owner = Owner::Connection(1);
        let (flow, port) = self.agent_owner.open(ends, 1 << 30, 0, owner);
        self.agent_owner.handle(AgentInput::Flush);
        (flow, timeout(PATIENCE, port).await.unwrap().unwrap())
    }

    /// Ends as an agent does that is told to stop.
    pub(crate) async fn leave(self) {
        let agent_owner = self.agent_owner.clone();
        drop(self);
        agent_owner.leave().await;
    }

    pub(crate) async fn welcomed(&self, times: u64) {
        until("the agent is welcomed", || {
            self.agent_owner.metrics().welcomes >= times
        })
        .await;
    }
}

/// Waits for something to be so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(
        timeout(PATIENCE, wait).await.is_ok(),
        "it never was so that {what}"
    );
}
