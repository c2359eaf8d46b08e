//! How switches hash, as the settings say.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use hocket_core::id::DeviceId;
use hocket_core::routing::steering::{Algorithm, Fields, Header, Policy, SwitchHash};
use hocket_wire::settings::Section;
use hocket_wire::setup::SetupError;

use super::{Network, some};

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

/// How each switch hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hashes {
    default: SwitchHash,
    of: BTreeMap<DeviceId, SwitchHash>,
    /// Whether packets that come back are steered as well.
    both_ways: bool,
}

impl Hashes {
    /// The tables `hash` (all switches, and `both_ways`) and `switches` (some, by name).
    ///
    /// # Errors
    /// [`SetupError`] for an unknown algorithm, numbers out of range and switches that are not there.
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
        let mut of = BTreeMap::new();
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
            section.finish()?;
        }
        Ok(Self {
            default,
            of,
            both_ways,
        })
    }

    /// The hash of a switch.
    pub fn of(&self, switch: DeviceId) -> SwitchHash {
        self.of.get(&switch).copied().unwrap_or(self.default)
    }

    /// Whether packets that come back are to take the same switches.
    pub fn are_both_ways(&self) -> bool {
        self.both_ways
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
    let fields = Fields(section.number("fields", Fields::FIVE.0.into(), [1, 255])? as u8);
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
        seed: section.number("seed", base.seed.into(), [0, u32::MAX.into()])? as u32,
        offset: section.number("offset", base.offset.into(), [0, 31])? as u32,
    })
}
