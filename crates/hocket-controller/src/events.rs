//! The file of what the policy was told, piece by piece, and what it says to it once more.
//!
//! ```text
//! for each piece: its length (4 bytes, lowest first), then a log as hocket_core::routing::controller writes it
//! ```

use std::fmt::Write;
use std::path::Path;

use hocket_core::routing::Fabric;
use hocket_core::routing::controller::{Command, Controller, Log, Options, Reason, replay};
use hocket_wire::setup::SetupError;

/// One piece of the file.
pub fn piece(log: &Log) -> Vec<u8> {
    let bytes = log.encode();
    let mut piece = (bytes.len() as u32).to_le_bytes().to_vec();
    piece.extend(bytes);
    piece
}

/// Reads a file; a last piece that was not written whole is left out.
///
/// # Errors
/// [`SetupError`] for a file that cannot be read and pieces that are none.
pub fn read(path: &Path) -> Result<Log, SetupError> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path)
        .map_err(|error| SetupError::new(&name, error.to_string(), "name an event log"))?;
    let mut log = Log::default();
    let mut rest = &bytes[..];
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let Some((piece, after)) = after.split_at_checked(u32::from_le_bytes(*length) as usize)
        else {
            break;
        };
        let piece = Log::decode(piece).map_err(|error| {
            SetupError::caused(
                format!("{name}, piece at byte {}", bytes.len() - rest.len()),
                error,
            )
        })?;
        log.events.extend(piece.events);
        rest = after;
    }
    match log.events.is_empty() && !bytes.is_empty() {
        true => Err(SetupError::new(
            name,
            "it is no event log",
            "name one that a controller wrote",
        )),
        false => Ok(log),
    }
}

/// What a controller says to a log.
#[derive(Debug)]
pub struct Replayed {
    /// What it says to each event.
    pub commands: Vec<Vec<Command>>,
    /// The controller afterwards.
    pub controller: Controller,
}

impl Replayed {
    /// Runs a log through the policy.
    pub fn new(fabric: Fabric, options: Options, log: &Log) -> Self {
        let mut controller = Controller::new(fabric, options);
        let commands = replay(&mut controller, log);
        Self {
            commands,
            controller,
        }
    }

    /// How much there was of what, in lines.
    pub fn summary(&self) -> String {
        let count = |is: fn(&Command) -> bool| {
            let all = self.commands.iter().flatten();
            all.filter(|command| is(command)).count()
        };
        let mut text = format!(
            "{} events, {} paths, {} revoked, {} flows left, {} over their share\n",
            self.commands.len(),
            count(|command| matches!(command, Command::Path { .. })),
            count(|command| matches!(command, Command::Revoke { .. })),
            self.controller.flow_count(),
            self.controller.excess(),
        );
        for reason in Reason::ALL {
            let moves = self.controller.tally().moves_for(reason);
            if moves > 0 {
                let _ = writeln!(text, "moved for {}: {moves}", word(reason));
            }
        }
        text
    }
}

/// A reason as one word.
pub fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::New => "new",
        Reason::Foreseen => "foreseen",
        Reason::Held => "held",
        Reason::Failure => "failure",
        Reason::Failover => "failover",
        Reason::Room => "room",
        Reason::Balance => "balance",
        Reason::Return => "return",
        Reason::Local => "local",
        Reason::UnknownHost => "unknown-host",
        Reason::NoPath => "no-path",
    }
}

/// One command as a line of text.
pub fn line(command: &Command) -> String {
    match command {
        Command::Path {
            flow,
            choice,
            reason,
        } => format!("path {} {choice} {}", flow.0, word(*reason)),
        Command::Ahead { flow, choice } => format!("ahead {} {choice}", flow.0),
        Command::Rate {
            flow,
            bytes_per_second,
        } => format!("rate {} {bytes_per_second}", flow.0),
        Command::Revoke { flow, reason } => format!("revoke {} {}", flow.0, word(*reason)),
    }
}
