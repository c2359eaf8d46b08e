//! The command: what it prints, and its exit codes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use hocket_wire::tls::End;

use super::support::{Bench, Folder};

fn run(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hocket-controller"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// The one line of a command that fails.
fn wrong(arguments: &[&str], folder: &Path) -> String {
    let output = run(arguments, folder);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(output.stdout.is_empty());
    assert_eq!(text.lines().count(), 1, "{text}");
    text.trim_end().to_owned()
}

#[test]
fn certs_makes_what_is_missing() {
    let folder = Folder::new();
    let made = |arguments: &[&str]| {
        let output = run(arguments, &folder.0);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).unwrap().lines().count()
    };
    assert_eq!(made(&["certs", "pki", "--host", "a", "b"]), 8);
    assert_eq!(made(&["certs", "pki", "--host", "a", "b"]), 0);
    assert_eq!(made(&["certs", "pki", "--host", "c"]), 2);
    assert_eq!(made(&["certs", "pki", "--host", "a", "--renew"]), 4);
    // The authority's certificate is made again by its key, and is that of those it has signed before.
    let (pem, key) = (folder.0.join("pki/ca.pem"), folder.0.join("pki/ca.key"));
    let fits = || {
        let files = |name: &str| hocket_wire::tls::Files {
            ca: pem.clone(),
            certificate: folder.0.join(format!("pki/{name}.pem")),
            key: folder.0.join(format!("pki/{name}.key")),
        };
        let now = rustls::pki_types::UnixTime::now();
        let read = |name, end| files(name).read(end, now).map(|_| ());
        read("controller", End::Controller).and_then(|()| read("a", End::Host))
    };
    fs::remove_file(&pem).unwrap();
    assert_eq!(made(&["certs", "pki"]), 1);
    assert_eq!(fits(), Ok(()));
    // One of another authority, or none, is not taken for it.
    assert_eq!(made(&["certs", "other"]), 4);
    fs::copy(folder.0.join("other/ca.pem"), &pem).unwrap();
    let line = "hocket-controller: pki/ca.pem: it is not the certificate of ca.key; remove it, to have it made again by ca.key";
    assert_eq!(wrong(&["certs", "pki"], &folder.0), line);
    fs::write(&pem, "").unwrap();
    assert_eq!(wrong(&["certs", "pki"], &folder.0), line);
    fs::remove_file(&pem).unwrap();
    assert_eq!(made(&["certs", "pki"]), 1);
    // A key that is lost is not made anew beside the certificate that hosts trust.
    fs::remove_file(&key).unwrap();
    assert_eq!(
        wrong(&["certs", "pki", "--host", "d"], &folder.0),
        "hocket-controller: pki/ca.key: it is missing, and pki/ca.pem is there; put it back, or remove pki/ca.pem to make \
         another authority"
    );
    assert_eq!(fits(), Ok(()));
    // Another authority signs what the one before had signed.
    fs::remove_file(&pem).unwrap();
    assert_eq!(made(&["certs", "pki", "--host", "a"]), 6);
    assert_eq!(fits(), Ok(()));
    let rights = fs::metadata(folder.0.join("pki/a.key")).unwrap();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&rights.permissions()) & 0o777,
        0o600
    );
    assert_eq!(
        wrong(&["certs", "pki", "--host", "../a"], &folder.0),
        "hocket-controller: --host: \"../a\" is no name of a host; take letters and digits, then also dots, dashes and \
         underscores, not ca or controller"
    );
}

#[test]
fn settings_that_are_wrong_are_one_line_and_exit_code_2() {
    let bench = Bench::new();
    let folder = &bench.folder.0;
    let text = fs::read_to_string(folder.join("controller.toml")).unwrap();
    let check = |name: &str, text: &str| {
        fs::write(folder.join(name), text).unwrap();
        wrong(&["serve", "--check", "--config", name], folder)
    };
    let output = run(&["serve", "--check", "--config", "controller.toml"], folder);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, b"clos: 2 ToRs, 2 levels; 4 hosts\n");
    assert!(!folder.join("state").exists(), "a check writes nothing");

    let unknown = text.replace("[hash]", "[session]\nlaese = '5 s'\n[hash]");
    assert_eq!(
        check("a.toml", &unknown),
        "hocket-controller: a.toml: session: unknown key \"laese\": did you mean \"lease\"?"
    );
    let hash = text.replace("seed = 42", "algorithm = 'md5'");
    assert!(
        check("b.toml", &hash)
            .starts_with("hocket-controller: b.toml: hash.algorithm: \"md5\" is not known")
    );
    let npu = text.replace("nic3", "nic7");
    assert_eq!(
        check("c.toml", &npu),
        "hocket-controller: c.toml: hosts.h3.nics: the fabric has no NPU \"nic7\"; write [\"ADDRESS NPU\", ...]"
    );
    let mapped = text.replace("127.0.1.4", "::FFFF:127.0.1.3");
    assert_eq!(
        check("e.toml", &mapped),
        "hocket-controller: e.toml: hosts: host \"h3\": the address 127.0.1.3 is already given; give each NIC its own"
    );
    let zone = text.replace("127.0.1.4", "fe80::1%eth0");
    assert_eq!(
        check("f.toml", &zone),
        "hocket-controller: f.toml: hosts.h3.nics: \"fe80::1%eth0 nic3\": its address has a zone, which no other host \
         knows; write [\"ADDRESS NPU\", ...]"
    );
    let twice = text.replace("127.0.1.4", "127.0.1.3");
    assert_eq!(
        check("d.toml", &twice),
        "hocket-controller: d.toml: hosts: host \"h3\": the address 127.0.1.3 is already given; give each NIC its own"
    );
    assert_eq!(
        wrong(&["serve", "--config", "nothing.toml"], folder),
        "hocket-controller: nothing.toml: No such file or directory (os error 2); name a file that can be read"
    );
    let named = wrong(&["serve", "--confg", "a.toml"], folder);
    assert!(named.starts_with("hocket-controller: "), "{named}");
}

#[test]
fn what_a_start_needs_is_checked_before_anything_is_done() {
    let bench = Bench::new();
    let folder = &bench.folder.0;
    let text = fs::read_to_string(folder.join("controller.toml")).unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let busy = text.replace("operator = '127.0.0.1:0'", &format!("operator = '{at}'"));
    fs::write(folder.join("busy.toml"), busy).unwrap();
    let line = wrong(&["serve", "--config", "busy.toml"], folder);
    assert!(
        line.ends_with("stop who listens there, or set another operator"),
        "{line}"
    );
    assert!(!folder.join("state").exists());

    let away = text.replace(
        "[hash]",
        &format!("[standby]\nkind = 'etcd'\nendpoint = '{at}'\n[hash]"),
    );
    fs::write(folder.join("away.toml"), away).unwrap();
    let line = wrong(&["serve", "--config", "away.toml", "--epoch", "5"], folder);
    assert!(
        line.starts_with("hocket-controller: --epoch: epochs are etcd's revisions; "),
        "{line}"
    );
    drop(taken);
    let line = wrong(&["serve", "--config", "away.toml"], folder);
    assert!(line.contains(&format!("etcd at {at}: ")), "{line}");

    // A certificate that has expired.
    let request = hocket_controller::certs::Request {
        folder,
        hosts: &[],
        valid: std::time::Duration::ZERO,
        renew: true,
    };
    hocket_controller::certs::make(&request).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    let line = wrong(&["serve", "--config", "controller.toml"], folder);
    assert!(
        line.contains("controller.pem: it expired ") && line.ends_with("; make a new one"),
        "{line}"
    );
}

#[test]
fn settings_that_cannot_work_are_refused_by_the_check() {
    let bench = Bench::new();
    let folder = &bench.folder.0;
    let text = fs::read_to_string(folder.join("controller.toml")).unwrap();
    let check = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        fs::write(folder.join("a.toml"), text.replace(from, to)).unwrap();
        let line = wrong(&["serve", "--check", "--config", "a.toml"], folder);
        line.strip_prefix("hocket-controller: ").unwrap().to_owned()
    };
    assert!(check("[hash]\nseed = 42\n", "").starts_with("a.toml: hash: it is missing; "));
    assert!(
        check("seed = 42", "fields = 7")
            .starts_with("a.toml: hash.fields: without the source port")
    );
    let at = "listen = '127.0.0.1:7400'\n";
    for operator in ["127.0.0.1:7400", "0.0.0.0:7400", "[::]:7400"] {
        let both = format!("{at}operator = '{operator}'");
        let line = check("listen = '127.0.0.1:0'\noperator = '127.0.0.1:0'", &both);
        assert_eq!(
            line,
            format!(
                "a.toml: operator: {operator} is where hosts connect, 127.0.0.1:7400; give operators another port"
            )
        );
    }
    let both = format!("{at}operator = '[::ffff:127.0.0.1]:7400'");
    assert!(
        check("listen = '127.0.0.1:0'\noperator = '127.0.0.1:0'", &both)
            .starts_with("a.toml: operator: 127.0.0.1:7400 is where hosts connect, ")
    );
    assert_eq!(
        check("[hash]", "[session]\nreporters = 5\n[hash]"),
        "a.toml: session.reporters: 5 hosts must say it, and there are 4; ask for fewer"
    );
    assert_eq!(
        check("nics = ['127.0.1.4 nic3']", "nics = []"),
        "a.toml: hosts.h3.nics: it is missing; write [\"ADDRESS NPU\", ...]"
    );
    assert_eq!(
        check("nics = ['127.0.1.4 nic3']", "nisc = ['127.0.1.4 nic3']"),
        "a.toml: hosts.h3: unknown key \"nisc\": did you mean \"nics\"?"
    );
    assert_eq!(
        check("[hosts.h3]", "[hosts.'../h3']"),
        "a.toml: hosts.../h3: it is no name of a host; take letters and digits, then also dots, dashes and underscores"
    );
    assert_eq!(
        check("state = 'state'", "state = 'fabric.json'"),
        "fabric.json: fabric.json is no folder; name a folder that can be written"
    );
    assert_eq!(
        check("state = 'state'", "state = 'fabric.json/state'"),
        "fabric.json/state: fabric.json is no folder; name a folder that can be written"
    );
    assert!(check("fabric.json", "nothing.json").starts_with("nothing.json: No such file"));
    for (key, file) in [
        ("ca", "ca.pem"),
        ("certificate", "controller.pem"),
        ("key", "controller.key"),
    ] {
        let line = check(&format!("{key} = '{file}'"), &format!("{key} = 'nothing'"));
        assert!(
            line.starts_with("nothing: ") && line.contains("No such file"),
            "{line}"
        );
    }
    // Of another name, and with the key of another.
    let line = check("certificate = 'controller.pem'", "certificate = 'h0.pem'");
    assert_eq!(
        line,
        "h0.pem: it is no certificate of a server; make one that is"
    );
    let line = check("key = 'controller.key'", "key = 'h0.key'");
    assert_eq!(
        line,
        "h0.key: it is not the key of controller.pem; give the key of controller.pem"
    );
    assert!(!folder.join("state").exists());
}

/// The keys that an error about one that is none lists.
fn listed(error: &hocket_wire::setup::SetupError) -> Vec<String> {
    let (_, keys) = error.why.split_once(": keys are ").expect("it lists them");
    keys.split(", ").map(str::to_owned).collect()
}

#[test]
fn the_documentation_names_every_key() {
    let bench = Bench::new();
    let folder = &bench.folder.0;
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/controller.md");
    let page = fs::read_to_string(page).unwrap();
    let is_named =
        |key: &str| page.contains(&format!("`{key}`")) || page.contains(&format!("`{key}."));
    fs::write(folder.join("links.toml"), "failed = []").unwrap();
    let text = fs::read_to_string(folder.join("controller.toml")).unwrap()
        + "[jobs.1]\nhosts = ['h0']\n[switches.sw0]\n[links]\nfile = 'links.toml'\n[policy]\n[session]\n[standby]\n\
           kind = 'etcd'\n";
    let none = "something_else = 1\n";
    let mut found = 0;
    let sections = text
        .match_indices('[')
        .filter(|(at, _)| text[..*at].ends_with('\n'));
    for at in
        std::iter::once(0).chain(sections.map(|(at, _)| at + text[at..].find('\n').unwrap() + 1))
    {
        let path = folder.join("a.toml");
        fs::write(&path, format!("{}{none}{}", &text[..at], &text[at..])).unwrap();
        for key in listed(&hocket_controller::config::Config::read(&path).unwrap_err()) {
            assert!(is_named(&key), "controller.toml: {key}");
            found += 1;
        }
    }
    assert!(found > 50, "{found}");
    let agent = "controllers = ['a:1']\n[tls]\nca = 'a'\ncertificate = 'b'\nkey = 'c'\n";
    let path = folder.join("agent.toml");
    for text in [
        format!("{none}{agent}"),
        format!("{agent}[probe]\n{none}"),
        format!("{agent}[srv6]\n{none}"),
    ] {
        fs::write(&path, text).unwrap();
        for key in listed(&hocket_agent::config::Config::read(&path).unwrap_err()) {
            assert!(is_named(&key), "agent.toml: {key}");
        }
    }
}

#[test]
fn arguments_that_are_missing_are_named() {
    let folder = Folder::new();
    for (arguments, missing) in [
        (&["serve"][..], "--config <FILE>"),
        (&["certs"], "<DIR>"),
        (&["replay"], "--config <FILE> <LOG>"),
    ] {
        assert_eq!(
            wrong(arguments, &folder.0),
            format!(
                "hocket-controller: the following required arguments were not provided: {missing}"
            )
        );
    }
}

#[test]
fn whoever_reads_may_go_before_the_end() {
    let bench = Bench::new();
    let folder = &bench.folder.0;
    let log = folder.join("events");
    fs::write(
        &log,
        hocket_controller::events::header(&bench.config.network),
    )
    .unwrap();
    for arguments in [
        &[
            "replay",
            "events",
            "--config",
            "controller.toml",
            "--commands",
        ][..],
        &["serve", "--check", "--config", "controller.toml"],
        &["certs", "pki", "--host", "a"],
        &["--help"],
    ] {
        // The end that is read from is closed before the command starts.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_hocket-controller"))
            .args(arguments)
            .current_dir(folder)
            .stdout(writer)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(output.stderr.is_empty(), "{arguments:?}");
    }
}
