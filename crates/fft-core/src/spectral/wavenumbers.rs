//! Wavenumbers of modes.

use std::f64::consts::PI;

use crate::problem::Kind;

/// The wavenumbers of a mode along each axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wavenumbers<const D: usize> {
    /// `2π·mode/length` for kinds C2C and R2C; `π·mode/length` for cosine and sine transforms, with
    /// half a mode more for types III and IV; 0 for an axis that is left alone.
    pub k: [f64; D],
    /// Whether the mode is the middle one of an even number of points. It stands for both signs, so
    /// that its derivatives of odd order are 0.
    pub nyquist: [bool; D],
}

impl<const D: usize> Wavenumbers<D> {
    /// The wavenumbers of a mode, with `shape` modes along the axes of a box of these lengths.
    pub fn new(kinds: [Kind; D], shape: [usize; D], mode: [i64; D], lengths: [f64; D]) -> Self {
        let k = std::array::from_fn(|axis| wavenumber(kinds[axis], mode[axis], lengths[axis]));
        let nyquist = std::array::from_fn(|axis| is_nyquist(kinds[axis], shape[axis], mode[axis]));
        Self { k, nyquist }
    }

    /// The square of the wave vector: the sum of the squares of `k`.
    pub fn square(&self) -> f64 {
        self.k.iter().map(|k| k * k).sum()
    }
}

/// The mode of a frequency's index, along an axis of `n` modes.
pub fn mode(kind: Kind, n: usize, index: usize) -> i64 {
    kind.mode(n, index)
}

pub(super) fn wavenumber(kind: Kind, mode: i64, length: f64) -> f64 {
    PI * kind.half_waves(mode) / length
}

pub(super) fn is_nyquist(kind: Kind, n: usize, mode: i64) -> bool {
    kind.is_fourier() && 2 * mode.unsigned_abs() as usize == n
}
