//! [`Wire::Tolerance`](super::Wire::Tolerance): integers with one step and a width per block.
//!
//! A step of single precision has few digits, so that its multiples are exact in that precision.
//! Receivers therefore round nothing, and senders compute errors without double precision.

use super::codec::BadMessage;
use super::codes::{self, BLOCK};
use super::frame::{Piece, Scheme, Shape};
use super::integers::{Blocks, GROUPS, Integers, huge, put, put_raw, raw_bytes, take_raw};
use super::number::{LANES, add, total};
use crate::base::{Precision, Real};

/// The width that marks a raw block.
const RAW: u32 = (1 << WIDTH) - 1;
/// The widest integers of double precision. In single precision raw blocks are shorter.
const WIDEST: u32 = 52;

/// The body: the step, a width per block, zeros to a multiple of 8 bytes, the codes.
pub(super) struct Tolerance;

const STEP: usize = size_of::<f64>();
const WIDTH: usize = 6;

/// The offset of the codes.
fn codes_at(shape: Shape) -> usize {
    STEP + (WIDTH * shape.blocks()).div_ceil(8).next_multiple_of(8)
}

/// The first byte and bit of a block's width. The last width may end in one byte.
fn width_at(block: usize) -> (usize, usize) {
    (STEP + WIDTH * block / 8, WIDTH * block % 8)
}

/// Stores the width of a block in a zeroed table.
fn put_width(width: u32, block: usize, body: &mut [u8]) {
    let (at, shift) = width_at(block);
    let [low, high] = ((width as u16) << shift).to_le_bytes();
    body[at] |= low;
    if high != 0 {
        body[at + 1] |= high;
    }
}

fn get_width(block: usize, body: &[u8]) -> u32 {
    let (at, shift) = width_at(block);
    let word = u16::from_le_bytes([body[at], body.get(at + 1).copied().unwrap_or(0)]);
    u32::from(word >> shift) & RAW
}

/// Digits of a step of single precision: its multiples of up to 18 bits are exact.
const DIGITS: u32 = 6;

/// The largest valid step that is not above `wanted`.
pub(super) fn step_of<T: Real>(wanted: f64) -> f64 {
    match T::PRECISION {
        Precision::F64 => wanted,
        Precision::F32 => f64::from_bits(wanted.to_bits() >> (53 - DIGITS) << (53 - DIGITS)),
    }
}

/// Whether integers can be in units of this step.
fn is_step(step: f64) -> bool {
    step.is_normal() && step > 0.0
}

/// The width of a block's integers; `None` if it is raw.
#[inline(always)]
fn width<T: Real>(largest: u64, step: f64) -> Option<u32> {
    if largest >= huge::<T>() {
        return None;
    }
    // Scaled as the numbers will be: the largest number bounds the others.
    let most = f64::from_bits(largest) * (1.0 / step);
    if most >= (1u64 << (WIDEST - 1)) as f64 - 1.0 {
        return None;
    }
    let integer = most.round_ties_even() as u64;
    let bits = match integer {
        0 => 0,
        _ => u64::BITS - integer.leading_zeros() + 1,
    };
    (codes::bytes(bits) < raw_bytes::<T>()).then_some(bits)
}

impl<T: Real> Scheme<T> for Tolerance {
    fn varies(&self) -> bool {
        true
    }

    fn fixed(&self, shape: Shape) -> usize {
        codes_at(shape)
    }

    #[inline(always)]
    fn encode(&self, piece: Piece, reals: &[T], body: &mut [u8], end: &mut usize) -> Option<f64> {
        let Piece { shape, first, step: wanted } = piece;
        let step = step_of::<T>(wanted);
        let (mut blocks, mut errors) = (Blocks::EMPTY, [0.0; LANES]);
        let mut block = first / BLOCK * shape.width;
        if first == 0 {
            if !is_step(step) {
                return None;
            }
            body[..STEP].copy_from_slice(&step.to_bits().to_le_bytes());
            body[STEP..codes_at(shape)].fill(0);
        }
        for groups in reals.chunks(GROUPS * BLOCK * shape.width) {
            blocks.fill(groups, shape.width);
            let widths = blocks.largest.map(|largest| width::<T>(largest, step));
            for (n, group) in groups.chunks(BLOCK * shape.width).enumerate() {
                for plane in 0..shape.width {
                    let place = n * shape.width + plane;
                    let (x, bits) = (&blocks.x[place], widths[place]);
                    let behind = *end + bits.map_or(raw_bytes::<T>(), codes::bytes);
                    if behind >= body.len() {
                        return None;
                    }
                    let out = &mut body[*end..behind];
                    match bits {
                        None => take_raw(group, shape.width, plane, out),
                        Some(0) => add(&x.map(|x| x * x), &mut errors),
                        Some(bits) => Integers { step, bits }.encode::<T>(x, out, &mut errors),
                    }
                    put_width(bits.unwrap_or(RAW), block, body);
                    *end = behind;
                    block += 1;
                }
            }
        }
        Some(total(errors))
    }

    #[inline(always)]
    fn decode(
        &self,
        piece: Piece,
        body: &[u8],
        end: &mut usize,
        reals: &mut [T],
    ) -> Result<(), BadMessage> {
        let Piece { shape, first, .. } = piece;
        let word = u64::from_le_bytes(*body.first_chunk().expect("a body begins with a step"));
        let step = f64::from_bits(word);
        if !is_step(step) {
            let expected = "the bits of a positive normal number";
            return Err(BadMessage::Entry { field: "step", at: 0, found: word, expected });
        }
        let mut block = first / BLOCK * shape.width;
        for group in reals.chunks_mut(BLOCK * shape.width) {
            for plane in 0..shape.width {
                let width = get_width(block, body);
                let bad = |expected| BadMessage::Entry {
                    field: "width",
                    at: block,
                    found: width.into(),
                    expected,
                };
                let bits = match width {
                    RAW => None,
                    width if width == 1 || width > WIDEST.min(8 * size_of::<T>() as u32 - 1) => {
                        return Err(bad("0, or from 2 to 52, of f32 to 31, or 63"));
                    }
                    width => Some(width),
                };
                let behind = *end + bits.map_or(raw_bytes::<T>(), codes::bytes);
                let Some(from) = body.get(*end..behind) else {
                    return Err(bad("no more than what is left of the message"));
                };
                match bits {
                    None => put_raw(from, group, shape.width, plane),
                    Some(0) => put(&[0.0; BLOCK], group, shape.width, plane),
                    Some(bits) => {
                        let x = Integers { step, bits }.decode(from);
                        put(&x, group, shape.width, plane);
                    }
                }
                *end = behind;
                block += 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_single_precision_have_six_digits() {
        for wanted in [1e-2, 1.0, 3.0, 1.0 / 3.0, f64::MIN_POSITIVE, f64::MAX, 1e-30] {
            assert_eq!(step_of::<f64>(wanted), wanted);
            let step = step_of::<f32>(wanted);
            assert!(is_step(step) && step <= wanted, "{wanted:e}: {step:e}");
            assert!(step > wanted * (1.0 - 1.0 / 32.0), "{wanted:e}: {step:e}");
            assert_eq!(step.to_bits().trailing_zeros().min(47), 47, "{wanted:e}: {step:e}");
        }
        for none in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, 1e-310] {
            assert!(!is_step(step_of::<f32>(none)), "{none:e}");
        }
    }
}
