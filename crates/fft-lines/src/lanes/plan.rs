//! The transform of a length, for the vectors of this processor.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pulp::{Simd, WithSimd};

use super::batch::BatchFft;
use super::complex::Complex;
use super::real::{ComplexToReal, RealToComplex};
use super::stages::{LaneLayout, Stages};
use super::trigonometric::{Trigonometric, TrigonometricFft};
use super::vector::{Pair, Real};
use crate::costs::RADICES;

/// What a transform does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Batch {
    /// Complex, with `exp(-2πi jk/n)`.
    Forward(LaneLayout),
    /// Complex, with `exp(2πi jk/n)`.
    Inverse(LaneLayout),
    /// Of contiguous lines.
    RealToComplex,
    ComplexToReal,
    /// Of real numbers, or of both parts of complex ones if true.
    Trigonometric(Trigonometric, bool),
}

/// A transform of `n` numbers, by radices of these costs. `None` if they do not make the length of
/// its complex transform, or if the processor lacks AVX2 or Neon.
pub(crate) fn plan<T: Real>(
    batch: Batch,
    n: usize,
    costs: &[(usize, f64)],
) -> Option<Arc<dyn BatchFft<T>>> {
    dispatch(Make { batch, n, costs, number: PhantomData })?
}

/// Calls it with the widest vectors, if the processor has AVX2 or Neon.
fn dispatch<F: WithSimd>(f: F) -> Option<F::Output> {
    #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
    if let Some(simd) = pulp::x86::V4::try_new() {
        return Some(f.with_simd(simd));
    }
    #[cfg(target_arch = "x86_64")]
    return Some(f.with_simd(pulp::x86::V3::try_new()?));
    #[cfg(target_arch = "aarch64")]
    return Some(f.with_simd(pulp::aarch64::Neon::try_new()?));
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    None
}

struct Make<'a, T> {
    batch: Batch,
    n: usize,
    costs: &'a [(usize, f64)],
    number: PhantomData<T>,
}

impl<T: Real> WithSimd for Make<'_, T> {
    type Output = Option<Arc<dyn BatchFft<T>>>;

    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let Self { batch, n, costs, .. } = self;
        let (len, layout) = match batch {
            Batch::Forward(layout) | Batch::Inverse(layout) => (n, layout),
            Batch::RealToComplex | Batch::ComplexToReal => {
                (n.is_multiple_of(2).then_some(n / 2)?, LaneLayout::Rows)
            }
            Batch::Trigonometric(transform, _) => (transform.complex_len(n)?, LaneLayout::Columns),
        };
        let stages = Stages::new(simd, len, layout, costs)?;
        Some(match batch {
            Batch::Forward(_) => Arc::new(Complex { stages, inverse: false }),
            Batch::Inverse(_) => Arc::new(Complex { stages, inverse: true }),
            Batch::RealToComplex => Arc::new(RealToComplex::new(stages)),
            Batch::ComplexToReal => Arc::new(ComplexToReal::new(stages)),
            Batch::Trigonometric(transform, complex) => {
                Arc::new(TrigonometricFft::new(transform, n, complex, stages))
            }
        })
    }
}

/// Radices, and seconds of a stage per number.
pub(crate) fn time_radices<T: Real>() -> Option<Vec<(usize, f64)>> {
    dispatch(TimeRadices(PhantomData::<T>))
}

/// Of so many timings of each the least counts.
const ROUNDS: usize = 25;
/// The least duration of a timing.
const LONG: Duration = Duration::from_micros(50);

struct TimeRadices<T>(PhantomData<T>);

impl<T: Real> WithSimd for TimeRadices<T> {
    type Output = Vec<(usize, f64)>;

    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        // Each radix as the stage between two others, on zeros in the first-level cache.
        let stages =
            RADICES.map(|radix| Stages::<S, T>::of(simd, LaneLayout::Columns, &[4, radix, 16]));
        let mut work: Vec<Pair<S, T>> = bytemuck::zeroed_vec(4 * 16 * RADICES[RADICES.len() - 1]);
        let mut costs = RADICES.map(|radix| (radix, f64::INFINITY));
        for _ in 0..ROUNDS {
            for (stages, (_, least)) in stages.iter().zip(&mut costs) {
                let work = &mut work[..stages.n];
                let (start, mut done) = (Instant::now(), 0);
                while start.elapsed() < LONG {
                    (0..16).for_each(|_| stages.between(1..2, work, None));
                    done += 16 * stages.n;
                }
                *least = least.min(start.elapsed().as_secs_f64() / done as f64);
            }
        }
        costs.into()
    }
}
