//! Decoding and unpacking.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut};
use fft_core::{BadMessage, Wire};

use crate::abi::PlacedTransfer;
use crate::abi::batch::{Batch, Reach, upload, zeros};
use crate::abi::boxes::Items;
use crate::abi::coded::{DecodeBuffers, messages, slots};
use crate::abi::form::Form;
use crate::abi::message::{MessageRecord, StateRecord};
use crate::abi::records::queue_words;
use crate::base::{Gpu, GpuError, GpuReal, Kernel, Source, tried};
use crate::ffi::{Pinned, run_decode};

/// Decodes all messages of a reshape in one pass over memory, as [`fft_core::Codec::unpack`] does.
///
/// The caller provides the lengths of messages. Whatever they hold, nothing outside their slots is
/// read, and nothing outside their boxes is written. The device marks messages that do not decode.
pub struct Decoder<T> {
    form: Form,
    decode: Kernel,
    /// For `tolerance`, the kernel that finds where the codes of each tile begin.
    measure: Option<Kernel>,
    buffers: DecodeBuffers,
    elements: Vec<usize>,
    /// The lengths that the device has.
    lengths: Vec<u64>,
    /// The host's copy of the states.
    mirror: Pinned,
    real: PhantomData<T>,
}

/// The most resident blocks of a multiprocessor. The data written at one time should be close
/// together. Slow memory needs fewer blocks.
fn most_blocks(wire: Wire, transposed: bool, slow_memory: bool) -> u32 {
    match wire {
        Wire::Tolerance if transposed || slow_memory => 4,
        _ if slow_memory => 3,
        // Registers allow no more.
        _ => 5,
    }
}

impl<T: GpuReal> Decoder<T> {
    /// Prepares messages of elements of `width` real numbers; uploads descriptors on this stream.
    ///
    /// # Errors
    /// As [`crate::Encoder::new`].
    pub fn new(
        gpu: &Gpu,
        stream: &Arc<CudaStream>,
        wire: Wire,
        width: usize,
        incoming: &[PlacedTransfer<'_>],
    ) -> Result<Self, GpuError> {
        let form = Form::new::<T>(wire, width)?;
        let all = messages(&form, incoming, false)?;
        let transposed = form.varies() && all.items.iter().any(|one| one.tiled.transposes());
        let (measure, decode) = Self::kernels(gpu, &form, transposed)?;
        let elements: Vec<_> = incoming.iter().map(|one| one.transfer.elements()).collect();
        let lengths: Vec<u64> = elements.iter().map(|n| form.bound(*n) as u64).collect();
        let filled = incoming.iter().filter(|one| one.transfer.elements() > 0);
        let element = form.element_bytes();
        let bytes = filled.map(|one| one.transfer.span()).max().unwrap_or(0) * element;
        let writes = Reach { bytes, align: element };
        let buffers = Self::buffers(stream, &form, &all, writes, transposed, &lengths)?;
        let mirror = Pinned::new(gpu.context(), buffers.states.len())?;
        let real = PhantomData;
        Ok(Self { form, decode, measure, buffers, elements, lengths, mirror, real })
    }

    fn kernels(
        gpu: &Gpu,
        form: &Form,
        transposed: bool,
    ) -> Result<(Option<Kernel>, Kernel), GpuError> {
        let Form { wire, width, .. } = *form;
        let kernel =
            |name: &str| gpu.kernel(Source::Decode, &format!("{name}_{}x{width}", T::NAME));
        let name = if transposed { "turned" } else { form.name };
        let decode = kernel(&format!("decode_{name}"))?;
        let most = most_blocks(wire, transposed, decode.limits.slow_memory);
        let measure = form.varies().then(|| kernel("measure")).transpose()?;
        Ok((measure, decode.at_most(most)?))
    }

    fn buffers(
        stream: &Arc<CudaStream>,
        form: &Form,
        all: &Items<MessageRecord>,
        writes: Reach,
        transposed: bool,
        lengths: &[u64],
    ) -> Result<DecodeBuffers, GpuError> {
        let batch = Batch::new(stream, all, (slots(form, &all.items)?, writes))?;
        let groups = transposed.then(|| zeros(stream, batch.tiles * form.tile_groups()));
        Ok(DecodeBuffers {
            states: zeros(stream, (all.items.len() + 1) * size_of::<StateRecord>())?,
            queue: zeros(stream, queue_words(batch.tiles, batch.count))?,
            begins: zeros(stream, batch.tiles + 1)?,
            groups: groups.transpose()?,
            lengths: upload(stream, lengths)?,
            batch,
        })
    }

    /// Queues the decoding of messages of these lengths, in bytes.
    ///
    /// The boxes of messages that do not decode are then undefined.
    ///
    /// # Errors
    /// [`GpuError::Message`] for a length that cannot be, [`GpuError::Argument`], and
    /// [`GpuError::Short`], before a launch; [`GpuError::Driver`].
    pub fn decode(
        &mut self,
        stream: &Arc<CudaStream>,
        lengths: &[usize],
        messages: &impl DevicePtr<u8>,
        dst: &mut impl DevicePtrMut<T>,
    ) -> Result<(), GpuError> {
        self.check_lengths(lengths)?;
        let (tried, buffers) = (tried("clearing a decoder"), &mut self.buffers);
        // At a fixed rate the lengths are uploaded only once.
        if lengths.iter().zip(&self.lengths).any(|(length, known)| *length as u64 != *known) {
            self.lengths.iter_mut().zip(lengths).for_each(|(known, n)| *known = *n as u64);
            let copied = stream.memcpy_htod(&self.lengths, &mut buffers.lengths).map_err(&tried);
            if copied.is_err() {
                // The device no longer has these lengths.
                self.lengths.fill(0);
            }
            copied?;
        }
        stream.memset_zeros(&mut buffers.states).map_err(&tried)?;
        if self.form.varies() {
            stream.memset_zeros(&mut buffers.queue).map_err(&tried)?;
        }
        let kernels = (self.measure.as_ref(), &self.decode);
        run_decode::<T>(stream, kernels, &self.form, buffers, messages, dst)
    }

    pub(crate) fn memory(&self) -> usize {
        self.buffers.memory() + self.mirror.bytes()
    }

    /// Queues a copy of the outcomes to the host.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn report(&self, stream: &Arc<CudaStream>) -> Result<(), GpuError> {
        self.mirror.fetch(stream, &self.buffers.states)
    }

    /// The first message that did not decode, when the stream has done [`Decoder::report`].
    pub fn reported(&self) -> Option<usize> {
        self.mirror.records(self.buffers.batch.count).position(|state: StateRecord| state.bad != 0)
    }

    /// Checks the lengths of messages, on which kernels rely.
    fn check_lengths(&self, lengths: &[usize]) -> Result<(), GpuError> {
        let (found, count) = (lengths.len(), self.elements.len());
        if found != count {
            return Err(GpuError::argument("the number of lengths", found, count));
        }
        for (index, (&found, &elements)) in lengths.iter().zip(&self.elements).enumerate() {
            let (least, most) = self.form.lengths(elements);
            let expected = found.clamp(least, most);
            if found != expected {
                let why = BadMessage::Length { found, expected };
                return Err(GpuError::Message { index, why });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_blocks_decode_where_memory_is_slow_or_axes_are_transposed() {
        let of = |wire| {
            [(false, false), (true, false), (false, true), (true, true)]
                .map(|(transposed, slow)| most_blocks(wire, transposed, slow))
        };
        assert_eq!(of(Wire::Tolerance), [5, 4, 4, 4]);
        // Only messages of a tolerance are transposed by their reader.
        assert_eq!([of(Wire::F32), of(Wire::Bits(11))].map(|of| [of[0], of[2]]), [[5, 3]; 2]);
    }
}
