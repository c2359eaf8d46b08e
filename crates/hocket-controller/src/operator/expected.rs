//! How many flows too many links would carry if switches spread them by hashing, as they do without a controller.

/// Returns what so many flows over so many links are expected to exceed the links' shares by, all links together, where
/// each flow takes each link with the same probability.
pub(crate) fn excess(flows: u64, links: u64) -> f64 {
    if links < 2 {
        return 0.0;
    }
    let share = flows.div_ceil(links);
    let odds = 1.0 / (links as f64 - 1.0);
    // Logarithm of the probability that a link has no flow; then of one more at a time.
    let mut log = flows as f64 * (1.0 - 1.0 / links as f64).ln();
    let mut sum = 0.0;
    for on_link in 0..=flows {
        if on_link > share {
            let part = (on_link - share) as f64 * log.exp();
            sum += part;
            if part < 1e-12 * sum {
                break;
            }
        }
        log += ((flows - on_link) as f64 / (on_link + 1) as f64 * odds).ln();
    }
    sum * links as f64
}

#[cfg(test)]
mod tests {
    use super::excess;

    #[test]
    fn hashing_few_flows_is_counted_by_hand() {
        // Of 2 flows over 2 links both take one in half of the cases: one too many.
        assert!((excess(2, 2) - 0.5).abs() < 1e-12);
        // 3 over 3: all on one (1/9) two too many, two on one (6/9) one too many.
        assert!((excess(3, 3) - (2.0 / 9.0 + 6.0 / 9.0)).abs() < 1e-12);
        assert_eq!(excess(7, 1), 0.0);
        assert_eq!(excess(0, 4), 0.0);
    }

    #[test]
    fn many_flows_neither_underflow_nor_take_long() {
        let many = excess(1_000_000, 512);
        assert!(many > 512.0 && many < 20_000.0, "{many}");
    }
}
