//! What operators were answered outlives the controller, however that ends.
//!
//! `HOCKET_KILLS` is how many controllers are killed just after an answer (4).

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::process::{Process, free};
use super::support::Bench;

fn text(bench: &Bench) -> String {
    fs::read_to_string(bench.folder.0.join("controller.toml")).unwrap()
}

/// Spines with links that have failed; of each all have.
fn failed(process: &Process) -> BTreeSet<String> {
    let (_, state) = process.get("/state");
    let state: Value = serde_json::from_str(&state).unwrap();
    let column = |key: &str| state["links"][key].as_array().unwrap().clone();
    let (src, dst, failed) = (column("src"), column("dst"), column("failed"));
    let links = src.iter().zip(&dst).zip(&failed);
    let links = links.filter(|(_, failed)| **failed == Value::Bool(true));
    // The ToRs are sw0 and sw1.
    let tors = ["sw0", "sw1"].map(Value::from);
    let spines: Vec<String> = links
        .flat_map(|((src, dst), _)| [src, dst])
        .filter(|end| !tors.contains(end))
        .map(|end| end.as_str().unwrap().to_owned())
        .collect();
    let found: BTreeSet<String> = spines.iter().cloned().collect();
    assert_eq!(spines.len(), 4 * found.len(), "{spines:?}");
    found
}

#[test]
fn what_operators_were_answered_outlives_a_kill() {
    let kills = std::env::var("HOCKET_KILLS").ok();
    let kills: usize = kills.map_or(4, |text| text.parse().expect("a number"));
    let bench = Bench::with("[session]\nrecovery = '100 ms'");
    let folder = &bench.folder.0;
    let mut expected = BTreeSet::new();
    for kill in 0..=kills {
        let at = (free(), folder.join("state-a"));
        let process = Process::start_at(folder, "a", &text(&bench), at, &[]);
        process.wait("it is active", |process| {
            process.get("/state").1.contains(r#""active":true"#)
        });
        assert_eq!(failed(&process), expected, "after {kill} kills");
        // Three of four spines fail, and the first two return, time and again.
        let spine = format!("sw{}", 2 + kill % 3);
        let (key, answer) = match expected.remove(&spine) {
            true => ("return", r#"{"failed":0,"returned":4}"#),
            false => ("fail", r#"{"failed":4,"returned":0}"#),
        };
        if key == "fail" {
            expected.insert(spine.clone());
        }
        let body = format!(r#"{{"{key}": ["{spine}"]}}"#);
        let (status, said) = process.ask("POST /links", &process.bearer(), &body);
        process.kill();
        assert_eq!((status, said.trim()), (200, answer));
    }
}

#[test]
fn operators_are_told_that_a_disk_fails_and_it_is_tried_again() {
    let bench = Bench::with("[session]\nrecovery = '100 ms'");
    let folder = &bench.folder.0;
    let mut process = Process::start(folder, "a", &text(&bench));
    process.until("ready");
    let (state, bearer) = (process.state.clone(), process.bearer());
    let say = |process: &Process, spine: &str| {
        let body = format!(r#"{{"fail": ["{spine}"]}}"#);
        process.ask("POST /links", &bearer, &body)
    };
    assert_eq!(say(&process, "sw2").0, 200);
    let away = folder.join("away");
    fs::rename(&state, &away).unwrap();
    let (status, said) = say(&process, "sw3");
    assert_eq!(status, 503, "{said}");
    assert!(said.contains("a restart would forget it"), "{said}");
    process.until("the state cannot be written");
    // It is in effect all the same.
    let (_, shown) = process.ask("GET /state", &bearer, "");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let count = shown["links"]["failed"].to_string().matches("true").count();
    assert_eq!(count, 8);
    fs::rename(&away, &state).unwrap();
    // Nothing more is said, and what was said is written.
    process.until("ready");
    process.kill();
    let at = (free(), state);
    let mut process = Process::start_at(folder, "a", &text(&bench), at, &[]);
    process.until("ready");
    assert_eq!(failed(&process), ["sw2", "sw3"].map(str::to_owned).into());
    assert!(process.end().success());
}
