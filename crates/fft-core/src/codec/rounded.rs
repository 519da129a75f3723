//! Shorter floating-point formats: `F32`, `F16`, `Bf16` and `Mantissa` of [`Wire`](super::Wire).
//!
//! Rounding is to nearest, ties to even, in integer arithmetic with the same result on every
//! machine. Conversion instructions of 16-bit formats would round twice.

use super::codec::BadMessage;
use super::codes::{self, BLOCK};
use super::frame::{Piece, Scheme, Shape};
use super::number::{
    INFINITY, LANES, MAGNITUDE, MANTISSA, add, from_word, infinity, largest, mantissa, narrow,
    power, rounded, total, wide, word,
};
use crate::base::Real;

/// Reals that share a scale.
const SPAN: usize = 256;
/// Exponents of scales: both the power and its inverse are normal numbers.
const SCALES: std::ops::RangeInclusive<i32> = -1022..=1022;

#[derive(Clone, Copy, Debug)]
pub(super) enum Format {
    F32,
    F16,
    Bf16,
    Mantissa(u32),
}

/// The body: a 16-bit scale per span except of mantissas, zeros to a multiple of 8, the codes.
pub(super) struct Rounded(pub(super) Format);

impl Rounded {
    fn bits<T: Real>(&self) -> u32 {
        match self.0 {
            Format::F32 => 32,
            Format::F16 | Format::Bf16 => 16,
            Format::Mantissa(bits) => 8 * size_of::<T>() as u32 - mantissa::<T>() + bits,
        }
    }

    fn table(&self, shape: Shape) -> usize {
        match self.0 {
            Format::Mantissa(_) => 0,
            _ => (2 * shape.reals().div_ceil(SPAN)).next_multiple_of(8),
        }
    }
}

impl<T: Real> Scheme<T> for Rounded {
    /// `Mantissa(0)` has no code for a NaN.
    fn varies(&self) -> bool {
        matches!(self.0, Format::Mantissa(0))
    }

    fn fixed(&self, shape: Shape) -> usize {
        self.table(shape) + shape.reals().div_ceil(BLOCK) * codes::bytes(self.bits::<T>())
    }

    #[inline(always)]
    fn encode(&self, piece: Piece, reals: &[T], body: &mut [u8], _: &mut usize) -> Option<f64> {
        let Piece { shape, first, .. } = piece;
        let size = codes::bytes(self.bits::<T>());
        let (scales, blocks) = body.split_at_mut(self.table(shape));
        if first == 0 {
            scales.fill(0);
        }
        let first = first * shape.width;
        let mut errors = [0.0; LANES];
        for (n, span) in reals.chunks(SPAN).enumerate() {
            let out = &mut blocks[(first + n * SPAN) / BLOCK * size..];
            let scale = &mut scales.get_mut(2 * (first / SPAN + n)..);
            let out = out.chunks_exact_mut(size);
            match self.0 {
                Format::F32 => scaled(Single, span, scale, out, &mut errors),
                Format::F16 => scaled(Half, span, scale, out, &mut errors),
                Format::Bf16 => scaled(Brain, span, scale, out, &mut errors),
                Format::Mantissa(bits) => trimmed(bits, span, out, &mut errors)?,
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
        let size = codes::bytes(self.bits::<T>());
        let (scales, blocks) = body.split_at(self.table(shape));
        let first = first * shape.width;
        for (n, span) in reals.chunks_mut(SPAN).enumerate() {
            let from = blocks[(first + n * SPAN) / BLOCK * size..].chunks_exact(size);
            let at = first / SPAN + n;
            let scale = || {
                let scale = i16::from_le_bytes([scales[2 * at], scales[2 * at + 1]]);
                let bad = BadMessage::Entry {
                    field: "scale",
                    at,
                    found: scale as u16 as u64,
                    expected: "an exponent from -1022 to 1022",
                };
                SCALES.contains(&scale.into()).then_some(power(scale.into())).ok_or(bad)
            };
            match self.0 {
                Format::F32 => unscaled(Single, scale()?, from, span),
                Format::F16 => unscaled(Half, scale()?, from, span),
                Format::Bf16 => unscaled(Brain, scale()?, from, span),
                Format::Mantissa(bits) => untrimmed(bits, from, span),
            }
        }
        Ok(())
    }
}

/// A format with fewer bits of exponent and mantissa than `f64`.
trait Short: Copy {
    const EXPONENT: u32;
    const MANTISSA: u32;
    const BITS: u32 = 1 + Self::EXPONENT + Self::MANTISSA;
    /// The exponent of scaled numbers: the second largest, so that rounding up stays in range.
    const TOP: i32 = (1 << (Self::EXPONENT - 1)) - 2;
    /// The difference of biases at the place of an `f64` exponent.
    const REBIAS: u64 = (1024 - (1 << (Self::EXPONENT - 1))) << MANTISSA;
    const DROPPED: u32 = MANTISSA - Self::MANTISSA;
    /// The least normal number.
    const LEAST: f64 = power(-Self::TOP);
    /// A power of two that makes multiples of the least number integers when added.
    const ROUNDER: f64 = power(MANTISSA as i32 - Self::TOP - Self::MANTISSA as i32);

    /// Rounds a number in range, with `special` any number. Returns the code and its value.
    #[inline(always)]
    fn round(self, x: f64, special: bool) -> (u64, f64) {
        let magnitude = x.to_bits() & MAGNITUDE;
        let sign = x.to_bits() ^ magnitude;
        // Adding and subtracting a number larger by the dropped digits rounds these away.
        let power = f64::from_bits(magnitude & INFINITY);
        let power = if power > Self::LEAST { power } else { Self::LEAST };
        let larger = power * (1u64 << Self::DROPPED) as f64;
        let near = (f64::from_bits(magnitude) + larger) - larger;
        // Subnormal numbers borrow a leading digit.
        let small = near < Self::LEAST;
        let normal = near + if small { Self::LEAST } else { 0.0 };
        let code = normal.to_bits().wrapping_sub(Self::REBIAS) >> Self::DROPPED;
        let code = code - if small { 1 << Self::MANTISSA } else { 0 };
        let (code, value) = if special && magnitude >= INFINITY {
            let quiet = u64::from(magnitude > INFINITY) << (Self::MANTISSA - 1);
            (((1 << Self::EXPONENT) - 1) << Self::MANTISSA | quiet, magnitude)
        } else {
            (code, near.to_bits())
        };
        (sign >> (64 - Self::BITS) | code, f64::from_bits(sign | value))
    }

    #[inline(always)]
    fn value(self, code: u64) -> f64 {
        let sign = code >> (Self::BITS - 1) << 63;
        let magnitude = code & ((1 << (Self::BITS - 1)) - 1);
        let exponent = magnitude >> Self::MANTISSA;
        let shifted = magnitude << Self::DROPPED;
        let small = f64::from_bits(Self::ROUNDER.to_bits() + magnitude) - Self::ROUNDER;
        let normal = if exponent == 0 { small.to_bits() } else { shifted + Self::REBIAS };
        let special = exponent == (1 << Self::EXPONENT) - 1;
        f64::from_bits(sign | if special { shifted | INFINITY } else { normal })
    }
}

#[derive(Clone, Copy)]
struct Half;
impl Short for Half {
    const EXPONENT: u32 = 5;
    const MANTISSA: u32 = 10;
}

#[derive(Clone, Copy)]
struct Brain;
impl Short for Brain {
    const EXPONENT: u32 = 8;
    const MANTISSA: u32 = 7;
}

#[derive(Clone, Copy)]
struct Single;
impl Short for Single {
    const EXPONENT: u32 = 8;
    const MANTISSA: u32 = 23;

    /// Conversion by the processor's instruction.
    #[inline(always)]
    fn round(self, x: f64, _: bool) -> (u64, f64) {
        let near = x as f32;
        (near.to_bits().into(), near.into())
    }

    #[inline(always)]
    fn value(self, code: u64) -> f64 {
        f32::from_bits(code as u32).into()
    }
}

/// Encodes a span in a short format.
#[inline(always)]
fn scaled<'a, T: Real, F: Short>(
    format: F,
    span: &[T],
    place: &mut Option<&mut [u8]>,
    out: impl Iterator<Item = &'a mut [u8]>,
    errors: &mut [f64; LANES],
) {
    // Larger numbers would round to infinity in `T`: they are clamped to this one.
    let drop = mantissa::<T>().saturating_sub(F::MANTISSA);
    let limit = wide(from_word::<T>((infinity::<T>() - 1) >> drop << drop));
    let blocks = span.chunks(BLOCK).map(padded);
    let mut most = blocks.map(|block| largest(&block)).fold(0, u64::max);
    let plain = most <= limit.to_bits();
    if !plain {
        let magnitudes = span.iter().map(|x| wide(*x).to_bits() & MAGNITUDE);
        most = magnitudes.filter(|magnitude| *magnitude < INFINITY).fold(0, u64::max);
    }
    let scale = match most {
        0 => 0,
        most => ((most >> MANTISSA) as i32 - 1023 - F::TOP).max(*SCALES.start()),
    };
    if let Some(place) = place {
        place[..2].copy_from_slice(&(scale as i16).to_le_bytes());
    }
    let (factor, back) = (power(-scale), power(scale));
    for (block, out) in span.chunks(BLOCK).zip(out) {
        let x = padded(block);
        let mut squares = [0.0; BLOCK];
        if plain {
            codes::write(F::BITS, out, |i| {
                let (code, near) = format.round(wide(x[i]) * factor, false);
                let error = rounded::<T>(near * back) - wide(x[i]);
                squares[i] = error * error;
                code
            });
        } else {
            codes::write(F::BITS, out, |i| {
                let x = wide(x[i]);
                let clipped = if x.is_finite() { x.clamp(-limit, limit) } else { x };
                let (code, near) = format.round(clipped * factor, true);
                let error = rounded::<T>(near * back) - x;
                squares[i] = if x.is_finite() { error * error } else { 0.0 };
                code
            });
        }
        add(&squares, errors);
    }
}

#[inline(always)]
fn unscaled<'a, T: Real, F: Short>(
    format: F,
    back: f64,
    from: impl Iterator<Item = &'a [u8]>,
    span: &mut [T],
) {
    for (block, from) in span.chunks_mut(BLOCK).zip(from) {
        let codes = codes::load(from, F::BITS);
        fill(block, |i| narrow(format.value(codes[i]) * back));
    }
}

/// Rounds mantissas to `bits` bits. Returns `None` if a NaN would become an infinity.
#[inline(always)]
fn trimmed<'a, T: Real>(
    bits: u32,
    span: &[T],
    out: impl Iterator<Item = &'a mut [u8]>,
    errors: &mut [f64; LANES],
) -> Option<()> {
    let dropped = mantissa::<T>().saturating_sub(bits);
    // Adding half of the dropped unit rounds a word; for an even word, one less.
    let (half, one) = match dropped {
        0 => (0, 0),
        _ => ((1u64 << (dropped - 1)) - 1, 1),
    };
    let infinity = infinity::<T>();
    let magnitudes = infinity | ((1 << mantissa::<T>()) - 1);
    let quiet = 1 << (mantissa::<T>() - 1);
    for (block, out) in span.chunks(BLOCK).zip(out) {
        let x = padded(block);
        let (mut nans, mut squares) = (0, [0.0; BLOCK]);
        codes::write(8 * size_of::<T>() as u32 - dropped, out, |i| {
            let bits = word(x[i]);
            let nan = (bits & magnitudes) as i64 > infinity as i64;
            let finite = ((bits & magnitudes) as i64) < infinity as i64;
            // A finite number stays finite and a NaN a NaN. A negative NaN may overflow the word.
            let up = bits.wrapping_add(half + (bits >> dropped & one));
            let within = finite && ((up & magnitudes) as i64) < infinity as i64;
            let code = if within { up } else { bits | if nan { quiet } else { 0 } } >> dropped;
            nans |= u64::from(nan);
            let error = wide(from_word::<T>(code << dropped)) - wide(x[i]);
            squares[i] = if finite { error * error } else { 0.0 };
            code
        });
        add(&squares, errors);
        if nans != 0 && bits == 0 {
            return None;
        }
    }
    Some(())
}

#[inline(always)]
fn untrimmed<'a, T: Real>(bits: u32, from: impl Iterator<Item = &'a [u8]>, span: &mut [T]) {
    let dropped = mantissa::<T>().saturating_sub(bits);
    for (block, from) in span.chunks_mut(BLOCK).zip(from) {
        let codes = codes::load(from, 8 * size_of::<T>() as u32 - dropped);
        fill(block, |i| from_word(codes[i] << dropped));
    }
}

/// A block padded with zeros.
#[inline(always)]
fn padded<T: Real>(block: &[T]) -> [T; BLOCK] {
    let whole: Option<&[T; BLOCK]> = block.first_chunk();
    whole.copied().unwrap_or_else(|| {
        let mut padded = [T::default(); BLOCK];
        padded[..block.len()].copy_from_slice(block);
        padded
    })
}

#[inline(always)]
fn fill<T: Real>(block: &mut [T], of: impl Fn(usize) -> T) {
    match block.first_chunk_mut::<BLOCK>() {
        Some(whole) => (0..BLOCK).for_each(|i| whole[i] = of(i)),
        None => block.iter_mut().enumerate().for_each(|(i, x)| *x = of(i)),
    }
}
