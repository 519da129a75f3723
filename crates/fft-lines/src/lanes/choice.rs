//! Which lengths are faster one line after the other: measured, not computed.
//!
//! The lists are of a Zen 3 with AVX2. `cargo bench -p fft-lines` times both ways.

use super::plan::Batch;

/// Longer lines do not stay in the first-level cache together.
const LONGEST: usize = 2048;
/// Contiguous complex lines of `f32` and of `f64`.
const F32: [usize; 9] = [64, 128, 256, 320, 360, 384, 512, 1024, 2048];
const F64: [usize; 5] = [16, 24, 36, 1024, 2048];
/// Contiguous real lines of `f64`.
const REAL_F64: [usize; 2] = [16, 64];

/// Whether lines of type `T` are faster one after the other.
pub(crate) fn is_slower<T>(batch: Batch, n: usize, contiguous: bool) -> bool {
    let double = size_of::<T>() == size_of::<f64>();
    let listed = match batch {
        Batch::Forward | Batch::Inverse if double => F64.contains(&n),
        Batch::Forward | Batch::Inverse => F32.contains(&n),
        Batch::RealToComplex | Batch::ComplexToReal => double && REAL_F64.contains(&n),
    };
    n > LONGEST || contiguous && listed
}
