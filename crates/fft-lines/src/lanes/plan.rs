//! The transform of a length, for the vectors of this processor.

use std::marker::PhantomData;
use std::sync::Arc;

use pulp::{Simd, WithSimd};

use super::batch::BatchFft;
use super::complex::Complex;
use super::real::{ComplexToReal, RealToComplex};
use super::stages::Stages;
use super::vector::Real;

/// What a transform does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Batch {
    /// Complex, with `exp(-2πi jk/n)`.
    Forward,
    /// Complex, with `exp(2πi jk/n)`.
    Inverse,
    RealToComplex,
    ComplexToReal,
}

/// A transform of `n` numbers. `None` if `n` has prime factors above 13, or is odd and the
/// transform real, or if the processor lacks AVX2 or Neon.
pub(crate) fn plan<T: Real>(batch: Batch, n: usize) -> Option<Arc<dyn BatchFft<T>>> {
    let make = Make { batch, n, number: PhantomData };
    #[cfg(target_arch = "x86_64")]
    return make.with_simd(pulp::x86::V3::try_new()?);
    #[cfg(target_arch = "aarch64")]
    return make.with_simd(pulp::aarch64::Neon::try_new()?);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    None
}

struct Make<T> {
    batch: Batch,
    n: usize,
    number: PhantomData<T>,
}

impl<T: Real> WithSimd for Make<T> {
    type Output = Option<Arc<dyn BatchFft<T>>>;

    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let Self { batch, n, .. } = self;
        let real = matches!(batch, Batch::RealToComplex | Batch::ComplexToReal);
        if real && !n.is_multiple_of(2) {
            return None;
        }
        let stages = Stages::new(simd, if real { n / 2 } else { n })?;
        Some(match batch {
            Batch::Forward => Arc::new(Complex { stages, inverse: false }),
            Batch::Inverse => Arc::new(Complex { stages, inverse: true }),
            Batch::RealToComplex => Arc::new(RealToComplex::new(stages)),
            Batch::ComplexToReal => Arc::new(ComplexToReal::new(stages)),
        })
    }
}
