//! Reals as words, for loops that compile to vector instructions.

use super::codes::BLOCK;
use crate::base::{Precision, Real};

/// Explicit mantissa bits of `f64`.
pub(super) const MANTISSA: u32 = f64::MANTISSA_DIGITS - 1;
/// The word of the `f64` infinity; NaNs are above.
pub(super) const INFINITY: u64 = 0x7FF << MANTISSA;
/// All bits but the sign.
pub(super) const MAGNITUDE: u64 = u64::MAX >> 1;

#[inline(always)]
pub(super) fn word<T: Real>(x: T) -> u64 {
    match T::PRECISION {
        Precision::F32 => bytemuck::cast::<T, u32>(x).into(),
        Precision::F64 => bytemuck::cast(x),
    }
}

#[inline(always)]
pub(super) fn from_word<T: Real>(word: u64) -> T {
    match T::PRECISION {
        Precision::F32 => bytemuck::cast(word as u32),
        Precision::F64 => bytemuck::cast(word),
    }
}

#[inline(always)]
pub(super) fn wide<T: Real>(x: T) -> f64 {
    match T::PRECISION {
        Precision::F32 => bytemuck::cast::<T, f32>(x).into(),
        Precision::F64 => bytemuck::cast(x),
    }
}

#[inline(always)]
pub(super) fn narrow<T: Real>(x: f64) -> T {
    match T::PRECISION {
        Precision::F32 => bytemuck::cast(x as f32),
        Precision::F64 => bytemuck::cast(x),
    }
}

#[inline(always)]
pub(super) fn rounded<T: Real>(x: f64) -> f64 {
    wide(narrow::<T>(x))
}

pub(super) const fn mantissa<T: Real>() -> u32 {
    match T::PRECISION {
        Precision::F32 => f32::MANTISSA_DIGITS - 1,
        Precision::F64 => MANTISSA,
    }
}

pub(super) const fn infinity<T: Real>() -> u64 {
    match T::PRECISION {
        Precision::F32 => 0xFF << 23,
        Precision::F64 => INFINITY,
    }
}

/// 2^exponent, for normal exponents.
#[inline(always)]
pub(super) const fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << MANTISSA)
}

/// Accumulators of sums. Their number is the same on all instruction sets, because it changes
/// results.
pub(super) const LANES: usize = 8;

#[inline(always)]
pub(super) fn add(x: &[f64; BLOCK], lanes: &mut [f64; LANES]) {
    for x in x.as_chunks::<LANES>().0 {
        (0..LANES).for_each(|lane| lanes[lane] += x[lane]);
    }
}

/// The word of the largest magnitude, with all lower 32 bits set if any upper bit is.
///
/// Maxima of half words are faster. A NaN or infinity is the largest.
#[inline(always)]
pub(super) fn largest<T: Real>(x: &[T; BLOCK]) -> u64 {
    let magnitude = |x: &T| wide(*x).to_bits() & MAGNITUDE;
    let high = x.iter().map(|x| (magnitude(x) >> 32) as i32).fold(0, i32::max);
    match high as u64 {
        0 => x.iter().map(magnitude).fold(0, u64::max),
        high => high << 32 | u64::from(u32::MAX),
    }
}

pub(super) fn total(lanes: [f64; LANES]) -> f64 {
    lanes.iter().sum()
}
