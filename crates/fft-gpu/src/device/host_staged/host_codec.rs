//! The codec of wires without kernels, which runs on the host.

use std::collections::TryReserveError;

use fft_core::{BadMessage, Codec, Transfer};

use super::message::StagedMessage;
use crate::base::{GpuError, GpuReal};

/// Codes and decodes messages, one at a time.
pub(super) struct HostCodec<T> {
    codec: Box<dyn Codec<T>>,
    width: usize,
    reals: Vec<T>,
    /// Of the messages of a run.
    pub(super) squared_error: f64,
}

impl<T: GpuReal> HostCodec<T> {
    /// For messages of the wire of this one, which is the longest.
    pub(super) fn new(longest: &StagedMessage, width: usize) -> Result<Self, GpuError> {
        let (mut reals, len) = (Vec::new(), longest.transfer.elements() * width);
        let why = |why: TryReserveError| why.to_string();
        let found = reals.try_reserve_exact(len);
        found.map_err(|e| GpuError::Memory { bytes: len * size_of::<T>(), why: why(e) })?;
        reals.resize(len, T::default());
        Ok(Self { codec: longest.wire.codec(), width, reals, squared_error: 0.0 })
    }

    pub(super) fn memory(&self) -> usize {
        size_of_val(&self.reals[..])
    }

    /// The numbers of a message, and a transfer of all of them.
    fn numbers(&mut self, message: &StagedMessage) -> (&mut [T], Transfer) {
        let elements = message.transfer.elements();
        (&mut self.reals[..elements * self.width], Transfer::run_of(elements))
    }

    /// Fetches the numbers of a message and codes them; returns the length.
    pub(super) fn pack(
        &mut self,
        message: &StagedMessage,
        bytes: &mut [u8],
        fetch: impl FnOnce(&mut [u8]) -> Result<(), GpuError>,
    ) -> Result<usize, GpuError> {
        let (reals, all) = self.numbers(message);
        fetch(bytemuck::cast_slice_mut(reals))?;
        let packed = self.codec.pack(&self.reals, &all, self.width, 0.0, bytes);
        self.squared_error += packed.squared_error;
        Ok(packed.bytes)
    }

    /// Decodes a message to its numbers, as bytes.
    pub(super) fn unpack(
        &mut self,
        message: &StagedMessage,
        bytes: &[u8],
    ) -> Result<&[u8], BadMessage> {
        let (_, all) = self.numbers(message);
        self.codec.unpack(bytes, &all, self.width, &mut self.reals)?;
        Ok(bytemuck::cast_slice(self.numbers(message).0))
    }
}
