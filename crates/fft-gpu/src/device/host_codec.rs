//! Messages that the device cannot make: `lossless`, which is the host's.

use std::collections::TryReserveError;

use fft_core::{BadMessage, Codec, Transfer, Wire};

use super::host_staged::Part;
use crate::base::{GpuError, GpuReal};

/// Makes and reads messages, one at a time, out of their numbers and back.
pub(super) struct HostCodec<T> {
    codec: Box<dyn Codec<T>>,
    width: usize,
    reals: Vec<T>,
}

impl<T: GpuReal> HostCodec<T> {
    /// For messages of so many elements at most.
    ///
    /// # Errors
    /// [`GpuError::Memory`] for want of memory on the host.
    pub(super) fn new(wire: Wire, width: usize, elements: usize) -> Result<Self, GpuError> {
        let (mut reals, len) = (Vec::new(), elements * width);
        let why = |why: TryReserveError| why.to_string();
        let found = reals.try_reserve_exact(len);
        found.map_err(|e| GpuError::Memory { bytes: len * size_of::<T>(), why: why(e) })?;
        reals.resize(len, T::default());
        Ok(Self { codec: wire.codec(), width, reals })
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&self.reals[..])
    }

    /// The numbers of a message, and all of them as a copy.
    fn numbers(&mut self, part: &Part) -> (&mut [T], Transfer) {
        let elements = part.transfer.elements();
        (&mut self.reals[..elements * self.width], Transfer::run_of(elements))
    }

    /// Fetches the numbers of a message as bytes, and makes it of them. Returns its length.
    pub(super) fn pack(
        &mut self,
        part: &Part,
        message: &mut [u8],
        fetch: impl FnOnce(&mut [u8]) -> Result<(), GpuError>,
    ) -> Result<usize, GpuError> {
        let (reals, all) = self.numbers(part);
        fetch(bytemuck::cast_slice_mut(reals))?;
        Ok(self.codec.pack(&self.reals, &all, self.width, 0.0, message).bytes)
    }

    /// The numbers of a message, as bytes.
    pub(super) fn unpack(&mut self, part: &Part, message: &[u8]) -> Result<&[u8], BadMessage> {
        let (_, all) = self.numbers(part);
        self.codec.unpack(message, &all, self.width, &mut self.reals)?;
        Ok(bytemuck::cast_slice(self.numbers(part).0))
    }
}
