//! Bound steps on the device.

use fft_core::{Error, Loss, MessagePlan, OpBuffers, Operation, RunContext};

use super::chunked_fft::ChunkedFft;
use super::cuda::Cuda;
use super::fused_store::Store;
use super::local_fft::DeviceFft;
use super::reshape::Reshape;
use super::resized::Resized;
use crate::base::GpuReal;
use crate::ffi::{DeviceMemory, Gathering, RankMemory};

/// A bound step.
pub struct CudaOp<T>(pub(super) Op<T>);

pub(super) enum Op<T> {
    Local(Box<DeviceFft<T>>),
    /// The same in chunks, which the reshape that follows copies one by one.
    Chunked(Box<ChunkedFft<T>>),
    Resized(Box<Resized<T>>),
    Reshape(Box<Reshape<T>>),
    /// Transforms that read their source with two axes swapped.
    Fetch(Box<Gathering>),
    /// Transforms and the reshape after them, and perhaps the one before.
    Store(Box<Store>),
}

impl<T: GpuReal> CudaOp<T> {
    pub(super) fn reshape(&self) -> Option<&Reshape<T>> {
        match &self.0 {
            Op::Reshape(reshape) => Some(reshape),
            _ => None,
        }
    }
}

impl<T: GpuReal> Operation<T, Cuda> for CudaOp<T> {
    fn loss(&self) -> Option<Loss> {
        self.reshape().and_then(|reshape| reshape.loss)
    }

    fn set_step(&mut self, step: f64, finer: Option<f64>) {
        if let Op::Reshape(reshape) = &mut self.0 {
            reshape.step = (step, finer);
        }
    }

    fn squared_error(&self) -> f64 {
        self.reshape().map_or(0.0, Reshape::squared_error)
    }

    fn damage(&self) -> Result<(), Error> {
        self.reshape().map_or(Ok(()), Reshape::damage)
    }

    fn message_plan(&self) -> Option<&MessagePlan> {
        self.reshape().and_then(Reshape::message_plan)
    }

    fn reserve(&mut self, context: &mut RunContext<Cuda>) -> Result<(), Error> {
        match &mut self.0 {
            Op::Reshape(reshape) => reshape.reserve(context),
            _ => Ok(()),
        }
    }

    fn memory(&self) -> usize {
        match &self.0 {
            Op::Local(local) => local.memory(),
            Op::Chunked(chunked) => chunked.memory(),
            Op::Resized(resized) => resized.memory(),
            Op::Fetch(plan) => plan.memory(),
            Op::Store(store) => store.memory(),
            Op::Reshape(reshape) => reshape.memory(),
        }
    }

    fn run(
        &mut self,
        context: &mut RunContext<Cuda>,
        buffers: OpBuffers<'_, DeviceMemory<T>>,
    ) -> Result<(), Error> {
        let OpBuffers { src, dst, .. } = buffers;
        let other = "from one buffer to another";
        let queued = match &mut self.0 {
            Op::Reshape(reshape) => return reshape.run(context, src.expect(other), dst),
            Op::Store(store) => return store.run(context, src.expect(other), dst),
            Op::Local(local) => {
                let (stream, area) = context.device.stream_and_area();
                local.run(stream, area, src, dst)
            }
            Op::Chunked(chunked) => chunked.run(&mut context.device, src, dst),
            Op::Resized(resized) => {
                let (stream, area) = context.device.stream_and_area();
                resized.run(stream, area, src.expect(other), dst)
            }
            Op::Fetch(plan) => {
                let src = src.expect(other);
                let (stream, area) = context.device.stream_and_area();
                plan.run(stream, &|_| RankMemory::own(src), dst, area)
            }
        };
        context.device.record_error(queued);
        Ok(())
    }
}
