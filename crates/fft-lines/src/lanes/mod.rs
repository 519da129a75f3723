//! Transforms of many lines at once, in two or three passes of large radices.
//!
//! Chains of small radices load and store every number in each of their stages. Codelets of up to
//! 20 numbers need two passes for lines of up to 400, three for up to 8000:
//!
//! ```text
//! n = A B, for each group of lines that vectors hold together:
//!     first pass: for p below B:
//!         load the numbers p, p + B, p + 2B, ... of each line
//!         transform these A numbers, multiply result j by exp(-2πi p j/n), store them to scratch
//!     last pass: for j below A:
//!         load the results j of all p from scratch
//!         transform these B numbers, store them as frequencies j, j + A, j + 2A, ...
//! n = A B C: a pass between both does the same within scratch, in place
//! ```
//!
//! This is decimation in frequency with mixed radices (Gentleman and Sande, *Fast Fourier
//! transforms: for fun and profit*, 1966). Layouts differ in what the lanes of a vector are, not in
//! the operations of a line, each of which is rounded the same: so a line has the same bits in
//! every layout.
//!
//! - `columns`: lines that lie side by side. A lane is a line.
//! - `pairs`: contiguous complex lines. Two lanes are neighbours of a line, so that vectors are
//!   loaded and stored in pieces of two complex numbers.
//! - `rows`: contiguous lines whose passes have an odd number of neighbours, and real ones. A lane
//!   is a line.
//!
//! Codelets (`butterfly`) are macros that unroll products of two small radices: a generated file
//! would be longer and compile no faster. Two things keep rustc's code near a C compiler's:
//! [`fft_stream::pin`] after each part of a codelet, without which LLVM reorders until registers
//! are stored and loaded again, and [`fft_stream::Strided`], which checks the bounds of a pass
//! once.
//!
//! Tried and rejected: radices 14, 18, 24, 25 and 32, which gain little and spill more; real lines
//! by contiguous complex ones and a fold afterwards, which stores and loads everything once more;
//! neighbours with an odd radix, where the last is computed twice.

mod ahead;
mod batch;
mod butterfly;
mod columns;
mod complex;
mod kernel;
mod pairs;
mod plan;
mod radices;
mod real;
mod rows;
mod stages;
mod trigonometric;
mod turn;
mod vector;

pub use batch::{BatchFft, Lines};
pub use kernel::Strides;
pub(crate) use plan::{Batch, plan, time_radices};
pub(crate) use stages::LaneLayout;
pub use trigonometric::{Trigonometric, TrigonometricType};
pub(crate) use vector::Real;
