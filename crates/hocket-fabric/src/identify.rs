//! Which hash a switch has, learned from where packets of known headers went.
//!
//! A candidate is kept while each of its ways leads to one next hop and no two of its ways lead to the same. The
//! order of the switch's next hops need not be known: it is found as well.

use rayon::prelude::*;

use hocket_steering::{Algorithm, Header, SwitchHash};

use crate::progress::{Interrupted, Progress};

/// Candidates that are tried between two reports.
const BLOCK: u64 = 1 << 20;

/// A packet, and which next hop of the switch it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The packet's header, as the switch saw it.
    pub header: Header,
    /// A number of the next hop, in any order.
    pub hop: u32,
}

/// A hash that explains all that was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identified {
    /// The hash.
    pub hash: SwitchHash,
    /// The next hop of each way; `None` where nothing was observed.
    pub hops: Vec<Option<u32>>,
}

/// Returns the candidates that explain all observations, algorithm by algorithm and seed by seed, at most `most`.
///
/// Every algorithm is tried with every seed, without an offset. Headers that differ in the source port alone
/// tell most hashes apart; some need more: two protocols, or several pairs of addresses. With `ways` next hops
/// a candidate passes n observations by chance about once in `ways`^n / `ways`!.
///
/// # Errors
/// [`Interrupted`] if `progress` asks to stop.
///
/// # Complexity
/// O(algorithms x seeds x `ways`) hashes expected, on all cores.
///
/// # Examples
/// ```
/// use hocket_base::progress::Silent;
/// use hocket_fabric::steering::{
///     Algorithm, Fields, Header, Observed, Policy, SwitchHash, identify,
/// };
///
/// let algorithm = Algorithm::Linux(Policy::Custom(Fields::FIVE));
/// let unknown = SwitchHash { algorithm, seed: 77, offset: 0 };
/// let observed: Vec<Observed> = (50_000..50_032)
///     .map(|sport| {
///         let header = Header {
///             src: [10, 1, 0, 1].into(),
///             dst: [10, 2, 0, 1].into(),
///             protocol: 17,
///             sport,
///             dport: 4791,
///             label: 0,
///         };
///         Observed { header, hop: 100 + unknown.way(&header, 4) }
///     })
///     .collect();
/// let found = identify(&observed, 4, &[algorithm], 1..1000, 2, &mut Silent)?;
/// assert_eq!(found.len(), 1);
/// assert_eq!(found[0].hash, unknown);
/// assert_eq!(found[0].hops, [Some(100), Some(101), Some(102), Some(103)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn identify(
    observed: &[Observed],
    ways: u32,
    algorithms: &[Algorithm],
    seeds: std::ops::Range<u64>,
    most: usize,
    progress: &mut dyn Progress,
) -> Result<Vec<Identified>, Interrupted> {
    let mut found = Vec::new();
    let each = seeds.end.saturating_sub(seeds.start);
    let total = each * algorithms.len() as u64;
    for (i, &algorithm) in algorithms.iter().enumerate() {
        let mut start = seeds.start;
        while start < seeds.end && found.len() < most {
            let end = seeds.end.min(start + BLOCK);
            let explains = |hops: &mut Vec<Option<u32>>, seed: u64| {
                let hash = SwitchHash {
                    algorithm,
                    seed: u32::try_from(seed).ok()?,
                    offset: 0,
                };
                let hops = hops_of(&hash, observed, ways, hops)?.to_vec();
                Some(Identified { hash, hops })
            };
            let block = (start..end).into_par_iter();
            found.par_extend(block.map_init(Vec::new, explains).flatten());
            let done = i as u64 * each + (end - seeds.start);
            if !progress.report("identify", done, total) {
                return Err(Interrupted);
            }
            start = end;
        }
    }
    found.truncate(most);
    Ok(found)
}

/// Returns the next hop of each way, if the hash explains all observations.
fn hops_of<'a>(
    hash: &SwitchHash,
    observed: &[Observed],
    ways: u32,
    hops: &'a mut Vec<Option<u32>>,
) -> Option<&'a [Option<u32>]> {
    hops.clear();
    hops.resize(ways as usize, None);
    for Observed { header, hop } in observed {
        let way = hash.way(header, ways) as usize;
        match hops[way] {
            Some(known) if known == *hop => {}
            None if !hops.contains(&Some(*hop)) => hops[way] = Some(*hop),
            _ => return None,
        }
    }
    Some(hops)
}

#[cfg(test)]
mod tests {
    use hocket_steering::{Fields, Policy};

    use super::*;
    use crate::progress::Silent;

    const ALGORITHMS: [Algorithm; 6] = [
        Algorithm::Linux(Policy::Layer3),
        Algorithm::Linux(Policy::Layer4),
        Algorithm::Linux(Policy::Custom(Fields::FIVE)),
        Algorithm::Linux(Policy::Custom(Fields::FOUR)),
        Algorithm::Crc32(Fields::FIVE),
        Algorithm::Toeplitz(Fields::FOUR),
    ];

    fn observed(hash: SwitchHash, ways: u32, count: u16) -> Vec<Observed> {
        let observe = |i: u16| {
            let header = Header {
                src: [10, 1, 0, (i % 3) as u8].into(),
                dst: [10, 2, 0, 1].into(),
                protocol: [6, 17][usize::from(i % 2)],
                sport: 1024 + 37 * i,
                dport: 5000,
                label: 0,
            };
            // Next hops in no order, and numbered at random.
            let hop = (7 * hash.way(&header, ways) + 3) % ways + 40;
            Observed { header, hop }
        };
        (0..count).map(observe).collect()
    }

    #[test]
    fn a_hash_is_told_from_all_others() {
        for algorithm in ALGORITHMS.into_iter().skip(1) {
            for ways in [2, 4, 5, 8] {
                let hash = SwitchHash {
                    algorithm,
                    seed: 4321,
                    offset: 0,
                };
                let seen = observed(hash, ways, 96);
                let found = identify(&seen, ways, &ALGORITHMS, 1..6000, 9, &mut Silent).unwrap();
                // Seeds of linear hashes move all headers alike: with two ways that turns the ways around.
                let is_linux = matches!(algorithm, Algorithm::Linux(_));
                let is_alone = found.len() == 1 && found[0].hash == hash;
                assert!(is_alone || !is_linux, "{algorithm:?} {ways} {found:?}");
                for Identified { hash, hops } in &found {
                    let leads = |seen: &Observed| hops[hash.way(&seen.header, ways) as usize];
                    assert!(seen.iter().all(|seen| leads(seen) == Some(seen.hop)));
                }
                assert!(!found.is_empty());
            }
        }
    }

    #[test]
    fn what_no_candidate_explains_finds_none() {
        let hash = SwitchHash {
            algorithm: ALGORITHMS[2],
            seed: 9,
            offset: 0,
        };
        let mut seen = observed(hash, 4, 40);
        seen[17].hop = 40 + (seen[17].hop - 39) % 4;
        let found = identify(&seen, 4, &ALGORITHMS, 1..1000, 9, &mut Silent).unwrap();
        assert_eq!(found, []);
    }

    struct Impatient;

    impl Progress for Impatient {
        fn report(&mut self, _: &'static str, _: u64, _: u64) -> bool {
            false
        }
    }

    #[test]
    fn it_stops_when_it_is_asked_to() {
        let stopped = identify(&[], 4, &ALGORITHMS, 1..10, 9, &mut Impatient);
        assert_eq!(stopped, Err(Interrupted));
    }
}
