//! What the agent is set to: a file in TOML.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hocket_control::agent::{Options, Worst};
use hocket_wire::settings::Section;
use hocket_wire::setup::SetupError;
use hocket_wire::tls::Files;

use crate::local::Patience;
use crate::probes::{self, Settings};
use crate::srv6;

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
    /// How paths are probed, if they are.
    pub probes: Option<Settings>,
    /// How flows are steered by segments, if they are.
    pub srv6: Option<srv6::Settings>,
    /// Whether flows are left alone, and only looked at.
    pub observe: bool,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// [`SetupError`] for whatever is wrong with it; nothing is written.
    pub fn read(path: &Path) -> Result<Self, SetupError> {
        Self::of(Section::read(path)?)
    }

    /// Reads text, which errors say is of a file.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, SetupError> {
        Self::of(Section::parse(path, text)?)
    }

    fn of(file: Section) -> Result<Self, SetupError> {
        let controllers = file.texts("controllers")?;
        let has_port = |to: &String| {
            let port = to
                .rsplit_once(':')
                .and_then(|(_, port)| port.parse::<u16>().ok());
            port.is_some_and(|port| port > 0)
        };
        if controllers.is_empty() {
            return Err(file.missing("controllers", "write [\"10.0.0.1:7400\"]"));
        }
        if !controllers.iter().all(has_port) {
            let why = "they are not addresses with ports";
            return Err(file.wrong("controllers", why, "write [\"10.0.0.1:7400\"]"));
        }
        let first = file.number("first_port", 61_000, [1, u16::MAX])?;
        let last = file.number("last_port", u16::MAX, [first, u16::MAX])?;
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
        let (probes, worst_probed) = probes(&file)?;
        let default = Options::default();
        let options = Options {
            patience: file.time("patience", default.patience)?,
            hold: file.time("hold", default.hold)?,
            worst: Worst {
                loss_ppm: file.number("worst_loss_ppm", default.worst.loss_ppm, [1, 1_000_000])?,
                rtt_percent: file.number(
                    "worst_rtt_percent",
                    default.worst.rtt_percent,
                    [101, 1_000_000],
                )?,
            },
            worst_probed,
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
            probes,
            srv6: segments(&file)?,
            observe: file.flag("observe", false)?,
        };
        file.finish()?;
        Ok(config)
    }
}

/// Probes are sent where there is a section for them; and from when on a path is left that they measure.
fn probes(file: &Section) -> Result<(Option<Settings>, Worst), SetupError> {
    let mut worst = Options::default().worst_probed;
    if !file.has("probe") {
        return Ok((None, worst));
    }
    let probe = file.section("probe")?;
    let default = probes::Options::default();
    let options = probes::Options {
        every: probe.time("every", default.every)?,
        window: probe.number("window", default.window, [2, 1_000])?,
        most: probe.number("most", default.most, [1, 1_000_000])?,
        ..default
    };
    if options.every < Duration::from_millis(10) {
        let remedy = "write \"10 ms\" or more";
        return Err(probe.wrong("every", "it is too short", remedy));
    }
    let port = probe.number("port", 7_402, [1, u16::MAX])?;
    worst.loss_ppm = probe.number("loss", worst.loss_ppm / 10_000, [1, 100])? * 10_000;
    worst.rtt_percent = probe.number("slow", worst.rtt_percent / 100, [2, 10_000])? * 100;
    probe.finish()?;
    Ok((Some(Settings { port, options }), worst))
}

/// Flows are steered by segments where there is a section for them.
fn segments(file: &Section) -> Result<Option<srv6::Settings>, SetupError> {
    if !file.has("srv6") {
        return Ok(None);
    }
    let section = file.section("srv6")?;
    let settings = srv6::Settings {
        // Those below are the kernel's.
        table: section.number("table", 7_400, [256, 1 << 31])?,
        most: section.number("most", 1_024, [1, 1 << 16])?,
        priority: section.number("priority", 7_400, [1, 32_765])?,
        renew: srv6::RENEW,
    };
    section.finish()?;
    Ok(Some(settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(more: &str) -> Result<Config, String> {
        let text = format!(
            "controllers = [\"127.0.0.1:7400\"]\n[tls]\nca = \"a\"\ncertificate = \"b\"\nkey = \"c\"\n{more}"
        );
        Config::parse(Path::new("agent.toml"), &text).map_err(|error| error.to_string())
    }

    /// Each text in a section is refused in one line that says so.
    fn refuses(section: &str, texts: &[(&str, &str)]) {
        for (text, says) in texts {
            let error = config(&format!("[{section}]\n{text}")).unwrap_err();
            assert!(
                error.contains(says) && error.lines().count() == 1,
                "{error}"
            );
        }
    }

    #[test]
    fn probes_are_sent_where_there_is_a_section_for_them() {
        assert_eq!(config("").unwrap().probes, None);
        let probes = config("[probe]\n").unwrap();
        let settings = probes.probes.unwrap();
        assert_eq!((settings.port, settings.options.window), (7_402, 20));
        assert_eq!(probes.options.worst_probed, Options::default().worst_probed);
        let text = "[probe]\nport = 9\nevery = \"1 s\"\nwindow = 10\nloss = 50\nslow = 3\nmost = 5";
        let probes = config(text).unwrap();
        let settings = probes.probes.unwrap();
        assert_eq!(settings.port, 9);
        let options = settings.options;
        assert_eq!(
            (options.every, options.window, options.most),
            (Duration::from_secs(1), 10, 5)
        );
        let worst = probes.options.worst_probed;
        assert_eq!((worst.loss_ppm, worst.rtt_percent), (500_000, 300));
    }

    #[test]
    fn bad_probes_are_refused_in_one_line() {
        refuses(
            "probe",
            &[
                ("port = 0", "agent.toml: probe.port: "),
                (
                    "every = \"1 ms\"",
                    "agent.toml: probe.every: it is too short",
                ),
                ("loss = 101", "agent.toml: probe.loss: "),
                ("slow = 1", "agent.toml: probe.slow: "),
                ("losss = 5", "did you mean \"loss\"?"),
            ],
        );
    }

    #[test]
    fn flows_are_steered_by_segments_where_there_is_a_section_for_it() {
        assert_eq!(config("").unwrap().srv6, None);
        let settings = config("[srv6]\n").unwrap().srv6.unwrap();
        assert_eq!(settings.tables(), 7_400..=8_424);
        let text = "[srv6]\ntable = 300\nmost = 2\npriority = 9";
        let settings = config(text).unwrap().srv6.unwrap();
        assert_eq!((settings.tables(), settings.priority), (300..=302, 9));
        refuses(
            "srv6",
            &[
                (
                    "table = 254",
                    "agent.toml: srv6.table: 254 is not such a number; ",
                ),
                ("most = 0", "agent.toml: srv6.most: "),
                ("priority = 32766", "agent.toml: srv6.priority: "),
                ("tabel = 300", "did you mean \"table\"?"),
            ],
        );
    }
}
