//! Blocks of integers in units of a step.
//!
//! A code is the integer plus 2^(bits − 1). To add 2^52 to a number rounds it to an integer, ties to even, and leaves
//! that in the low bits of the word; to add 2^52 + 2^(bits − 1) makes it the code at once. This takes no conversion
//! and no sign extension, so that every instruction set has what it needs.

use super::codes::{self, BLOCK};
use super::number::{INFINITY, LANES, MANTISSA, add, from_word, largest, rounded, wide, word};
use crate::base::{Precision, Real};

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

    /// Rounds, adds up squared errors and writes codes. Numbers are in range, but for rounding, or with up to 5 bits half
    /// a step beyond. A step of 0 is for zeros.
    #[inline(always)]
    pub(super) fn encode<T: Real>(
        self,
        x: &[f64; BLOCK],
        out: &mut [u8],
        errors: &mut [f64; LANES],
    ) {
        // What is common is compiled on its own, so that there are no shifts and masks by variable numbers of bits. To
        // scale is wrong by 2^-51 at most, which is less than half an integer of up to 50 bits.
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

    /// What the codes in a block stand for.
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

/// A few groups of 64 elements as blocks of one plane each, in the order of the message, and the largest magnitude in
/// each as a word. Few, so that memory is read in small helpings while others are encoded; more than one, so that no
/// block waits for its own largest number.
pub(super) struct Blocks {
    pub(super) x: [[f64; BLOCK]; MOST],
    pub(super) largest: [u64; MOST],
}

/// Groups that are taken together.
pub(super) const GROUPS: usize = 2;
const MOST: usize = 2 * GROUPS;

impl Blocks {
    pub(super) const EMPTY: Self = Self { x: [[0.0; BLOCK]; MOST], largest: [0; MOST] };

    /// Sorts numbers into planes. Behind the last there are zeros.
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

/// RmaWindow real or imaginary parts of up to 64 elements back.
#[inline(always)]
pub(super) fn put<T: Real>(x: &[f64; BLOCK], reals: &mut [T], width: usize, plane: usize) {
    scatter(x, reals, width, plane, super::number::narrow);
}

/// Numbers as they are: a block of their words.
#[inline(always)]
pub(super) fn take_raw<T: Real>(reals: &[T], width: usize, plane: usize, out: &mut [u8]) {
    let mut words = [[0; BLOCK]; 2];
    split(reals, word, 0, &mut words[..width]);
    codes::write(8 * size_of::<T>() as u32, out, |i| words[plane][i]);
}

/// RmaWindow them back.
#[inline(always)]
pub(super) fn put_raw<T: Real>(bytes: &[u8], reals: &mut [T], width: usize, plane: usize) {
    let words = codes::load(bytes, 8 * size_of::<T>() as u32);
    scatter(&words, reals, width, plane, from_word);
}

/// Bytes of a block of numbers as they are.
pub(super) const fn raw_bytes<T: Real>() -> usize {
    BLOCK * size_of::<T>()
}

/// Sorts a group of elements into one block per plane, with `none` behind the last.
#[inline(always)]
fn split<T: Real, U: Copy>(group: &[T], of: impl Fn(T) -> U, none: U, blocks: &mut [[U; BLOCK]]) {
    match blocks {
        [x] if group.len() == BLOCK => {
            (0..BLOCK).for_each(|i| x[i] = of(group[i]));
        }
        // Both at once: every number that is loaded is used, so that vectors need no remainder.
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
