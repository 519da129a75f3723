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
    /// The squared error of the messages of a run.
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

#[cfg(test)]
mod tests {
    use fft_core::Wire;

    use super::*;

    #[test]
    fn messages_are_those_of_the_codec_whatever_their_length() {
        let x: Vec<f64> = (0..200).map(|i| (0.3 * f64::from(i)).sin()).collect();
        for wire in [Wire::F16, Wire::Bf16, Wire::Mantissa(0), Wire::Mantissa(20), Wire::Lossless] {
            let all = Transfer::run_of(100);
            let message = StagedMessage { transfer: all, wire, on_device: Wire::Raw, place: 0 };
            let codec = wire.codec::<f64>();
            let mut by_host = HostCodec::<f64>::new(&message, 2).unwrap();
            let room = codec.fixed(100, 2).unwrap_or(codec.bound(200));
            let [mut expected, mut bytes] = [vec![0; room], vec![0; room]];
            let twin = codec.pack(&x, &message.transfer, 2, 0.0, &mut expected);
            let fetch = |to: &mut [u8]| {
                to.copy_from_slice(bytemuck::cast_slice(&x));
                Ok(())
            };
            assert_eq!(by_host.pack(&message, &mut bytes, fetch).unwrap(), twin.bytes, "{wire}");
            assert_eq!((bytes == expected, by_host.squared_error), (true, twin.squared_error));
            let mut numbers = vec![0.0; 200];
            let sent = &bytes[..twin.bytes];
            codec.unpack(sent, &message.transfer, 2, &mut numbers).unwrap();
            let found = by_host.unpack(&message, sent).unwrap();
            assert!(found == bytemuck::cast_slice::<f64, u8>(&numbers), "{wire}");
            assert!(by_host.unpack(&message, &sent[..twin.bytes - 1]).is_err(), "{wire}");
        }
    }
}
