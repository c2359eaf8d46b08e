//! The command `hocket-controller`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use hocket_control::store::OnDamage;
use hocket_controller::certs::{self, Request};
use hocket_controller::config::Config;
use hocket_controller::events::{self, Replayed};
use hocket_controller::queue_pairs::{self, Site};
use hocket_controller::run::{self, Start};
use hocket_wire::setup::{SetupError, typed_wrong};
use tokio::signal::unix::{SignalKind, signal};
use tracing::level_filters::LevelFilter;
use tracing::warn;

/// Messages are made in one thread and freed in another, which the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() => return fail(&typed_wrong(&error.to_string())),
        Err(help) => {
            let _ = write!(std::io::stdout(), "{help}");
            return ExitCode::SUCCESS;
        }
    };
    let result = match matches.subcommand() {
        Some(("serve", given)) => serve(given),
        Some(("certs", given)) => make_certs(given),
        Some(("replay", given)) => replay(given),
        Some(("queue-pairs", given)) => foresee(given),
        _ => unreachable!("a command is required"),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string()),
    }
}

fn fail(line: &str) -> ExitCode {
    eprintln!("hocket-controller: {line}");
    ExitCode::from(2)
}

fn command() -> Command {
    let path = |name: &'static str| Arg::new(name).value_parser(value_parser!(PathBuf));
    let config = path("config")
        .long("config")
        .value_name("FILE")
        .required(true);
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    Command::new("hocket-controller")
        .about("The routing controller of a cluster")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .subcommand(
            Command::new("serve")
                .about("Serve hosts and operators")
                .arg(config.clone().help("settings, in TOML"))
                .arg(
                    flag("check")
                        .help("read all that the settings name, say what is wrong, and end"),
                )
                .arg(flag("repair").help("take what stands before damage in the state's files"))
                .arg(
                    Arg::new("epoch")
                        .long("epoch")
                        .value_name("N")
                        .value_parser(value_parser!(u64).range(1..=1 << 62))
                        .help("begin an epoch no less than this, where the state's folder is lost"),
                ),
        )
        .subcommand(
            Command::new("certs")
                .about(
                    "Make an authority for tests, and certificates of the controller and of hosts",
                )
                .arg(
                    path("folder")
                        .value_name("DIR")
                        .required(true)
                        .help("where they go"),
                )
                .arg(
                    Arg::new("host")
                        .long("host")
                        .value_name("NAME")
                        .num_args(1..)
                        .action(ArgAction::Append)
                        .help("hosts that get a certificate"),
                )
                .arg(
                    Arg::new("days")
                        .long("days")
                        .value_parser(value_parser!(u32).range(1..=3650))
                        .default_value("90")
                        .help("how long certificates are valid"),
                )
                .arg(flag("renew").help("make anew what is there; the authority stays")),
        )
        .subcommand(
            Command::new("replay")
                .about("Run an event log through the policy, and say what it does")
                .arg(
                    path("log")
                        .value_name("LOG")
                        .required(true)
                        .help("as the controller wrote it"),
                )
                .arg(config.clone().help("settings: the fabric and the policy"))
                .arg(flag("commands").help("print every command")),
        )
        .subcommand(
            Command::new("queue-pairs")
                .about("Foresee where queue pairs of RoCE go and collide, by their numbers; change nothing")
                .arg(
                    path("listing")
                        .value_name("CSV")
                        .required(true)
                        .help("columns src,dst,src_qpn,dst_qpn and, where labels are set, flow_label"),
                )
                .arg(config.help("settings: the fabric, its hashes and the hosts"))
                .arg(flag("json").help("print JSON")),
        )
}

fn serve(given: &ArgMatches) -> Result<(), SetupError> {
    let config = config(given)?;
    run::check(&config)?;
    if given.get_flag("check") {
        let _ = writeln!(
            std::io::stdout(),
            "{}: {} ToRs, {} levels; {} hosts",
            config.network.name(),
            config.network.fabric.tor_count(),
            config.network.fabric.levels(),
            config.directory.len(),
        );
        return Ok(());
    }
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_writer(std::io::stderr)
        .with_max_level(LevelFilter::INFO)
        .init();
    let start = Start {
        on_damage: match given.get_flag("repair") {
            true => OnDamage::Repair,
            false => OnDamage::Refuse,
        },
        least_epoch: given.get_one("epoch").copied().unwrap_or(0),
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.min(4))
        .enable_all()
        .build()
        .map_err(|error| SetupError::new("threads", error.to_string(), "raise the limits"))?;
    runtime.block_on(run::run(config, start, ended()))
}

/// The system wants an end.
async fn ended() {
    let wait = |kind| async move {
        match signal(kind) {
            Ok(mut signal) => signal.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    // Settings are read at the start alone; whoever asks for them to be read again must not end the service.
    let ignored = async {
        if let Ok(mut hangups) = signal(SignalKind::hangup()) {
            while hangups.recv().await.is_some() {
                warn!("settings are read at the start alone: start it again");
            }
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = wait(SignalKind::terminate()) => {}
        _ = wait(SignalKind::interrupt()) => {}
        () = ignored => {}
    }
}

fn make_certs(given: &ArgMatches) -> Result<(), SetupError> {
    let folder: &PathBuf = given.get_one("folder").expect("required");
    let hosts: Vec<String> = given
        .get_many("host")
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    let days: u32 = *given.get_one("days").expect("it has a default");
    let written = certs::make(&Request {
        folder,
        hosts: &hosts,
        valid: Duration::from_secs(u64::from(days) * 86_400),
        renew: given.get_flag("renew"),
    })?;
    let mut out = std::io::stdout().lock();
    for path in written {
        // Whoever read has perhaps gone.
        let _ = writeln!(out, "{}", path.display());
    }
    Ok(())
}

fn replay(given: &ArgMatches) -> Result<(), SetupError> {
    let config = config(given)?;
    let path: &PathBuf = given.get_one("log").expect("required");
    let (log, left_out) = events::read(path, &config.network)?;
    let replayed = Replayed::new(
        config.network.fabric.clone(),
        config.session.options.policy,
        &log,
    );
    let mut out = std::io::stdout().lock();
    if given.get_flag("commands") {
        for ((now, _), commands) in log.events.iter().zip(&replayed.commands) {
            for command in commands {
                if writeln!(out, "{} {}", now.as_ps(), events::line(command)).is_err() {
                    return Ok(()); // whoever read has gone
                }
            }
        }
    }
    let _ = write!(out, "{}", replayed.summary());
    if let Some(left_out) = left_out {
        let _ = writeln!(out, "{left_out}");
    }
    Ok(())
}

fn foresee(given: &ArgMatches) -> Result<(), SetupError> {
    let settings: &PathBuf = given.get_one("config").expect("required");
    let site = Site::read(settings)?;
    let path: &PathBuf = given.get_one("listing").expect("required");
    let listed = queue_pairs::read(path)?;
    let report = queue_pairs::foresee(&site, &path.display().to_string(), &listed)?;
    let text = match given.get_flag("json") {
        true => report.json(),
        false => report.table(),
    };
    let _ = write!(std::io::stdout(), "{text}"); // whoever reads may have gone
    Ok(())
}

fn config(given: &ArgMatches) -> Result<Config, SetupError> {
    let path: &PathBuf = given.get_one("config").expect("required");
    Config::read(path)
}
