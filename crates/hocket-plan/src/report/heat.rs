//! Link use over time.

use std::ops::Range;

use crate::id::fit;
use crate::plan::Op;
use crate::simulate::Run;
use crate::units::{Time, whole};

/// Share of each time bin in which each link was occupied: `links` rows of `bins` values, 0 to 1, row
/// after row. Needs a run that kept its services; a link is occupied once where several overlap on it.
pub fn heat(run: &Run, bins: usize) -> Vec<f32> {
    let mut shares = vec![0f32; run.links.len() * bins];
    let total = run.time.as_ps() as f64;
    if total == 0.0 || bins == 0 {
        return shares;
    }
    let width = total / bins as f64;
    // Services come in order of start.
    let mut until = vec![Time::ZERO; run.links.len()];
    for service in &run.services {
        let until = &mut until[service.link as usize];
        let start = service.start.max(*until);
        if service.end <= start {
            continue;
        }
        *until = service.end;
        let (start, end) = (
            start.as_ps() as f64 / width,
            service.end.as_ps() as f64 / width,
        );
        let row = service.link as usize * bins;
        for bin in which_bins(start, end, bins) {
            let share = end.min(bin as f64 + 1.0) - start.max(bin as f64);
            // Rounding of many short services must not add up to more than the bin.
            shares[row + bin] = (shares[row + bin] + single(share)).min(1.0);
        }
    }
    shares
}

/// Returns the bins, of so many, that a time in widths of a bin touches.
fn which_bins(start: f64, end: f64, bins: usize) -> Range<usize> {
    fit(whole(start))..fit::<usize, _>(whole(end.ceil())).min(bins)
}

/// Returns a share as pictures have it.
#[expect(clippy::cast_possible_truncation, reason = "it is rounded")]
pub(super) fn single(share: f64) -> f32 {
    share as f32
}

/// How finely the share of sums is told: 0 where all are copies, this where all are sums.
pub const ALL_SUMS: u8 = 15;

/// [`heat`] in whole numbers, 0 to 255 and rounded up, and what of each bin's services were sums, 0 to [`ALL_SUMS`] and 0
/// where a link was idle. `op` is the operation of each transfer; services that overlap count each by itself.
pub fn use_and_sums(run: &Run, op: &[u8], bins: usize) -> (Vec<u8>, Vec<u8>) {
    let used: Vec<u8> = heat(run, bins)
        .into_iter()
        // What rounding adds to a share must not make it the next number.
        .map(|share| fit(whole((share * 255.0 - 1e-3).ceil().into())))
        .collect();
    let total = run.time.as_ps() as f64;
    let is_sum = |op: u8| op == Op::Reduce as u8;
    let Some(&first) = op.first().filter(|_| total > 0.0 && bins > 0) else {
        return (used.clone(), vec![0; used.len()]);
    };
    if op.iter().all(|&each| each == first) {
        let all = if is_sum(first) { ALL_SUMS } else { 0 };
        let sums = used.iter().map(|&used| if used > 0 { all } else { 0 });
        return (used.clone(), sums.collect());
    }
    let width = total / bins as f64;
    let mut parts = vec![[0f32; 2]; used.len()];
    for service in &run.services {
        let (start, end) = (
            service.start.as_ps() as f64 / width,
            service.end.as_ps() as f64 / width,
        );
        let row = service.link as usize * bins;
        let which = usize::from(is_sum(op[service.transfer as usize]));
        for bin in which_bins(start, end, bins) {
            let share = end.min(bin as f64 + 1.0) - start.max(bin as f64);
            parts[row + bin][which] += single(share);
        }
    }
    let sums = used.iter().zip(&parts).map(|(&used, [copies, sums])| {
        let all = copies + sums;
        if used == 0 || all <= 0.0 {
            0
        } else {
            fit(whole((f32::from(ALL_SUMS) * sums / all).round().into()))
        }
    });
    (used.clone(), sums.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{LinkUse, Service};

    #[test]
    fn shares_add_up_to_busy_time() {
        let service = |link, start, end| Service {
            transfer: 0,
            link,
            start: Time::from_ps(start),
            end: Time::from_ps(end),
        };
        let run = Run {
            time: Time::from_ps(100),
            start: vec![],
            end: vec![],
            links: vec![LinkUse::default(); 2],
            services: vec![
                service(0, 0, 35),
                service(0, 10, 30),
                service(0, 30, 40),
                service(1, 90, 100),
            ],
        };
        let shares = heat(&run, 4);
        let close = |a: f32, b: f32| (a - b).abs() < 1e-6;
        assert!(close(shares[0], 1.0) && close(shares[1], 0.6));
        assert!(close(shares[4..].iter().sum::<f32>() * 25.0, 10.0));
    }

    #[test]
    fn many_short_services_are_at_most_the_whole_bin() {
        let service = |i: u64| Service {
            transfer: 0,
            link: 0,
            start: Time::from_ps(i),
            end: Time::from_ps(i + 1),
        };
        let run = Run {
            time: Time::from_ps(300_000),
            start: vec![],
            end: vec![],
            links: vec![LinkUse::default()],
            services: (0..300_000).map(service).collect(),
        };
        for bins in [1, 3, 7, 10] {
            assert!(heat(&run, bins).iter().all(|&share| share <= 1.0));
        }
    }

    #[test]
    fn sums_are_told_from_copies() {
        let service = |transfer, start, end| Service {
            transfer,
            link: 0,
            start: Time::from_ps(start),
            end: Time::from_ps(end),
        };
        let run = Run {
            time: Time::from_ps(400),
            start: vec![],
            end: vec![],
            links: vec![LinkUse::default()],
            services: vec![
                service(0, 0, 150),
                service(1, 150, 200),
                service(1, 250, 300),
            ],
        };
        let (sum, copy) = (Op::Reduce as u8, Op::Copy as u8);
        assert_eq!(
            use_and_sums(&run, &[sum, copy], 4),
            (vec![255, 255, 128, 0], vec![15, 8, 0, 0])
        );
        assert_eq!(use_and_sums(&run, &[sum, sum], 4).1, [15, 15, 15, 0]);
        assert_eq!(use_and_sums(&run, &[copy, copy], 4).1, [0; 4]);
    }
}
