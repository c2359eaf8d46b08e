//! The fabric, the settings and the certificates of a load test.

use std::fmt::Write;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use hocket_controller::certs::{self, Request};

const SPINES: usize = 64;
const HOSTS_PER_TOR: usize = 20;

pub(crate) fn name(host: usize) -> String {
    format!("h{host}")
}

pub(crate) fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::from((10 << 24) + host as u32 + 1)
}

/// Writes all that a controller needs.
pub(crate) fn prepare(folder: &Path, hosts: usize) {
    std::fs::create_dir_all(folder).expect("a folder");
    let names: Vec<String> = (0..hosts).map(name).collect();
    let request = Request {
        folder,
        hosts: &names,
        valid: Duration::from_secs(86_400),
        renew: false,
    };
    certs::make(&request).expect("certificates");
    std::fs::write(folder.join("fabric.json"), fabric(hosts)).expect("a fabric");
    let mut text = "fabric = 'fabric.json'\nstate = 'state'\nlisten = '127.0.0.1:17400'\n\
                    operator = '127.0.0.1:17401'\n[tls]\nca = 'ca.pem'\ncertificate = 'controller.pem'\n\
                    key = 'controller.key'\n[hash]\nseed = 7\n\
                    [session]\nbeat = '10 s'\nlease = '30 s'\nrecovery = '1 s'\n"
        .to_owned();
    for host in 0..hosts {
        let _ = writeln!(
            text,
            "[hosts.{}]\nnics = ['{} nic{host}']",
            name(host),
            address(host)
        );
    }
    std::fs::write(folder.join("controller.toml"), text).expect("settings");
}

fn fabric(hosts: usize) -> String {
    let tors = hosts.div_ceil(HOSTS_PER_TOR).max(2);
    let quoted = |kind: &str, count: usize| {
        let names: Vec<String> = (0..count).map(|i| format!("\"{kind}{i}\"")).collect();
        names.join(",")
    };
    let mut links = Vec::new();
    let mut join = |a: String, b: String| {
        for (src, dst) in [(&a, &b), (&b, &a)] {
            links.push(format!(
                "{{\"src\":\"{src}\",\"dst\":\"{dst}\",\"bandwidth_bytes_per_s\":50000000000,\"latency_ps\":500000}}"
            ));
        }
    };
    for host in 0..hosts {
        // Neighbours in number are below different ToRs.
        join(format!("nic{host}"), format!("tor{}", host % tors));
    }
    for tor in 0..tors {
        for spine in 0..SPINES {
            join(format!("tor{tor}"), format!("spine{spine}"));
        }
    }
    format!(
        "{{\"format\":\"hocket.topology\",\"version\":1,\"name\":\"load\",\"npus\":[{}],\"switches\":[{},{}],\"links\":[{}]}}",
        quoted("nic", hosts),
        quoted("tor", tors),
        quoted("spine", SPINES),
        links.join(","),
    )
}
