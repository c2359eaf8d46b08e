//! The service and its agents, TLS included, in a simulated network: messages that are late, networks that are cut or
//! hold everything back, a controller that stops and starts anew.
//!
//! `HOCKET_TURMOIL_SEEDS` is how many seeds are run (50), `HOCKET_TURMOIL_FROM` the first one.

#![allow(
    clippy::cast_lossless,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is drawn is small"
)]

#[allow(dead_code)]
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hocket_agent::agent_owner::{AgentOwner, Owner};
use hocket_agent::datagrams::{Ends, Protocol};
use hocket_agent::ports::Ports;
use hocket_agent::session::{self, Dial};
use hocket_control::agent::{Input as AgentInput, Options as AgentOptions};
use hocket_control::server::Input;
use hocket_control::store::Saved;
use hocket_controller::accept::{Listener, Shown, accept};
use hocket_controller::config::Config;
use hocket_controller::run;
use hocket_controller::server_owner::ServerOwner;
use hocket_controller::service::serve;
use hocket_wire::tls::End;
use rustls::ClientConfig;
use rustls::pki_types::UnixTime;
use rustls::time_provider::DefaultTimeProvider;
use support::{Bench, HOSTS, address, host};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};
use turmoil::net::{TcpListener, TcpStream};

const TICK: Duration = Duration::from_millis(10);
/// Faults, and flows that come and go, end then.
const FAULTS: Duration = Duration::from_secs(10);
/// All have found together again by then: connections that are cut are noticed by their keep-alive.
const END: Duration = Duration::from_secs(45);
const CONTROLLER: &str = "controller";
const PORT: u16 = 7_400;

struct Simulated(TcpListener);

impl Listener for Simulated {
    type Io = TcpStream;

    async fn accept(&self) -> std::io::Result<(TcpStream, SocketAddr)> {
        self.0.accept().await
    }
}

struct Dialled;

impl Dial for Dialled {
    type Io = TcpStream;

    async fn dial(&self, to: &str) -> std::io::Result<TcpStream> {
        TcpStream::connect((to, PORT)).await
    }
}

/// Numbers of a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % count
    }
}

type Slot<T> = Arc<Mutex<Option<Arc<T>>>>;

/// What the controller runs, from each start on.
async fn controller(
    config: Arc<Config>,
    shown: Shown,
    epoch: u64,
    slot: Slot<ServerOwner>,
) -> turmoil::Result {
    let (store_writer, _kept) = std::sync::mpsc::channel();
    let server_owner = run::server_owner(
        &config,
        epoch,
        &Saved::default(),
        store_writer,
        Arc::default(),
    );
    let server_owner = Arc::new(server_owner);
    *slot.lock().unwrap() = Some(server_owner.clone());
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
    let (_stop, stopped) = watch::channel(false);
    let (known, connections) = mpsc::channel(64);
    let metrics = server_owner.metrics().clone();
    tokio::spawn(accept(Simulated(listener), shown, 64, metrics, known));
    tokio::spawn(serve(server_owner.clone(), connections, 4 << 20, stopped));
    loop {
        sleep(Duration::from_millis(100)).await;
        server_owner.tell(Input::Tick);
    }
}

/// What a host runs: an agent, and programs that open and close flows.
async fn agent(
    i: usize,
    seed: u64,
    identity: Arc<ClientConfig>,
    slot: Slot<AgentOwner>,
) -> turmoil::Result {
    let options = AgentOptions {
        seed,
        ..AgentOptions::default()
    };
    let (connect, asked) = mpsc::unbounded_channel();
    let ports = Ports::new(61_000..=65_535);
    // Ports are those of the real host, and not of the simulated one.
    let agent_owner = AgentOwner::new(options, ports, None, true, connect)?;
    let agent_owner = Arc::new(agent_owner);
    *slot.lock().unwrap() = Some(agent_owner.clone());
    tokio::spawn(session::run(
        agent_owner.clone(),
        asked,
        vec![CONTROLLER.to_owned()],
        identity,
        Dialled,
    ));
    let mut draw = Draw(seed ^ (i as u64) << 32);
    let mut open = Vec::new();
    let start = Instant::now();
    loop {
        sleep(Duration::from_millis(50)).await;
        agent_owner.handle(AgentInput::Tick);
        if start.elapsed() > FAULTS || draw.below(4) > 0 {
            continue;
        }
        if open.len() > 6 || (!open.is_empty() && draw.below(3) == 0) {
            let flow = open.swap_remove(draw.below(open.len() as u64) as usize);
            agent_owner.close(1, flow);
        } else {
            let ends = Ends {
                protocol: Protocol::Tcp,
                src: address(i),
                dst: address((2 - i / 2 * 2) % HOSTS + draw.below(2) as usize),
                dport: 1 + draw.below(1_000) as u16,
            };
            open.push(agent_owner.open(ends, 1 << 30, 0, Owner::Connection(1)).0);
        }
        agent_owner.handle(AgentInput::Flush);
    }
}

struct World {
    server_owner: Slot<ServerOwner>,
    hubs: Vec<Slot<AgentOwner>>,
}

impl World {
    /// What each host uses, and what the controller thinks that it does: by host and flow, the choice.
    fn both(&self) -> [BTreeMap<(String, u64), Option<u32>>; 2] {
        let mut used = BTreeMap::new();
        for (i, agent_owner) in self.hubs.iter().enumerate() {
            let agent_owner = agent_owner.lock().unwrap().clone().unwrap();
            agent_owner.view(|agent| {
                for (flow, ..) in agent.flows().filter(|(_, name, _)| name.is_some()) {
                    let choice = agent.path(flow).map(|path| path.choice);
                    used.insert((host(i), flow), choice);
                }
            });
        }
        let server_owner = self.server_owner.lock().unwrap().clone().unwrap();
        let told = server_owner.view(|server| {
            let name = |host| server.directory().entry(host).name.clone();
            let flows = server.flows();
            flows
                .map(|(host, flow, choice)| ((name(host), flow.id), choice))
                .collect()
        });
        [used, told]
    }
}

fn run_seed(bench: &Bench, seed: u64) {
    println!("seed {seed}");
    let config = Arc::new(bench.config.clone());
    let shown = hocket_controller::rotation::show(&config.tls).unwrap();
    let mut sim = turmoil::Builder::new()
        .tick_duration(TICK)
        .simulation_duration(2 * END)
        .max_message_latency(Duration::from_millis(50))
        .rng_seed(seed)
        .build();
    let world = World {
        server_owner: Slot::default(),
        hubs: (0..HOSTS).map(|_| Slot::default()).collect(),
    };
    let epochs = Arc::new(AtomicU64::new(0));
    let server_owner = world.server_owner.clone();
    sim.host(CONTROLLER, move || {
        let epoch = epochs.fetch_add(1, Ordering::SeqCst) + 1;
        controller(config.clone(), shown.clone(), epoch, server_owner.clone())
    });
    for i in 0..HOSTS {
        let identity = bench
            .files(&host(i))
            .read(End::Host, UnixTime::now())
            .unwrap();
        let identity = Arc::new(identity.client(Arc::new(DefaultTimeProvider)).unwrap());
        let slot = world.hubs[i].clone();
        sim.host(host(i), move || {
            agent(i, seed, identity.clone(), slot.clone())
        });
    }
    let mut draw = Draw(seed ^ 0xfa17);
    while sim.elapsed() < END {
        let is_over = sim.elapsed() > FAULTS;
        if !is_over && draw.below(100) == 0 {
            let name = host(draw.below(HOSTS as u64) as usize);
            match draw.below(7) {
                0 => sim.partition(CONTROLLER, name),
                1 => sim.partition_oneway(CONTROLLER, name),
                2 => sim.partition_oneway(name, CONTROLLER),
                3 => sim.hold(CONTROLLER, name),
                4 => sim.release(CONTROLLER, name),
                5 => sim.repair(CONTROLLER, name),
                _ => {
                    sim.crash(CONTROLLER);
                    sim.bounce(CONTROLLER);
                }
            }
        }
        if is_over && sim.elapsed() <= FAULTS + TICK {
            for i in 0..HOSTS {
                sim.release(CONTROLLER, host(i));
                sim.repair(CONTROLLER, host(i));
            }
        }
        sim.step().unwrap();
    }
    let [used, told] = world.both();
    assert!(!used.is_empty(), "seed {seed}: nothing was steered");
    assert_eq!(used, told, "seed {seed}: hosts and the controller differ");
    assert!(used.values().all(Option::is_some), "seed {seed}: {used:?}");
    let server_owner = world.server_owner.lock().unwrap().clone().unwrap();
    let count = server_owner.view(|server| server.policy().flow_count());
    assert_eq!(
        count,
        used.len(),
        "seed {seed}: a flow is lost or counted twice"
    );
}

#[test]
fn all_find_together_again() {
    let number = |name: &str, default: u64| {
        let text = std::env::var(name).ok();
        text.map_or(default, |text| text.parse().expect("a number"))
    };
    let first = number("HOCKET_TURMOIL_FROM", 0);
    let bench = Bench::new();
    for seed in first..first + number("HOCKET_TURMOIL_SEEDS", 50) {
        run_seed(&bench, seed);
    }
}
