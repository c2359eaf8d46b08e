//! Any text as settings, and as lines of programs.

use std::path::Path;
use std::time::Duration;

use hocket_agent::config::Config;
use hocket_agent::datagrams::{Answer, Request};
use hocket_wire::settings::Section;
use hocket_wire::setup::SetupError;

use super::draw::Draw;

const KEYS: [&str; 12] = [
    "socket_mode = ",
    "first_port = ",
    "last_port = ",
    "patience = ",
    "hold = ",
    "worst_loss_ppm = ",
    "port_bytes = ",
    "observe = ",
    "[probe]\nevery = ",
    "[probe]\nwindow = ",
    "[probe]\nloss = ",
    "[probe]\nslow = ",
];
const VALUES: [&str; 16] = [
    "0",
    "1",
    "-1",
    "65535",
    "65536",
    "101",
    "18446744073709551616",
    "true",
    "1.5",
    "\"10 ms\"",
    "\"0 s\"",
    "\"99999999999999999999 s\"",
    "\"1 GB\"",
    "\"0660\"",
    "[]",
    "{}",
];

/// Reads the bytes as a file of settings, as a table with every kind of key, and as a line.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    settings(&text);
    line(&text);
    let mut draw = Draw::new(bytes);
    let mut drawn = String::from("controllers = [\"10.0.0.1:7400\"]\n");
    if draw.yes() {
        drawn += "tls = { ca = \"a\", certificate = \"b\", key = \"c\" }\n";
    }
    for _ in 0..draw.below(5) {
        drawn += draw.one_of(&KEYS);
        drawn += draw.one_of(&VALUES);
        drawn += "\n";
    }
    settings(&drawn);
}

fn settings(text: &str) {
    let file = Path::new("agent.toml");
    told(Config::parse(file, text));
    let Ok(section) = Section::parse(file, text) else {
        return;
    };
    for key in ["a", "controllers", "hold"] {
        told(section.text(key));
        told(section.texts(key));
        told(section.flag(key, true));
        told(
            section
                .number(key, 1, [1, 9])
                .inspect(|number| assert!((1..=9).contains(number))),
        );
        told(
            section
                .time(key, Duration::from_secs(1))
                .inspect(|time| assert!(!time.is_zero())),
        );
        told(section.bytes(key, 1));
        told(section.path(key));
        told(section.section(key));
        told(section.sections(key));
    }
    told(section.finish());
}

fn told<T>(read: Result<T, SetupError>) {
    if let Err(error) = read {
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
}

fn line(text: &str) {
    if let Err(why) = text.parse::<Request>() {
        assert_eq!(why.lines().count(), 1, "{why}");
    }
    if let Ok(answer) = text.parse::<Answer>() {
        let again = answer.to_string().parse();
        assert_eq!(again, Ok(answer));
    }
}
