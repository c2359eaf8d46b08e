//! The command `hocket-agent`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Arg, ArgAction, Command, value_parser};
use hocket_agent::agent_owner::AgentOwner;
use hocket_agent::config::Config;
use hocket_agent::ports::Ports;
use hocket_agent::session::{Identify, Tcp};
use hocket_agent::srv6::{Done, Srv6};
use hocket_agent::{local, probes, session, srv6};
use hocket_control::agent::{Input, Options};
use hocket_wire::setup::{SetupError, typed_wrong};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tracing::level_filters::LevelFilter;
use tracing::{info, warn};

/// How often flows of `port` are looked for.
const SWEEP: Duration = Duration::from_secs(1);
/// How long the controller may take to hear that the agent ends.
const GOODBYE: Duration = Duration::from_secs(1);
/// How often time passes for the agent.
const TICK: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) if error.use_stderr() => return fail(&typed_wrong(&error.to_string())),
        Err(help) => {
            let _ = write!(std::io::stdout(), "{help}");
            return ExitCode::SUCCESS;
        }
    };
    let path: &PathBuf = matches.get_one("config").expect("required");
    let checks = matches.get_flag("check");
    let result = Config::read(path).and_then(|mut config| {
        config.observe |= matches.get_flag("observe");
        config.tls.client()?;
        if checks {
            // Whoever reads has perhaps gone.
            let _ = writeln!(
                std::io::stdout(),
                "{}: {}",
                config.socket.display(),
                config.controllers.join(", ")
            );
            return Ok(());
        }
        start(config)
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string()),
    }
}

fn fail(line: &str) -> ExitCode {
    eprintln!("hocket-agent: {line}");
    ExitCode::from(2)
}

fn command() -> Command {
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    Command::new("hocket-agent")
        .about("The agent of the routing controller on a host")
        .version(env!("CARGO_PKG_VERSION"))
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .required(true)
                .help("settings, in TOML"),
        )
        .arg(flag("check").help("read all that the settings name, say what is wrong, and end"))
        .arg(
            flag("observe")
                .help("leave flows alone, and say which take other paths than they should"),
        )
}

fn start(config: Config) -> Result<(), SetupError> {
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_writer(std::io::stderr)
        .with_max_level(LevelFilter::INFO)
        .init();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(no_threads)?;
    runtime.block_on(run(config))
}

async fn run(config: Config) -> Result<(), SetupError> {
    std::fs::create_dir_all(&config.state).map_err(|error| {
        let name = config.state.display().to_string();
        SetupError::new(name, error.to_string(), "set a state that can be written")
    })?;
    let (connect, asked) = mpsc::unbounded_channel();
    let epoch_file = Some(config.state.join("epoch"));
    let ports = Ports::new(config.ports.clone());
    let options = Options {
        takes_segments: config.srv6.is_some() && !config.observe,
        ..config.options
    };
    let agent_owner = AgentOwner::new(options, ports, epoch_file, config.observe, connect)?;
    // Rules of an agent that runs are never touched: there is none where this one can listen.
    let local = local::listen(&config.socket, config.socket_mode)?;
    let echo = match config.probes {
        Some(settings) => Some(probes::Echo::bind(settings.port).await?),
        None => None,
    };
    let socket = config.socket.clone();
    let ended = serve(config, agent_owner, asked, local, echo).await;
    let _ = std::fs::remove_file(socket);
    ended
}

async fn serve(
    config: Config,
    agent_owner: AgentOwner,
    asked: mpsc::UnboundedReceiver<()>,
    local: local::ProgramSocket,
    echo: Option<probes::Echo>,
) -> Result<(), SetupError> {
    let (agent_owner, mut led) = with_segments(agent_owner, config.srv6, config.observe)?;
    let agent_owner = Arc::new(agent_owner);
    info!(socket = %config.socket.display(), observes = config.observe, "listening");
    let probing = async {
        match config.probes.zip(echo) {
            Some((settings, echo)) => {
                tokio::join!(probes::run(agent_owner.clone(), settings), echo.serve());
            }
            None => std::future::pending().await,
        }
    };
    let session = session::run(
        agent_owner.clone(),
        asked,
        config.controllers,
        config.tls,
        Tcp,
    );
    let tick = async {
        loop {
            agent_owner.handle(Input::Tick);
            sleep(TICK).await;
        }
    };
    let sweep = async {
        loop {
            sleep(SWEEP).await;
            agent_owner.sweep();
        }
    };
    let leading = async {
        while let Some(done) = led.recv().await {
            agent_owner.done(done);
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = session => {}
        () = leading => {}
        () = local.serve(agent_owner.clone(), config.patience) => {}
        () = tick => {}
        () = sweep => {}
        () = probing => {}
        () = ended() => {
            let _ = timeout(GOODBYE, agent_owner.leave()).await;
            info!("ended");
        }
    }
    Ok(())
}

/// Flows are steered by segments where the settings say so, and are not only observed; and what becomes of them.
fn with_segments(
    agent_owner: AgentOwner,
    settings: Option<srv6::Settings>,
    observes: bool,
) -> Result<(AgentOwner, mpsc::UnboundedReceiver<Done>), SetupError> {
    let (tell, led) = mpsc::unbounded_channel();
    let Some(settings) = settings else {
        return Ok((agent_owner, led));
    };
    if observes {
        settings.clear()?;
        return Ok((agent_owner, led));
    }
    let started = Srv6::start(settings.open()?, &settings, tell);
    let srv6 = started.map_err(no_threads)?;
    Ok((agent_owner.with_segments(srv6), led))
}

fn no_threads(error: std::io::Error) -> SetupError {
    SetupError::new("threads", error.to_string(), "raise the limits")
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
