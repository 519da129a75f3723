//! The step of a block as 16 bits: the upper bits of an `f64` word without its sign.

/// Bits of a word below its scale: 11 bits of exponent and 5 of mantissa stay.
const DROPPED: u32 = 47;

/// A step, rounded upwards. Not below the smallest normal number, so that it has an inverse.
#[inline(always)]
pub(super) fn scale(step: f64) -> u16 {
    let step = if step > f64::MIN_POSITIVE { step } else { f64::MIN_POSITIVE };
    ((step.to_bits() + (1 << DROPPED) - 1) >> DROPPED) as u16
}

/// The step that a scale stands for.
#[inline(always)]
pub(super) fn step(scale: u16) -> f64 {
    f64::from_bits(u64::from(scale) << DROPPED)
}
