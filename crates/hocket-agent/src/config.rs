//! What the agent is set to: a file in TOML.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hocket_control::agent::{Options, Worst};
use hocket_wire::settings::Section;
use hocket_wire::setup::SetupError;
use hocket_wire::tls::Files;

use crate::local::Patience;

/// Everything that the agent is set to.
#[derive(Clone, Debug)]
pub struct Config {
    /// Controllers as `host:port`; the first that answers is taken.
    pub controllers: Vec<String>,
    /// Certificates.
    pub tls: Files,
    /// Where local programs connect.
    pub socket: PathBuf,
    /// Who may connect there: the file's mode.
    pub socket_mode: u32,
    /// Where the last epoch is kept.
    pub state: PathBuf,
    /// Source ports that are given out.
    pub ports: RangeInclusive<u16>,
    /// How long programs wait.
    pub patience: Patience,
    /// How flows and the session are treated.
    pub options: Options,
    /// Whether flows are left alone, and only looked at.
    pub observe: bool,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// [`SetupError`] for whatever is wrong with it; nothing is written.
    pub fn read(path: &Path) -> Result<Self, SetupError> {
        let file = Section::read(path)?;
        let controllers = file.texts("controllers")?;
        let has_port = |to: &String| {
            let port = to
                .rsplit_once(':')
                .and_then(|(_, port)| port.parse::<u16>().ok());
            port.is_some_and(|port| port > 0)
        };
        if controllers.is_empty() || !controllers.iter().all(has_port) {
            let why = "they are not addresses with ports";
            return Err(file.wrong("controllers", why, "write [\"10.0.0.1:7400\"]"));
        }
        let number = |key, default, bounds| file.number(key, default, bounds);
        let first = number("first_port", 61_000, [1, 65_535])? as u16;
        let last = number("last_port", 65_535, [first.into(), 65_535])? as u16;
        let mode = file
            .text("socket_mode")?
            .unwrap_or_else(|| "0666".to_owned());
        let socket_mode = u32::from_str_radix(&mode, 8)
            .ok()
            .filter(|mode| *mode <= 0o777);
        let socket_mode = socket_mode.ok_or_else(|| {
            file.wrong(
                "socket_mode",
                format!("{mode:?} is no mode"),
                "write such as \"0660\"",
            )
        })?;
        let default = Options::default();
        let options = Options {
            patience: file.time("patience", default.patience)?,
            hold: file.time("hold", default.hold)?,
            worst: Worst {
                loss_ppm: number(
                    "worst_loss_ppm",
                    default.worst.loss_ppm.into(),
                    [1, 1_000_000],
                )? as u32,
                rtt_percent: number(
                    "worst_rtt_percent",
                    default.worst.rtt_percent.into(),
                    [101, 1_000_000],
                )? as u32,
            },
            seed: std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0),
            ..default
        };
        let config = Self {
            controllers,
            tls: Files::settings(file.section("tls")?)?,
            socket: file
                .path("socket")?
                .unwrap_or_else(|| "/run/hocket/agent.sock".into()),
            socket_mode,
            state: file
                .path("state")?
                .unwrap_or_else(|| "/var/lib/hocket-agent".into()),
            ports: first..=last,
            patience: Patience {
                open: options.patience,
                port: file.time("port_patience", Duration::from_millis(4))?,
                port_bytes: file.bytes("port_bytes", 1_000_000_000)?,
            },
            options,
            observe: file.flag("observe", false)?,
        };
        file.finish()?;
        Ok(config)
    }
}
