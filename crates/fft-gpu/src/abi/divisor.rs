//! Division by a number that is fixed in advance.

use bytemuck::{Pod, Zeroable};

/// The largest dividend and divisor: kernels count elements in 31 bits.
pub(crate) const MOST_ELEMENTS: usize = (1 << 31) - 1;

/// Division as a multiplication and a shift, exact for numbers below 2^31. `Divisor` of
/// `kernels/divisor.cuh`.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Divisor {
    multiplier: u32,
    shift: u32,
}

impl Divisor {
    /// Division by a number from 1 to 2^31 − 1. The multiplier is 2^shift / divisor, rounded up;
    /// its error does not reach the quotient. Granlund and Montgomery, Division by invariant
    /// integers using multiplication, PLDI 1994.
    pub(crate) fn by(divisor: usize) -> Self {
        let shift = 31 + divisor.next_power_of_two().trailing_zeros();
        let multiplier = (1u128 << shift).div_ceil(divisor as u128) as u32;
        Self { multiplier, shift }
    }

    #[cfg(test)]
    pub(crate) fn of(self, n: usize) -> usize {
        ((n as u64 * u64::from(self.multiplier)) >> self.shift) as usize
    }
}
