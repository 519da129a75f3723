//! Local transforms by cuFFT, typed.
//!
//! Forward is exp(-2πi jk/n), and nothing is scaled.

use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut};

use crate::abi::pieces::Pieces;
use crate::base::{Gpu, GpuError, GpuReal};
use crate::ffi::{DeviceMemory, Gathering, Handle, Many, Run, Span};

/// Complex to complex.
pub struct C2c<T>(PhantomData<T>);
/// Real to complex: the last axis becomes n/2 + 1 long.
pub struct R2c<T>(PhantomData<T>);
/// Complex to real, of the half that [`R2c`] makes.
pub struct C2r<T>(PhantomData<T>);

/// [`C2c`], [`R2c`] or [`C2r`].
pub trait FftKind: sealed::Sealed {
    /// The precision.
    type Real: GpuReal;
    /// Real numbers of an element, before and after.
    const WIDTHS: [usize; 2];
    /// What a plan of this kind is made as.
    #[doc(hidden)]
    const RUN: Run;
}

mod sealed {
    pub trait Sealed {}
    impl<T> Sealed for super::C2c<T> {}
    impl<T> Sealed for super::R2c<T> {}
    impl<T> Sealed for super::C2r<T> {}
}

impl<T: GpuReal> FftKind for C2c<T> {
    type Real = T;
    const WIDTHS: [usize; 2] = [2, 2];
    const RUN: Run = Run::Forward;
}

impl<T: GpuReal> FftKind for R2c<T> {
    type Real = T;
    const WIDTHS: [usize; 2] = [1, 2];
    const RUN: Run = Run::RealToComplex;
}

impl<T: GpuReal> FftKind for C2r<T> {
    type Real = T;
    const WIDTHS: [usize; 2] = [2, 1];
    const RUN: Run = Run::ComplexToReal;
}

/// How the points of transforms lie in memory, in elements: those of transform `b` at
/// `b·distance + stride·(… + (i₀·embed₁ + i₁)·embed₂ + i₂)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread<const D: usize> {
    /// Points along each axis of the array around; the first does not matter.
    pub embed: [usize; D],
    /// From a point to the next along the last axis.
    pub stride: usize,
    /// From a transform to the next.
    pub distance: usize,
}

/// So many transforms along `D` axes, 1 to 3, of physical lengths `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fft<const D: usize> {
    /// Physical points along each axis, the contiguous one last.
    pub n: [usize; D],
    /// How many transforms.
    pub batch: usize,
    /// Where points are before; one array after the other by default.
    pub input: Option<Spread<D>>,
    /// Where points are after, likewise.
    pub output: Option<Spread<D>>,
}

impl<const D: usize> Fft<D> {
    /// Arrays one after the other.
    pub fn rows(n: [usize; D], batch: usize) -> Self {
        Self { n, batch, input: None, output: None }
    }

    /// A plan of this kind.
    pub(crate) fn many<K: FftKind>(&self, run: Run) -> Result<Many<D>, GpuError> {
        let Self { n, batch, .. } = *self;
        Ok(Many { run, n, batch, sides: self.sides::<K>()? })
    }

    /// The two sides of a plan of this kind.
    fn sides<K: FftKind>(&self) -> Result<[Span<D>; 2], GpuError> {
        const { assert!(D >= 1 && D <= 3, "cuFFT transforms along 1 to 3 axes") };
        if self.batch == 0 || self.n.contains(&0) {
            let found = format!("{} of {:?}", self.batch, self.n);
            return Err(GpuError::Argument {
                what: "transforms",
                found,
                expected: "some, of some points",
            });
        }
        Ok([(self.input, 0), (self.output, 1)].map(|(spread, side)| {
            let mut lens = self.n;
            // The half of a real array's spectrum.
            if K::WIDTHS[side] != K::WIDTHS[1 - side] && K::WIDTHS[side] == 2 {
                lens[D - 1] = lens[D - 1] / 2 + 1;
            }
            let rows = Spread {
                embed: lens,
                stride: 1,
                distance: lens.into_iter().fold(1, usize::saturating_mul),
            };
            let Spread { embed, stride, distance } = spread.unwrap_or(rows);
            Span { lens, embed, stride, distance, width: K::WIDTHS[side] }
        }))
    }
}

impl Fft<1> {
    /// Transforms along the first axis of an array of so many columns.
    pub fn columns(n: usize, columns: usize) -> Self {
        let side = Some(Spread { embed: [n], stride: columns, distance: 1 });
        Self { n: [n], batch: columns, input: side, output: side }
    }
}

/// Local transforms, planned. Buffers are arrays of real numbers, with complex ones as two of them.
///
/// Plans have no work area: one, of as many bytes as any of them wants, serves all that run one after the other.
///
/// A plan of one kind cannot be run as another:
/// ```compile_fail
/// # use std::sync::Arc;
/// # use fft_gpu::{cudarc::driver::*, *};
/// # type Result = std::result::Result<(), GpuError>;
/// fn run(plan: &mut FftPlan<R2c<f64>>, s: &Arc<CudaStream>, x: &mut CudaSlice<f64>, work: &mut CudaSlice<u8>) -> Result {
///     plan.forward_in_place(s, x, work)
/// }
/// ```
/// One of that kind can:
/// ```
/// # use std::sync::Arc;
/// # use fft_gpu::{cudarc::driver::*, *};
/// # type Result = std::result::Result<(), GpuError>;
/// fn run(plan: &mut FftPlan<C2c<f64>>, s: &Arc<CudaStream>, x: &mut CudaSlice<f64>, work: &mut CudaSlice<u8>) -> Result {
///     plan.forward_in_place(s, x, work)
/// }
/// ```
/// Nor can it be run on another precision:
/// ```compile_fail
/// # use std::sync::Arc;
/// # use fft_gpu::{cudarc::driver::*, *};
/// # type Result = std::result::Result<(), GpuError>;
/// fn run(plan: &mut FftPlan<C2c<f64>>, s: &Arc<CudaStream>, x: &mut CudaSlice<f32>, work: &mut CudaSlice<u8>) -> Result {
///     plan.forward_in_place(s, x, work)
/// }
/// ```
pub struct FftPlan<K> {
    handle: Handle,
    kind: PhantomData<fn() -> K>,
}

impl<K: FftKind> FftPlan<K> {
    /// Plans. Costs up to some 100 ms for lengths that cuFFT has not met.
    ///
    /// # Errors
    /// [`GpuError::NoCuFft`] where its library is not found, [`GpuError::Argument`] for no transforms or no points,
    /// [`GpuError::TooLarge`], [`GpuError::Driver`].
    pub fn new<const D: usize>(gpu: &Gpu, fft: &Fft<D>) -> Result<Self, GpuError> {
        let handle = Handle::new::<K::Real, D>(gpu.context(), &fft.many::<K>(K::RUN)?)?;
        Ok(Self { handle, kind: PhantomData })
    }

    /// Plans transforms of which every result is multiplied by a factor when it is stored: on an H200 as fast as without for 512³,
    /// slower than a pass of its own for 1024³. `None` where cuFFT cannot, which is before version 12 (CUDA 13) and without `nvJitLink`; then there is [`Scaling`](crate::Scaling). Costs linking
    /// its kernels.
    ///
    /// # Errors
    /// As [`FftPlan::new`].
    pub fn scaled<const D: usize>(
        gpu: &Gpu,
        fft: &Fft<D>,
        factor: K::Real,
    ) -> Result<Option<Self>, GpuError> {
        let made = Handle::scaled(gpu.context(), &fft.many::<K>(K::RUN)?, factor)?;
        Ok(made.map(|handle| Self { handle, kind: PhantomData }))
    }

    /// Bytes of the work area that it must be given.
    pub fn work_bytes(&self) -> usize {
        self.handle.work()
    }
}

/// A run returns when it is queued on the stream. All refuse with [`GpuError::Short`] and [`GpuError::Unaligned`].
impl<T: GpuReal> FftPlan<C2c<T>> {
    /// From one array to another.
    ///
    /// # Errors
    /// A buffer that is short or not aligned to complex numbers, [`GpuError::Driver`].
    pub fn forward(
        &mut self,
        stream: &Arc<CudaStream>,
        src: &impl DevicePtr<T>,
        dst: &mut impl DevicePtrMut<T>,
        work: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), GpuError> {
        self.handle.run(Run::Forward, stream, src, dst, work)
    }

    /// The inverse, times the number of points.
    ///
    /// # Errors
    /// As [`FftPlan::forward`].
    pub fn inverse(
        &mut self,
        stream: &Arc<CudaStream>,
        src: &impl DevicePtr<T>,
        dst: &mut impl DevicePtrMut<T>,
        work: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), GpuError> {
        self.handle.run(Run::Inverse, stream, src, dst, work)
    }

    /// In place. Both sides should be spread alike.
    ///
    /// # Errors
    /// As [`FftPlan::forward`].
    pub fn forward_in_place(
        &mut self,
        stream: &Arc<CudaStream>,
        data: &mut impl DevicePtrMut<T>,
        work: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), GpuError> {
        self.handle.run_in_place(Run::Forward, stream, data, work)
    }

    /// The inverse in place, times the number of points. Both sides should be spread alike.
    ///
    /// # Errors
    /// As [`FftPlan::forward`].
    pub fn inverse_in_place(
        &mut self,
        stream: &Arc<CudaStream>,
        data: &mut impl DevicePtrMut<T>,
        work: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), GpuError> {
        self.handle.run_in_place(Run::Inverse, stream, data, work)
    }
}

impl<T: GpuReal> C2c<T> {
    /// Plans transforms of elements that they fetch from where a table says, and may store where another does, both sides spread alike;
    /// `None` where cuFFT cannot.
    ///
    /// # Errors
    /// As [`FftPlan::new`].
    pub(crate) fn gathering<const D: usize>(
        gpu: &Gpu,
        fft: &Fft<D>,
        run: Run,
        from: Pieces,
        to: Option<Pieces>,
    ) -> Result<Option<Gathering>, GpuError> {
        Gathering::new::<T, D>(gpu, &fft.many::<Self>(run)?, from, to)
    }
}

impl<T: GpuReal> FftPlan<R2c<T>> {
    /// From real numbers to half of their spectrum.
    ///
    /// # Errors
    /// A buffer that is short or not aligned to complex numbers, [`GpuError::Driver`].
    pub fn run(
        &mut self,
        stream: &Arc<CudaStream>,
        src: &impl DevicePtr<T>,
        dst: &mut impl DevicePtrMut<T>,
        work: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), GpuError> {
        self.handle.run(Run::RealToComplex, stream, src, dst, work)
    }
}

impl<T: GpuReal> FftPlan<C2r<T>> {
    /// From half of a spectrum to real numbers, times the number of points. The spectrum is used up.
    ///
    /// # Errors
    /// A buffer that is short or not aligned to complex numbers, [`GpuError::Driver`].
    pub fn run(
        &mut self,
        stream: &Arc<CudaStream>,
        src: &mut (impl DevicePtr<T> + DevicePtrMut<T>),
        dst: &mut impl DevicePtrMut<T>,
        work: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), GpuError> {
        self.handle.run(Run::ComplexToReal, stream, src, dst, work)
    }

    /// As [`FftPlan::run`], where the spectrum is a plan's own.
    pub(crate) fn spend(
        &mut self,
        stream: &Arc<CudaStream>,
        src: &DeviceMemory<T>,
        dst: &mut DeviceMemory<T>,
        work: &mut impl DevicePtrMut<u8>,
    ) -> Result<(), GpuError> {
        self.handle.run(Run::ComplexToReal, stream, src, dst, work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reaches<K: FftKind, const D: usize>(fft: &Fft<D>) -> [usize; 2] {
        fft.sides::<K>().unwrap().map(|side| side.reach(fft.batch).unwrap())
    }

    #[test]
    fn plans_know_what_they_touch() {
        assert_eq!(reaches::<C2c<f64>, 3>(&Fft::rows([4, 5, 6], 2)), [240, 240]);
        assert_eq!(reaches::<R2c<f32>, 3>(&Fft::rows([4, 5, 6], 2)), [240, 160]);
        assert_eq!(reaches::<C2r<f32>, 2>(&Fft::rows([5, 7], 3)), [60, 105]);
        assert_eq!(reaches::<C2c<f64>, 1>(&Fft::columns(8, 30)), [240, 240]);
        let padded = Spread { embed: [9, 10], stride: 2, distance: 300 };
        let fft = Fft { input: Some(padded), ..Fft::rows([5, 7], 3) };
        assert_eq!(reaches::<C2c<f64>, 2>(&fft), [600 + 2 * (4 * 10 + 6) + 1, 105]);
    }

    #[test]
    fn nothing_to_transform_is_an_error() {
        for fft in [Fft::rows([4, 0], 1), Fft::rows([4, 4], 0)] {
            assert!(matches!(fft.sides::<C2c<f64>>(), Err(GpuError::Argument { .. })));
        }
        assert!(
            Fft::rows([1 << 40, 1 << 40], 1).sides::<C2c<f64>>().unwrap()[0].reach(1).is_none()
        );
    }
}
