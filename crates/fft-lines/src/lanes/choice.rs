//! Which lengths are faster one line after the other: measured, not computed.
//!
//! The lists are of a Zen 3 with AVX2. `cargo bench -p fft-lines` times both ways.

use super::plan::Batch;

/// Where the lines of a batch are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each line is contiguous.
    Rows,
    /// Adjacent lines lie side by side.
    Columns,
    /// As [`Columns`](Layout::Columns), in a copy. A copy can as well make lines contiguous.
    CopiedColumns,
}

/// Longer lines do not stay in the first-level cache together.
const LONGEST: usize = 2048;
/// Contiguous complex lines of `f32` and of `f64`.
const F32: [usize; 9] = [64, 128, 256, 320, 360, 384, 512, 1024, 2048];
const F64: [usize; 7] = [16, 24, 36, 128, 384, 1024, 2048];
/// Copied columns of either type.
const COPIED: [usize; 5] = [64, 128, 192, 256, 512];
/// Contiguous real lines of `f64`.
const REAL_F64: [usize; 2] = [16, 64];

/// Whether lines of type `T` are faster one after the other.
pub(crate) fn is_slower<T>(batch: Batch, n: usize, layout: Layout) -> bool {
    let double = size_of::<T>() == size_of::<f64>();
    let listed = match batch {
        Batch::Forward | Batch::Inverse if double => F64.contains(&n),
        Batch::Forward | Batch::Inverse => F32.contains(&n),
        Batch::RealToComplex | Batch::ComplexToReal => double && REAL_F64.contains(&n),
    };
    n > LONGEST
        || match layout {
            Layout::Rows => listed,
            Layout::Columns => false,
            Layout::CopiedColumns => COPIED.contains(&n),
        }
}
