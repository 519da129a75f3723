//! Packing, codecs, cuFFT plans and pointwise kernels, with safe arguments.

pub(crate) mod column_fft;
pub(crate) mod decoder;
pub(crate) mod encoder;
pub(crate) mod message_slots;
pub(crate) mod modes;
pub(crate) mod noise;
pub(crate) mod systems;
pub(crate) mod transfers;

pub use column_fft::ColumnFft;
pub use decoder::Decoder;
pub use encoder::Encoder;
pub(crate) use message_slots::{Inbox, Outbox};
pub use modes::{DeviceModes, Scaling};
pub use noise::Noise;
pub use transfers::Transfers;
