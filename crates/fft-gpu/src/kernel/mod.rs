//! Packing, codecs, cuFFT and pointwise kernels, each with safe arguments.

pub(crate) mod decoder;
pub(crate) mod encoder;
pub(crate) mod fft;
pub(crate) mod modes;
pub(crate) mod transfers;

pub use decoder::{Decoder, Incoming};
pub use encoder::{Encoder, Outgoing};
pub use fft::{C2c, C2r, Fft, FftKind, FftPlan, R2c, Spread};
pub use modes::{Modes, Scaling};
pub use transfers::{Move, Transfers};
