//! Hashes that switching chips have: cyclic redundancy checks, exclusive or, Toeplitz.
//!
//! All are linear: the hash of a header is that of the header with a field set to 0, exclusive-or a
//! number that depends on the field alone.
//!
//! # Source
//! CRC-32: IEEE 802.3, section 3.2.9. CRC-16: polynomials 0x8005 (as in Modbus and ARC) and 0x1021 of
//! ITU-T V.41. Toeplitz: Krawczyk, LFSR-based hashing and authentication, CRYPTO 1994; key and check values of
//! Microsoft, Verifying the RSS hash calculation.

/// Returns the table of a reflected polynomial.
const fn table(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut rest = i as u32;
        let mut bit = 0;
        while bit < 8 {
            let poly = if rest & 1 == 1 { polynomial } else { 0 };
            rest = (rest >> 1) ^ poly;
            bit += 1;
        }
        table[i] = rest;
        i += 1;
    }
    table
}

fn reflected(table: &[u32; 256], start: u32, bytes: &[u8]) -> u32 {
    let step = |rest: u32, &byte: &u8| (rest >> 8) ^ table[((rest as u8) ^ byte) as usize];
    bytes.iter().fold(start, step)
}

/// CRC-32 with the start value exclusive-or `seed`.
pub(super) fn crc32(seed: u32, bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table(0xedb8_8320);
    !reflected(&TABLE, !seed, bytes)
}

/// CRC-16 with polynomial 0x8005, reflected, from `seed`.
pub(super) fn crc16(seed: u16, bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table(0xa001);
    reflected(&TABLE, seed.into(), bytes)
}

/// CRC-16 with polynomial 0x1021, from 0xffff exclusive-or `seed`.
pub(super) fn crc_ccitt(seed: u16, bytes: &[u8]) -> u32 {
    let step = |rest: u16, &byte: &u8| {
        let shift = |rest: u16| (rest << 1) ^ if rest >> 15 == 1 { 0x1021 } else { 0 };
        (0..8).fold(rest ^ u16::from(byte) << 8, |rest, _| shift(rest))
    };
    bytes.iter().fold(!seed, step).into()
}

/// Returns all words of 16 bits, an odd last byte as the high half of one.
pub(super) fn xor16(seed: u16, bytes: &[u8]) -> u32 {
    let word = |pair: &[u8]| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
    bytes
        .chunks(2)
        .map(word)
        .fold(seed, |sum, word| sum ^ word)
        .into()
}

/// Key of receive-side scaling.
const KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// Toeplitz with the published key of receive-side scaling, exclusive-or `seed`; the key repeats.
pub(super) fn toeplitz(seed: u32, bytes: &[u8]) -> u32 {
    let key = |at: usize| u64::from(KEY[at % KEY.len()]);
    let mut hash = seed;
    for (i, byte) in bytes.iter().enumerate() {
        let window = (0..5).fold(0, |window, next| window << 8 | key(i + next));
        for bit in (0..8).filter(|bit| byte >> (7 - bit) & 1 == 1) {
            hash ^= (window >> (8 - bit)) as u32;
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_have_their_published_check_values() {
        let check = b"123456789";
        assert_eq!(crc32(0, check), 0xcbf4_3926);
        assert_eq!(crc16(0, check), 0xbb3d);
        assert_eq!(crc_ccitt(0, check), 0x29b1);
        assert_eq!(crc_ccitt(0xffff, check), 0x31c3);
        assert_eq!(
            xor16(0, &[0x12, 0x34, 0x56, 0x78, 0x9a]),
            0x1234 ^ 0x5678 ^ 0x9a00
        );
        let ports = [2794u16.to_be_bytes(), 1766u16.to_be_bytes()].concat();
        let addresses = [66, 9, 149, 187, 161, 142, 100, 80];
        assert_eq!(toeplitz(0, &addresses), 0x323e_8fc2);
        assert_eq!(toeplitz(0, &[&addresses[..], &ports].concat()), 0x51cc_c178);
        let six = [
            "3ffe:2501:200:1fff::7"
                .parse::<std::net::Ipv6Addr>()
                .unwrap(),
            "3ffe:2501:200:3::1".parse().unwrap(),
        ];
        let mut bytes: Vec<u8> = six.iter().flat_map(|address| address.octets()).collect();
        assert_eq!(toeplitz(0, &bytes), 0x2cc1_8cd5);
        bytes.extend(2794u16.to_be_bytes());
        bytes.extend(1766u16.to_be_bytes());
        assert_eq!(toeplitz(0, &bytes), 0x4020_7d3d);
    }
}
