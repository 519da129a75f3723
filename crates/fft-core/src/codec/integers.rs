//! Blocks of integers in units of a step.
//!
//! A code is the integer plus 2^(bits − 1). To add 2^52 to a number rounds it to an integer, ties to even, and leaves
//! that in the low bits of the word; to add 2^52 + 2^(bits − 1) makes it the code at once. This takes no conversion
//! and no sign extension, so that every instruction set has what it needs.

use super::codes::{self, BLOCK};
use super::number::{INFINITY, LANES, MAGNITUDE, MANTISSA, from_word, rounded, wide, word};
use crate::{Precision, Real};

/// The word of 2^52.
const ROUNDER: u64 = (1023 + MANTISSA as u64) << MANTISSA;

/// The word, as `f64`, of what is too large to be sent as an integer: half the range of `T`. Below, rounding upwards
/// cannot end in infinity.
pub(super) const fn huge<T: Real>() -> u64 {
    match T::PRECISION {
        Precision::F32 => (1023 + 127) << MANTISSA,
        Precision::F64 => INFINITY - (1 << MANTISSA),
    }
}

/// The word of the largest magnitude; of NaNs and infinities, if there are any.
#[inline(always)]
pub(super) fn largest(x: &[f64; BLOCK]) -> u64 {
    let mut most = [0i64; LANES];
    for x in x.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            let magnitude = (x[lane].to_bits() & MAGNITUDE) as i64;
            most[lane] = if magnitude > most[lane] { magnitude } else { most[lane] };
        }
    }
    most.into_iter().fold(0, i64::max) as u64
}

/// Integers of so many bits, 2 to 52.
#[derive(Clone, Copy)]
pub(super) struct Integers {
    pub(super) step: f64,
    pub(super) bits: u32,
}

impl Integers {
    /// What the code 0 stands for, before the exponent of the rounder is taken off: 2^52 + 2^(bits − 1).
    #[inline(always)]
    fn middle(self) -> f64 {
        f64::from_bits(ROUNDER | 1 << (self.bits - 1))
    }

    /// Rounds to codes and adds up squared errors. Integers beyond the range are clipped.
    #[inline(always)]
    pub(super) fn quantise<T: Real>(
        self,
        x: &[f64; BLOCK],
        codes: &mut [u64; BLOCK],
        errors: &mut [f64; LANES],
    ) {
        let Self { step, bits } = self;
        let (inverse, middle) = (1.0 / step, self.middle());
        let (top, mask) = (((1u64 << (bits - 1)) - 1) as f64, (1 << bits) - 1);
        let codes = codes.as_chunks_mut::<LANES>().0;
        for (x, codes) in x.as_chunks::<LANES>().0.iter().zip(codes) {
            for lane in 0..LANES {
                let scaled = x[lane] * inverse;
                let scaled = if scaled < top { scaled } else { top };
                let scaled = if scaled > -top { scaled } else { -top };
                let code = scaled + middle;
                codes[lane] = code.to_bits() & mask;
                let error = rounded::<T>((code - middle) * step) - x[lane];
                errors[lane] += error * error;
            }
        }
    }

    /// What codes stand for.
    #[inline(always)]
    pub(super) fn restore(self, codes: &[u64; BLOCK]) -> [f64; BLOCK] {
        let middle = self.middle();
        codes.map(|code| (f64::from_bits(ROUNDER | code) - middle) * self.step)
    }
}

/// Real or imaginary parts of up to 64 elements; zeros behind the last.
#[inline(always)]
pub(super) fn take<T: Real>(reals: &[T], width: usize, plane: usize) -> [f64; BLOCK] {
    select(reals, width, plane, wide, 0.0)
}

/// Puts them back.
#[inline(always)]
pub(super) fn put<T: Real>(x: &[f64; BLOCK], reals: &mut [T], width: usize, plane: usize) {
    scatter(x, reals, width, plane, super::number::narrow);
}

/// Numbers as they are: a block of their words.
#[inline(always)]
pub(super) fn take_raw<T: Real>(reals: &[T], width: usize, plane: usize, out: &mut [u8]) {
    codes::store(&select(reals, width, plane, word, 0), 8 * size_of::<T>() as u32, out);
}

/// Puts them back.
#[inline(always)]
pub(super) fn put_raw<T: Real>(bytes: &[u8], reals: &mut [T], width: usize, plane: usize) {
    let words = codes::load(bytes, 8 * size_of::<T>() as u32);
    scatter(&words, reals, width, plane, from_word);
}

/// Bytes of a block of numbers as they are.
pub(super) const fn raw_bytes<T: Real>() -> usize {
    BLOCK * size_of::<T>()
}

#[inline(always)]
fn select<T: Real, U: Copy>(
    reals: &[T],
    width: usize,
    plane: usize,
    of: impl Fn(T) -> U,
    none: U,
) -> [U; BLOCK] {
    let mut x = [none; BLOCK];
    match (width, reals.len()) {
        (1, BLOCK) => (0..BLOCK).for_each(|i| x[i] = of(reals[i])),
        (2, len) if len == 2 * BLOCK => {
            let pairs = reals.as_chunks::<2>().0;
            match plane {
                0 => x.iter_mut().zip(pairs).for_each(|(x, pair)| *x = of(pair[0])),
                _ => x.iter_mut().zip(pairs).for_each(|(x, pair)| *x = of(pair[1])),
            }
        }
        _ => (x.iter_mut().zip(reals[plane..].iter().step_by(width)))
            .for_each(|(x, real)| *x = of(*real)),
    }
    x
}

#[inline(always)]
fn scatter<T: Real, U: Copy>(
    x: &[U; BLOCK],
    reals: &mut [T],
    width: usize,
    plane: usize,
    of: impl Fn(U) -> T,
) {
    match (width, reals.len()) {
        (1, BLOCK) => (0..BLOCK).for_each(|i| reals[i] = of(x[i])),
        (2, len) if len == 2 * BLOCK => {
            let pairs = reals.as_chunks_mut::<2>().0;
            match plane {
                0 => x.iter().zip(pairs).for_each(|(x, pair)| pair[0] = of(*x)),
                _ => x.iter().zip(pairs).for_each(|(x, pair)| pair[1] = of(*x)),
            }
        }
        _ => (x.iter().zip(reals[plane..].iter_mut().step_by(width)))
            .for_each(|(x, real)| *real = of(*x)),
    }
}
