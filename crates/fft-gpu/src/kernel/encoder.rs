//! Packing and encoding.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut};
use fft_core::{Packed, Wire};

use crate::abi::PlacedTransfer;
use crate::abi::batch::{Batch, Reach, zeros};
use crate::abi::coded::{EncodeBuffers, RawMessages, messages, slots};
use crate::abi::form::Form;
use crate::abi::message::StateRecord;
use crate::abi::records::queue_words;
use crate::base::{Gpu, GpuError, GpuReal, Kernel, Source, tried};
use crate::ffi::{Pinned, run_encode};

/// Encodes all messages of a reshape in one pass over memory.
///
/// Messages are bit for bit the messages of [`fft_core::Codec::pack`]. Squared errors are summed in
/// another order, which is always the same. Elements are read once, or twice if a message is raw.
pub struct Encoder<T> {
    form: Form,
    encode: Kernel,
    settle: Kernel,
    buffers: EncodeBuffers,
    raw: RawMessages,
    /// Whether the states need no clearing, as after a run at a fixed rate.
    cleared: bool,
    /// The host's copy of the states.
    mirror: Pinned,
    real: PhantomData<T>,
}

impl<T: GpuReal> Encoder<T> {
    /// Prepares messages of elements of `width` real numbers; uploads descriptors on this stream.
    ///
    /// # Errors
    /// [`GpuError::Wire`] for a wire without kernels, [`GpuError::Argument`] for bad sizes or
    /// places, [`GpuError::Memory`], [`GpuError::Driver`].
    pub fn new(
        gpu: &Gpu,
        stream: &Arc<CudaStream>,
        wire: Wire,
        width: usize,
        outgoing: &[PlacedTransfer<'_>],
    ) -> Result<Self, GpuError> {
        let form = Form::new::<T>(wire, width)?;
        let all = messages(&form, outgoing, true)?;
        let element = form.element_bytes();
        let filled = outgoing.iter().filter(|one| one.transfer.elements() > 0);
        let bytes = filled.map(|one| one.transfer.reach()).max().unwrap_or(0) * element;
        let reaches = (Reach { bytes, align: element }, slots(&form, &all.items)?);
        let batch = Batch::new(stream, &all, reaches)?;
        let states = zeros(stream, (all.items.len() + 1) * size_of::<StateRecord>())?;
        let errors = zeros(stream, batch.tiles + 1)?;
        let queue = zeros(stream, queue_words(batch.tiles, batch.count))?;
        let mirror = Pinned::new(gpu.context(), states.len())?;
        let real = format!("{}x{width}", T::NAME);
        let encode = gpu.kernel(Source::Encode, &format!("encode_{}_{real}", form.name))?;
        // Folded tiles load elements one by one, and reuse lines of the first-level cache. Fewer
        // blocks leave more of that cache to each.
        let folds = form.varies() && all.items.iter().any(|one| one.tiled.folds());
        let encode = if folds { encode.at_most(5)? } else { encode };
        Ok(Self {
            form,
            encode,
            settle: gpu.kernel(Source::Settle, &format!("settle_{real}"))?,
            buffers: EncodeBuffers { batch, states, errors, queue },
            raw: RawMessages::of(&form, &all.items),
            cleared: false,
            mirror,
            real: PhantomData,
        })
    }

    /// The first place from a byte on where a message is encoded fastest.
    ///
    /// Its codes begin a line of memory there.
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

    /// Queues the encoding; `step` is the step of [`Wire::Tolerance`].
    ///
    /// # Errors
    /// [`GpuError::Short`] and [`GpuError::Argument`] before a launch; [`GpuError::Driver`].
    pub fn encode(
        &mut self,
        stream: &Arc<CudaStream>,
        src: &impl DevicePtr<T>,
        step: f64,
        messages: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), GpuError> {
        let varies = self.form.varies();
        let step = if varies { self.form.wire.step::<T>(step) } else { 0.0 };
        let (tried, buffers) = (tried("clearing an encoder"), &mut self.buffers);
        if !self.cleared {
            stream.memset_zeros(&mut buffers.states).map_err(&tried)?;
        }
        self.cleared = false;
        if varies {
            stream.memset_zeros(&mut buffers.queue).map_err(&tried)?;
        }
        let (kernels, raw) = ((&self.encode, &self.settle), self.raw.with(&self.form, step));
        run_encode::<T>(stream, kernels, (&self.form, step, raw), buffers, src, messages)?;
        self.cleared = !varies;
        Ok(())
    }
}

impl<T> Encoder<T> {
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

    /// The outcomes of all messages, when the stream has done [`Encoder::report`].
    pub fn reported(&self) -> impl Iterator<Item = Packed> {
        self.mirror.records::<StateRecord>(self.buffers.batch.count).map(StateRecord::packed)
    }
}
