//! Plans whose data is on a device, and whose types have been forgotten.

use std::path::Path;
use std::sync::Arc;

use thriffty::gpu::cudarc::driver::{CudaStream, DevicePtrMut, DeviceSlice, DriverError};
use thriffty::gpu::{DeviceMemory, Gpu, GpuReal, GpuTransport, keeping_context};
use thriffty::{
    DeviceArray, Direction, DynDevicePlan, DynDraft, Error, Precision, WireError, agree,
};

use crate::plan::{Transformer, told};
use crate::values::Sizes;

/// A device, the stream on it that everything is queued on, and how data gets to other ranks.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) gpu: Gpu,
    pub(crate) stream: Arc<CudaStream>,
    pub(crate) transport: GpuTransport,
}

impl Place {
    /// Collective.
    pub(crate) fn build(
        &self,
        draft: DynDraft<'_>,
        precision: Precision,
    ) -> Result<Box<dyn OnDevice>, Error> {
        match precision {
            Precision::F32 => self.build_of::<f32>(draft),
            Precision::F64 => self.build_of::<f64>(draft),
        }
    }

    fn build_of<T: GpuReal>(&self, draft: DynDraft<'_>) -> Result<Box<dyn OnDevice>, Error> {
        let Self { gpu, stream, transport } = self.clone();
        keeping_context(|| {
            let plan = draft.on::<T>(thriffty::Place { gpu, stream: Some(stream), transport })?;
            Ok(Box::new(Held { arrays: Vec::new(), plan: Some(plan) }) as _)
        })
    }
}

/// What a program can do with a plan on a device. Arrays are bytes there; of those that are longer than they must be, the
/// beginning is used.
pub(crate) trait OnDevice: Transformer {
    fn rank(&self) -> usize;

    fn stream(&self) -> &Arc<CudaStream>;

    /// Transforms from one array to another, on the stream. What is wrong with this rank's may be known already: then all ranks
    /// hear of it. Collective.
    fn run(
        &mut self,
        direction: Direction,
        arrays: Result<(DeviceMemory<u8>, DeviceMemory<u8>), Error>,
    ) -> Result<(), Error>;

    /// The same within one array. Collective.
    fn run_in_place(
        &mut self,
        direction: Direction,
        array: Result<DeviceMemory<u8>, Error>,
    ) -> Result<(), Error>;

    /// Zeros that others on the host see, as long as the plan lives. What is wrong may be known already. Collective.
    fn allocate(&mut self, ready: Result<(), Error>) -> Result<*mut u8, Error>;
}

/// A plan, which is dropped without choosing another device for the program, and the arrays that were made for it, which it is told of as
/// pointers only.
struct Held<T: GpuReal> {
    arrays: Vec<DeviceArray<T>>,
    plan: Option<DynDevicePlan<T>>,
}

impl<T: GpuReal> Held<T> {
    fn plan(&self) -> &DynDevicePlan<T> {
        self.plan.as_ref().expect("a plan until it is dropped")
    }

    fn plan_mut(&mut self) -> &mut DynDevicePlan<T> {
        self.plan.as_mut().expect("a plan until it is dropped")
    }

    /// The first numbers of an array.
    fn numbers(
        &self,
        what: &'static str,
        bytes: DeviceMemory<u8>,
        expected: usize,
    ) -> Result<DeviceMemory<T>, Error> {
        let found = bytes.len() / size_of::<T>();
        let error = |_| Error::Length { what, rank: self.rank(), found, expected };
        bytes.numbers(what, expected).map_err(error)
    }
}

impl<T: GpuReal> Drop for Held<T> {
    fn drop(&mut self) {
        keeping_context(|| {
            self.arrays.clear();
            drop(self.plan.take());
        });
    }
}

impl<T: GpuReal> OnDevice for Held<T> {
    fn rank(&self) -> usize {
        self.plan().comm().rank()
    }

    fn stream(&self) -> &Arc<CudaStream> {
        self.plan().stream()
    }

    fn run(
        &mut self,
        direction: Direction,
        arrays: Result<(DeviceMemory<u8>, DeviceMemory<u8>), Error>,
    ) -> Result<(), Error> {
        let [physical, spectral] = self.plan().reals();
        let [reads, writes] = match direction {
            Direction::Forward => [physical, spectral],
            Direction::Inverse => [spectral, physical],
        };
        let arrays = arrays.and_then(|(input, output)| {
            let input = self.numbers("input", input, reads)?;
            Ok((input, self.numbers("output", output, writes)?))
        });
        // What a transform begins with is that all ranks agree: who cannot go on has its say there.
        match arrays {
            Err(error) => self.plan_mut().agree(Err(error)),
            Ok((input, mut output)) => self.plan_mut().run(direction, &input, &mut output),
        }
    }

    fn run_in_place(
        &mut self,
        direction: Direction,
        array: Result<DeviceMemory<u8>, Error>,
    ) -> Result<(), Error> {
        let reals = self.plan().in_place_reals();
        let array = array.and_then(|array| self.numbers("array in place", array, reals));
        match array {
            Err(error) => self.plan_mut().agree(Err(error)),
            Ok(mut array) => self.plan_mut().run_in_place(direction, &mut array),
        }
    }

    fn allocate(&mut self, ready: Result<(), Error>) -> Result<*mut u8, Error> {
        self.plan_mut().agree(ready)?;
        let mut array = self.plan_mut().shared_zeros()?;
        let stream = self.stream().clone();
        let at = array.slice_mut(0..self.plan().in_place_reals()).device_ptr_mut(&stream).0;
        // The program may write there on another stream at once: the zeros come before.
        let waited = stream.synchronize();
        let failed = |why: DriverError| Error::Transport {
            rank: self.rank(),
            call: "clearing an array",
            text: why.to_string(),
        };
        agree(self.plan().comm(), waited.map_err(failed))?;
        self.arrays.push(array);
        Ok(std::ptr::with_exposed_provenance_mut(at as usize))
    }
}

impl<T: GpuReal> Transformer for Held<T> {
    fn sizes(&self) -> Sizes {
        let plan = self.plan();
        let [physical, spectral] = plan.reals();
        Sizes {
            struct_size: size_of::<Sizes>(),
            input: told(plan.input_brick()),
            output: told(plan.output_brick()),
            input_points: plan.input_len(),
            output_points: plan.output_len(),
            input_bytes: physical * size_of::<T>(),
            output_bytes: spectral * size_of::<T>(),
            in_place_bytes: plan.in_place_reals() * size_of::<T>(),
            workspace_bytes: plan.memory(),
        }
    }

    fn recipe(&self) -> String {
        self.plan().recipe().to_string()
    }

    fn lost(&self) -> Option<WireError> {
        self.plan().wire_error()
    }

    fn save_wisdom(&self, path: Result<&Path, Error>) -> Result<(), Error> {
        agree(self.plan().comm(), path)?;
        Err(Error::argument("wisdom of a plan", "one on a device", "one that was measured"))
    }
}
