//! Decoding and unpacking.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut};
use fft_core::{BadMessage, Transfer, Wire};

use super::encoder::{messages, mirrored, slots, states};
use crate::abi::batch::{Batch, Reach, upload, zeros};
use crate::abi::message::{Form, State};
use crate::base::{Gpu, GpuError, GpuReal};
use crate::ffi::{Kernel, Pinned, Source, queue_words, run_decode, tried};

/// A message to be read.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The box of the array, as [`fft_core::Codec::unpack`] takes it.
    pub scatter: &'a Transfer,
    /// The byte of the memory of messages where it begins, as [`crate::Encoder::place`] finds one. There are as many bytes behind as
    /// [`crate::Encoder::bound`] says.
    pub place: usize,
}

/// Reads all messages of a reshape in one pass over memory, as [`fft_core::Codec::unpack`] does.
///
/// How long messages are is for the caller to know, as whoever received them does. Whatever they hold, nothing outside their
/// slots is read and nothing outside their boxes written. What does not decode is marked on the device; [`Decoder::check`]
/// asks. Bytes moved: messages once, elements once.
pub struct Decoder<T> {
    form: Form,
    kernel: Kernel,
    batch: Batch,
    /// Elements and places of the messages.
    slots: Vec<(usize, usize)>,
    /// Bytes of the messages of the last run, and what the device has of them.
    found: Vec<u64>,
    lengths: CudaSlice<u64>,
    states: CudaSlice<u8>,
    queue: CudaSlice<u64>,
    /// Of `tolerance`, what finds out where the codes of each tile begin, and what it found.
    measure: Option<Kernel>,
    begins: CudaSlice<u64>,
    /// And of groups of elements, where tiles are not all runs of their messages.
    groups: Option<CudaSlice<u32>>,
    /// What the host has of the states.
    mirror: Pinned,
    real: PhantomData<T>,
}

/// What a launch is told beside buffers.
pub(crate) struct DecodeArguments<'a> {
    pub(crate) batch: &'a Batch,
    pub(crate) states: &'a mut CudaSlice<u8>,
    pub(crate) queue: &'a mut CudaSlice<u64>,
    pub(crate) measure: Option<&'a Kernel>,
    pub(crate) begins: &'a mut CudaSlice<u64>,
    pub(crate) groups: Option<&'a mut CudaSlice<u32>>,
    pub(crate) lengths: &'a CudaSlice<u64>,
    pub(crate) bits: u32,
}

/// Blocks that a multiprocessor should have at once, at most: what is written at a time must lie near together, and slow memory is kept
/// busy by fewer.
fn blocks_at_once(wire: Wire, transposed: bool, slow_memory: bool) -> u32 {
    match wire {
        Wire::Tolerance if transposed || slow_memory => 4,
        _ if slow_memory => 3,
        // More than five there never are.
        _ => 5,
    }
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
        let all = messages(&form, parts, false)?;
        let transposed = wire == Wire::Tolerance && all.items.iter().any(|one| one.tiled.turns());
        let element = form.element_bytes();
        let filled = incoming.iter().filter(|one| one.scatter.elements() > 0);
        let bytes = filled.map(|one| one.scatter.span()).max().unwrap_or(0) * element;
        let reaches = (slots(&form, &all.items)?, Reach { bytes, align: element });
        let batch = Batch::new(stream, &all, reaches)?;
        let states = zeros(stream, (all.items.len() + 1) * size_of::<State>())?;
        let queue = zeros(stream, queue_words(&batch))?;
        let named = if transposed { "transposed" } else { form.name()? };
        let kernel = gpu.kernel(Source::Decode, &format!("decode_{named}_{}x{width}", T::NAME))?;
        let most = blocks_at_once(wire, transposed, kernel.has_slow_memory());
        let kernel = kernel.at_most(most)?;
        let groups = transposed.then(|| zeros(stream, batch.tiles() * form.tile_groups()));
        let groups = groups.transpose()?;
        let begins = zeros(stream, batch.tiles() + 1)?;
        let measure = match wire {
            Wire::Tolerance => {
                Some(gpu.kernel(Source::Decode, &format!("measure_{}x{width}", T::NAME))?)
            }
            _ => None,
        };
        let slots: Vec<_> =
            incoming.iter().map(|one| (one.scatter.elements(), one.place)).collect();
        let found: Vec<u64> = slots.iter().map(|slot| form.bound(slot.0) as u64).collect();
        let lengths = upload(stream, &found)?;
        let (mirror, real) = (Pinned::new(gpu.context(), states.len())?, PhantomData);
        Ok(Self {
            form,
            kernel,
            batch,
            slots,
            found,
            lengths,
            states,
            queue,
            measure,
            begins,
            groups,
            mirror,
            real,
        })
    }

    /// Reads the messages, of which these are the lengths in bytes, on a stream, into an array of real numbers. Returns when the
    /// launch is queued; what is wrong with messages is for [`Decoder::check`], and their boxes hold anything then.
    ///
    /// # Errors
    /// [`GpuError::Message`] for a message that cannot be so long, [`GpuError::Argument`] if there are not as many lengths as
    /// messages, [`GpuError::Short`] and [`GpuError::Unaligned`], in which cases nothing is launched; [`GpuError::Driver`].
    pub fn decode(
        &mut self,
        stream: &Arc<CudaStream>,
        lengths: &[usize],
        messages: &impl DevicePtr<u8>,
        dst: &mut impl DevicePtrMut<T>,
    ) -> Result<(), GpuError> {
        self.check_lengths(lengths)?;
        let tried = tried("clearing what a decoder keeps");
        // But for the wires whose messages vary, what was uploaded first stays.
        if lengths.iter().zip(&self.found).any(|(length, found)| *length as u64 != *found) {
            self.found.iter_mut().zip(lengths).for_each(|(found, length)| *found = *length as u64);
            let told = stream.memcpy_htod(&self.found, &mut self.lengths).map_err(&tried);
            if told.is_err() {
                // What the device knows is no longer what is here.
                self.found.fill(0);
            }
            told?;
        }
        stream.memset_zeros(&mut self.states).map_err(&tried)?;
        if self.form.wire == Wire::Tolerance {
            stream.memset_zeros(&mut self.queue).map_err(&tried)?;
        }
        let arguments = DecodeArguments {
            batch: &self.batch,
            states: &mut self.states,
            queue: &mut self.queue,
            measure: self.measure.as_ref(),
            begins: &mut self.begins,
            groups: self.groups.as_mut(),
            lengths: &self.lengths,
            bits: self.form.bits(),
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
        let Some(index) = states.iter().position(|state| state.bad != 0) else { return Ok(()) };
        let ((elements, place), length) = (self.slots[index], self.found[index] as usize);
        let tried = tried("reading a message that does not decode");
        let message = stream.clone_dtoh(&messages.slice(place..place + length)).map_err(&tried)?;
        stream.synchronize().map_err(&tried)?;
        Err(GpuError::Message { index, why: self.why(&message, elements) })
    }

    /// Bytes of memory of the device, and of the host where that tells it something.
    pub(crate) fn memory(&self) -> usize {
        let Self { batch, lengths, states, queue, begins, groups, mirror, .. } = self;
        let groups = groups.as_ref().map_or(0, |groups| groups.num_bytes());
        let told = lengths.num_bytes() + states.num_bytes() + groups;
        batch.memory() + told + queue.num_bytes() + begins.num_bytes() + mirror.bytes()
    }

    /// The most bytes of a message of so many elements.
    pub(crate) fn bound(&self, elements: usize) -> usize {
        self.form.bound(elements)
    }

    /// Tells the host what became of the messages, when the stream has come so far.
    pub(crate) fn report(&self, stream: &Arc<CudaStream>) -> Result<(), GpuError> {
        self.mirror.fetch(stream, &self.states)
    }

    /// The first message that did not decode, of what has been reported.
    pub(crate) fn reported(&self) -> Option<usize> {
        mirrored(&self.mirror, self.batch.count()).position(|state| state.bad != 0)
    }

    /// Makes sure that messages may be so long: kernels rely on it.
    fn check_lengths(&self, lengths: &[usize]) -> Result<(), GpuError> {
        if lengths.len() != self.slots.len() {
            return Err(GpuError::Argument {
                what: "the number of lengths",
                found: lengths.len().to_string(),
                expected: "that of messages",
            });
        }
        for (index, (&found, &(elements, _))) in lengths.iter().zip(&self.slots).enumerate() {
            if !self.form.has_length(elements, found) {
                let (least, most) = self.form.lengths(elements);
                let expected = if found > most { most } else { least };
                return Err(GpuError::Message {
                    index,
                    why: BadMessage::Length { found, expected },
                });
            }
        }
        Ok(())
    }

    /// What the CPU says of a message that the device refuses.
    fn why(&self, message: &[u8], elements: usize) -> BadMessage {
        let mut sink = vec![T::default(); elements * self.form.width];
        let codec = self.form.wire.codec::<T>();
        let whole = Transfer::run_of(elements);
        let read = codec.unpack(message, &whole, self.form.width, &mut sink);
        let found = message.len();
        read.err().unwrap_or(BadMessage::Length { found, expected: found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_blocks_decode_where_memory_is_slow_or_axes_are_turned() {
        let of = |wire| {
            [(false, false), (true, false), (false, true), (true, true)]
                .map(|(transposed, slow)| blocks_at_once(wire, transposed, slow))
        };
        assert_eq!(of(Wire::Tolerance), [5, 4, 4, 4]);
        // Only messages of a tolerance are transposed by who reads them.
        assert_eq!([of(Wire::F16), of(Wire::Bits(11))].map(|of| [of[0], of[2]]), [[5, 3]; 2]);
    }
}
