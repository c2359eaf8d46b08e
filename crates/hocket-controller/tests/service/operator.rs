//! What operators are shown, and who is.

use std::fs;

use rustix::process::Signal;

use super::process::{Process, free};
use super::support::Bench;

fn text(bench: &Bench) -> String {
    fs::read_to_string(bench.folder.0.join("controller.toml")).unwrap()
}

#[test]
fn all_but_health_needs_the_token() {
    let bench = Bench::with("[session]\nrecovery = '100 ms'");
    let mut process = Process::start(&bench.folder.0, "a", &text(&bench));
    process.until("ready");
    assert_eq!(
        process.ask("GET /healthz", "", ""),
        (200, "ok\n".to_owned())
    );
    for path in ["/", "/state", "/news", "/metrics", "/page.js"] {
        let (status, body) = process.ask(&format!("GET {path}"), "", "");
        assert_eq!(status, 401, "{path}");
        assert_eq!(body.lines().count(), 1);
        let (status, _) = process.ask(&format!("GET {path}"), "Authorization: Bearer x\r\n", "");
        assert_eq!(status, 401, "{path}");
    }
    let (status, page) = process.get("/");
    assert_eq!(status, 200);
    assert!(
        page.contains("hocket controller") && !page.contains("http"),
        "it loads nothing from elsewhere"
    );
    let (status, state) = process.get("/state");
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    assert_eq!((status, state["hosts"].as_u64()), (200, Some(4)));
    assert_eq!(state["tiers"].as_array().unwrap().len(), 2);
    let (_, metrics) = process.get("/metrics");
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(
            name.starts_with("hocket_controller_") && value.parse::<f64>().is_ok(),
            "{line}"
        );
    }
    assert!(process.end().success());
}

#[test]
fn operators_say_that_links_fail() {
    let bench = Bench::with("[session]\nrecovery = '100 ms'");
    let mut process = Process::start(&bench.folder.0, "a", &text(&bench));
    process.until("ready");
    let say = |body: &str| {
        let (status, answer) = process.ask("POST /links", &process.bearer(), body);
        (status, answer.trim().to_owned())
    };
    let failed = |text: &str| text.matches("true").count();
    assert_eq!(
        say(r#"{"fail": ["sw0,sw2"]}"#),
        (200, r#"{"failed":2,"returned":0}"#.to_owned())
    );
    let (_, state) = process.get("/state");
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    assert_eq!(failed(&state["links"]["failed"].to_string()), 2);
    assert_eq!(say(r#"{"return": ["sw2"]}"#).0, 200);
    for (body, why) in [
        (
            r#"{"fail": ["sw0,sw9"]}"#,
            r#"{"error":"no device is called \"sw9\""}"#,
        ),
        (
            r#"{"fial": []}"#,
            r#"{"error":"write {\"fail\": [...], \"return\": [...]}"}"#,
        ),
        (
            "[]",
            r#"{"error":"write {\"fail\": [...], \"return\": [...]}"}"#,
        ),
    ] {
        assert_eq!(say(body), (400, why.to_owned()));
    }
    assert_eq!(say("{").0, 400);
    // A browser that shows the cookie of a token was perhaps sent by another site.
    let cookie = process
        .bearer()
        .replace("Authorization: Bearer ", "Cookie: hocket=");
    assert_eq!(process.ask("GET /state", &cookie, "").0, 200);
    assert_eq!(process.ask("POST /links", &cookie, "{}").0, 401);
    assert!(process.end().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_says_what_was_refused_and_who_is_missing() {
    let bench = Bench::with("[session]\nrecovery = '100 ms'");
    let folder = &bench.folder.0;
    let mut process = Process::start(folder, "a", &text(&bench));
    process.until("ready, though 4 of 4 hosts have not come");
    let agent = bench.agent(0, process.listen);
    agent.welcomed(1).await;
    process.until("ready, though 3 of 4 hosts have not come");
    let (_, metrics) = process.get("/metrics");
    assert!(
        metrics.contains("\nhocket_controller_missing_hosts 3\n"),
        "{metrics}"
    );
    assert!(
        process
            .get("/state")
            .1
            .contains(r#""missing":["h1","h2","h3"]"#)
    );

    assert_eq!(process.ask("GET /state", "", "").0, 401);
    let wrong = "Authorization: Bearer x\r\n";
    assert_eq!(process.ask("POST /links", wrong, "{}").0, 401);
    for body in ["{", r#"{"fail": ["sw0,sw9"]}"#] {
        assert_eq!(process.ask("POST /links", &process.bearer(), body).0, 400);
    }
    let fail = r#"{"fail": ["sw0,sw2"]}"#;
    assert_eq!(process.ask("POST /links", &process.bearer(), fail).0, 200);
    agent.leave().await;
    assert!(process.end().success());

    let log = fs::read_to_string(folder.join("a.log")).unwrap();
    let lines = log
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let audit: Vec<_> = lines.filter(|line| line["target"] == "audit").collect();
    let values = |message: &str, key: &str| {
        let said = audit.iter().filter(|line| line["message"] == message);
        said.map(|line| line[key].as_str().unwrap_or("").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        values("a request of an operator is refused", "why"),
        [
            "no token",
            "a wrong token",
            "EOF while parsing an object at line 1 column 1",
            "no device is called \"sw9\"",
        ],
        "{log}"
    );
    assert_eq!(values("links failed", "links"), ["sw0,sw2"], "{log}");
    assert_eq!(
        values("session ended", "why"),
        ["the host ended it"],
        "{log}"
    );
    let missing = "the time of recovery is over, and hosts have not come";
    assert_eq!(values(missing, "hosts"), ["h0, h1, h2, h3"], "{log}");
}

#[test]
fn a_file_says_which_links_have_failed() {
    let bench = Bench::with("[session]\nrecovery = '100 ms'");
    let folder = &bench.folder.0;
    let file = |text: &str| {
        let beside = folder.join("links.new");
        fs::write(&beside, text).unwrap();
        fs::rename(beside, folder.join("links.toml")).unwrap();
    };
    let settings = text(&bench) + "[links]\nfile = 'links.toml'\n";
    file("failed = ['sw0,sw2']");
    let mut process = Process::start(folder, "a", &settings);
    process.until("ready");
    let has_failed = |count: usize| {
        move |process: &Process| {
            let (_, state) = process.get("/state");
            let state: serde_json::Value = serde_json::from_str(&state).unwrap_or_default();
            state["links"]["failed"].to_string().matches("true").count() == count
        }
    };
    process.wait("a link has failed from the start", has_failed(2));
    file("failed = ['sw2']");
    process.wait("a switch has failed", has_failed(4));
    file("failed = ['sw");
    process.wait("the file is broken", |process| {
        process
            .get("/metrics")
            .1
            .contains("\nhocket_controller_links_file_broken 1\n")
    });
    assert!(has_failed(4)(&process));
    let (status, body) = process.ask("POST /links", &process.bearer(), "{}");
    assert!(
        status == 400 && body.contains("links.toml says which links have failed; write it there"),
        "{body}"
    );
    let state = process.state.clone();
    assert!(process.end().success());
    let log = fs::read_to_string(folder.join("a.log")).unwrap();
    let broken = "the file of links cannot be taken up";
    assert_eq!(log.matches(broken).count(), 1, "{log}");
    // What the store has kept, and the file does not name any more, returns.
    file("failed = []");
    let mut process = Process::start_at(folder, "a", &settings, (free(), state), &[]);
    process.until("ready");
    process.wait("all links work", has_failed(0));
    assert!(process.end().success());
}

#[test]
fn a_hangup_ends_nothing() {
    let bench = Bench::with("[session]\nrecovery = '100 ms'");
    let mut process = Process::start(&bench.folder.0, "a", &text(&bench));
    process.until("ready");
    process.signal(Signal::HUP);
    let log = bench.folder.0.join("a.log");
    process.wait("it says that it does not heed it", |_| {
        fs::read_to_string(&log)
            .unwrap()
            .contains("settings are read at the start alone")
    });
    process.until("ready");
    assert!(process.end().success());
}
