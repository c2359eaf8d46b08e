//! Link use over time.

use crate::simulate::Run;
use crate::units::Time;

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
        let last = (end.ceil() as usize).min(bins);
        for bin in (start as usize)..last {
            let share = end.min(bin as f64 + 1.0) - start.max(bin as f64);
            // Rounding of many short services must not add up to more than the bin.
            shares[row + bin] = (shares[row + bin] + share as f32).min(1.0);
        }
    }
    shares
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
}
