//! The models of Linux against the kernel that runs the tests: `ip route get` in a network namespace of
//! its own.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Command, Stdio};

use super::super::{Algorithm, Fields, Header, Policy, SwitchHash, linux};
use crate::units::Seed;

const WAYS: u32 = 5;

/// Five next hops for 10.1.0.0/16 and fd01::/16, behind interfaces e0 to e4; packets come in by `in`.
/// Arguments: policy, seed, fields. Questions to `ip` stand in its input.
const SCRIPT: &str = r"
set -e
ip link set lo up
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
sysctl -qw net.ipv4.fib_multipath_hash_policy=$1 net.ipv6.fib_multipath_hash_policy=$1
sysctl -qw net.ipv4.fib_multipath_hash_seed=$2
sysctl -qw net.ipv4.fib_multipath_hash_fields=$3 net.ipv6.fib_multipath_hash_fields=$3
hops4=; hops6=
for i in 0 1 2 3 4 9; do
    ip link add e$i type veth peer name p$i
    ip link set e$i up; ip link set p$i up
    ip addr add 10.9.$i.1/24 dev e$i; ip -6 addr add fd09:$i::1/64 dev e$i nodad
    [ $i = 9 ] && continue
    hops4=$hops4' nexthop via 10.9.'$i'.2 dev e'$i
    hops6=$hops6' nexthop via fd09:'$i'::2 dev e'$i
done
ip route add 10.1.0.0/16 $hops4
ip -6 route add fd01::/16 $hops6
echo ready
ip -batch -
";

/// What the kernel says to each header; `Err` says why it cannot be asked here.
fn ask(policy: Policy, seed: u32, headers: &[Header]) -> Result<Vec<u32>, String> {
    let (number, fields) = match policy {
        Policy::Layer3 => ("0", Fields::FIVE),
        Policy::Layer4 => ("1", Fields::FIVE),
        Policy::Custom(fields) => ("3", fields),
    };
    let [seed, fields] = [seed, fields.0.into()].map(|number| number.to_string());
    let mut child = Command::new("unshare")
        .args(["-n", "sh", "-c", SCRIPT, "sh", number, &seed, &fields])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|why| format!("unshare: {why}"))?;
    let questions: String = headers.iter().map(question).collect();
    let mut input = child.stdin.take().expect("a pipe");
    let writing = std::thread::spawn(move || input.write_all(questions.as_bytes()));
    let output = child.wait_with_output().map_err(|why| why.to_string())?;
    let _ = writing.join();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !text.starts_with("ready") {
        return Err(error.lines().next().unwrap_or("unshare failed").to_owned());
    }
    assert!(output.status.success(), "{error}");
    let words: Vec<&str> = text.split_whitespace().collect();
    let devices = words.windows(2).filter(|pair| pair[0] == "dev");
    let ways = devices.map(|pair| pair[1][1..].parse().expect("e0 to e4"));
    Ok(ways.collect())
}

fn question(header: &Header) -> String {
    let Header {
        src,
        dst,
        protocol,
        sport,
        dport,
        ..
    } = header;
    let protocol = if *protocol == 6 { "tcp" } else { "udp" };
    format!("route get {dst} from {src} iif e9 ipproto {protocol} sport {sport} dport {dport}\n")
}

fn headers(count: usize) -> Vec<Header> {
    let mut seed = Seed(12);
    let header = |i: usize| {
        // The namespace's own address, which nobody else may have, ends in 1.
        let [from, to] = [0, 1].map(|_| 2 + seed.below(250) as u8);
        let [src, dst]: [IpAddr; 2] = match i % 2 {
            0 => [[10, 9, 9, from], [10, 1, to, from]].map(|four| Ipv4Addr::from(four).into()),
            _ => [[0xfd09, 9, from.into()], [0xfd01, 0, to.into()]]
                .map(|[a, b, c]| Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, c).into()),
        };
        Header {
            src,
            dst,
            protocol: [6, 17][seed.below(2)],
            sport: 1 + seed.below(65_535) as u16,
            dport: 1 + seed.below(65_535) as u16,
            label: 0,
        }
    };
    (0..count).map(header).collect()
}

#[test]
fn the_kernel_takes_the_ways_that_the_model_says() {
    let headers = headers(1_000);
    let custom = [
        Fields::FIVE,
        Fields::FOUR,
        Fields(0x1f),
        Fields(0x26),
        Fields(0x3f),
    ];
    let policies = custom.map(Policy::Custom).into_iter();
    for policy in policies.chain([Policy::Layer4, Policy::Layer3]) {
        for seed in [12_345, u32::MAX] {
            let said = match ask(policy, seed, &headers) {
                Ok(said) => said,
                Err(why) => {
                    eprintln!("skipped, as the kernel cannot be asked here: {why}");
                    return;
                }
            };
            let hash = SwitchHash {
                algorithm: Algorithm::Linux(policy),
                seed,
                offset: 0,
            };
            let model = headers.iter().map(|header| match policy {
                // Asked about IPv6, the kernel leaves out the last mixing, as it has no packet.
                Policy::Custom(_) if header.src.is_ipv6() => {
                    let number = linux::keyed(policy, seed, header).max(1) >> 1;
                    let holds = |&way: &u32| number <= SwitchHash::interval(way, WAYS)[1];
                    (0..WAYS)
                        .find(holds)
                        .expect("the last bound is the highest")
                }
                _ => hash.way(header, WAYS),
            });
            let differ = model
                .zip(&said)
                .filter(|(model, said)| model != *said)
                .count();
            assert_eq!(
                (said.len(), differ),
                (headers.len(), 0),
                "{policy:?} {seed}"
            );
        }
    }
}
