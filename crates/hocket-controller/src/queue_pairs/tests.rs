use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::cluster::tests::clos;

/// Four spines (sw0 to sw3), four ToRs (sw4 to sw7), four hosts at each: 10.0.T.H.
fn site(hash: &str) -> Site {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("hocket-queue-pairs-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let mut text = format!("fabric = \"fabric.json\"\n[hash]\n{hash}\n");
    for host in 0..16 {
        let _ = writeln!(
            text,
            "[hosts.h{host}]\nnics = [\"10.0.{}.{} nic{host}\"]",
            host / 4,
            host % 4 + 1,
        );
    }
    std::fs::write(folder.join("fabric.json"), clos(4, 4, 4).to_string()).unwrap();
    std::fs::write(folder.join("controller.toml"), text).unwrap();
    let site = Site::read(&folder.join("controller.toml")).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    site
}

fn pair(src: [u8; 2], dst: [u8; 2], numbers: [u32; 2], flow_label: u32) -> QueuePair {
    let address = |[tor, host]: [u8; 2]| IpAddr::from([10, 0, tor, host + 1]);
    QueuePair {
        src: address(src),
        dst: address(dst),
        src_qpn: numbers[0],
        dst_qpn: numbers[1],
        flow_label,
    }
}

fn any_pair() -> impl Strategy<Value = QueuePair> {
    let host = || [0..4_u8, 0..4_u8];
    let label = prop_oneof![Just(0), 1..MOST_LABEL];
    let numbers = [0..MOST_NUMBER, 0..MOST_NUMBER];
    (host(), host(), numbers, label)
        .prop_map(|(src, dst, numbers, label)| pair(src, dst, numbers, label))
}

proptest! {
    #[test]
    fn paths_and_loads_are_those_of_the_hash(listed in prop::collection::vec(any_pair(), 0..40)) {
        let site = site("algorithm = \"crc32\"\nseed = 7");
        let report = foresee(&site, "a.csv", &listed).unwrap();
        let hash = site.hashes.of(site.network.switch("sw4").unwrap());
        let mut loads: HashMap<[String; 2], u64> = HashMap::new();
        let mut assigned: HashMap<[String; 2], u64> = HashMap::new();
        for (pair, each) in listed.iter().zip(&report.queue_pairs) {
            let tor = |address: IpAddr| match address {
                IpAddr::V4(address) => u32::from(address.octets()[2]),
                IpAddr::V6(_) => unreachable!(),
            };
            let [src, dst] = [tor(pair.src), tor(pair.dst)].map(|tor| format!("sw{}", tor + 4));
            if src == dst {
                prop_assert!(each.path.is_empty() && each.assigned_port.is_none());
                continue;
            }
            let mut header = Header {
                src: pair.src,
                dst: pair.dst,
                protocol: 17,
                sport: each.port,
                dport: 4791,
                label: pair.flow_label,
            };
            let spine = format!("sw{}", hash.way(&header, 4));
            prop_assert_eq!(&each.path, &[src.clone(), spine, dst.clone()]);
            match each.assigned_port {
                None => prop_assert_eq!(&each.path, &each.assigned),
                Some(port) => {
                    header.sport = port;
                    prop_assert!(port >= 0xc000);
                    prop_assert_eq!(&each.assigned[1], &format!("sw{}", hash.way(&header, 4)));
                }
            }
            for (loads, path) in [(&mut loads, &each.path), (&mut assigned, &each.assigned)] {
                for link in path.windows(2) {
                    *loads.entry([link[0].clone(), link[1].clone()]).or_default() += 1;
                }
            }
        }
        let most = |loads: &HashMap<_, u64>| loads.values().copied().max().unwrap_or(0);
        prop_assert_eq!(report.most, most(&loads));
        prop_assert_eq!(report.most_assigned, most(&assigned));
        // A complete Clos and flows of one weight: colouring is optimal.
        prop_assert_eq!(report.most_assigned, report.least);
        loads.retain(|_, &mut load| load > report.most_assigned);
        prop_assert_eq!(loads.len(), report.collisions.len());
        for link in &report.collisions {
            let load = loads[&[link.from.clone(), link.to.clone()]];
            prop_assert_eq!(load, link.queue_pairs.len() as u64);
        }
    }

    #[test]
    fn listings_are_read_or_refused(text in "(src,dst,src_qpn,dst_qpn\n)?[0-9a-fx:.,\n ]{0,80}") {
        let _ = parse("a.csv", &text);
    }
}

#[test]
fn a_listing_is_read() {
    let text = "src,dst,src_qpn,dst_qpn,flow_label\n10.0.0.1, 10.0.1.1, 0x11a, 283, 0\n\n";
    let made = parse("a.csv", text).unwrap();
    assert_eq!(made, [pair([0, 0], [1, 0], [0x11a, 283], 0)]);
    assert_eq!(parse("a.csv", "src,dst,src_qpn,dst_qpn\n").unwrap(), []);
}

#[test]
fn an_address_is_one_however_it_is_written() {
    let site = site("algorithm = \"crc32\"\nseed = 7");
    let foreseen = |ends: &str| {
        let text = format!("src,dst,src_qpn,dst_qpn\n{ends},0x11a,283\n");
        let listed = parse("a.csv", &text).unwrap();
        foresee(&site, "a.csv", &listed).unwrap().json()
    };
    let plain = foreseen("10.0.0.1,10.0.1.2");
    for ends in [
        "::ffff:10.0.0.1,10.0.1.2",
        "10.0.0.1,::ffff:10.0.1.2",
        "[::FFFF:10.0.0.1],::ffff:a00:102",
        // As the kernel writes GIDs of RoCE v2.
        "0000:0000:0000:0000:0000:ffff:0a00:0001,0000:0000:0000:0000:0000:ffff:0a00:0102",
    ] {
        assert_eq!(foreseen(ends), plain, "{ends}");
    }
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let wrong = |line: &str| {
        let text = format!("src,dst,src_qpn,dst_qpn\n{line}\n");
        parse("a.csv", &text).unwrap_err().to_string()
    };
    let cases = [
        (
            "10.0.0.1,10.0.1.1,1",
            "a.csv:2: there are 3 values; give 4, as the first line has",
        ),
        (
            "10.0.0.1,b,1,2",
            "a.csv:2: \"b\" is not an IP address; write 10.0.1.1",
        ),
        (
            "10.0.0.1,fe80::1%eth0,1,2",
            "a.csv:2: \"fe80::1%eth0\" has a zone, which no other host knows; write 10.0.1.1",
        ),
        (
            "010.0.0.1,10.0.1.1,1,2",
            "a.csv:2: \"010.0.0.1\" is not an IP address; write 10.0.1.1",
        ),
        (
            "10.0.0.1,::1,1,2",
            "a.csv:2: 10.0.0.1 and ::1 are of two families; give both of one",
        ),
        (
            "10.0.0.1,10.0.1.1,16777216,2",
            "a.csv:2: \"16777216\" is not a number below 16777216; write 282 or 0x11a",
        ),
    ];
    for (line, says) in cases {
        assert_eq!(wrong(line), says);
    }
    assert_eq!(
        parse("a.csv", "src,dst\n").unwrap_err().to_string(),
        "a.csv: its first line does not name the columns; begin with src,dst,src_qpn,dst_qpn,flow_label"
    );
    let unknown = [pair([9, 0], [1, 0], [1, 2], 0)];
    assert_eq!(
        foresee(&site(""), "a.csv", &unknown)
            .unwrap_err()
            .to_string(),
        "a.csv, queue pair 0: no host has the address 10.0.9.1; list the host with its nics in the settings"
    );
}

#[test]
fn a_report_is_a_table_and_json() {
    let listed = [0, 1, 2, 3].map(|i| pair([0, i], [1, i], [0x100, 0x200], 0));
    let report = foresee(
        &site("algorithm = \"crc32\"\nfields = 16"),
        "a.csv",
        &listed,
    )
    .unwrap();
    // Switches that see the source port alone send all four one way.
    assert_eq!((report.most, report.most_assigned, report.least), (4, 1, 1));
    let table = report.table();
    assert!(table.contains("queue pairs on the busiest link: 4 as hashed, 1 as assigned"));
    assert!(table.contains("sw4 to sw"), "{table}");
    let json: Value = serde_json::from_str(&report.json()).unwrap();
    assert_eq!(json["format"], "hocket.queue-pairs");
    assert_eq!(json["queue_pairs"][3]["src"], "10.0.0.4");
    assert_eq!(json["collisions"].as_array().unwrap().len(), 2);
}
