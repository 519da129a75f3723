//! Decoding and unpacking.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut};
use fft_core::{BadMessage, Transfer, Wire};

use crate::batch::{Batch, Reach};
use crate::encoder::{messages, slots, states};
use crate::ffi::{Kernel, Source, run_decode, tried};
use crate::message::{Form, HEADER, State};
use crate::{Gpu, GpuError, GpuReal};

/// A message to be read.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The box of the array, as [`fft_core::Codec::unpack`] takes it.
    pub scatter: &'a Transfer,
    /// The byte of the memory of messages where it begins, a multiple of 16. There are as many bytes behind as
    /// [`crate::Encoder::bound`] says.
    pub place: usize,
}

/// Reads all messages of a reshape in one pass over memory, as [`fft_core::Codec::unpack`] does.
///
/// Whatever the messages hold, nothing outside their slots is read and nothing outside their boxes written. What does not decode
/// is marked on the device; [`Decoder::check`] asks. Bytes moved: messages once, elements once.
pub struct Decoder<T> {
    form: Form,
    kernel: Kernel,
    batch: Batch,
    /// Elements and places of the messages.
    slots: Vec<(usize, usize)>,
    states: CudaSlice<u8>,
    queue: CudaSlice<u64>,
    real: PhantomData<T>,
}

/// What a launch is told beside buffers.
pub(crate) struct DecodeArguments<'a> {
    pub(crate) batch: &'a Batch,
    pub(crate) states: &'a mut CudaSlice<u8>,
    pub(crate) queue: &'a mut CudaSlice<u64>,
    pub(crate) bits: u32,
    pub(crate) has_step: bool,
    pub(crate) grows: bool,
}

impl<T: GpuReal> Decoder<T> {
    /// Prepares to read messages of elements of `width` real numbers each: descriptors go to the device through this
    /// stream.
    ///
    /// # Errors
    /// As [`crate::Encoder::new`].
    pub fn new(
        gpu: &Gpu,
        stream: &Arc<CudaStream>,
        wire: Wire,
        width: usize,
        incoming: &[Incoming<'_>],
    ) -> Result<Self, GpuError> {
        let form = Form::new::<T>(wire, width)?;
        let parts = incoming.iter().map(|one| (one.scatter, one.place));
        let (items, firsts) = messages(&form, parts, false)?;
        let element = form.element_bytes();
        let filled = incoming.iter().filter(|one| one.scatter.elements() > 0);
        let bytes = filled.map(|one| one.scatter.span()).max().unwrap_or(0) * element;
        let reaches = (slots(&form, &items)?, Reach { bytes, align: element });
        let batch = Batch::new(stream, &items, &firsts, reaches)?;
        let tried = tried("allocating what a decoder keeps");
        let states = stream.alloc_zeros(items.len().max(1) * size_of::<State>()).map_err(&tried)?;
        let queue = stream.alloc_zeros(batch.tiles() + 1).map_err(&tried)?;
        let name = format!("decode_{}_{}x{width}", form.name()?, T::NAME);
        let kernel = gpu.kernel(Source::Decode, &name)?;
        let slots = incoming.iter().map(|one| (one.scatter.elements(), one.place)).collect();
        Ok(Self { form, kernel, batch, slots, states, queue, real: PhantomData })
    }

    /// Reads the messages, on a stream, into an array of real numbers. Returns when the launch is queued; what is wrong with
    /// messages is for [`Decoder::check`], and their boxes hold anything then.
    ///
    /// # Errors
    /// [`GpuError::Short`] and [`GpuError::Unaligned`], in which case nothing is launched; [`GpuError::Driver`].
    pub fn decode(
        &mut self,
        stream: &Arc<CudaStream>,
        messages: &impl DevicePtr<u8>,
        dst: &mut impl DevicePtrMut<T>,
    ) -> Result<(), GpuError> {
        let stepped = self.form.wire == Wire::Tolerance;
        let tried = tried("clearing what a decoder keeps");
        stream.memset_zeros(&mut self.states).map_err(&tried)?;
        if stepped {
            stream.memset_zeros(&mut self.queue).map_err(&tried)?;
        }
        let arguments = DecodeArguments {
            batch: &self.batch,
            states: &mut self.states,
            queue: &mut self.queue,
            bits: self.form.bits(),
            has_step: stepped,
            grows: matches!(self.form.wire, Wire::Bits(_) | Wire::Tolerance),
        };
        run_decode::<T>(stream, &self.kernel, arguments, messages, dst)
    }

    /// Whether all messages of the last run decoded. Waits for the stream. A message that did not is read once more by the
    /// CPU, who can say what is wrong with it.
    ///
    /// # Errors
    /// [`GpuError::Message`] for the first that did not decode, [`GpuError::Driver`].
    pub fn check(
        &self,
        stream: &Arc<CudaStream>,
        messages: &CudaSlice<u8>,
    ) -> Result<(), GpuError> {
        let states = states(stream, &self.states, self.batch.count())?;
        for (index, (state, &(elements, place))) in states.iter().zip(&self.slots).enumerate() {
            if elements > 0 && (state.bad != 0 || !self.adds_up(state, elements)) {
                let bytes = messages.slice(place..place + self.form.bound(elements));
                let tried = tried("reading a message that does not decode");
                let slot = stream.clone_dtoh(&bytes).map_err(&tried)?;
                stream.synchronize().map_err(&tried)?;
                return Err(GpuError::Message { index, why: self.why(&slot, elements) });
            }
        }
        Ok(())
    }

    /// Whether a message is as long as what it holds.
    fn adds_up(&self, state: &State, elements: usize) -> bool {
        let Wire::Bits(_) = self.form.wire else { return true };
        let raw_blocks = state.raw_blocks as usize * 64 * size_of::<T>();
        let (bytes, bound) = (state.bytes as usize, self.form.bound(elements));
        bytes == bound && raw_blocks == 0 || bytes == self.form.smallest(elements) + raw_blocks
    }

    /// What the CPU says of a message that the device refuses.
    fn why(&self, slot: &[u8], elements: usize) -> BadMessage {
        let told = slot[16..24].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let bytes = usize::try_from(told).unwrap_or(usize::MAX);
        let (found, expected) = (slot.len(), bytes);
        if !(HEADER..=found).contains(&bytes) {
            return BadMessage::Length { found, expected };
        }
        let mut sink = vec![T::default(); elements * self.form.width];
        let codec = self.form.wire.codec::<T>();
        let whole = Transfer::run_of(elements);
        let read = codec.unpack(&slot[..bytes], &whole, self.form.width, &mut sink);
        read.err().unwrap_or(BadMessage::Length { found, expected })
    }
}
