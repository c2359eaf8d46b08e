//! Which tier a switch is of, by what it is joined to.

/// What a device is in a Clos or fat tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// It sends and receives.
    Npu,
    /// It has NPUs below it.
    Tor,
    /// It has ToRs below it: a spine, or an aggregation switch where there are cores.
    Spine,
    /// It has aggregation switches below it.
    Core,
}

/// Why a network has no tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A link between two devices of one tier, or past a tier.
    NotUp(usize, usize),
    /// An NPU below two ToRs.
    TwoTors(usize, [usize; 2]),
    /// A switch that nothing leads down from.
    Apart(usize),
    /// An NPU without a link.
    Alone(usize),
}

impl Fault {
    pub(super) fn why(self, names: &[String]) -> String {
        let name = |id: usize| &names[id];
        match self {
            Self::NotUp(a, b) => format!(
                "it has no tiers: the link {} -> {} does not join one tier to the next",
                name(a),
                name(b)
            ),
            Self::TwoTors(npu, [a, b]) => format!(
                "{} is joined to two ToRs, {} and {}",
                name(npu),
                name(a),
                name(b)
            ),
            Self::Apart(switch) => format!(
                "it has no tiers: no path leads from {} to an NPU",
                name(switch)
            ),
            Self::Alone(npu) => format!("{} has no link", name(npu)),
        }
    }

    pub(super) fn remedy(self) -> &'static str {
        match self {
            Self::NotUp(..) | Self::Apart(_) => {
                "give a fabric of NPUs, ToRs and spines, or with aggregation switches and cores"
            }
            Self::TwoTors(..) => "give each of its NICs an NPU of its own, below one ToR",
            Self::Alone(_) => "leave it out, or join it to a ToR",
        }
    }
}

pub(super) type Ends = [usize; 2];

/// The switches of a network and what they are joined to.
pub(super) struct Switches {
    npus: usize,
    /// By device: those that it has a link from or to.
    joined: Vec<Vec<usize>>,
    ends: Vec<Ends>,
}

impl Switches {
    pub(super) fn new(npus: usize, switches: usize, ends: impl Iterator<Item = Ends>) -> Self {
        let ends: Vec<Ends> = ends.collect();
        let mut joined = vec![Vec::new(); npus + switches];
        for &[src, dst] in &ends {
            joined[src].push(dst);
            joined[dst].push(src);
        }
        Self { npus, joined, ends }
    }

    /// Returns the tier of every device.
    pub(super) fn tiers(&self) -> Result<Vec<Tier>, Fault> {
        let mut tiers: Vec<Option<Tier>> = vec![None; self.joined.len()];
        tiers[..self.npus].fill(Some(Tier::Npu));
        for (below, tier) in [
            (Tier::Npu, Tier::Tor),
            (Tier::Tor, Tier::Spine),
            (Tier::Spine, Tier::Core),
        ] {
            let is_above = |id: &usize| {
                let mut joined = self.joined[*id].iter();
                tiers[*id].is_none() && joined.any(|&other| tiers[other] == Some(below))
            };
            let found: Vec<usize> = (self.npus..tiers.len()).filter(is_above).collect();
            found.into_iter().for_each(|id| tiers[id] = Some(tier));
        }
        for &[src, dst] in &self.ends {
            let [Some(one), Some(other)] = [tiers[src], tiers[dst]] else {
                continue;
            };
            if (one as u8).abs_diff(other as u8) != 1 {
                return Err(Fault::NotUp(src, dst));
            }
        }
        for npu in 0..self.npus {
            let mut tors = self.joined[npu].iter().copied();
            let first = tors.next().ok_or(Fault::Alone(npu))?;
            if let Some(other) = tors.find(|&tor| tor != first) {
                return Err(Fault::TwoTors(npu, [first, other]));
            }
        }
        let known = tiers.iter().enumerate();
        known
            .map(|(id, tier)| tier.ok_or(Fault::Apart(id)))
            .collect()
    }

    /// Returns the names that routing knows switches of these tiers by, in order.
    pub(super) fn canonical(&self, tiers: &[Tier]) -> Vec<String> {
        let names = match tiers.contains(&Tier::Core) {
            true => ["", "edge", "agg", "core"],
            false => ["", "tor", "spine", ""],
        };
        let mut next = [0u32; 4];
        let name = |&tier: &Tier| {
            next[tier as usize] += 1;
            format!("{}{}", names[tier as usize], next[tier as usize] - 1)
        };
        tiers[self.npus..].iter().map(name).collect()
    }
}
