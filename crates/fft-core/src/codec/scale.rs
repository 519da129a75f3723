//! The step of a block in 16 bits: the upper bits of an `f64` without the sign.

/// Lower bits that a scale drops: 11 bits of exponent and 5 of mantissa stay.
const DROPPED: u32 = 47;

/// The scale of a step, rounded up. Steps below the least normal number have no inverse.
#[inline(always)]
pub(super) fn scale(step: f64) -> u16 {
    let step = if step > f64::MIN_POSITIVE { step } else { f64::MIN_POSITIVE };
    ((step.to_bits() + (1 << DROPPED) - 1) >> DROPPED) as u16
}

#[inline(always)]
pub(super) fn step(scale: u16) -> f64 {
    f64::from_bits(u64::from(scale) << DROPPED)
}
