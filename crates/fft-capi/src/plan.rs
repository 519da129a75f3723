//! Plans that C programs hold, and the arrays that were made for them.

use std::path::Path;

#[cfg(feature = "cuda")]
use thriffty::gpu::cudarc::driver::{CudaStream, DeviceSlice};
#[cfg(feature = "cuda")]
use thriffty::gpu::{DeviceMemory, keeping_context};
use thriffty::planning::{
    Direction, DynArray, DynBrick, DynPlan, PerAxis, WireError, agree, on_any_rank,
};
use thriffty::spectral::{Scheme, Tridiagonal};
use thriffty::{Comm, Error};

use crate::domain::KnownDomain;
use crate::request::Request;
use crate::values::{self, Sizes};

/// A plan, and the arrays that the program has pointers to. If arrays are longer than needed, only
/// their beginning is used.
///
/// Calls take arrays as results, so that an error in the arrays of this rank becomes an error on
/// all ranks.
pub(crate) struct Held {
    arrays: Vec<DynArray>,
    /// There until it is dropped.
    plan: Option<Box<DynPlan>>,
    on_device: bool,
    /// What operators use.
    pub(crate) domain: Option<KnownDomain>,
    /// The difference schemes of operators; exact derivatives by default.
    pub(crate) schemes: Option<PerAxis<Scheme>>,
    /// The coefficients of operators along the tridiagonal axis.
    pub(crate) tridiagonal: Option<Tridiagonal>,
    /// What failed on this rank since the last transform, if there are other ranks to inform.
    pub(crate) failed: Option<Error>,
}

/// A plan on a device is used and dropped without changing the program's current device.
pub(crate) fn keeping<R>(on_device: bool, body: impl FnOnce() -> R) -> R {
    #[cfg(feature = "cuda")]
    if on_device {
        return keeping_context(body);
    }
    let _ = on_device;
    body()
}

impl Drop for Held {
    fn drop(&mut self) {
        keeping(self.on_device, || {
            self.domain.take();
            self.arrays.clear();
            drop(self.plan.take());
        });
    }
}

impl Held {
    fn new(plan: DynPlan, on_device: bool) -> Self {
        let plan = Some(Box::new(plan));
        Self {
            arrays: Vec::new(),
            plan,
            on_device,
            domain: None,
            schemes: None,
            tridiagonal: None,
            failed: None,
        }
    }

    pub(crate) fn plan(&self) -> &DynPlan {
        self.plan.as_ref().expect("a plan until it is dropped")
    }

    fn plan_mut(&mut self) -> &mut DynPlan {
        self.plan.as_mut().expect("a plan until it is dropped")
    }

    /// The rank and the stream, of a plan on a device.
    #[cfg(feature = "cuda")]
    pub(crate) fn device(&self) -> Option<(usize, std::sync::Arc<CudaStream>)> {
        let plan = self.plan();
        plan.stream().map(|stream| (plan.comm().rank(), stream.clone()))
    }

    /// Bytes that a transform reads and writes.
    fn bytes(&self, direction: Direction) -> [usize; 2] {
        let (physical, spectral) = (self.plan().input_bytes(), self.plan().output_bytes());
        direction.choose([physical, spectral], [spectral, physical])
    }

    /// Runs the plan on the program's arrays, if nothing is wrong with them. Collective.
    fn run_on<A>(
        &mut self,
        arrays: Result<A, Error>,
        run: impl FnOnce(&mut DynPlan, A) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self.failed.take().map_or(arrays, Err) {
            Ok(arrays) => run(self.plan_mut(), arrays),
            Err(error) => self.plan_mut().agree(Err(error)),
        }
    }

    /// Transforms from one array to another. Collective.
    pub(crate) fn run(
        &mut self,
        direction: Direction,
        arrays: Result<(&[u8], &mut [u8]), Error>,
    ) -> Result<(), Error> {
        let [reads, writes] = self.bytes(direction);
        self.run_on(arrays, |plan, (input, output)| {
            let (reads, writes) = (reads.min(input.len()), writes.min(output.len()));
            plan.run(direction, &input[..reads], &mut output[..writes])
        })
    }

    /// Transforms within one array. Collective.
    pub(crate) fn run_in_place(
        &mut self,
        direction: Direction,
        array: Result<&mut [u8], Error>,
    ) -> Result<(), Error> {
        self.run_on(array, |plan, array| {
            let bytes = plan.in_place_bytes().min(array.len());
            plan.run_in_place(direction, &mut array[..bytes])
        })
    }

    /// As [`Held::run`], with arrays on the plan's device. Collective.
    #[cfg(feature = "cuda")]
    pub(crate) fn run_on_device(
        &mut self,
        direction: Direction,
        arrays: Result<(DeviceMemory<u8>, DeviceMemory<u8>), Error>,
    ) -> Result<(), Error> {
        let [reads, writes] = self.bytes(direction);
        self.run_on(arrays, |plan, (input, mut output)| {
            let (reads, writes) = (reads.min(input.len()), writes.min(output.len()));
            let (input, mut output) = (input.part(0..reads), output.part_mut(0..writes));
            plan.run_on_device(direction, &input, &mut output)
        })
    }

    /// As [`Held::run_in_place`], with an array on the plan's device. Collective.
    #[cfg(feature = "cuda")]
    pub(crate) fn run_in_place_on_device(
        &mut self,
        direction: Direction,
        array: Result<DeviceMemory<u8>, Error>,
    ) -> Result<(), Error> {
        self.run_on(array, |plan, mut array| {
            let bytes = plan.in_place_bytes().min(array.len());
            plan.run_in_place_on_device(direction, &mut array.part_mut(0..bytes))
        })
    }

    /// The address of zeros to be transformed in place, which the ranks of a host share. They live
    /// as long as the plan. Collective.
    pub(crate) fn allocate(&mut self, ready: Result<(), Error>) -> Result<*mut u8, Error> {
        keeping(self.on_device, || {
            self.plan_mut().agree(ready)?;
            let mut array = self.plan_mut().shared_zeros()?;
            // Waits, because the program may write there on another stream at once.
            agree(self.plan().comm(), array.synchronize())?;
            let at = match array.device_address() {
                Some(at) => std::ptr::with_exposed_provenance_mut(at as usize),
                None => array.bytes_mut().as_mut_ptr(),
            };
            self.arrays.push(array);
            Ok(at)
        })
    }

    pub(crate) fn sizes(&self) -> Sizes {
        let plan = self.plan();
        let order = |order: PerAxis<usize>| {
            std::array::from_fn(|at| order.get(at).map_or(at, |axis| *axis) as i32)
        };
        let strides = |strides: PerAxis<usize>| {
            std::array::from_fn(|axis| strides.get(axis).map_or(1, |stride| *stride as i64))
        };
        Sizes {
            struct_size: size_of::<Sizes>(),
            input: told(plan.input_brick()),
            output: told(plan.output_brick()),
            input_len: plan.input_len(),
            output_len: plan.output_len(),
            input_bytes: plan.input_bytes(),
            output_bytes: plan.output_bytes(),
            in_place_bytes: plan.in_place_bytes(),
            workspace_bytes: plan.workspace_bytes(),
            input_order: order(plan.input_order()),
            output_order: order(plan.output_order()),
            input_strides: strides(plan.input_strides()),
            output_strides: strides(plan.output_strides()),
        }
    }

    pub(crate) fn recipe(&self) -> String {
        self.plan().recipe().to_string()
    }

    pub(crate) fn report(&self) -> String {
        self.plan().report().to_string()
    }

    pub(crate) fn is_on_device(&self) -> bool {
        self.on_device
    }

    /// `mine` if all ranks have `Ok`. Collective.
    pub(crate) fn agree_with_all<R>(&mut self, mine: Result<R, Error>) -> Result<R, Error> {
        self.plan_mut().agree(mine)
    }

    /// Fails in place of a transform. Collective.
    pub(crate) fn refuse(&mut self, why: Error) -> Result<(), Error> {
        self.failed.take();
        self.plan_mut().agree(Err(why))
    }

    pub(crate) fn timings(&self) -> values::Timings {
        let timings = self.plan().timings();
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        values::Timings {
            struct_size: size_of::<values::Timings>(),
            pack: timings.pack.as_secs_f64(),
            exchange: timings.exchange.as_secs_f64(),
            unpack: timings.unpack.as_secs_f64(),
            own: timings.own.as_secs_f64(),
            shared: timings.shared.as_secs_f64(),
            fft: timings.fft.as_secs_f64(),
            sent: whole(timings.sent),
            forwarded: whole(timings.forwarded),
            reals: whole(timings.reals),
        }
    }

    pub(crate) fn clear_timings(&mut self) {
        self.plan_mut().clear_timings();
    }

    pub(crate) fn wire_error(&self) -> Option<WireError> {
        self.plan().wire_error()
    }

    /// Saves the measurements. Collective.
    pub(crate) fn save_wisdom(&mut self, path: Result<&Path, Error>) -> Result<(), Error> {
        let plan = self.plan();
        plan.save_wisdom(agree(plan.comm(), path)?)
    }
}

/// A brick as a struct of the C interface.
fn told(brick: DynBrick) -> values::Brick {
    let mut told = values::Brick::default();
    for axis in 0..brick.axes() {
        (told.lo[axis], told.hi[axis]) = (brick.lo[axis] as i64, brick.hi[axis] as i64);
    }
    told
}

/// Makes the plan that all ranks request, or this process alone. Collective.
///
/// # Errors
/// The same on every rank: the error of a wrong request on one rank; the errors of
/// [`DynDraft::build`](thriffty::planning::DynDraft::build).
pub(crate) fn build(comm: Option<&dyn Comm>, asked: Result<Request, Error>) -> Result<Held, Error> {
    let asked = asked.and_then(|request| Ok((request.draft(comm)?, request.place.is_some())));
    let (draft, on_device) = match comm {
        Some(comm) => {
            let (draft, on_device) = agree(comm, asked)?;
            all_or_none(comm, "device", on_device)?;
            (draft, on_device)
        }
        None => asked?,
    };
    let plan = keeping(on_device, || draft.build())?;
    Ok(Held::new(plan, on_device))
}

/// Refuses what some ranks request and others do not. Collective.
fn all_or_none(comm: &dyn Comm, what: &str, mine: bool) -> Result<(), Error> {
    match on_any_rank(comm, [mine, !mine])? {
        [true, true] => Err(Error::argument(what, "one on some ranks", "one on all, or on none")),
        _ => Ok(()),
    }
}
