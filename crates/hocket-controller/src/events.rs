//! The file of what the policy was told, piece by piece, and what it says to it once more.
//!
//! ```text
//! "hocket controller events 1\n", the fabric's digest (4 bytes)
//! for each piece: its length and its CRC-32 (4 bytes each), then a log as hocket_fabric::controller writes it
//! ```
//!
//! Numbers have their lowest byte first.

use std::fmt::{self, Write};
use std::path::Path;

use hocket_fabric::Fabric;
use hocket_fabric::controller::{Command, Controller, Log, Options, Reason, replay};
use hocket_wire::setup::SetupError;

use crate::cluster::Network;

const HEADER: &[u8] = b"hocket controller events 1\n";

/// Returns what the file begins with.
pub fn header(network: &Network) -> Vec<u8> {
    [HEADER, &network.digest().to_le_bytes()].concat()
}

/// One piece of the file.
pub fn piece(log: &Log) -> Vec<u8> {
    let bytes = log.encode();
    let length = u32::try_from(bytes.len()).expect("an event is shorter than 4 GiB");
    let mut piece = length.to_le_bytes().to_vec();
    piece.extend(crc32fast::hash(&bytes).to_le_bytes());
    piece.extend(bytes);
    piece
}

/// The end of a file that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Where it begins.
    pub at: usize,
    /// How many bytes it has.
    pub bytes: usize,
    /// What is wrong there.
    pub why: &'static str,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, bytes, why } = self;
        write!(f, "left out: {bytes} bytes from byte {at} on, as {why}")
    }
}

/// Reads a file that was written for a fabric, and says what of it is left out: whatever stands after a piece that
/// was not written whole, or is damaged.
///
/// # Errors
/// [`SetupError`] for a file that cannot be read, is no event log or is one of another fabric.
pub fn read(path: &Path, network: &Network) -> Result<(Log, Option<LeftOut>), SetupError> {
    let wrong = |why: String, remedy| SetupError::new(path.display().to_string(), why, remedy);
    let bytes =
        std::fs::read(path).map_err(|error| wrong(error.to_string(), "name an event log"))?;
    let Some((digest, mut rest)) = bytes
        .strip_prefix(HEADER)
        .and_then(|rest| rest.split_first_chunk())
    else {
        let why = "it is no event log";
        return Err(wrong(why.to_owned(), "name one that a controller wrote"));
    };
    if *digest != network.digest().to_le_bytes() {
        let why = format!("it is of another fabric than {}", network.name());
        return Err(wrong(why, "give the settings that its controller had"));
    }
    let mut log = Log::default();
    let mut left_out = None;
    while !rest.is_empty() {
        match next(rest) {
            Ok((piece, after)) => {
                log.events.extend(piece.events);
                rest = after;
            }
            Err(why) => {
                left_out = Some(LeftOut {
                    at: bytes.len() - rest.len(),
                    bytes: rest.len(),
                    why,
                });
                break;
            }
        }
    }
    Ok((log, left_out))
}

/// Returns the first piece, and what stands after it.
fn next(bytes: &[u8]) -> Result<(Log, &[u8]), &'static str> {
    const TORN: &str = "a piece was not written whole";
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or(TORN)?;
    let (sum, rest) = rest.split_first_chunk::<4>().ok_or(TORN)?;
    let length = u32::from_le_bytes(*length) as usize;
    let (piece, rest) = rest.split_at_checked(length).ok_or(TORN)?;
    if crc32fast::hash(piece) != u32::from_le_bytes(*sum) {
        return Err("its checksum is wrong");
    }
    let log = Log::decode(piece).map_err(|_| "its checksum is right and it is no log")?;
    Ok((log, rest))
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

    /// Returns how much there was of what, in lines.
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
        for &reason in Reason::ALL {
            let moves = self.controller.tally().moves_for(reason);
            if moves > 0 {
                let _ = writeln!(text, "moved for {}: {moves}", reason.name());
            }
        }
        text
    }
}

/// One command as a line of text.
pub fn line(command: &Command) -> String {
    match command {
        Command::Path {
            flow,
            choice,
            reason,
        } => format!("path {} {choice} {}", flow.0, reason.name()),
        Command::Ahead { flow, choice } => format!("ahead {} {choice}", flow.0),
        Command::Rate {
            flow,
            bytes_per_second,
        } => format!("rate {} {bytes_per_second}", flow.0),
        Command::Revoke { flow, reason } => format!("revoke {} {}", flow.0, reason.name()),
    }
}
