//! Packing and encoding.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut};
use fft_core::{Packed, Transfer, Wire};

use crate::abi::batch::{Batch, Reach, zeros};
use crate::abi::boxes::Items;
use crate::abi::message::{ALIGN, Form, Message, State};
use crate::base::{Gpu, GpuError, GpuReal};
use crate::ffi::{Kernel, Pinned, Source, queue_words, run_encode, tried};

/// A message to be made.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// The box of the array, as [`fft_core::Codec::pack`] takes it.
    pub gather: &'a Transfer,
    /// The byte of the memory of messages where it begins: a multiple of 8, and of 16 if the message may be its numbers as
    /// they are. It takes [`Encoder::bound`] bytes there.
    pub place: usize,
}

/// Makes all messages of a reshape in one pass over memory. They are bit for bit those of [`fft_core::Codec::pack`]; sums of
/// squared errors are added up in another order, always the same. How long each is, [`Encoder::packed`] says; but for
/// [`Wire::Tolerance`] and `Mantissa(0)` that is [`Encoder::bound`].
///
/// Bytes moved: elements once, messages once. A message that does not shrink is read twice.
pub struct Encoder<T> {
    form: Form,
    encode: Kernel,
    settle: Kernel,
    batch: Batch,
    states: CudaSlice<u8>,
    errors: CudaSlice<f64>,
    queue: CudaSlice<u64>,
    raw: Raw,
    /// Whether the last run has left states as the next one wants them, which at a fixed rate it does.
    settled: bool,
    /// What the host has of the states.
    mirror: Pinned,
    real: PhantomData<T>,
}

/// What a launch is told beside buffers.
pub(crate) struct EncodeArguments<'a> {
    pub(crate) batch: &'a Batch,
    pub(crate) states: &'a mut CudaSlice<u8>,
    pub(crate) errors: &'a mut CudaSlice<f64>,
    pub(crate) queue: &'a mut CudaSlice<u64>,
    pub(crate) bits: u32,
    pub(crate) part: f64,
    pub(crate) step: f64,
    pub(crate) raw: Raw,
}

/// Which messages are sent as they are, as `kernels/settle.cu` is told.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u32)]
pub(crate) enum Raw {
    /// None, whatever the data.
    None,
    /// Some perhaps.
    Some,
    /// All.
    All,
}

impl Raw {
    /// Those of messages whatever their step.
    pub(crate) fn of(form: &Form, messages: &[Message]) -> Self {
        let some = form.varies() || messages.iter().any(Message::never_shrinks);
        if some { Self::Some } else { Self::None }
    }

    /// Those with this step.
    pub(crate) fn with(self, form: &Form, step: f64) -> Self {
        let unset = form.wire == Wire::Tolerance && !(step.is_normal() && step > 0.0);
        if unset { Self::All } else { self }
    }
}

/// Messages and their tiles, listed along the array, which an encoder reads and a decoder writes. But encoders whose tiles have rows are faster
/// message by message; and those of `tolerance` must have them as they are numbered: who has one waits for those before it.
///
/// # Errors
/// [`GpuError::Unaligned`], [`GpuError::TooLarge`].
pub(crate) fn messages<'a>(
    form: &Form,
    parts: impl Iterator<Item = (&'a Transfer, usize)>,
    sends: bool,
) -> Result<Items<Message>, GpuError> {
    let mut all = Items::new();
    for (part, place) in parts {
        all.add(|item, tiles| form.message(part, place, sends, (item, tiles)))?;
    }
    let numbered =
        sends && (form.wire == Wire::Tolerance || all.items.iter().any(|one| one.tiled.turns()));
    Ok(if numbered { all } else { all.along(|one, tile| one.tiled.source_of(tile)) })
}

/// What of the memory of messages is theirs.
///
/// # Errors
/// [`GpuError::Overlap`].
pub(crate) fn slots(form: &Form, messages: &[Message]) -> Result<Reach, GpuError> {
    let mut order: Vec<usize> = (0..messages.len()).collect();
    order.sort_by_key(|&i| messages[i].place);
    let begin = |i: usize| messages[i].place as usize;
    let end = |i: usize| begin(i) + form.bound(messages[i].tiled.elements());
    for pair in order.windows(2) {
        let (first, second) = (pair[0], pair[1]);
        if begin(second) < end(first) {
            let (found, expected) = (begin(second), end(first));
            return Err(GpuError::Overlap { first, second, found, expected });
        }
    }
    Ok(Reach { bytes: order.last().map_or(0, |&last| end(last)), align: ALIGN })
}

impl<T: GpuReal> Encoder<T> {
    /// Prepares messages of elements of `width` real numbers each: descriptors go to the device through this stream.
    ///
    /// # Errors
    /// [`GpuError::Wire`] for `raw`, which [`crate::Transfers`] does, and `lossless`; [`GpuError::Argument`],
    /// [`GpuError::Unaligned`] and [`GpuError::Overlap`] for places that cannot be, [`GpuError::TooLarge`],
    /// [`GpuError::Memory`], [`GpuError::Driver`].
    pub fn new(
        gpu: &Gpu,
        stream: &Arc<CudaStream>,
        wire: Wire,
        width: usize,
        outgoing: &[Outgoing<'_>],
    ) -> Result<Self, GpuError> {
        let form = Form::new::<T>(wire, width)?;
        let parts = outgoing.iter().map(|one| (one.gather, one.place));
        let all = messages(&form, parts, true)?;
        let element = form.element_bytes();
        let filled = outgoing.iter().filter(|one| one.gather.elements() > 0);
        let bytes = filled.map(|one| one.gather.reach()).max().unwrap_or(0) * element;
        let reaches = (Reach { bytes, align: element }, slots(&form, &all.items)?);
        let batch = Batch::new(stream, &all, reaches)?;
        let states = zeros(stream, (all.items.len() + 1) * size_of::<State>())?;
        let errors = zeros(stream, batch.tiles() + 1)?;
        let queue = zeros(stream, queue_words(&batch))?;
        let mirror = Pinned::new(gpu.context(), states.len())?;
        let real = format!("{}x{width}", T::NAME);
        let encode = gpu.kernel(Source::Encode, &format!("encode_{}_{real}", form.name()?))?;
        // What is folded is fetched one by one, out of lines that the first cache keeps for others: with fewer blocks it is larger. Where
        // nothing is, as many as registers allow are faster.
        let folds = wire == Wire::Tolerance && all.items.iter().any(|one| one.tiled.folds());
        let encode = if folds { encode.at_most(5)? } else { encode };
        Ok(Self {
            form,
            encode,
            settle: gpu.kernel(Source::Settle, &format!("settle_{real}"))?,
            batch,
            states,
            errors,
            queue,
            raw: Raw::of(&form, &all.items),
            settled: false,
            mirror,
            real: PhantomData,
        })
    }

    /// The first place, from this byte of the memory of messages on, where a message of so many elements is made fastest: its
    /// codes begin at a line of memory.
    ///
    /// # Errors
    /// [`GpuError::Wire`], [`GpuError::Argument`].
    pub fn place(
        wire: Wire,
        width: usize,
        elements: usize,
        from: usize,
    ) -> Result<usize, GpuError> {
        Ok(Form::new::<T>(wire, width)?.place(elements, from))
    }

    /// The most bytes of a message of so many elements: what all have, unless that depends on the data
    /// ([`fft_core::Codec::fixed`]).
    pub fn bound(&self, elements: usize) -> usize {
        self.form.bound(elements)
    }

    /// Makes the messages, on a stream: `src` has real numbers, and `step` is for [`Wire::Tolerance`]. Returns when the
    /// launches are queued.
    ///
    /// # Errors
    /// [`GpuError::Short`] and [`GpuError::Unaligned`], in which case nothing is launched; [`GpuError::Driver`].
    pub fn encode(
        &mut self,
        stream: &Arc<CudaStream>,
        src: &impl DevicePtr<T>,
        step: f64,
        messages: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), GpuError> {
        let (stepped, step) = (self.form.wire == Wire::Tolerance, self.form.wire.step::<T>(step));
        let tried = tried("clearing what an encoder keeps");
        if !self.settled {
            stream.memset_zeros(&mut self.states).map_err(&tried)?;
        }
        self.settled = false;
        if stepped {
            stream.memset_zeros(&mut self.queue).map_err(&tried)?;
        }
        let arguments = EncodeArguments {
            batch: &self.batch,
            states: &mut self.states,
            errors: &mut self.errors,
            queue: &mut self.queue,
            bits: self.form.bits(),
            part: self.form.part(),
            step: if stepped { step } else { 0.0 },
            raw: self.raw.with(&self.form, step),
        };
        run_encode::<T>(stream, (&self.encode, &self.settle), arguments, src, messages)?;
        self.settled = !self.form.varies();
        Ok(())
    }

    /// What became of each message of the last run. Waits for the stream.
    ///
    /// # Errors
    /// [`GpuError::Driver`].
    pub fn packed(&self, stream: &Arc<CudaStream>) -> Result<Vec<Packed>, GpuError> {
        let states = states(stream, &self.states, self.batch.count())?;
        Ok(states.into_iter().map(State::packed).collect())
    }
}

impl<T> Encoder<T> {
    /// Bytes of memory of the device, and of the host where that tells it something.
    pub(crate) fn memory(&self) -> usize {
        let Self { batch, states, errors, queue, mirror, .. } = self;
        let keeps = states.num_bytes() + errors.num_bytes() + queue.num_bytes();
        batch.memory() + keeps + mirror.bytes()
    }

    /// Tells the host what became of the messages, when the stream has come so far.
    pub(crate) fn report(&self, stream: &Arc<CudaStream>) -> Result<(), GpuError> {
        self.mirror.fetch(stream, &self.states)
    }

    /// What has been reported.
    pub(crate) fn reported(&self) -> impl Iterator<Item = Packed> {
        mirrored(&self.mirror, self.batch.count()).map(State::packed)
    }
}

/// The states that the host has been told.
pub(crate) fn mirrored(mirror: &Pinned, count: usize) -> impl Iterator<Item = State> {
    (0..count).map(|index| {
        let mut state = State::default();
        mirror.read(index * size_of::<State>(), bytemuck::bytes_of_mut(&mut state));
        state
    })
}

/// The states of so many messages, when the stream has come so far.
pub(crate) fn states(
    stream: &Arc<CudaStream>,
    states: &CudaSlice<u8>,
    count: usize,
) -> Result<Vec<State>, GpuError> {
    let mut found = vec![State::default(); states.len() / size_of::<State>()];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut found);
    let tried = tried("reading what became of messages");
    stream.memcpy_dtoh(states, bytes).map_err(&tried)?;
    stream.synchronize().map_err(&tried)?;
    found.truncate(count);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use fft_core::{Brick, Placed};

    use super::*;
    use crate::abi::boxes::Tile;

    /// Whether tiles of the halves of rows of an array are listed as they are numbered; and along the array.
    fn listed(wire: Wire, order: [usize; 3], sends: bool) -> [bool; 2] {
        let shape = [4, 64, 512];
        let array = Placed::new(Brick { lo: [0; 3], hi: shape }, [0, 1, 2], 1);
        let half = |i: usize| {
            let brick = Brick { lo: [0, 0, 256 * i], hi: [4, 64, 256 * (i + 1)] };
            let message = Placed::new(brick, order, 1);
            let [from, to] = if sends { [&array, &message] } else { [&message, &array] };
            Transfer::new(&brick.into(), 0..1, from, to)
        };
        let halves = [half(0), half(1)];
        let form = Form::new::<f64>(wire, 2).unwrap();
        let all = messages(&form, halves.iter().zip([0, 1 << 21]), sends).unwrap();
        let place = |tile: &Tile| all.items[tile.item as usize].tiled.source_of(tile);
        [all.tiles.is_sorted_by_key(|tile| tile.number), all.tiles.is_sorted_by_key(place)]
    }

    #[test]
    fn messages_are_made_along_the_array_unless_they_turn_or_wait_and_read_along_it() {
        let (as_it_is, transposed) = ([0, 1, 2], [0, 2, 1]);
        assert_eq!(listed(Wire::Bits(16), as_it_is, true), [false, true]);
        assert_eq!(listed(Wire::Bits(16), transposed, true), [true, false]);
        assert_eq!(listed(Wire::Tolerance, as_it_is, true), [true, false]);
        for (wire, order) in [(Wire::Bits(16), transposed), (Wire::Tolerance, as_it_is)] {
            assert_eq!(listed(wire, order, false), [false, true], "{wire}");
        }
    }
}
