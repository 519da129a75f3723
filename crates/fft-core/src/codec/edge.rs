//! Blocks of [`Wire::Bits`](super::Wire::Bits) with numbers that are not finite or might overflow.
//!
//! They are rare and coded one number at a time.

use super::codes::{self, BLOCK};
use super::number::{LANES, from_word, infinity, rounded, wide};
use super::scale::{scale, step};
use crate::base::Real;

/// Integers in units of a step, clamped to the range of the receiver's type.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    step: f64,
    bits: u32,
    /// Whether the outermost codes stand for NaN and -∞, and ∞.
    strange: bool,
}

/// The largest finite number.
fn most<T: Real>() -> f64 {
    wide(from_word::<T>(infinity::<T>() - 1))
}

/// The width of codes in a block with numbers that are not finite: one bit is left for its scale.
fn strange_bits(bits: u32) -> u32 {
    (bits - 1).max(2)
}

impl Edge {
    /// Codes of finite numbers.
    pub(super) fn new(step: f64, bits: u32) -> Self {
        Self { step, bits, strange: false }
    }

    /// Whether all integers of this width times the step are finite in `T`.
    #[inline(always)]
    pub(super) fn is_far<T: Real>(step: f64, bits: u32) -> bool {
        (1u64 << (bits - 1)) as f64 * step <= most::<T>()
    }

    fn top(self) -> i64 {
        (1 << (self.bits - 1)) - if self.strange { 2 } else { 1 }
    }

    fn code(self, x: f64) -> u64 {
        let (middle, top) = (1i64 << (self.bits - 1), self.top() as f64);
        let inverse = if self.step == 0.0 { 0.0 } else { 1.0 / self.step };
        if x.is_nan() {
            0
        } else if x.is_finite() {
            ((x * inverse).clamp(-top, top).round_ties_even() as i64 + middle) as u64
        } else {
            (middle + (self.top() + 1) * x.signum() as i64) as u64
        }
    }

    fn value<T: Real>(self, code: u64) -> f64 {
        let integer = code as i64 - (1 << (self.bits - 1));
        if !self.strange || integer.abs() <= self.top() {
            return (integer as f64 * self.step).clamp(-most::<T>(), most::<T>());
        }
        if code == 0 { f64::NAN } else { f64::INFINITY * integer.signum() as f64 }
    }

    /// Rounds, adds squared errors of finite numbers, and writes codes.
    #[cold]
    pub(super) fn encode<T: Real>(
        self,
        x: &[f64; BLOCK],
        out: &mut [u8],
        errors: &mut [f64; LANES],
    ) {
        for x in x.iter().filter(|x| x.is_finite()) {
            let error = rounded::<T>(self.value::<T>(self.code(*x))) - x;
            errors[0] += error * error;
        }
        codes::write(self.bits, out, |i| self.code(x[i]));
    }

    #[cold]
    pub(super) fn decode<T: Real>(self, from: &[u8]) -> [f64; BLOCK] {
        codes::load(from, self.bits).map(|code| self.value::<T>(code))
    }

    /// Encodes a block that is not finite. Its scale follows the codes if an integer is not 0.
    #[cold]
    pub(super) fn encode_strange<T: Real>(
        bits: u32,
        x: &[f64; BLOCK],
        out: &mut [u8],
        errors: &mut [f64; LANES],
    ) {
        let mut edge = Self { step: 0.0, bits: strange_bits(bits), strange: true };
        let largest = x.iter().filter(|x| x.is_finite()).fold(0f64, |most, x| most.max(x.abs()));
        let scale = match edge.top() {
            top if top > 0 && largest > 0.0 => scale(largest / top as f64),
            _ => 0,
        };
        edge.step = step(scale);
        let (codes, rest) = out.split_at_mut(codes::bytes(edge.bits));
        edge.encode::<T>(x, codes, errors);
        rest.fill(0);
        if let Some(place) = rest.first_chunk_mut() {
            *place = scale.to_le_bytes();
        }
    }

    #[cold]
    pub(super) fn decode_strange<T: Real>(bits: u32, from: &[u8]) -> Result<[f64; BLOCK], u16> {
        let (codes, rest) = from.split_at(codes::bytes(strange_bits(bits)));
        let scale = rest.first_chunk().map_or(0, |scale| u16::from_le_bytes(*scale));
        let step = step(scale);
        let edge = Self { step, bits: strange_bits(bits), strange: true };
        if step.is_finite() { Ok(edge.decode::<T>(codes)) } else { Err(scale) }
    }
}
