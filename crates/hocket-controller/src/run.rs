//! The whole service, from settings to the end.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, mpsc as threads};
use std::time::Duration;

use hocket_control::server::{Input, Server};
use hocket_control::stages::Stages;
use hocket_control::store::{OnDamage, Saved, Store, last_epoch};
use hocket_wire::setup::SetupError;
use rustls::crypto::SecureRandom;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tracing::{error, info, warn};

use crate::accept::{Shown, accept};
use crate::config::{Config, Standby};
use crate::disk::Folder;
use crate::linkfile::LinkFile;
use crate::metrics::Metrics;
use crate::operator::{Operators, bind};
use crate::rotation;
use crate::server_owner::{Keep, ServerOwner};
use crate::service::serve;
use crate::standby::{Active, Held, become_active};
use crate::store_writer::{self, Events};

/// How often certificates are looked at.
const ROTATION: Duration = Duration::from_secs(5);
/// How often the file of links is looked at.
const LINKS: Duration = Duration::from_secs(1);
/// How long sessions may take to end.
const END: Duration = Duration::from_secs(5);
/// Connections that wait to be served.
const WAITING: usize = 256;

/// Checks all that can be checked without taking part: certificates and the state's folder.
///
/// # Errors
/// [`SetupError`] as [`run`].
pub fn check(config: &Config) -> Result<(), SetupError> {
    Folder::check(&config.state)?;
    rotation::show(&config.tls).map(|_| ())
}

/// How a controller starts.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// What to do about damage in the state's files.
    pub on_damage: OnDamage,
    /// Its epoch is no less than this.
    pub least_epoch: u64,
}

/// Serves until `end`; waits first, where another controller is active.
///
/// # Errors
/// [`SetupError`] for whatever prevents the start, and where this controller is no longer the active one.
pub async fn run(
    config: Config,
    start: Start,
    end: impl Future<Output = ()>,
) -> Result<(), SetupError> {
    if start.least_epoch > 0 && matches!(config.standby, Standby::Etcd { .. }) {
        let remedy = "restore etcd with later revisions: etcdutl snapshot restore --bump-revision";
        return Err(SetupError::new(
            "--epoch",
            "epochs are etcd's revisions",
            remedy,
        ));
    }
    let shown = rotation::show(&config.tls)?;
    let operators = bind(config.operator, "operator").await?;
    // A standby must not let hosts wait in the queue of a listener; that the address is free is known now.
    drop(bind(config.listen, "listen").await?);
    Folder::prepare(&config.state)?;
    let (stop, stopped) = watch::channel(false);
    let (place, server_owner) = watch::channel(None);
    let listener = Operators {
        server_owner,
        network: config.network.clone(),
        token: token(&config.state)?.into(),
        links: config.links.clone(),
        news: watch::channel(Arc::from("")).0,
        stop: stopped.clone(),
    };
    let page = tokio::spawn(listener.serve(operators));
    tokio::pin!(end);
    let active = tokio::select! {
        biased;
        () = &mut end => return Ok(()),
        active = become_active(&config.standby, &config.state) => active?,
    };
    let Running {
        server_owner,
        thread,
        mut held,
        epoch,
        failed,
    } = begin(&config, active, start)?;
    place.send_replace(Some(server_owner.clone()));
    let listener = bind(config.listen, "listen").await?;
    info!(listen = %config.listen, operator = %config.operator, epoch, "active");
    let served = tokio::spawn(hosts(
        server_owner.clone(),
        listener,
        shown.clone(),
        &config,
        stopped,
    ));
    let watched = rotation::watch(
        config.tls.clone(),
        ROTATION,
        shown,
        server_owner.metrics().clone(),
    );
    let links = async {
        match &config.links {
            Some(path) => {
                let file = LinkFile::new(path.clone(), config.network.clone(), failed);
                file.watch(LINKS, server_owner.clone()).await;
            }
            None => std::future::pending().await,
        }
    };
    let lost = async {
        match &mut held {
            Some(held) => held.until_lost().await,
            None => std::future::pending().await,
        }
    };
    let result = tokio::select! {
        biased;
        () = end => Ok(()),
        () = lost => Err(SetupError::new(
            "etcd", "this controller is no longer the active one", "start it again, to wait",
        )),
        () = tick(server_owner.clone(), &config) => Ok(()),
        () = watched => Ok(()),
        () = links => Ok(()),
    };
    info!("sessions are ended");
    place.send_replace(None);
    stop.send_replace(true);
    if timeout(END, served).await.is_err() {
        warn!("some sessions did not end in time");
    }
    let _ = timeout(END, page).await;
    finish(server_owner, thread).await;
    if let Some(held) = held.filter(|_| result.is_ok()) {
        held.give_back().await;
    }
    result
}

struct Running {
    server_owner: Arc<ServerOwner>,
    thread: std::thread::JoinHandle<()>,
    held: Option<Held>,
    epoch: u64,
    /// Links that operators said have failed, before the start.
    failed: BTreeSet<u32>,
}

fn begin(config: &Config, mut active: Active, start: Start) -> Result<Running, SetupError> {
    let wrong = |error: &dyn std::fmt::Display| {
        SetupError::caused(config.state.display().to_string(), error)
    };
    if start.least_epoch > 0 {
        let last = last_epoch(&mut active.folder).map_err(|error| wrong(&error))?;
        active.epoch = Some(start.least_epoch.max(last.saturating_add(1)));
    }
    let store = Store::open(active.folder, active.epoch, start.on_damage);
    let store = store.map_err(|error| wrong(&error))?;
    let epoch = store.epoch();
    if let Some((file, at)) = &store.recovered().torn {
        warn!(
            file,
            at, "the end of the log was not written whole, and is left out"
        );
    }
    for (file, at) in &store.recovered().damaged {
        warn!(file, at, "damage was repaired: what stood after it is lost");
    }
    let events = match config.events {
        0 => None,
        most => {
            let path = config.state.join(format!("events-{epoch}"));
            Some(Events::create(&path, &config.network, most).map_err(|error| wrong(&error))?)
        }
    };
    let (store_writer, kept) = threads::channel();
    let server_owner = Arc::new(server_owner(
        config,
        epoch,
        store.saved(),
        store_writer,
        Arc::default(),
    ));
    server_owner.metrics().active.set(1);
    let failed = store.saved().failed.clone();
    let metrics = server_owner.metrics().clone();
    let tell = store_writer::teller(&server_owner);
    let thread = std::thread::Builder::new()
        .name("store-writer".to_owned())
        .spawn(move || store_writer::keep(&kept, store, events, &metrics, tell))
        .map_err(|error| wrong(&error))?;
    Ok(Running {
        server_owner,
        thread,
        held: active.held,
        epoch,
        failed,
    })
}

/// Returns the server of a configuration.
pub fn server_owner(
    config: &Config,
    epoch: u64,
    saved: &Saved,
    store_writer: threads::Sender<Keep>,
    metrics: Arc<Metrics>,
) -> ServerOwner {
    let network = &config.network;
    let hashes = &config.hashes;
    let stages = Stages::new(
        network.fabric.clone(),
        network.topology(),
        |device| hashes.of(device),
        hashes.are_both_ways(),
    );
    let stages = stages.with_segments(network.topology(), |device| hashes.segment(device));
    let options = config.session.options;
    let directory = config.directory.clone();
    let server = Server::new(stages, directory, options, epoch, saved, Duration::ZERO);
    ServerOwner::new(
        server,
        network.clone(),
        store_writer,
        metrics,
        config.session.queue,
    )
}

/// Serves hosts until told to stop.
fn hosts(
    server_owner: Arc<ServerOwner>,
    listener: TcpListener,
    shown: Shown,
    config: &Config,
    stopped: watch::Receiver<bool>,
) -> impl Future<Output = ()> + use<> {
    let (known, connections) = mpsc::channel(WAITING);
    let metrics = server_owner.metrics().clone();
    tokio::spawn(accept(
        listener,
        shown,
        config.session.handshakes,
        metrics,
        known,
    ));
    let most_bytes = config.session.message_bytes;
    async move {
        if let Err(error) = serve(server_owner, connections, most_bytes, stopped).await {
            error!(%error, "hosts are served no longer");
        }
    }
}

/// Advances the time of the server.
async fn tick(server_owner: Arc<ServerOwner>, config: &Config) {
    let options = config.session.options;
    let every = options.terms.beat / 4;
    let looks_ahead = options.policy.look_ahead > 0 || options.policy.failover;
    loop {
        sleep(every).await;
        server_owner.tell(Input::Tick);
        if looks_ahead {
            server_owner.tell(Input::Prepare);
        }
    }
}

/// Writes to disk all that is noted, before it returns.
async fn finish(server_owner: Arc<ServerOwner>, thread: std::thread::JoinHandle<()>) {
    for _ in 0..100 {
        if Arc::strong_count(&server_owner) == 1 {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    server_owner.close();
    drop(server_owner);
    let _ = tokio::task::spawn_blocking(move || thread.join()).await;
}

/// Returns the token of operators, made where there is none.
fn token(state: &Path) -> Result<String, SetupError> {
    let path = state.join("operator.token");
    if let Ok(token) = std::fs::read_to_string(&path) {
        let token = token.trim().to_owned();
        return match token.len() >= 16 {
            true => Ok(token),
            false => {
                let why = "it has fewer than 16 letters";
                let name = path.display().to_string();
                Err(SetupError::new(name, why, "remove it, and another is made"))
            }
        };
    }
    let mut bytes = [0; 16];
    let random: &dyn SecureRandom = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| {
        SetupError::new(
            "operator.token",
            "the system has no random numbers",
            "write the file",
        )
    })?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    crate::certs::write(&path, &format!("{token}\n"), 0o600)?;
    Ok(token)
}
