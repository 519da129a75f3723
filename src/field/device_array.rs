//! Arrays on a device, of one rank or shared by the ranks of a host.

use std::sync::Arc;

use fft_core::Error;
use fft_gpu::cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, CudaView, CudaViewMut, DevicePtr, DriverError,
};
use fft_gpu::{DeviceMemory, Gpu, GpuError, GpuReal, SharedSlice, lend, lend_mut};

use super::pool::Pooled;

pub(crate) struct DeviceArray {
    memory: Memory,
    gpu: Gpu,
    rank: usize,
}

enum Memory {
    Own(CudaSlice<u8>),
    Shared(Pooled<SharedSlice>),
}

impl DeviceArray {
    /// Zeros in memory of this rank alone.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub(crate) fn zeros(
        gpu: &Gpu,
        stream: &Arc<CudaStream>,
        bytes: usize,
        rank: usize,
    ) -> Result<Self, Error> {
        // A device cannot allocate 0 bytes.
        let made = stream.alloc_zeros(bytes.max(1));
        let failed = |why| GpuError::allocating(bytes, why).on(rank);
        let memory = Memory::Own(made.map_err(failed)?);
        Ok(Self { memory, gpu: gpu.clone(), rank })
    }

    /// An array that the other ranks of the host can access.
    pub(crate) fn shared(gpu: &Gpu, memory: Pooled<SharedSlice>, rank: usize) -> Self {
        Self { memory: Memory::Shared(memory), gpu: gpu.clone(), rank }
    }

    fn slice(&self) -> &CudaSlice<u8> {
        match &self.memory {
            Memory::Own(slice) => slice,
            Memory::Shared(shared) => shared.as_slice(),
        }
    }

    fn slice_mut(&mut self, bytes: usize) -> CudaViewMut<'_, u8> {
        match &mut self.memory {
            Memory::Own(slice) => slice.slice_mut(0..bytes),
            Memory::Shared(shared) => shared.slice_mut(0..bytes),
        }
    }

    pub(crate) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Checks that it is on a plan's device.
    pub(crate) fn is_on(&self, context: &CudaContext) -> Result<(), Error> {
        if **self.gpu.context() == *context {
            Ok(())
        } else {
            Err(Error::argument("field", "one on another device", "one on the plan's"))
        }
    }

    pub(crate) fn stream(&self) -> &Arc<CudaStream> {
        self.slice().stream()
    }

    pub(crate) fn len(&self) -> usize {
        self.slice().len()
    }

    pub(crate) fn address(&self) -> u64 {
        self.slice().device_ptr(self.stream()).0
    }

    /// Its first real numbers.
    pub(crate) fn numbers<T: GpuReal>(&self, len: usize) -> CudaView<'_, T> {
        fft_gpu::numbers(self.slice(), len)
    }

    pub(crate) fn numbers_mut<T: GpuReal>(&mut self, len: usize) -> CudaViewMut<'_, T> {
        match &mut self.memory {
            Memory::Own(slice) => fft_gpu::numbers_mut(slice, len),
            Memory::Shared(shared) => shared.numbers_mut(len),
        }
    }

    /// Lends its first bytes to work that is queued on a stream.
    pub(crate) fn with<R>(
        &self,
        stream: &Arc<CudaStream>,
        bytes: usize,
        run: impl FnOnce(&DeviceMemory<u8>) -> R,
    ) -> R {
        let view = self.slice().slice(0..bytes);
        run(&lend(&view, stream))
    }

    pub(crate) fn with_mut<R>(
        &mut self,
        stream: &Arc<CudaStream>,
        bytes: usize,
        run: impl FnOnce(&mut DeviceMemory<u8>) -> R,
    ) -> R {
        let mut view = self.slice_mut(bytes);
        run(&mut lend_mut(&mut view, stream))
    }

    pub(crate) fn write(&mut self, from: &[u8]) -> Result<(), Error> {
        if from.is_empty() {
            return Ok(());
        }
        let stream = self.stream().clone();
        let copied = stream.memcpy_htod(from, &mut self.slice_mut(from.len()));
        self.done("copying an array to the device", copied)
    }

    pub(crate) fn read(&self, to: &mut [u8]) -> Result<(), Error> {
        let copied = if to.is_empty() {
            Ok(())
        } else {
            self.stream().memcpy_dtoh(&self.slice().slice(0..to.len()), to)
        };
        let copied = copied.and_then(|()| self.stream().synchronize());
        self.done("copying an array to the host", copied)
    }

    /// The result of a driver call.
    pub(crate) fn done(
        &self,
        call: &'static str,
        result: Result<(), DriverError>,
    ) -> Result<(), Error> {
        let rank = self.rank;
        result.map_err(|why| Error::Transport { rank, call, text: why.to_string() })
    }
}
