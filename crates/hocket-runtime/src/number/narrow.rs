//! Numbers of 16 and 8 bits: widened to 32 bits, combined there, and rounded to nearest even once.

use super::{Dtype, Number, Reduction};

/// Numbers that are widened at once; three such stretches lie in the first cache.
const STRETCH: usize = 512;

#[inline(always)]
fn f16_to_f32(bits: u16) -> f32 {
    let (sign, rest) = (u32::from(bits & 0x8000) << 16, u32::from(bits & 0x7fff));
    // Exponents differ by 112; the product is right for subnormal numbers as well.
    let scaled = f32::from_bits(rest << 13) * f32::from_bits(0x7780_0000);
    let special = if rest >= 0x7c00 { 0x7f80_0000 } else { 0 };
    f32::from_bits(scaled.to_bits() | special | sign)
}

#[inline(always)]
fn f32_to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let (sign, rest) = ((bits >> 16) as u16 & 0x8000, bits & 0x7fff_ffff);
    let normal = (rest.wrapping_add(0xc800_0fff) + (rest >> 13 & 1)) >> 13;
    // One half has the unit in the last place that subnormal numbers have.
    let small = (f32::from_bits(rest) + 0.5)
        .to_bits()
        .wrapping_sub(0x3f00_0000);
    let special = if rest > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    let magnitude = if rest >= 0x4780_0000 {
        special
    } else if rest < 0x3880_0000 {
        small
    } else {
        normal
    };
    sign | (magnitude & 0xffff) as u16
}

#[inline(always)]
fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[inline(always)]
fn f32_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16;
    let quiet = (bits >> 16) as u16 | 0x40;
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        quiet
    } else {
        rounded
    }
}

/// A type of 8 bits: bits of the fraction, and the bias of the exponent.
#[derive(Clone, Copy)]
struct Tiny {
    fraction: u32,
    bias: u32,
    /// Least magnitude that is no finite number, and what a number that is too large becomes.
    infinite: u32,
    /// A magnitude that is not a number.
    nan: u32,
}

const E4M3: Tiny = Tiny {
    fraction: 3,
    bias: 7,
    infinite: 0x7f,
    nan: 0x7f,
};
const E5M2: Tiny = Tiny {
    fraction: 2,
    bias: 15,
    infinite: 0x7c,
    nan: 0x7e,
};

impl Tiny {
    fn widen(self, bits: u8) -> f32 {
        let magnitude = u32::from(bits & 0x7f);
        let sign = if bits & 0x80 == 0 { 1.0 } else { -1.0 };
        if magnitude > self.infinite || magnitude == self.nan {
            return f32::NAN;
        }
        if magnitude == self.infinite {
            return sign * f32::INFINITY;
        }
        let (exponent, fraction) = (
            magnitude >> self.fraction,
            magnitude & ((1 << self.fraction) - 1),
        );
        let (whole, power) = match exponent {
            0 => (fraction, 1),
            _ => (fraction | 1 << self.fraction, exponent),
        };
        let power = power as i32 - self.bias as i32 - self.fraction as i32;
        sign * whole as f32 * 2f32.powi(power)
    }

    fn narrow(self, value: f32) -> u8 {
        let bits = value.to_bits();
        let (sign, rest) = ((bits >> 24) as u8 & 0x80, bits & 0x7fff_ffff);
        let drop = 23 - self.fraction;
        let least = (127 - self.bias + 1) << 23;
        let magnitude = if rest > 0x7f80_0000 {
            self.nan
        } else if rest < least {
            // A number whose unit in the last place is that of subnormal numbers.
            let unit = (127 + 1 - self.bias - self.fraction + 23) << 23;
            (f32::from_bits(rest) + f32::from_bits(unit)).to_bits() - unit
        } else {
            let rounded = (rest + (1 << (drop - 1)) - 1 + (rest >> drop & 1)) >> drop;
            (rounded - ((127 - self.bias) << self.fraction)).min(self.infinite)
        };
        sign | (magnitude & 0xff) as u8
    }
}

#[cfg(target_arch = "x86_64")]
mod f16c {
    use std::arch::x86_64::*;

    /// Widens `count` numbers, a multiple of 8.
    #[target_feature(enable = "avx,f16c")]
    pub(crate) unsafe fn widen(from: *const u8, to: &mut [f32], count: usize) {
        for i in (0..count).step_by(8) {
            // SAFETY: within both; nothing is assumed of alignment.
            unsafe {
                let packed = _mm_loadu_si128(from.add(2 * i).cast());
                _mm256_storeu_ps(to.as_mut_ptr().add(i), _mm256_cvtph_ps(packed));
            }
        }
    }

    /// Rounds `count` numbers, a multiple of 8, to nearest even.
    #[target_feature(enable = "avx,f16c")]
    pub(crate) unsafe fn narrow(from: &[f32], to: *mut u8, count: usize) {
        for i in (0..count).step_by(8) {
            // SAFETY: within both; nothing is assumed of alignment.
            unsafe {
                let wide = _mm256_loadu_ps(from.as_ptr().add(i));
                let packed = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(wide);
                _mm_storeu_si128(to.add(2 * i).cast(), packed);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_f16c() -> bool {
    is_x86_feature_detected!("avx") && is_x86_feature_detected!("f16c")
}

#[inline(always)]
unsafe fn widen_with<T: Copy>(from: *const u8, to: &mut [f32], f: impl Fn(T) -> f32) {
    for (i, to) in to.iter_mut().enumerate() {
        // SAFETY: as many as in `to`.
        *to = f(unsafe { from.cast::<T>().add(i).read_unaligned() });
    }
}

#[inline(always)]
unsafe fn narrow_with<T: Copy>(from: &[f32], to: *mut u8, f: impl Fn(f32) -> T) {
    for (i, from) in from.iter().enumerate() {
        // SAFETY: as many as in `from`.
        unsafe { to.cast::<T>().add(i).write_unaligned(f(*from)) };
    }
}

unsafe fn widen(dtype: Dtype, from: *const u8, to: &mut [f32]) {
    // SAFETY: as of this function: `from` holds as many numbers as `to`.
    unsafe {
        match dtype {
            Dtype::Bf16 => widen_with(from, to, bf16_to_f32),
            Dtype::F8E4m3 => widen_with(from, to, |bits| E4M3.widen(bits)),
            Dtype::F8E5m2 => widen_with(from, to, |bits| E5M2.widen(bits)),
            _ => {
                let mut done = 0;
                #[cfg(target_arch = "x86_64")]
                if has_f16c() {
                    done = to.len() / 8 * 8;
                    f16c::widen(from, to, done);
                }
                widen_with(from.add(2 * done), &mut to[done..], f16_to_f32);
            }
        }
    }
}

unsafe fn narrow(dtype: Dtype, from: &[f32], to: *mut u8) {
    // SAFETY: as of this function: `to` has room for as many numbers as `from` has.
    unsafe {
        match dtype {
            Dtype::Bf16 => narrow_bf16(from, to),
            Dtype::F8E4m3 => narrow_with(from, to, |value| E4M3.narrow(value)),
            Dtype::F8E5m2 => narrow_with(from, to, |value| E5M2.narrow(value)),
            _ => {
                let mut done = 0;
                #[cfg(target_arch = "x86_64")]
                if has_f16c() {
                    done = from.len() / 8 * 8;
                    f16c::narrow(from, to, done);
                }
                narrow_with(&from[done..], to.add(2 * done), f32_to_f16);
            }
        }
    }
}

unsafe fn narrow_bf16(from: &[f32], to: *mut u8) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        unsafe fn wide(from: &[f32], to: *mut u8) {
            // SAFETY: as of the function around it.
            unsafe { narrow_with(from, to, f32_to_bf16) }
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the machine has what it needs.
            return unsafe { wide(from, to) };
        }
    }
    // SAFETY: as of this function.
    unsafe { narrow_with(from, to, f32_to_bf16) }
}

/// Combines `count` numbers of each source into `dst`, which may be one of them.
///
/// # Safety
/// All places hold that many, and `dst` may be written.
pub(super) unsafe fn combine(
    dtype: Dtype,
    op: Reduction,
    dst: *mut u8,
    sources: &[*const u8],
    count: usize,
) {
    let (mut total, mut other) = ([0f32; STRETCH], [0f32; STRETCH]);
    let mut at = 0;
    while at < count {
        let len = STRETCH.min(count - at);
        let offset = at * dtype.bytes();
        // SAFETY: within all places.
        unsafe {
            widen(dtype, sources[0].add(offset), &mut total[..len]);
            for source in &sources[1..] {
                widen(dtype, source.add(offset), &mut other[..len]);
                let pairs = total[..len].iter_mut().zip(&other[..len]);
                match op {
                    Reduction::Sum | Reduction::Average => pairs.for_each(|(a, b)| *a += b),
                    Reduction::Product => pairs.for_each(|(a, b)| *a *= b),
                    Reduction::Min => pairs.for_each(|(a, b)| *a = a.least(*b)),
                    Reduction::Max => pairs.for_each(|(a, b)| *a = a.greatest(*b)),
                }
            }
            narrow(dtype, &total[..len], dst.add(offset));
        }
        at += len;
    }
}

/// Divides `count` numbers.
///
/// # Safety
/// The place holds that many and may be written.
pub(super) unsafe fn divide(dtype: Dtype, dst: *mut u8, count: usize, by: f32) {
    let mut values = [0f32; STRETCH];
    let mut at = 0;
    while at < count {
        let len = STRETCH.min(count - at);
        // SAFETY: within the place.
        unsafe {
            let place = dst.add(at * dtype.bytes());
            widen(dtype, place, &mut values[..len]);
            values[..len].iter_mut().for_each(|value| *value /= by);
            narrow(dtype, &values[..len], place);
        }
        at += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the nearest of all finite values of a type, ties to the even one, by looking at each.
    fn nearest(value: f32, all: &[(u16, f32)]) -> u16 {
        let distance = |each: &(u16, f32)| (f64::from(each.1) - f64::from(value)).abs();
        let best = all.iter().map(distance).fold(f64::INFINITY, f64::min);
        let mut ties = all.iter().filter(|each| distance(each) == best);
        let first = ties.next().expect("not empty").0;
        match ties.next() {
            Some(second) if first & 1 == 1 => second.0,
            _ => first,
        }
    }

    #[test]
    fn every_value_of_a_narrow_type_survives() {
        for bits in 0..=u16::MAX {
            for (wide, back) in [
                (f16_to_f32(bits), f32_to_f16 as fn(f32) -> u16),
                (bf16_to_f32(bits), f32_to_bf16),
            ] {
                if !wide.is_nan() {
                    assert_eq!(back(wide), bits, "{wide}");
                } else {
                    let again = back(wide);
                    assert!(again & 0x7f != 0 || again & 0x3ff != 0);
                }
            }
        }
        for tiny in [E4M3, E5M2] {
            for bits in 0..=u8::MAX {
                let wide = tiny.widen(bits);
                if !wide.is_nan() {
                    assert_eq!(tiny.narrow(wide), bits, "{wide}");
                }
            }
        }
        assert_eq!(E4M3.widen(0x7e), 448.0);
        assert_eq!(E5M2.widen(0x7b), 57344.0);
        assert_eq!(E4M3.narrow(1e9), 0x7f);
        assert_eq!(E5M2.narrow(-1e9), 0xfc);
    }

    #[test]
    fn rounding_is_to_nearest_even() {
        let halves: Vec<(u16, f32)> = (0..0x7c00).map(|bits| (bits, f16_to_f32(bits))).collect();
        let e4m3: Vec<(u16, f32)> = (0..0x7f).map(|b| (b.into(), E4M3.widen(b))).collect();
        let e5m2: Vec<(u16, f32)> = (0..0x7c).map(|b| (b.into(), E5M2.widen(b))).collect();
        let mut random = 1u32;
        for _ in 0..2000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = f32::from_bits(random >> 1);
            if value < 65000.0 {
                let near = halves.partition_point(|each| each.1 < value);
                let around = &halves[near.saturating_sub(2)..(near + 2).min(halves.len())];
                assert_eq!(f32_to_f16(value), nearest(value, around), "{value}");
            }
            if value < 440.0 {
                assert_eq!(
                    u16::from(E4M3.narrow(value)),
                    nearest(value, &e4m3),
                    "{value}"
                );
                assert_eq!(
                    u16::from(E5M2.narrow(value)),
                    nearest(value, &e5m2),
                    "{value}"
                );
            }
        }
        for (at, pair) in (0..).zip(halves.windows(2)) {
            let middle = (pair[0].1 + pair[1].1) / 2.0;
            assert_eq!(f32_to_f16(middle), (at + 1) & !1);
        }
    }

    #[test]
    fn the_machines_conversion_is_the_portable_one() {
        let bits: Vec<u16> = (0..=u16::MAX).collect();
        let mut wide = vec![0f32; bits.len()];
        let mut back = vec![0u16; bits.len()];
        // SAFETY: all are as long.
        unsafe {
            widen(Dtype::F16, bits.as_ptr().cast(), &mut wide);
            narrow(Dtype::F16, &wide, back.as_mut_ptr().cast());
        }
        for (&bits, (&wide, &back)) in bits.iter().zip(wide.iter().zip(&back)) {
            assert!(wide.is_nan() || wide == f16_to_f32(bits));
            assert!(wide.is_nan() || back == bits);
        }
    }
}
