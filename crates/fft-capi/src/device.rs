//! Plans whose data is on a device, and whose types have been forgotten.

use std::path::Path;
use std::sync::Arc;

use thriffty::gpu::cudarc::driver::{CudaStream, DevicePtrMut, DeviceSlice, DriverError};
use thriffty::gpu::{DeviceMemory, Gpu, Passage, keeping_context};
use thriffty::{
    DeviceField, DevicePlan, Direction, Draft, Element, Error, Spectral, Transform, WireError,
    agree,
};

use crate::plan::{Number, Transformer, told};
use crate::values::Sizes;

/// A device, the stream on it that everything is queued on, and how data gets to other ranks.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) gpu: Gpu,
    pub(crate) stream: Arc<CudaStream>,
    pub(crate) passage: Passage,
}

impl Place {
    /// Collective.
    pub(crate) fn build<K: Transform<Real: Number>, const D: usize>(
        &self,
        draft: Draft<'_, K, D>,
    ) -> Result<Box<dyn OnDevice>, Error> {
        let draft = draft.on(&self.gpu).stream(self.stream.clone()).passage(self.passage);
        keeping_context(|| {
            let plan = draft.build()?;
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
struct Held<K: Transform<Real: Number>, const D: usize> {
    arrays: Vec<DeviceField<Spectral, K, D>>,
    plan: Option<DevicePlan<K, D>>,
}

impl<K: Transform<Real: Number>, const D: usize> Held<K, D> {
    fn plan(&self) -> &DevicePlan<K, D> {
        self.plan.as_ref().expect("a plan until it is dropped")
    }

    fn plan_mut(&mut self) -> &mut DevicePlan<K, D> {
        self.plan.as_mut().expect("a plan until it is dropped")
    }

    /// The first numbers of an array.
    fn numbers(
        &self,
        what: &'static str,
        bytes: DeviceMemory<u8>,
        expected: usize,
    ) -> Result<DeviceMemory<K::Real>, Error> {
        let found = bytes.len() / size_of::<K::Real>();
        let error = |_| Error::Length { what, rank: self.rank(), found, expected };
        bytes.numbers(what, expected).map_err(error)
    }
}

impl<K: Transform<Real: Number>, const D: usize> Drop for Held<K, D> {
    fn drop(&mut self) {
        keeping_context(|| {
            self.arrays.clear();
            drop(self.plan.take());
        });
    }
}

impl<K: Transform<Real: Number>, const D: usize> OnDevice for Held<K, D> {
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
        let physical = self.plan().input_len() * K::Physical::WIDTH;
        let spectral = self.plan().output_len() * K::Spectral::WIDTH;
        let [reads, writes] = match direction {
            Direction::Forward => [physical, spectral],
            Direction::Inverse => [spectral, physical],
        };
        let arrays = arrays.and_then(|(input, output)| {
            let input = self.numbers("input", input, reads)?;
            Ok((input, self.numbers("output", output, writes)?))
        });
        // What a transform begins with is that all ranks agree: who cannot go on has its say there.
        match (direction, arrays) {
            (_, Err(error)) => self.plan_mut().agree(Err(error)),
            (Direction::Forward, Ok((x, mut y))) => self.plan_mut().forward_into(&x, &mut y),
            (Direction::Inverse, Ok((y, mut x))) => self.plan_mut().inverse_into(&y, &mut x),
        }
    }

    fn run_in_place(
        &mut self,
        direction: Direction,
        array: Result<DeviceMemory<u8>, Error>,
    ) -> Result<(), Error> {
        let reals = self.plan().in_place_len() * K::Spectral::WIDTH;
        let array = array.and_then(|array| self.numbers("array in place", array, reals));
        match (direction, array) {
            (_, Err(error)) => self.plan_mut().agree(Err(error)),
            (Direction::Forward, Ok(mut array)) => self.plan_mut().forward_in_place(&mut array),
            (Direction::Inverse, Ok(mut array)) => self.plan_mut().inverse_in_place(&mut array),
        }
    }

    fn allocate(&mut self, ready: Result<(), Error>) -> Result<*mut u8, Error> {
        self.plan_mut().agree(ready)?;
        let mut field = self.plan_mut().shared_output()?;
        let stream = self.stream().clone();
        let at = field.as_mut_slice()?.device_ptr_mut(&stream).0;
        // The program may write there on another stream at once: the zeros come before.
        let waited = stream.synchronize();
        let failed = |why: DriverError| Error::Transport {
            rank: self.rank(),
            call: "clearing an array",
            text: why.to_string(),
        };
        agree(self.plan().comm(), waited.map_err(failed))?;
        self.arrays.push(field);
        Ok(std::ptr::with_exposed_provenance_mut(at as usize))
    }
}

impl<K: Transform<Real: Number>, const D: usize> Transformer for Held<K, D> {
    fn sizes(&self) -> Sizes {
        let plan = self.plan();
        Sizes {
            struct_size: size_of::<Sizes>(),
            input: told(plan.input_brick()),
            output: told(plan.output_brick()),
            input_points: plan.input_len(),
            output_points: plan.output_len(),
            input_bytes: plan.input_len() * size_of::<K::Physical>(),
            output_bytes: plan.output_len() * size_of::<K::Spectral>(),
            in_place_bytes: plan.in_place_len() * size_of::<K::Spectral>(),
            workspace_bytes: plan.memory(),
        }
    }

    fn recipe(&self) -> String {
        self.plan().recipe().to_string()
    }

    fn lost(&self) -> Option<WireError> {
        self.plan().last_error()
    }

    fn save_wisdom(&self, path: Result<&Path, Error>) -> Result<(), Error> {
        agree(self.plan().comm(), path)?;
        Err(Error::argument("wisdom of a plan", "one on a device", "one that was measured"))
    }
}
