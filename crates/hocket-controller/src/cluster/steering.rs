//! How switches hash and which segments they have, as the settings say.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hocket_base::id::DeviceId;
use hocket_fabric::steering::{Algorithm, Fields, Header, Policy, SwitchHash};
use hocket_wire::settings::Section;
use hocket_wire::setup::SetupError;

use super::{Network, Tier, some};

/// The algorithms, as settings call them; the first is the default.
const ALGORITHMS: [&str; 11] = [
    "linux",
    "linux-layer3",
    "linux-layer4",
    "crc16",
    "crc32",
    "crc32-low",
    "crc32-high",
    "crc-ccitt",
    "xor",
    "crc-xor",
    "toeplitz",
];

/// How each switch hashes, and by which segment hosts lead packets through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hashes {
    default: SwitchHash,
    of: BTreeMap<DeviceId, SwitchHash>,
    segments: BTreeMap<DeviceId, Ipv6Addr>,
    /// Whether packets that come back are steered as well.
    both_ways: bool,
}

impl Hashes {
    /// Returns the tables `hash` (all switches, and `both_ways`) and `switches` (some, by name).
    ///
    /// # Errors
    /// [`SetupError`] for an unknown algorithm, numbers out of range, switches that are not there, and segments that
    /// some switches above ToRs have and others have not.
    pub fn settings(file: &Section, network: &Network) -> Result<Self, SetupError> {
        if !file.has("hash") {
            let remedy = "write [hash] with algorithm and seed, as the switches have them";
            return Err(file.missing("hash", remedy));
        }
        let section = file.section("hash")?;
        let both_ways = section.flag("both_ways", false)?;
        let base = SwitchHash {
            algorithm: Algorithm::Linux(Policy::Custom(Fields::FIVE)),
            seed: 0,
            offset: 0,
        };
        let default = hash(&section, base)?;
        let named = file.sections("switches")?;
        let is_default = |name: &str| !named.contains_key(name);
        if network
            .switches()
            .any(|(id, name, _)| is_default(name) && network.chooses(id))
        {
            check(&section, default, both_ways)?;
        }
        section.finish()?;
        let (mut of, mut segments) = (BTreeMap::new(), BTreeMap::new());
        for (name, section) in named {
            let id = network.switch(&name).ok_or_else(|| {
                let known: Vec<&str> = network.switches().map(|(_, name, _)| name).collect();
                let remedy = format!("switches are {}", some(&known, 4));
                SetupError::new(section.origin(), "the fabric has no such switch", remedy)
            })?;
            let hash = hash(&section, default)?;
            if network.chooses(id) {
                check(&section, hash, both_ways)?;
            }
            of.insert(id, hash);
            if let Some(segment) = segment(&section, network.tier(id))? {
                if segments.values().any(|other| *other == segment) {
                    let why = format!("{segment} is another switch's");
                    return Err(section.wrong("segment", why, "give each switch its own"));
                }
                segments.insert(id, segment);
            }
            section.finish()?;
        }
        all_or_none(file, network, &segments)?;
        Ok(Self {
            default,
            of,
            segments,
            both_ways,
        })
    }

    /// Returns the hash of a switch.
    pub fn of(&self, switch: DeviceId) -> SwitchHash {
        self.of.get(&switch).copied().unwrap_or(self.default)
    }

    /// Returns the segment of a switch.
    pub fn segment(&self, switch: DeviceId) -> Option<Ipv6Addr> {
        self.segments.get(&switch).copied()
    }

    /// Returns whether packets that come back are to take the same switches.
    pub fn are_both_ways(&self) -> bool {
        self.both_ways
    }
}

/// Returns the segment of a switch that has one.
fn segment(section: &Section, tier: Tier) -> Result<Option<Ipv6Addr>, SetupError> {
    let wrong = |why: String, remedy: &str| Err(section.wrong("segment", why, remedy));
    let remedy = "write such as \"fd00:5::1\", to which the switch has the action End";
    match section.address("segment")? {
        None => Ok(None),
        Some(_) if tier == Tier::Tor => wrong(
            "it is a ToR's".to_owned(),
            "name those of the switches above ToRs",
        ),
        Some(IpAddr::V6(it)) if !it.is_multicast() && !it.is_unspecified() && !it.is_loopback() => {
            Ok(Some(it))
        }
        Some(other) => wrong(format!("{other} is no segment"), remedy),
    }
}

/// Flows are steered by segments or by ports: a host does not know beforehand which path it will be given.
fn all_or_none(
    file: &Section,
    network: &Network,
    segments: &BTreeMap<DeviceId, Ipv6Addr>,
) -> Result<(), SetupError> {
    let above = network.switches().filter(|(_, _, tier)| *tier > Tier::Tor);
    let mut without = above.filter(|(id, ..)| !segments.contains_key(id));
    match without.next() {
        Some((_, name, _)) if !segments.is_empty() => {
            let why = format!("{name} has no segment, and other switches have");
            let remedy = "give one to each switch above ToRs, or to none";
            Err(file.wrong("switches", why, remedy))
        }
        _ => Ok(()),
    }
}

/// A switch that has a choice can be steered only by ports that it hashes.
fn check(section: &Section, hash: SwitchHash, both_ways: bool) -> Result<(), SetupError> {
    // Whether ports are hashed depends on the header of no flow.
    let address = Ipv4Addr::LOCALHOST.into();
    let fields = hash.algorithm.fields(&Header {
        src: address,
        dst: address,
        protocol: 6,
        label: 0,
        sport: 0,
        dport: 0,
    });
    let wanted = [
        (Fields::SPORT, "source port (16)", true),
        // Packets that come back have the ports the other way round.
        (Fields::DPORT, "destination port (32)", both_ways),
    ];
    let missing = wanted
        .iter()
        .find(|(field, _, is_needed)| *is_needed && !fields.has(*field));
    missing.map_or(Ok(()), |(_, name, _)| {
        let key = match hash.algorithm {
            Algorithm::Linux(Policy::Layer3) => "algorithm",
            _ => "fields",
        };
        let why = format!("without the {name} in the hash no flow can be given a path");
        let remedy = "let the switches hash it, and say so";
        Err(section.wrong(key, why, remedy))
    })
}

fn hash(section: &Section, base: SwitchHash) -> Result<SwitchHash, SetupError> {
    let fields = Fields(section.number("fields", Fields::FIVE.0, [1, u8::MAX])?);
    let algorithm = match section.has("algorithm") || section.has("fields") {
        false => base.algorithm,
        true => match ALGORITHMS[section.word("algorithm", &ALGORITHMS)?] {
            "linux" => Algorithm::Linux(Policy::Custom(fields)),
            "linux-layer3" => Algorithm::Linux(Policy::Layer3),
            "linux-layer4" => Algorithm::Linux(Policy::Layer4),
            "crc16" => Algorithm::Crc16(fields),
            "crc32" => Algorithm::Crc32(fields),
            "crc32-low" => Algorithm::Crc32Low(fields),
            "crc32-high" => Algorithm::Crc32High(fields),
            "crc-ccitt" => Algorithm::CrcCcitt(fields),
            "xor" => Algorithm::Xor(fields),
            "crc-xor" => Algorithm::CrcXor(fields),
            _ => Algorithm::Toeplitz(fields),
        },
    };
    section.word("algorithm", &ALGORITHMS)?;
    Ok(SwitchHash {
        algorithm,
        seed: section.number("seed", base.seed, [0, u32::MAX])?,
        offset: section.number("offset", base.offset, [0, 31])?,
    })
}
