//! [`Wire::Bits`](super::Wire::Bits): integers of equal width, with a step per block.

use super::codec::BadMessage;
use super::codes::{self, BLOCK};
use super::edge::Edge;
use super::frame::{Piece, Scheme, Shape};
use super::integers::{Blocks, GROUPS, Integers, huge, put};
use super::number::{INFINITY, LANES, total};
use super::scale::{scale, step};
use crate::base::Real;

/// The scale of a block with numbers that are not finite. As a step it would be a NaN.
const STRANGE: u16 = u16::MAX;

/// The body: a 16-bit scale per block, zeros up to a multiple of 8 bytes, the codes of the blocks.
pub(super) struct Bits {
    bits: u32,
    /// The inverse of the largest integer; with few bits, of the largest value that rounds to it.
    part: f64,
}

impl Bits {
    pub(super) fn new(bits: u32) -> Self {
        let range = (1u64 << (bits - 1)) as f64;
        Self { bits, part: 1.0 / (range - if bits <= 5 { 0.5 } else { 1.0 }) }
    }

    #[inline(always)]
    fn scale(&self, largest: u64) -> u16 {
        let scale = scale(f64::from_bits(largest) * self.part);
        match largest {
            0 => 0,
            largest if largest < INFINITY => scale,
            _ => STRANGE,
        }
    }
}

fn table(shape: Shape) -> usize {
    (2 * shape.blocks()).next_multiple_of(8)
}

impl<T: Real> Scheme<T> for Bits {
    fn fixed(&self, shape: Shape) -> usize {
        table(shape) + shape.blocks() * codes::bytes(self.bits)
    }

    #[inline(always)]
    fn encode(&self, piece: Piece, reals: &[T], body: &mut [u8], _: &mut usize) -> Option<f64> {
        let Piece { shape, first, .. } = piece;
        let (width, size) = (shape.width, codes::bytes(self.bits));
        let mut block = first / BLOCK * width;
        if first == 0 {
            body[2 * shape.blocks()..table(shape)].fill(0);
        }
        let (mut blocks, mut errors) = (Blocks::EMPTY, [0.0; LANES]);
        for groups in reals.chunks(GROUPS * BLOCK * width) {
            blocks.fill(groups, width);
            let scales = blocks.largest.map(|largest| self.scale(largest));
            for n in 0..groups.len().div_ceil(BLOCK * width) * width {
                let (x, scale, bits) = (&blocks.x[n], scales[n], self.bits);
                body[2 * block..][..2].copy_from_slice(&scale.to_le_bytes());
                let out = &mut body[table(shape) + block * size..][..size];
                if blocks.largest[n] < huge::<T>() {
                    Integers { step: step(scale), bits }.encode::<T>(x, out, &mut errors);
                } else if scale != STRANGE {
                    Edge::new(step(scale), bits).encode::<T>(x, out, &mut errors);
                } else {
                    Edge::encode_strange::<T>(bits, x, out, &mut errors);
                }
                block += 1;
            }
        }
        Some(total(errors))
    }

    #[inline(always)]
    fn decode(
        &self,
        piece: Piece,
        body: &[u8],
        _: &mut usize,
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
                let bits = self.bits;
                if scale == 0 {
                    put(&[0.0; BLOCK], group, width, plane);
                } else if Edge::is_far::<T>(step, bits) {
                    put(&Integers { step, bits }.decode(from), group, width, plane);
                } else {
                    let found = match scale {
                        STRANGE => Edge::decode_strange::<T>(bits, from),
                        _ if step.is_finite() => Ok(Edge::new(step, bits).decode::<T>(from)),
                        _ => Err(scale),
                    };
                    let (field, expected) = ("scale", "one of a finite number, or 65535");
                    let bad = |found: u16| {
                        let found = found.into();
                        BadMessage::Entry { field, at: block, found, expected }
                    };
                    put(&found.map_err(bad)?, group, width, plane);
                }
                block += 1;
            }
        }
        Ok(())
    }
}
