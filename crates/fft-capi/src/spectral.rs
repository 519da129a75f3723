//! Operators on the spectra of plans.

#[cfg(feature = "cuda")]
use std::sync::Arc;

use thriffty::Error;
#[cfg(feature = "cuda")]
use thriffty::gpu::cudarc::driver::{CudaStream, DeviceSlice};
#[cfg(feature = "cuda")]
use thriffty::gpu::{DeviceMemory, GpuError};
use thriffty::planning::{DynArray, MAX_AXES};
use thriffty::spectral::{Domain, Operator};

use crate::domain::KnownDomain;
use crate::plan::{Held, Plan, keeping};
use crate::values::Operator as Number;

/// The operator of a number and its parameter, of which a derivative's is an axis.
pub(crate) fn operator(number: i32, parameter: f64) -> Result<Operator, Error> {
    let known = [
        (Number::Gradient, Operator::Gradient),
        (Number::Divergence, Operator::Divergence),
        (Number::Curl, Operator::Curl),
        (Number::Laplacian, Operator::Laplacian),
        (Number::Poisson, Operator::Poisson),
        (Number::Helmholtz, Operator::Helmholtz(parameter)),
        (Number::Project, Operator::Project),
        (Number::Gaussian, Operator::Gaussian(parameter)),
        (Number::Cutoff, Operator::Cutoff(parameter)),
    ];
    if number == Number::Derivative as i32 {
        // The library refuses axes that there are not.
        let axis = parameter as usize;
        return match axis as f64 == parameter {
            true => Ok(Operator::Derivative(axis)),
            false => Err(Error::argument("axis of a derivative", parameter, "a whole number")),
        };
    }
    let found = known.into_iter().find(|(known, _)| *known as i32 == number);
    let none = || Error::argument("operator", number, "one of thriffty_operator");
    found.map(|(_, operator)| operator).ok_or_else(none)
}

impl Held {
    /// What a failure on this rank leaves for the next transform, which returns it on all ranks.
    pub(crate) fn remember<R>(&mut self, result: Result<R, Error>) -> Result<R, Error> {
        if let Err(error) = &result {
            self.failed.get_or_insert_with(|| error.clone());
        }
        result
    }

    /// The number of axes.
    pub(crate) fn axes(&self) -> usize {
        match self.plan() {
            Plan::Rank(plan) => plan.output_order().len(),
            Plan::Team(plan) => plan.output_order().len(),
        }
    }

    /// The domain of these lengths, made again where they change.
    fn domain(
        &mut self,
        lengths: impl FnOnce(&mut [f64]) -> Result<(), Error>,
        reversed: bool,
    ) -> Result<&Domain, Error> {
        let axes = self.axes();
        let mut asked = [1.0; MAX_AXES];
        lengths(&mut asked[..axes])?;
        let is_same = |found: &KnownDomain| found.lengths == asked && found.reversed == reversed;
        if !self.domain.as_ref().is_some_and(is_same) {
            let of = &asked[..axes];
            let domain = match (self.plan(), reversed) {
                (Plan::Rank(plan), false) => plan.domain(of),
                (Plan::Rank(plan), true) => plan.reversed_domain(of),
                (Plan::Team(plan), false) => plan.domain(of),
                (Plan::Team(plan), true) => plan.reversed_domain(of),
            }?;
            self.domain = Some(KnownDomain { lengths: asked, reversed, domain });
        }
        let missing = || Error::argument("domain", "none", "one");
        self.domain.as_ref().map(|found| &found.domain).ok_or_else(missing)
    }

    /// Applies an operator to arrays of the host; without input, within the output.
    pub(crate) fn apply(
        &mut self,
        operator: Operator,
        (lengths, reversed): (impl FnOnce(&mut [f64]) -> Result<(), Error>, bool),
        input: Option<&[u8]>,
        output: &mut [u8],
    ) -> Result<(), Error> {
        self.domain(lengths, reversed)?.apply_bytes(operator, input, output)
    }

    /// As [`Held::apply`], with arrays on the plan's device.
    #[cfg(feature = "cuda")]
    pub(crate) fn apply_on_device(
        &mut self,
        operator: Operator,
        (lengths, reversed): (impl FnOnce(&mut [f64]) -> Result<(), Error>, bool),
        input: Option<&DeviceMemory<u8>>,
        output: &mut DeviceMemory<u8>,
    ) -> Result<(), Error> {
        self.domain(lengths, reversed)?.apply_on_device(operator, input, output)
    }

    /// Multiplies arrays of the host by a kernel, or its conjugate.
    pub(crate) fn multiply(
        &mut self,
        kernel: &[u8],
        conjugate: bool,
        data: &mut [u8],
    ) -> Result<(), Error> {
        self.any_domain()?.multiply_bytes(kernel, conjugate, data)
    }

    /// As [`Held::multiply`], with arrays on the plan's device.
    #[cfg(feature = "cuda")]
    pub(crate) fn multiply_on_device(
        &mut self,
        kernel: &DeviceMemory<u8>,
        conjugate: bool,
        data: &mut DeviceMemory<u8>,
    ) -> Result<(), Error> {
        self.any_domain()?.multiply_on_device(kernel, conjugate, data)
    }

    /// The last domain, whatever its lengths.
    fn any_domain(&mut self) -> Result<&Domain, Error> {
        let last = self.domain.as_ref().map(|found| (found.lengths, found.reversed));
        let (lengths, reversed) = last.unwrap_or(([1.0; MAX_AXES], false));
        let same = |asked: &mut [f64]| {
            asked.copy_from_slice(&lengths[..asked.len()]);
            Ok(())
        };
        self.domain(same, reversed)
    }

    /// Writes the transform of Green's function in open space. Collective.
    pub(crate) fn green_function(
        &mut self,
        spacing: impl FnOnce(&mut [f64]) -> Result<(), Error>,
        kernel: Result<&mut [u8], Error>,
    ) -> Result<(), Error> {
        let kernel = kernel.map(|kernel| (kernel.len(), kernel));
        let (made, kernel) = self.make_green_function(spacing, kernel)?;
        let [_, bytes, _] = self.plan().bytes();
        made.read(&mut kernel[..bytes])
    }

    /// As [`Held::green_function`], with an array on the plan's device.
    #[cfg(feature = "cuda")]
    pub(crate) fn green_function_on_device(
        &mut self,
        spacing: impl FnOnce(&mut [f64]) -> Result<(), Error>,
        kernel: Result<DeviceMemory<u8>, Error>,
        (rank, stream): (usize, &Arc<CudaStream>),
    ) -> Result<(), Error> {
        let kernel = kernel.map(|kernel| (kernel.len(), kernel));
        let (made, mut kernel) = self.make_green_function(spacing, kernel)?;
        let [_, bytes, _] = self.plan().bytes();
        let reals = bytes / size_of::<f32>();
        let Some(from) = made.device_numbers::<f32>(reals).filter(|_| reals > 0) else {
            return Ok(());
        };
        let mut to = kernel.cast_mut::<f32>();
        let copied = stream.memcpy_dtod(&from, &mut *to.part_mut(0..reals));
        let what = "copying Green's function";
        copied.map_err(|why| GpuError::Driver { what, why: why.to_string() }.on(rank))
    }

    /// Green's function, and where it goes: memory of so many bytes, which must be enough.
    fn make_green_function<A>(
        &mut self,
        spacing: impl FnOnce(&mut [f64]) -> Result<(), Error>,
        kernel: Result<(usize, A), Error>,
    ) -> Result<(DynArray, A), Error> {
        let (mut asked, axes) = ([1.0; MAX_AXES], self.axes());
        let ready = spacing(&mut asked[..axes]).and_then(|()| {
            let ((found, kernel), [_, expected, _]) = (kernel?, self.plan().bytes());
            match found >= expected {
                true => Ok(kernel),
                false => Err(Error::argument("bytes of the kernel", found, expected)),
            }
        });
        let kernel = self.agree_with_all(ready)?;
        let made = match self.plan() {
            Plan::Rank(plan) => plan.green_function(&asked[..axes]),
            Plan::Team(plan) => plan.green_function(&asked[..axes]),
        }?;
        Ok((made, kernel))
    }

    /// The wavenumbers along an axis of a box with this length there: all, and those of
    /// derivatives.
    pub(crate) fn wavenumbers(&mut self, axis: i32, length: f64) -> Result<[Vec<f64>; 2], Error> {
        let axes = self.axes();
        let found = usize::try_from(axis).ok().filter(|axis| *axis < axes);
        let wrong = || Error::argument("axis", axis, format!("0 to {}", axes - 1));
        let axis = found.ok_or_else(wrong)?;
        let mut lengths = vec![1.0; axes];
        lengths[axis] = length;
        let domain = keeping(self.is_on_device(), || match self.plan() {
            Plan::Rank(plan) => plan.domain(lengths),
            Plan::Team(plan) => plan.domain(lengths),
        })?;
        Ok([domain.wavenumbers(axis), domain.derivative_wavenumbers(axis)].map(<[f64]>::to_vec))
    }
}
