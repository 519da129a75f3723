//! Transforms of lines of numbers: one after the other, or several at once.
//!
//! The planners of rustfft, realfft and rustdct transform one line after the other. These
//! libraries are generic, so that every crate that uses a planner compiles all algorithms. This
//! crate compiles them once, for both precisions.
//!
//! A [`BatchFft`] transforms several lines at once, one per SIMD lane.
//!
//! ```
//! use fft_lines::Number;
//! let fft = f64::planner().complex(8, true);
//! assert_eq!(fft.len(), 8);
//! ```
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::sync::Arc;

pub use costs::{Costs, Layout, LineCosts, OneByOne, RADICES};
pub use lanes::{BatchFft, Lines, Strides, Trigonometric, TrigonometricType};
pub use realfft::{ComplexToReal, RealToComplex};
pub use rustdct::{Dct1, DctNum, Dst1, TransformType2And3, TransformType4};
pub use rustfft::Fft;

use realfft::RealFftPlanner;
use rustdct::DctPlanner;
use rustfft::FftPlanner;

use lanes::Batch;

mod costs;
mod lanes;

/// `f32` or `f64`, for which transforms are compiled here.
pub trait Number: DctNum {
    /// A planner with no tables yet, by these costs.
    fn planner_with(costs: &LineCosts) -> Box<dyn Planner<Self>>;

    /// Measures the costs of radices: seconds of a stage per number. `None` for processors without
    /// AVX2 or Neon.
    fn time_radices() -> Option<Vec<(usize, f64)>>;

    /// A planner by default costs.
    fn planner() -> Box<dyn Planner<Self>> {
        Self::planner_with(&LineCosts::default())
    }
}

macro_rules! number {
    ($number:ident) => {
        impl Number for $number {
            fn planner_with(costs: &LineCosts) -> Box<dyn Planner<Self>> {
                Box::new(Planners::new(costs.$number.clone()))
            }

            fn time_radices() -> Option<Vec<(usize, f64)>> {
                lanes::time_radices::<$number>()
            }
        }
    };
}

number!(f32);
number!(f64);

/// Makes unscaled transforms of lines of `n` numbers; lines of equal length share tables.
pub trait Planner<T>: Send {
    /// Complex transform, with `exp(-2πi jk/n)` forward and its conjugate otherwise.
    fn complex(&mut self, n: usize, forward: bool) -> Arc<dyn Fft<T>>;
    /// `n` real numbers to `n/2 + 1` complex ones.
    fn real_to_complex(&mut self, n: usize) -> Arc<dyn RealToComplex<T>>;
    /// `n/2 + 1` complex numbers to `n` real ones.
    fn complex_to_real(&mut self, n: usize) -> Arc<dyn ComplexToReal<T>>;
    /// Complex transforms of several lines at once, which are contiguous or lie side by side.
    /// `None` where one after the other is faster, for `n` with a prime factor above 13, and for
    /// processors without AVX2 or Neon.
    fn complex_batch(
        &mut self,
        n: usize,
        forward: bool,
        layout: Layout,
    ) -> Option<Arc<dyn BatchFft<T>>>;
    /// `n` real numbers to `n/2 + 1` complex ones, for several contiguous lines at once. `None`
    /// also for odd `n`.
    fn real_to_complex_batch(&mut self, n: usize) -> Option<Arc<dyn BatchFft<T>>>;
    /// `n/2 + 1` complex numbers to `n` real ones, as
    /// [`real_to_complex_batch`](Planner::real_to_complex_batch).
    fn complex_to_real_batch(&mut self, n: usize) -> Option<Arc<dyn BatchFft<T>>>;
    /// An unscaled cosine or sine transform, as SciPy's, for several lines at once: of `n` real
    /// numbers, or of both parts of complex ones. `None` also for odd `n`, but in type I.
    fn trigonometric_batch(
        &mut self,
        transform: Trigonometric,
        n: usize,
        complex: bool,
        layout: Layout,
    ) -> Option<Arc<dyn BatchFft<T>>>;
    /// DCT-I.
    fn dct1(&mut self, n: usize) -> Arc<dyn Dct1<T>>;
    /// DCT-II, DCT-III, DST-II and DST-III.
    fn type2_and_3(&mut self, n: usize) -> Arc<dyn TransformType2And3<T>>;
    /// DCT-IV and DST-IV.
    fn type4(&mut self, n: usize) -> Arc<dyn TransformType4<T>>;
    /// DST-I.
    fn dst1(&mut self, n: usize) -> Arc<dyn Dst1<T>>;
}

type AnyBatch<T> = Option<Arc<dyn BatchFft<T>>>;

struct Planners<T: DctNum> {
    complex: FftPlanner<T>,
    real: RealFftPlanner<T>,
    cosine: DctPlanner<T>,
    batches: HashMap<(Batch, usize), AnyBatch<T>>,
    costs: Costs,
}

impl<T: DctNum + lanes::Real> Planners<T> {
    fn new(costs: Costs) -> Self {
        Self {
            complex: FftPlanner::new(),
            real: RealFftPlanner::new(),
            cosine: DctPlanner::new(),
            batches: HashMap::new(),
            costs,
        }
    }

    fn batch(&mut self, batch: Batch, n: usize, layout: Layout) -> Option<Arc<dyn BatchFft<T>>> {
        let one_by_one = match batch {
            Batch::Forward | Batch::Inverse => &self.costs.complex,
            Batch::RealToComplex | Batch::ComplexToReal => &self.costs.real,
            Batch::Trigonometric(..) => &self.costs.trigonometric,
        };
        if n > self.costs.longest || one_by_one.of(layout).contains(&n) {
            return None;
        }
        let plan = || lanes::plan(batch, n, &self.costs.radices);
        self.batches.entry((batch, n)).or_insert_with(plan).clone()
    }
}

impl<T: DctNum + lanes::Real> Planner<T> for Planners<T> {
    fn complex(&mut self, n: usize, forward: bool) -> Arc<dyn Fft<T>> {
        if forward { self.complex.plan_fft_forward(n) } else { self.complex.plan_fft_inverse(n) }
    }

    fn real_to_complex(&mut self, n: usize) -> Arc<dyn RealToComplex<T>> {
        self.real.plan_fft_forward(n)
    }

    fn complex_to_real(&mut self, n: usize) -> Arc<dyn ComplexToReal<T>> {
        self.real.plan_fft_inverse(n)
    }

    fn complex_batch(
        &mut self,
        n: usize,
        forward: bool,
        layout: Layout,
    ) -> Option<Arc<dyn BatchFft<T>>> {
        self.batch(if forward { Batch::Forward } else { Batch::Inverse }, n, layout)
    }

    fn real_to_complex_batch(&mut self, n: usize) -> Option<Arc<dyn BatchFft<T>>> {
        self.batch(Batch::RealToComplex, n, Layout::Rows)
    }

    fn complex_to_real_batch(&mut self, n: usize) -> Option<Arc<dyn BatchFft<T>>> {
        self.batch(Batch::ComplexToReal, n, Layout::Rows)
    }

    fn trigonometric_batch(
        &mut self,
        transform: Trigonometric,
        n: usize,
        complex: bool,
        layout: Layout,
    ) -> Option<Arc<dyn BatchFft<T>>> {
        self.batch(Batch::Trigonometric(transform, complex), n, layout)
    }

    fn dct1(&mut self, n: usize) -> Arc<dyn Dct1<T>> {
        self.cosine.plan_dct1(n)
    }

    fn type2_and_3(&mut self, n: usize) -> Arc<dyn TransformType2And3<T>> {
        self.cosine.plan_dct2(n)
    }

    fn type4(&mut self, n: usize) -> Arc<dyn TransformType4<T>> {
        self.cosine.plan_dct4(n)
    }

    fn dst1(&mut self, n: usize) -> Arc<dyn Dst1<T>> {
        self.cosine.plan_dst1(n)
    }
}
