//! Loads a controller with many hosts, on this machine: the server is a process of its own, TLS included.
//!
//! ```sh
//! cargo build --profile service -p hocket-controller --bins --examples
//! target/service/examples/load --hosts 10000 --seconds 10
//! ```

#![allow(
    clippy::cast_lossless,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "loads are small"
)]

mod cluster;
mod cuttable;
mod host;
mod server;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use host::{Fleet, Sample};
use server::Server;
use tokio::runtime::Handle;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Options {
    hosts: usize,
    seconds: u64,
    flows: usize,
}

fn main() -> ExitCode {
    let mut options = Options {
        hosts: 1_000,
        seconds: 10,
        flows: 10,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().and_then(|value| value.parse::<u64>().ok());
        match (word.as_str(), value) {
            ("--hosts", Some(value)) => options.hosts = value as usize,
            ("--seconds", Some(value)) => options.seconds = value,
            ("--flows", Some(value)) => options.flows = value as usize,
            _ => {
                eprintln!("load: {word:?} is not known; write --hosts N --seconds N --flows N");
                return ExitCode::from(2);
            }
        }
    }
    raise_files();
    let runtime = |threads| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let builder = builder.worker_threads(threads).enable_all();
        builder.build().expect("threads")
    };
    let calm = runtime(1);
    runtime(2).block_on(run(&options, calm.handle().clone()));
    ExitCode::SUCCESS
}

/// As many open files as the system allows.
fn raise_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    println!("open files: {:?}", limit.current);
}

async fn run(options: &Options, calm: Handle) {
    let folder = std::env::temp_dir().join(format!("hocket-load-{}", std::process::id()));
    cluster::prepare(&folder, options.hosts);
    let mut server = Server::start(&folder);
    println!("load before: {}", load());
    let calm = ((options.hosts / 100).max(10), calm);
    let began = Instant::now();
    let fleet = Arc::new(Fleet::connect(&folder, options.hosts, server.address, calm).await);
    println!(
        "{} hosts connected in {:.2} s, server {}",
        options.hosts,
        began.elapsed().as_secs_f64(),
        server.memory(),
    );
    fleet.fill(options.flows).await;
    println!(
        "{} flows live, server {}",
        options.hosts * options.flows,
        server.memory()
    );
    println!(
        "case | done | p50 | p99 | p99 of windows: best, median | server CPU a flow | cores | load"
    );
    for (name, rate, batch) in [
        ("1 flow a message, 1,000/s", 1_000, 1),
        ("1 flow a message, 5,000/s", 5_000, 1),
        ("1 flow a message, 10,000/s", 10_000, 1),
        ("8 flows a message, 5,000/s", 5_000, 8),
        ("8 flows a message, 40,000/s", 40_000, 8),
    ] {
        let before = server.cpu();
        let sample = fleet
            .announce(rate, batch, Duration::from_secs(options.seconds))
            .await;
        report(name, &sample, server.cpu() - before, options.seconds);
    }
    println!("iteration of 1,500 flows | min | median | p90");
    for (name, hosts, flows) in [
        ("1 host x 1,500", 1, 1_500),
        ("188 hosts x 8", 188, 8),
        ("1,500 hosts x 1", 1_500, 1),
    ] {
        if hosts <= options.hosts {
            let mut times = fleet.iterations(hosts, flows, 21).await;
            times.sort_unstable();
            let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1e3;
            println!(
                "{name} | {:.2} ms | {:.2} ms | {:.2} ms",
                at(0),
                at(50),
                at(90)
            );
        }
    }
    flood(&fleet).await;
    storm(&fleet, &server, options).await;
    println!("server {}, load after: {}", server.memory(), load());
    server.stop();
    let _ = std::fs::remove_dir_all(&folder);
}

/// One host says far more than it may, over and over; some go on announcing. Its threads give way to all others, since it
/// would have a machine of its own.
async fn flood(fleet: &Arc<Fleet>) {
    const TIME: Duration = Duration::from_secs(5);
    let (stay, at) = fleet.calm.clone();
    let announce = || {
        let calm = fleet.clone();
        at.spawn(async move { calm.announce_among(stay, 500, 1, TIME).await })
    };
    let before = announce().await.expect("it runs");
    let culprit = fleet.clone();
    let flooding = std::thread::spawn(move || {
        let _ = rustix::process::nice(10);
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().expect("a thread");
        runtime.block_on(culprit.flood(TIME))
    });
    let during = announce().await.expect("it runs");
    let (messages, sessions) = flooding.join().expect("it runs");
    println!(
        "1 host floods: {messages} messages in {sessions} sessions; {stay} others before: p50 {}, p99 {}; \
         meanwhile: p50 {}, p99 {}",
        micros(before.at(50)),
        micros(before.at(99)),
        micros(during.at(50)),
        micros(during.at(99)),
    );
}

/// All but some hosts lose their sessions and come back at once; those some go on announcing.
async fn storm(fleet: &Arc<Fleet>, server: &Server, options: &Options) {
    let (stay, at) = fleet.calm.clone();
    let began = Instant::now();
    let calm = fleet.clone();
    let announcing = at.spawn(async move {
        calm.announce_among(stay, 500, 1, Duration::from_secs(8))
            .await
    });
    let refused = fleet.refused();
    fleet.reconnect().await;
    let refused = fleet.refused() - refused;
    let took = began.elapsed();
    let sample = announcing.await.expect("it runs");
    println!(
        "{} hosts back in {:.2} s, {refused} tries failed; {} others meanwhile: p50 {}, p99 {}; server {}",
        options.hosts - stay,
        took.as_secs_f64(),
        stay,
        micros(sample.at(50)),
        micros(sample.at(99)),
        server.memory(),
    );
    let windows = sample.windows().into_iter().map(micros);
    println!("p99 of windows: {}", windows.collect::<Vec<_>>().join(", "));
}

fn report(name: &str, sample: &Sample, cpu: Duration, seconds: u64) {
    let flows = sample.count().max(1);
    let mut windows = sample.windows();
    windows.sort_unstable();
    let of = |part: usize| {
        windows
            .get(windows.len().saturating_sub(1) * part / 100)
            .copied()
    };
    println!(
        "{name} | {} of {} | {} | {} | {}, {} | {:.1} us | {:.2} | {}",
        sample.count(),
        sample.sent,
        micros(sample.at(50)),
        micros(sample.at(99)),
        micros(of(0).unwrap_or_default()),
        micros(of(50).unwrap_or_default()),
        cpu.as_secs_f64() * 1e6 / flows as f64,
        cpu.as_secs_f64() / seconds as f64,
        load(),
    );
}

fn micros(nanos: u64) -> String {
    match nanos {
        0..1_000_000 => format!("{} us", nanos / 1_000),
        _ => format!("{:.1} ms", nanos as f64 / 1e6),
    }
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
