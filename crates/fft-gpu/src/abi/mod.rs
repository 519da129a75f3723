//! Launch arguments, laid out as `kernels/` reads them.

pub(crate) mod batch;
pub(crate) mod boxes;
pub(crate) mod coded;
pub(crate) mod column_fft;
pub(crate) mod copies;
pub(crate) mod divisor;
pub(crate) mod fft;
pub(crate) mod form;
pub(crate) mod message;
pub(crate) mod pieces;
pub(crate) mod records;
pub(crate) mod systems;
pub(crate) mod tiling;

pub use coded::PlacedTransfer;
pub use copies::Move;
pub use fft::{Fft, FftRun, Spread};
pub use form::transposed_when_read;
