//! [`Wire::Bits`](super::Wire::Bits): integers of so many bits, with a step for each block.

use super::BadMessage;
use super::codes::{self, BLOCK};
use super::frame::{Piece, Scheme, Shape};
use super::integers::{Blocks, GROUPS, Integers, huge, put, put_raw, raw_bytes, take_raw};
use super::number::{LANES, total};
use crate::Real;

/// The scale of a block that is sent as it is, because it has numbers that are not finite, or so large that rounding
/// might make them infinite. Of a step it would be a NaN.
const RAW: u16 = u16::MAX;
/// Bits of a word below its scale: the sign is dropped, 11 bits of exponent and 5 of mantissa stay.
const DROPPED: u32 = 47;

/// The body: a 16-bit scale for each block, zeros up to a multiple of 8 bytes, the blocks' codes, and the numbers of
/// blocks that are sent as they are.
pub(super) struct Bits {
    bits: u32,
    /// One over the largest integer; for few bits, where half a step matters, over what is clipped to it.
    part: f64,
}

impl Bits {
    pub(super) fn new(bits: u32) -> Self {
        let range = (1u64 << (bits - 1)) as f64;
        Self { bits, part: 1.0 / (range - if bits <= 5 { 0.5 } else { 1.0 }) }
    }

    /// The step of a block, rounded upwards. Not below the smallest normal number, so that it has an inverse.
    #[inline(always)]
    fn scale<T: Real>(&self, largest: u64) -> u16 {
        let step = f64::from_bits(largest) * self.part;
        let step = if step > f64::MIN_POSITIVE { step } else { f64::MIN_POSITIVE };
        let scale = ((step.to_bits() + (1 << DROPPED) - 1) >> DROPPED) as u16;
        match largest {
            0 => 0,
            largest if largest < huge::<T>() => scale,
            _ => RAW,
        }
    }
}

/// The step that a scale stands for.
#[inline(always)]
fn step(scale: u16) -> f64 {
    f64::from_bits(u64::from(scale) << DROPPED)
}

fn table(shape: Shape) -> usize {
    (2 * shape.blocks()).next_multiple_of(8)
}

impl<T: Real> Scheme<T> for Bits {
    fn fixed(&self, shape: Shape) -> usize {
        table(shape) + shape.blocks() * codes::bytes(self.bits)
    }

    #[inline(always)]
    fn encode(&self, piece: Piece, reals: &[T], body: &mut [u8], end: &mut usize) -> Option<f64> {
        let Piece { shape, first, .. } = piece;
        let (width, size) = (shape.width, codes::bytes(self.bits));
        let mut block = first / BLOCK * width;
        if first == 0 {
            body[2 * shape.blocks()..table(shape)].fill(0);
        }
        let (mut blocks, mut errors) = (Blocks::EMPTY, [0.0; LANES]);
        for groups in reals.chunks(GROUPS * BLOCK * width) {
            blocks.fill(groups, width);
            let scales = blocks.largest.map(|largest| self.scale::<T>(largest));
            for (n, group) in groups.chunks(BLOCK * width).enumerate() {
                for plane in 0..width {
                    let (x, scale) = (&blocks.x[n * width + plane], scales[n * width + plane]);
                    body[2 * block..][..2].copy_from_slice(&scale.to_le_bytes());
                    let (fixed, free) = body.split_at_mut(*end);
                    let out = &mut fixed[table(shape) + block * size..][..size];
                    block += 1;
                    if scale != RAW {
                        let integers = Integers { step: step(scale), bits: self.bits };
                        integers.encode::<T>(x, out, &mut errors);
                        continue;
                    }
                    if free.len() <= raw_bytes::<T>() {
                        return None;
                    }
                    take_raw(group, width, plane, &mut free[..raw_bytes::<T>()]);
                    let number = (*end - Scheme::<T>::fixed(self, shape)) / raw_bytes::<T>();
                    out.fill(0);
                    out[..8].copy_from_slice(&(number as u64).to_le_bytes());
                    *end += raw_bytes::<T>();
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
        let (width, size) = (shape.width, codes::bytes(self.bits));
        let mut block = first / BLOCK * width;
        for group in reals.chunks_mut(BLOCK * width) {
            for plane in 0..width {
                let scale = u16::from_le_bytes([body[2 * block], body[2 * block + 1]]);
                let step = step(scale);
                let from = &body[table(shape) + block * size..][..size];
                if scale == 0 {
                    put(&[0.0; BLOCK], group, width, plane);
                } else if step.is_finite() {
                    let integers = Integers { step, bits: self.bits };
                    put(&integers.decode(from), group, width, plane);
                } else {
                    let bad = |field, found, expected| BadMessage::Entry {
                        field,
                        at: block,
                        found,
                        expected,
                    };
                    if scale != RAW {
                        return Err(bad("scale", scale.into(), "one of a finite number, or 65535"));
                    }
                    let number =
                        u64::from_le_bytes(*from.first_chunk().expect("a block has 16 bytes"));
                    let expected = (*end - Scheme::<T>::fixed(self, shape)) / raw_bytes::<T>();
                    let behind = *end + raw_bytes::<T>();
                    if number != expected as u64 || behind > body.len() {
                        return Err(bad("raw block", number, "the next one in the message"));
                    }
                    put_raw(&body[*end..behind], group, width, plane);
                    *end = behind;
                }
                block += 1;
            }
        }
        Ok(())
    }
}
