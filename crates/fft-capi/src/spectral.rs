//! Operators on the spectra of plans.

#[cfg(feature = "cuda")]
use std::sync::Arc;

#[cfg(feature = "cuda")]
use thriffty::gpu::cudarc::driver::{CudaStream, DeviceSlice};
#[cfg(feature = "cuda")]
use thriffty::gpu::{DeviceMemory, GpuError};
use thriffty::planning::{DynArray, MAX_AXES, PerAxis};
use thriffty::spectral::{Domain, Operator, Scheme, Tridiagonal};
use thriffty::{Error, Kind};

use crate::domain::KnownDomain;
use crate::plan::{Held, keeping};
use crate::request::one_of;
use crate::values::Operator as Number;

/// An operator as programs name it.
#[derive(Clone, Copy)]
pub(crate) struct AskedOperator {
    pub(crate) number: i32,
    /// NaN stands for none.
    pub(crate) parameter: f64,
    /// Whether components and axes are counted as in Fortran.
    pub(crate) reversed: bool,
}

impl AskedOperator {
    /// The operator, for a grid with this number of axes.
    pub(crate) fn operator(self, axes: usize) -> Result<Operator, Error> {
        let known = [
            Number::Derivative,
            Number::Gradient,
            Number::Divergence,
            Number::Curl,
            Number::Laplacian,
            Number::Poisson,
            Number::Helmholtz,
            Number::Project,
            Number::Gaussian,
            Number::Cutoff,
        ];
        match one_of("operator", self.number, &known.map(|it| (it as i32, it)))? {
            Number::Derivative => self.axis(axes).map(Operator::Derivative),
            Number::Helmholtz => self.given("the shift").map(Operator::Helmholtz),
            Number::Gaussian => self.given("the standard deviation").map(Operator::Gaussian),
            Number::Cutoff => {
                self.given("the fraction of the highest wavenumber").map(Operator::Cutoff)
            }
            Number::Gradient => self.without_parameter(Operator::Gradient),
            Number::Divergence => self.without_parameter(Operator::Divergence),
            Number::Curl => self.without_parameter(Operator::Curl),
            Number::Laplacian => self.without_parameter(Operator::Laplacian),
            Number::Poisson => self.without_parameter(Operator::Poisson),
            Number::Project => self.without_parameter(Operator::Project),
        }
    }

    /// An operator that has no parameter, for which 0 is none, too.
    fn without_parameter(self, operator: Operator) -> Result<Operator, Error> {
        if self.parameter.is_nan() || self.parameter == 0.0 {
            Ok(operator)
        } else {
            Err(Error::argument("parameter of the operator", self.parameter, "none"))
        }
    }

    /// The parameter of an operator that has one.
    fn given(self, expected: &str) -> Result<f64, Error> {
        if self.parameter.is_nan() {
            Err(Error::argument("parameter of the operator", "none", expected))
        } else {
            Ok(self.parameter)
        }
    }

    /// The axis of a derivative, counted from 0 in the order of C.
    fn axis(self, axes: usize) -> Result<usize, Error> {
        let given = self.given("the axis of the derivative")?;
        let first = if self.reversed { 1 } else { 0 };
        let found = (0..axes).find(|at| (at + first) as f64 == given);
        let last = axes - 1 + first;
        let wrong =
            || Error::argument("axis of the derivative", given, format!("{first} to {last}"));
        let axis = found.ok_or_else(wrong)?;
        Ok(if self.reversed { axes - 1 - axis } else { axis })
    }
}

impl Held {
    /// Keeps a failure of this rank for the next transform, which returns it on all ranks. A single
    /// rank has no others to inform.
    pub(crate) fn remember<R>(&mut self, result: Result<R, Error>) -> Result<R, Error> {
        if let Err(error) = &result
            && self.ranks() > 1
        {
            self.failed.get_or_insert_with(|| error.clone());
        }
        result
    }

    fn ranks(&self) -> usize {
        self.plan().comm().size()
    }

    /// The number of axes.
    pub(crate) fn axes(&self) -> usize {
        self.plan().problem().kinds.len()
    }

    /// The domain of these lengths, which is made again if they change.
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
            let domain = self.discretised(if reversed {
                self.plan().reversed_domain(of)
            } else {
                self.plan().domain(of)
            }?)?;
            self.domain = Some(KnownDomain { lengths: asked, reversed, domain });
        }
        self.known_domain()
    }

    fn known_domain(&self) -> Result<&Domain, Error> {
        let missing = || Error::argument("domain", "none", "one");
        self.domain.as_ref().map(|found| &found.domain).ok_or_else(missing)
    }

    /// Sets the difference schemes of operators: names for all axes, or one for each of them.
    pub(crate) fn set_schemes(&mut self, names: Option<&str>, reversed: bool) -> Result<(), Error> {
        let axes = self.axes();
        let schemes = match names {
            None => None,
            Some(names) => {
                let found = names.split(',').map(|name| name.trim().parse());
                let mut found = found.collect::<Result<Vec<Scheme>, Error>>()?;
                if reversed {
                    found.reverse();
                }
                if found.len() != axes && found.len() != 1 {
                    return Err(Error::argument("number of schemes", found.len(), axes));
                }
                Some(PerAxis::from_fn(axes, |axis| found[axis.min(found.len() - 1)]))
            }
        };
        self.schemes = schemes;
        self.forget_domain();
        Ok(())
    }

    /// Sets the coefficients along the tridiagonal axis.
    pub(crate) fn set_tridiagonal(
        &mut self,
        scheme: Result<Tridiagonal, Error>,
    ) -> Result<(), Error> {
        let (scheme, problem) = (scheme?, self.plan().problem());
        let axis = problem.kinds.iter().position(|kind| *kind == Kind::Tridiagonal);
        let Some(axis) = axis else {
            let expected = "one axis of kind tridiagonal";
            return Err(Error::argument("kinds", "none tridiagonal", expected));
        };
        let points = problem.modes[axis];
        if scheme.len() != points {
            return Err(Error::argument("number of coefficients", scheme.len(), points));
        }
        self.tridiagonal = Some(scheme);
        self.forget_domain();
        Ok(())
    }

    /// The next operator makes another.
    fn forget_domain(&mut self) {
        let domain = self.domain.take();
        keeping(self.is_on_device(), || drop(domain));
    }

    /// A domain with the plan's difference schemes and coefficients.
    fn discretised(&self, mut domain: Domain) -> Result<Domain, Error> {
        if let Some(schemes) = self.schemes {
            domain = domain.with_schemes(&schemes)?;
        }
        match &self.tridiagonal {
            Some(scheme) => domain.with_tridiagonal(scheme.clone()),
            None => Ok(domain),
        }
    }

    /// Applies an operator to arrays of the host; without input, within the output.
    pub(crate) fn apply(
        &mut self,
        asked: AskedOperator,
        lengths: impl FnOnce(&mut [f64]) -> Result<(), Error>,
        arrays: Result<(Option<&[u8]>, &mut [u8]), Error>,
    ) -> Result<(), Error> {
        let known = self.domain(lengths, asked.reversed).map(drop);
        let mine = known.and(asked.operator(self.axes())).and_then(|it| Ok((it, arrays?)));
        // By the plan's own agreement, because a rank may refuse (`thriffty_plan_refuse`) instead.
        let (operator, (input, output)) =
            if self.plan().divides_systems() { self.agree_with_all(mine)? } else { mine? };
        self.known_domain()?.apply_bytes(operator, input, output)
    }

    /// As [`Held::apply`], with arrays on the plan's device.
    #[cfg(feature = "cuda")]
    pub(crate) fn apply_on_device(
        &mut self,
        asked: AskedOperator,
        lengths: impl FnOnce(&mut [f64]) -> Result<(), Error>,
        input: Option<&DeviceMemory<u8>>,
        output: &mut DeviceMemory<u8>,
    ) -> Result<(), Error> {
        let operator = asked.operator(self.axes())?;
        self.domain(lengths, asked.reversed)?.apply_on_device(operator, input, output)
    }

    /// Multiplies arrays of the host by a kernel, or its conjugate.
    pub(crate) fn convolve(
        &mut self,
        kernel: &[u8],
        correlate: bool,
        data: &mut [u8],
    ) -> Result<(), Error> {
        self.any_domain()?.convolve_bytes(kernel, correlate, data)
    }

    /// As [`Held::convolve`], with arrays on the plan's device.
    #[cfg(feature = "cuda")]
    pub(crate) fn convolve_on_device(
        &mut self,
        kernel: &DeviceMemory<u8>,
        correlate: bool,
        data: &mut DeviceMemory<u8>,
    ) -> Result<(), Error> {
        self.any_domain()?.convolve_on_device(kernel, correlate, data)
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
        let bytes = self.plan().output_bytes();
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
        let bytes = self.plan().output_bytes();
        let reals = bytes / size_of::<f32>();
        let Some(from) = made.device_numbers::<f32>(reals).filter(|_| reals > 0) else {
            return Ok(());
        };
        let mut to = kernel.cast_mut::<f32>();
        let copied = stream.memcpy_dtod(&from, &mut *to.part_mut(0..reals));
        let what = "copying Green's function";
        copied.map_err(|why| GpuError::Driver { what, why: why.to_string() }.on(rank))
    }

    /// Green's function, and its destination, which must have enough bytes.
    fn make_green_function<A>(
        &mut self,
        spacing: impl FnOnce(&mut [f64]) -> Result<(), Error>,
        kernel: Result<(usize, A), Error>,
    ) -> Result<(DynArray, A), Error> {
        let (mut asked, axes) = ([1.0; MAX_AXES], self.axes());
        let ready = spacing(&mut asked[..axes]).and_then(|()| {
            let ((found, kernel), expected) = (kernel?, self.plan().output_bytes());
            if found >= expected {
                Ok(kernel)
            } else {
                Err(Error::argument("bytes of the kernel", found, expected))
            }
        });
        let kernel = self.agree_with_all(ready)?;
        let made = self.plan().green_function(&asked[..axes])?;
        Ok((made, kernel))
    }

    /// The wavenumbers along an axis of a box with this length there: all, and the ones for
    /// derivatives.
    pub(crate) fn wavenumbers(&mut self, axis: i32, length: f64) -> Result<[Vec<f64>; 2], Error> {
        let axes = self.axes();
        let found = usize::try_from(axis).ok().filter(|axis| *axis < axes);
        let wrong = || Error::argument("axis", axis, format!("0 to {}", axes - 1));
        let axis = found.ok_or_else(wrong)?;
        let mut lengths = vec![1.0; axes];
        lengths[axis] = length;
        let domain =
            keeping(self.is_on_device(), || self.discretised(self.plan().domain(lengths)?))?;
        Ok([domain.wavenumbers(axis), domain.derivative_wavenumbers(axis)].map(<[f64]>::to_vec))
    }
}
