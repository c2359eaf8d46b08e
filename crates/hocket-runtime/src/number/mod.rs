//! Numbers of the types that arrays have, and what is done to them while they arrive.
//!
//! Nothing is assumed of alignment. Loops are over one type and one operation each, so that the compiler vectorises
//! them; types of 16 and 8 bits are summed in 32 bits, a stretch at a time, and rounded to nearest even.

mod narrow;

use strum::{Display, EnumString, FromRepr, IntoStaticStr, VariantArray};

/// The type of the numbers of an array.
#[derive(Display, EnumString, FromRepr, IntoStaticStr, VariantArray)]
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// IEEE binary64.
    #[strum(serialize = "float64")]
    F64 = 0,
    /// IEEE binary32.
    #[strum(serialize = "float32")]
    F32 = 1,
    /// IEEE binary16.
    #[strum(serialize = "float16")]
    F16 = 2,
    /// The upper half of binary32.
    #[strum(serialize = "bfloat16")]
    Bf16 = 3,
    /// OCP FP8 E4M3: no infinities.
    #[strum(serialize = "float8_e4m3fn")]
    F8E4m3 = 4,
    /// OCP FP8 E5M2.
    #[strum(serialize = "float8_e5m2")]
    F8E5m2 = 5,
    /// Signed, 8 bits.
    #[strum(serialize = "int8")]
    I8 = 6,
    /// Signed, 16 bits.
    #[strum(serialize = "int16")]
    I16 = 7,
    /// Signed, 32 bits.
    #[strum(serialize = "int32")]
    I32 = 8,
    /// Signed, 64 bits.
    #[strum(serialize = "int64")]
    I64 = 9,
    /// Unsigned, 8 bits.
    #[strum(serialize = "uint8")]
    U8 = 10,
    /// Unsigned, 16 bits.
    #[strum(serialize = "uint16")]
    U16 = 11,
    /// Unsigned, 32 bits.
    #[strum(serialize = "uint32")]
    U32 = 12,
    /// Unsigned, 64 bits.
    #[strum(serialize = "uint64")]
    U64 = 13,
}

impl Dtype {
    /// All types, by number.
    pub const ALL: &[Dtype] = Self::VARIANTS;

    /// Returns the name, as NumPy and `ml_dtypes` write it.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the bytes of a number.
    pub const fn bytes(self) -> usize {
        match self {
            Dtype::F64 | Dtype::I64 | Dtype::U64 => 8,
            Dtype::F32 | Dtype::I32 | Dtype::U32 => 4,
            Dtype::F16 | Dtype::Bf16 | Dtype::I16 | Dtype::U16 => 2,
            Dtype::F8E4m3 | Dtype::F8E5m2 | Dtype::I8 | Dtype::U8 => 1,
        }
    }

    /// Returns whether it is an integer.
    pub const fn is_integer(self) -> bool {
        self as u8 >= Dtype::I8 as u8
    }
}

/// What is done to numbers of several ranks.
#[derive(Display, EnumString, FromRepr, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their sum; integers wrap.
    Sum = 0,
    /// Their product; integers wrap.
    Product = 1,
    /// The least; not a number if one of them is not.
    Min = 2,
    /// The greatest; not a number if one of them is not.
    Max = 3,
    /// Their sum, divided by the number of ranks at the end. Not for integers.
    Average = 4,
}

impl Reduction {
    /// All of them, by number.
    pub const ALL: &[Reduction] = Self::VARIANTS;

    /// Returns the name in messages and options.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

trait Number: Copy {
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
    fn least(self, other: Self) -> Self;
    fn greatest(self, other: Self) -> Self;
}

macro_rules! integer {
    ($($type:ty)*) => {$(
        impl Number for $type {
            #[inline(always)]
            fn sum(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn product(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn least(self, other: Self) -> Self { if other < self { other } else { self } }
            #[inline(always)]
            fn greatest(self, other: Self) -> Self { if other > self { other } else { self } }
        }
    )*};
}

integer!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! float {
    ($($type:ty)*) => {$(
        impl Number for $type {
            #[inline(always)]
            fn sum(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn product(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn least(self, other: Self) -> Self {
                if self < other || self.is_nan() { self } else { other }
            }
            #[inline(always)]
            fn greatest(self, other: Self) -> Self {
                if self > other || self.is_nan() { self } else { other }
            }
        }
    )*};
}

float!(f32 f64);

/// `dst[i] = f(dst[i], src[i])`.
///
/// # Safety
/// Both places hold `count` numbers, wherever they lie, and the first may be written.
#[inline(always)]
unsafe fn fold<T: Copy>(dst: *mut u8, src: *const u8, count: usize, f: impl Fn(T, T) -> T) {
    let (dst, src) = (dst.cast::<T>(), src.cast::<T>());
    for i in 0..count {
        // SAFETY: both hold that many.
        unsafe {
            let value = f(dst.add(i).read_unaligned(), src.add(i).read_unaligned());
            dst.add(i).write_unaligned(value);
        }
    }
}

unsafe fn combine_as<T: Number>(op: Reduction, dst: *mut u8, src: *const u8, count: usize) {
    // SAFETY: as of this function.
    unsafe {
        match op {
            Reduction::Sum | Reduction::Average => fold(dst, src, count, T::sum),
            Reduction::Product => fold(dst, src, count, T::product),
            Reduction::Min => fold(dst, src, count, T::least),
            Reduction::Max => fold(dst, src, count, T::greatest),
        }
    }
}

/// Combines what is at `src` into what is at `dst`; an average is a sum until [`divide`].
///
/// # Safety
/// Both places hold `bytes` bytes, a multiple of the type's, and the first may be written; they do not overlap.
pub unsafe fn combine(dtype: Dtype, op: Reduction, dst: *mut u8, src: *const u8, bytes: usize) {
    let count = bytes / dtype.bytes();
    // SAFETY: as of this function.
    unsafe {
        match dtype {
            Dtype::F64 => combine_as::<f64>(op, dst, src, count),
            Dtype::F32 => combine_as::<f32>(op, dst, src, count),
            Dtype::I8 => combine_as::<i8>(op, dst, src, count),
            Dtype::I16 => combine_as::<i16>(op, dst, src, count),
            Dtype::I32 => combine_as::<i32>(op, dst, src, count),
            Dtype::I64 => combine_as::<i64>(op, dst, src, count),
            Dtype::U8 => combine_as::<u8>(op, dst, src, count),
            Dtype::U16 => combine_as::<u16>(op, dst, src, count),
            Dtype::U32 => combine_as::<u32>(op, dst, src, count),
            Dtype::U64 => combine_as::<u64>(op, dst, src, count),
            Dtype::F16 | Dtype::Bf16 | Dtype::F8E4m3 | Dtype::F8E5m2 => {
                narrow::combine(dtype, op, dst, &[dst, src], count);
            }
        }
    }
}

/// Combines what is at all of `sources` into `dst`, narrow types with one rounding at the end.
///
/// # Safety
/// As of [`combine`], for each source.
pub unsafe fn combine_all(
    dtype: Dtype,
    op: Reduction,
    dst: *mut u8,
    sources: &[*const u8],
    bytes: usize,
) {
    let count = bytes / dtype.bytes();
    if matches!(
        dtype,
        Dtype::F16 | Dtype::Bf16 | Dtype::F8E4m3 | Dtype::F8E5m2
    ) {
        // SAFETY: as of this function.
        unsafe { narrow::combine(dtype, op, dst, sources, count) };
        return;
    }
    // A stretch of the result stays in the first cache while all sources are added.
    const STRETCH: usize = 8 << 10;
    let mut at = 0;
    while at < bytes {
        let len = STRETCH.min(bytes - at);
        // SAFETY: within all places.
        unsafe {
            std::ptr::copy_nonoverlapping(sources[0].add(at), dst.add(at), len);
            for source in &sources[1..] {
                combine(dtype, op, dst.add(at), source.add(at), len);
            }
        }
        at += len;
    }
}

/// Divides by a number of ranks, at the end of an average; integers stay as they are.
///
/// # Safety
/// The place holds `bytes` bytes, a multiple of the type's, and may be written.
pub unsafe fn divide(dtype: Dtype, dst: *mut u8, bytes: usize, ranks: u32) {
    let count = bytes / dtype.bytes();
    // SAFETY: as of this function.
    unsafe {
        match dtype {
            Dtype::F64 => fold::<f64>(dst, dst, count, |a, _| a / f64::from(ranks)),
            Dtype::F32 => fold::<f32>(dst, dst, count, |a, _| a / ranks as f32),
            Dtype::F16 | Dtype::Bf16 | Dtype::F8E4m3 | Dtype::F8E5m2 => {
                narrow::divide(dtype, dst, count, ranks as f32);
            }
            _ => {}
        }
    }
}
