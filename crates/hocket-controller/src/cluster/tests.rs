use hocket_wire::setup::SetupError;
use serde_json::{Value, json};

use super::*;

/// A Clos as the file has it, of names that tell nothing.
pub(crate) fn clos(spines: usize, tors: usize, hosts: usize) -> Value {
    let npus: Vec<String> = (0..tors * hosts).map(|i| format!("nic{i}")).collect();
    // Spines come first, so that numbers tell nothing either.
    let tops = (0..spines).map(|i| format!("sw{i}"));
    let switches: Vec<String> = tops
        .chain((0..tors).map(|i| format!("sw{}", spines + i)))
        .collect();
    let mut links = Vec::new();
    let mut join = |a: &str, b: &str| {
        for (src, dst) in [(a, b), (b, a)] {
            links.push(json!({
                "src": src, "dst": dst, "bandwidth_bytes_per_s": 12_500_000, "latency_ps": 1_000,
            }));
        }
    };
    for (i, npu) in npus.iter().enumerate() {
        join(npu, &switches[spines + i / hosts]);
    }
    for tor in 0..tors {
        for spine in 0..spines {
            join(&switches[spines + tor], &switches[spine]);
        }
    }
    json!({
        "format": "hocket.topology", "version": 1, "name": "clos",
        "npus": npus, "switches": switches, "links": links,
    })
}

fn read(value: &Value) -> Result<Network, SetupError> {
    Network::parse("a.json", &value.to_string())
}

fn wrong(value: &Value) -> String {
    read(value).unwrap_err().to_string()
}

#[test]
fn tiers_follow_from_what_is_joined() {
    let network = read(&clos(2, 3, 2)).unwrap();
    assert_eq!(network.fabric.levels(), 2);
    assert_eq!(network.fabric.tor_count(), 3);
    let tier = |name: &str| network.tier(network.switch(name).unwrap());
    assert_eq!(
        [tier("sw0"), tier("sw1"), tier("sw2")],
        [Tier::Spine, Tier::Spine, Tier::Tor]
    );
    assert_eq!(network.npu("nic5"), Some(NpuId(5)));
    assert_eq!(network.npu("sw0"), None);
    assert_eq!(network.links_named("sw2,sw0").unwrap().len(), 2);
    assert_eq!(network.links_named("sw0").unwrap().len(), 6);
    assert_eq!(
        network.links_named("sw9"),
        Err("no device is called \"sw9\"".to_owned())
    );
    assert_eq!(
        network.links_named("sw0,sw1"),
        Err("there is no link \"sw0,sw1\"".to_owned())
    );
}

#[test]
fn networks_that_are_no_fabric_are_refused() {
    let mut two_tors = clos(2, 2, 1);
    let links = two_tors["links"].as_array_mut().unwrap();
    links.push(json!({
        "src": "nic0", "dst": "sw3", "bandwidth_bytes_per_s": 1, "latency_ps": 0,
    }));
    assert_eq!(
        wrong(&two_tors),
        "a.json: nic0 is joined to two ToRs, sw2 and sw3; give each of its NICs an NPU of its own, below one ToR"
    );
    let mut mesh = clos(1, 1, 2);
    mesh["links"] =
        json!([{"src": "nic0", "dst": "nic1", "bandwidth_bytes_per_s": 1, "latency_ps": 0}]);
    assert!(
        wrong(&mesh).starts_with("a.json: it has no tiers: the link nic0 -> nic1 does not join")
    );
    let mut later = clos(1, 1, 1);
    later["version"] = json!(2);
    assert!(wrong(&later).starts_with("a.json: its \"version\" is not 1; write it with"));
    let mut unknown = clos(1, 1, 1);
    unknown["links"][0]["src"] = json!("nobody");
    assert!(wrong(&unknown).starts_with("a.json: link 0: no device is called \"nobody\"; "));
    assert_eq!(wrong(&json!([])).lines().count(), 1);
}

fn hashes(text: &str, network: &Network) -> Result<Hashes, SetupError> {
    let file = hocket_wire::settings::Section::parse(Path::new("c.toml"), text).unwrap();
    Hashes::settings(&file, network)
}

#[test]
fn a_switch_hashes_as_all_do_but_for_what_is_said_of_it() {
    let network = read(&clos(4, 2, 1)).unwrap();
    let text = "[hash]\nseed = 7\n[switches.sw4]\nseed = 9";
    let hashes = hashes(text, &network).unwrap();
    let seed = |name: &str| hashes.of(network.switch(name).unwrap()).seed;
    assert_eq!([seed("sw4"), seed("sw5")], [9, 7]);
    let all = hashes.of(network.switch("sw5").unwrap());
    assert_eq!(
        all.algorithm,
        hashes.of(network.switch("sw4").unwrap()).algorithm
    );
}

#[test]
fn hashes_that_are_unknown_are_refused() {
    let network = read(&clos(2, 2, 1)).unwrap();
    let wrong = |text: &str| hashes(text, &network).unwrap_err().to_string();
    assert!(
        wrong("[hash]\nalgorithm = 'md5'")
            .starts_with("c.toml: hash.algorithm: \"md5\" is not known; write one of linux, "),
    );
    assert_eq!(
        wrong("[hash]\n[switches.tor9]\nseed = 1"),
        "c.toml: switches.tor9: the fabric has no such switch; switches are sw0, sw1, sw2, sw3"
    );
    assert_eq!(
        wrong("[hash]\n[switches.sw0]\nsede = 1"),
        "c.toml: switches.sw0: unknown key \"sede\": did you mean \"seed\"?"
    );
}

#[test]
fn switches_that_have_a_choice_hash_the_ports_that_steer() {
    let network = read(&clos(2, 2, 1)).unwrap();
    let wrong = |text: &str| hashes(text, &network).unwrap_err().to_string();
    let without = "without the source port (16) in the hash no flow can be given a path; let the switches hash it, and \
                   say so";
    assert_eq!(
        wrong("[hash]\nfields = 7"),
        format!("c.toml: hash.fields: {without}")
    );
    assert_eq!(
        wrong("[hash]\nalgorithm = 'linux-layer3'"),
        format!("c.toml: hash.algorithm: {without}")
    );
    assert_eq!(
        wrong("[hash]\n[switches.sw2]\nalgorithm = 'crc16'\nfields = 3"),
        format!("c.toml: switches.sw2.fields: {without}")
    );
    let back = wrong("[hash]\nfields = 23\nboth_ways = true");
    assert!(back.contains("destination port (32)"), "{back}");
    assert_eq!(
        wrong("seed = 1"),
        "c.toml: hash: it is missing; write [hash] with algorithm and seed, as the switches have them"
    );
    assert_eq!(
        wrong("[hahs]\nseed = 1"),
        "c.toml: unknown key \"hahs\": did you mean \"hash\"?"
    );
    // Spines have one link to each ToR, and nothing to choose.
    let spines = "[hash]\n[switches.sw0]\nfields = 7\n[switches.sw1]\nalgorithm = 'linux-layer3'";
    assert!(hashes(spines, &network).is_ok());
}

#[test]
fn links_are_named_by_their_ends() {
    let network = read(&clos(2, 2, 1)).unwrap();
    let links = |text: &str| {
        let links = network.links_named(text).unwrap();
        links.iter().map(|link| link.0).collect::<Vec<_>>()
    };
    let both = links("sw0,sw2");
    assert_eq!(network.by_ends(&both, 4), "sw0,sw2");
    assert_eq!(network.by_ends(&both[..1], 4), "sw0 to sw2");
    assert_eq!(network.by_ends(&links("sw0"), 1), "sw0,sw2 and 1 more");
}

#[test]
fn all_switches_above_tors_have_segments_or_none() {
    let network = read(&clos(2, 2, 1)).unwrap();
    let wrong = |text: &str| {
        let text = format!("[hash]\n{text}");
        hashes(&text, &network).unwrap_err().to_string()
    };
    let one = "[switches.sw0]\nsegment = 'fd00:5::1'\n";
    let both = format!("{one}[switches.sw1]\nsegment = 'fd00:6::1'\n");
    let hashes = hashes(&format!("[hash]\n{both}"), &network).unwrap();
    let segment = |name: &str| hashes.segment(network.switch(name).unwrap());
    assert_eq!(segment("sw1"), Some("fd00:6::1".parse().unwrap()));
    assert_eq!(segment("sw2"), None);
    assert_eq!(
        wrong(one),
        "c.toml: switches: sw1 has no segment, and other switches have; give one to each switch above ToRs, or to none"
    );
    assert_eq!(
        wrong(&format!("{one}[switches.sw1]\nsegment = 'fd00:5:0::1'")),
        "c.toml: switches.sw1.segment: fd00:5::1 is another switch's; give each switch its own"
    );
    assert_eq!(
        wrong(&format!("{both}[switches.sw2]\nsegment = 'fd00:7::1'")),
        "c.toml: switches.sw2.segment: it is a ToR's; name those of the switches above ToRs"
    );
    for none in ["10.0.0.1", "ff02::1", "::"] {
        let said = wrong(&format!("[switches.sw0]\nsegment = '{none}'"));
        assert!(
            said.starts_with("c.toml: switches.sw0.segment: ") && said.contains("is no segment; "),
            "{said}"
        );
    }
}
