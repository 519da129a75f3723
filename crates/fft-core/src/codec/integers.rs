//! Blocks of integers in units of a step.
//!
//! A code is an integer plus 2^(bits − 1). Adding 2^52 to a number rounds it to an integer, ties to
//! even, in the low bits of the word. Adding 2^52 + 2^(bits − 1) makes the code at once. This needs
//! neither conversion nor sign extension, which some instruction sets lack.

use super::codes::{self, BLOCK};
use super::number::{INFINITY, LANES, MANTISSA, add, from_word, largest, rounded, wide, word};
use crate::base::{Precision, Real};

/// The word of 2^52.
const ROUNDER: u64 = (1023 + MANTISSA as u64) << MANTISSA;

/// The word of half the range of `T`. Rounding smaller numbers up cannot give infinity.
pub(super) const fn huge<T: Real>() -> u64 {
    match T::PRECISION {
        Precision::F32 => (1023 + 127) << MANTISSA,
        Precision::F64 => INFINITY - (1 << MANTISSA),
    }
}

/// Integers of 2 to 52 bits.
#[derive(Clone, Copy)]
pub(super) struct Integers {
    pub(super) step: f64,
    pub(super) bits: u32,
}

impl Integers {
    /// The code 0 with the exponent of the rounder: 2^52 + 2^(bits − 1).
    #[inline(always)]
    fn middle(self) -> f64 {
        f64::from_bits(ROUNDER | 1 << (self.bits - 1))
    }

    /// Rounds, adds squared errors and writes codes. Numbers are in range up to rounding, with at
    /// most 5 bits up to half a step. The step 0 is for zeros.
    #[inline(always)]
    pub(super) fn encode<T: Real>(
        self,
        x: &[f64; BLOCK],
        out: &mut [u8],
        errors: &mut [f64; LANES],
    ) {
        // Common widths are compiled apart, with constant shifts and masks. Scaling errs by at most
        // 2^-51, less than half an integer of up to 50 bits.
        match self.bits {
            8 => Self { bits: 8, ..self }.encode_as::<T, false>(x, out, errors),
            16 => Self { bits: 16, ..self }.encode_as::<T, false>(x, out, errors),
            32 => Self { bits: 32, ..self }.encode_as::<T, false>(x, out, errors),
            6..=50 => self.encode_as::<T, false>(x, out, errors),
            _ => self.encode_as::<T, true>(x, out, errors),
        }
    }

    #[inline(always)]
    fn encode_as<T: Real, const CLIP: bool>(
        self,
        x: &[f64; BLOCK],
        out: &mut [u8],
        errors: &mut [f64; LANES],
    ) {
        let Self { step, bits } = self;
        let middle = self.middle();
        let inverse = if step == 0.0 { 0.0 } else { 1.0 / step };
        let (top, mask) = (((1u64 << (bits - 1)) - 1) as f64, (1 << bits) - 1);
        let mut squares = [0.0; BLOCK];
        codes::write(bits, out, |i| {
            let scaled = x[i] * inverse;
            let scaled = if !CLIP || scaled < top { scaled } else { top };
            let scaled = if !CLIP || scaled > -top { scaled } else { -top };
            let code = scaled + middle;
            let error = rounded::<T>((code - middle) * step) - x[i];
            squares[i] = error * error;
            code.to_bits() & mask
        });
        add(&squares, errors);
    }

    /// The values of the codes of a block.
    #[inline(always)]
    pub(super) fn decode(self, from: &[u8]) -> [f64; BLOCK] {
        match self.bits {
            8 => Self { bits: 8, ..self }.decode_as(from),
            16 => Self { bits: 16, ..self }.decode_as(from),
            32 => Self { bits: 32, ..self }.decode_as(from),
            _ => self.decode_as(from),
        }
    }

    #[inline(always)]
    fn decode_as(self, from: &[u8]) -> [f64; BLOCK] {
        let middle = self.middle();
        let codes = codes::load(from, self.bits);
        codes.map(|code| (f64::from_bits(ROUNDER | code) - middle) * self.step)
    }
}

/// A few groups of 64 elements as blocks of one plane, and the largest magnitude of each.
///
/// With few groups, reading and encoding alternate; with two, no block waits for its maximum.
pub(super) struct Blocks {
    pub(super) x: [[f64; BLOCK]; MOST],
    pub(super) largest: [u64; MOST],
}

/// Groups that are read together.
pub(super) const GROUPS: usize = 2;
const MOST: usize = 2 * GROUPS;

impl Blocks {
    pub(super) const EMPTY: Self = Self { x: [[0.0; BLOCK]; MOST], largest: [0; MOST] };

    /// Splits numbers into planes and pads them with zeros.
    #[inline(always)]
    pub(super) fn fill<T: Real>(&mut self, reals: &[T], width: usize) {
        let groups = self.x.chunks_mut(width).zip(self.largest.chunks_mut(width));
        for (group, (blocks, most)) in reals.chunks(BLOCK * width).zip(groups) {
            split(group, wide, 0.0, blocks);
            for (x, most) in blocks.iter().zip(most) {
                *most = largest(x);
            }
        }
    }
}

/// Writes the real or the imaginary parts of up to 64 elements.
#[inline(always)]
pub(super) fn put<T: Real>(x: &[f64; BLOCK], reals: &mut [T], width: usize, plane: usize) {
    scatter(x, reals, width, plane, super::number::narrow);
}

/// Stores the words of a block.
#[inline(always)]
pub(super) fn take_raw<T: Real>(reals: &[T], width: usize, plane: usize, out: &mut [u8]) {
    let mut words = [[0; BLOCK]; 2];
    split(reals, word, 0, &mut words[..width]);
    codes::write(8 * size_of::<T>() as u32, out, |i| words[plane][i]);
}

/// Writes a block of words as numbers.
#[inline(always)]
pub(super) fn put_raw<T: Real>(bytes: &[u8], reals: &mut [T], width: usize, plane: usize) {
    let words = codes::load(bytes, 8 * size_of::<T>() as u32);
    scatter(&words, reals, width, plane, from_word);
}

pub(super) const fn raw_bytes<T: Real>() -> usize {
    BLOCK * size_of::<T>()
}

/// Splits a group of elements into one block per plane, padded with `none`.
#[inline(always)]
fn split<T: Real, U: Copy>(group: &[T], of: impl Fn(T) -> U, none: U, blocks: &mut [[U; BLOCK]]) {
    match blocks {
        [x] if group.len() == BLOCK => {
            (0..BLOCK).for_each(|i| x[i] = of(group[i]));
        }
        // Both at once: vector instructions use every number that they load.
        [re, im] if group.len() == 2 * BLOCK => {
            let pairs = group.as_chunks::<2>().0;
            (0..BLOCK).for_each(|i| (re[i], im[i]) = (of(pairs[i][0]), of(pairs[i][1])));
        }
        _ => {
            let width = blocks.len();
            blocks.as_flattened_mut().fill(none);
            for (n, real) in group.iter().enumerate() {
                blocks[n % width][n / width] = of(*real);
            }
        }
    }
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
