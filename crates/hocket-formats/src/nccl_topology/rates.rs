//! What links carry, nominally, by what a dump says of them.
//!
//! NCCL counts less for most links, as what is reached. The rates here are those that makers state, as in all
//! topologies of hocket, but for those of links between processors, of which a dump says nothing else.

use hocket_base::units::whole;
use strum::IntoStaticStr;

const GIGA: f64 = 1e9;

/// What a link is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Medium {
    /// NVLink between GPUs.
    NvLink,
    /// NVLink to an NVSwitch.
    NvSwitch,
    /// xGMI between GPUs.
    Xgmi,
    /// PCI Express.
    Pcie,
    /// NVLink-C2C between a GPU and its processor.
    #[strum(serialize = "pcie")]
    C2c,
    /// Between processors.
    Upi,
    /// Between machines.
    #[strum(serialize = "ib")]
    Net,
}

impl Medium {
    /// Returns what it is called among defaults of latency.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// One NVLink of a GPU of some compute capability; 0 where it has none.
///
/// # Source
/// NVIDIA's data sheets: P100 20 GB/s each way, V100, A100 and H100 25, B100 and later 50; boards of GA102 have 4 links
/// of 14.0625.
pub(crate) fn nvlink(sm: i64) -> u64 {
    let rate = match sm {
        ..60 => 0.0,
        60..70 => 20.0,
        70..86 => 25.0,
        86..90 => 14.0625,
        90..100 => 25.0,
        _ => 50.0,
    };
    whole(rate * GIGA)
}

/// One xGMI link of a GPU; `None` for an architecture that is not known.
///
/// # Source
/// ROCm RCCL 2.21.5, `src/graph/topo.h`: what its models count.
pub(crate) fn xgmi(arch: &str) -> Option<u64> {
    let rate = match arch.trim_start_matches("gfx") {
        "906" | "908" => 24.0,
        "910" | "90a" => 36.0,
        "940" | "941" | "942" | "950" => 48.0,
        _ => return None,
    };
    Some(whole(rate * GIGA))
}

/// So many lanes of PCI Express: transfers a second times what coding leaves of them. Unknown speeds count as 8 GT/s,
/// as NCCL has it, and no lanes as 16.
pub(crate) fn pcie(speed: &str, width: i64) -> u64 {
    let number = speed.split_whitespace().next().unwrap_or("");
    let (transfers, coding) = match number.parse().unwrap_or(0.0) {
        2.5 => (2.5, 0.8),
        5.0 => (5.0, 0.8),
        16.0 => (16.0, 128.0 / 130.0),
        32.0 => (32.0, 128.0 / 130.0),
        64.0 => (64.0, 242.0 / 256.0),
        _ => (8.0, 128.0 / 130.0),
    };
    let lanes = if width == 0 { 16 } else { width };
    whole(transfers * coding / 8.0 * GIGA * lanes as f64)
}

/// Returns what NCCL counts between two processors of a kind.
///
/// # Source
/// NVIDIA NCCL 2.30.7, `src/graph/topo.h` and `ncclTopoGetInterCpuBw`.
pub(crate) fn between_processors(arch: &str, vendor: &str, family: i64, model: i64) -> u64 {
    let rate = match (arch, vendor) {
        ("ppc64", _) => 32.0,
        ("arm64", _) => 6.0,
        (_, "AuthenticAMD") => 16.0,
        (_, "GenuineIntel") if family == 6 && model >= 0xcf => 40.0,
        (_, "GenuineIntel") if family == 6 && model >= 0x8f => 22.0,
        (_, "GenuineIntel") if family == 6 && model >= 0x55 => 10.0,
        (_, "CentaurHauls" | "  Shanghai  ") if family == 7 && model == 0x5b => 9.0,
        _ => 6.0,
    };
    whole(rate * GIGA)
}
