//! The source port of a RoCEv2 queue pair.

/// UDP port that RoCEv2 is sent to.
pub const ROCE_PORT: u16 = 4791;

/// Returns the UDP source port of a reliable or unreliable connection, which its two ends share.
///
/// `label` is the flow label that the address handle has. Where it is 0, as NCCL leaves it, one is made of
/// the two queue pairs' numbers (24 bits each). Either is folded into 14 bits, above 0xc000.
///
/// # Source
/// Linux, `include/rdma/ib_verbs.h`: `rdma_calc_flow_label`, `rdma_flow_label_to_udp_sport`; rdma-core has
/// the second as `ibv_flow_label_to_udp_sport`.
///
/// # Examples
/// ```
/// use hocket_steering::queue_pair_port;
///
/// assert_eq!(queue_pair_port([0x11a, 0x11b], 0), queue_pair_port([0x11b, 0x11a], 0));
/// assert_eq!(queue_pair_port([0x11a, 0x11b], 1), 0xc001);
/// ```
pub fn queue_pair_port(queue_pairs: [u32; 2], label: u32) -> u16 {
    let label = match label & 0xf_ffff {
        0 => {
            let product = u64::from(queue_pairs[0]) * u64::from(queue_pairs[1]);
            let folded = product ^ (product >> 20);
            ((folded ^ (folded >> 40)) & 0xf_ffff) as u32
        }
        label => label,
    };
    0xc000 | ((label & 0x3fff) ^ (label >> 14)) as u16
}

#[cfg(test)]
mod tests {
    use super::queue_pair_port;

    #[test]
    fn a_port_is_made_of_both_numbers() {
        // By hand: 0x100 * 0x200 = 0x20000, whose bit 17 is bit 3 of what is above 14 bits. The others by
        // the formula of the kernel, evaluated apart.
        let known = [
            ([0x100, 0x200], 0xc008),
            ([0xff_ffff, 0xff_ffff], 0xff21),
            ([0x11a, 0x11b], 0xf7ba),
            ([1, 0], 0xc000),
            ([0x1_2345, 0xa_bcde], 0xc2b9),
        ];
        for ([a, b], port) in known {
            assert_eq!(
                [queue_pair_port([a, b], 0), queue_pair_port([b, a], 0)],
                [port; 2]
            );
        }
    }

    #[test]
    fn a_label_is_folded() {
        for label in [1, 0x3fff, 0x4000, 0xf_ffff] {
            let folded = (label % 0x4000) ^ (label / 0x4000);
            assert_eq!(u32::from(queue_pair_port([5, 7], label)), 0xc000 + folded);
        }
    }
}
