//! Transforms of lines of numbers: one after the other, or several at once.
//!
//! rustfft and rustdct transform one line after the other. These libraries are generic, so that
//! every crate that uses a planner compiles all algorithms. This crate compiles them once, for both
//! precisions. Plans of a process share tables.
//!
//! A [`BatchFft`] transforms several lines at once, one per SIMD lane.
//!
//! ```
//! use fft_lines::Number;
//! let mut planner = f64::planner();
//! assert_eq!(planner.complex(8, true).len(), 8);
//! assert!(planner.table_bytes() >= 8 * 16);
//! ```
#![forbid(unsafe_code)]

use std::sync::Arc;

pub use complex_fft::ComplexFft;
pub use costs::{Costs, Layout, LineCosts, OneByOne, RADICES};
pub use lanes::{BatchFft, Lines, Strides, Trigonometric, TrigonometricType};
pub use per_process::PerProcess;
pub use real_fft::RealFft;
pub use rustdct::{Dct1, DctNum, Dst1, TransformType2And3, TransformType4};

use planners::Planners;

mod bluestein;
mod complex_fft;
mod costs;
mod lanes;
mod one_by_one;
mod per_process;
mod planners;
mod real_fft;
mod roots;
mod shared;

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

/// Makes unscaled transforms of lines of `n` numbers. Planners of a process share tables.
pub trait Planner<T>: Send {
    /// Bytes of the tables of all transforms that it has made. Where several planners of a process
    /// share tables, each counts its part of them.
    fn table_bytes(&self) -> usize;
    /// Complex transform, with `exp(-2πi jk/n)` forward and its conjugate otherwise.
    fn complex(&mut self, n: usize, forward: bool) -> ComplexFft<T>;
    /// `n` real numbers to `n/2 + 1` complex ones and back.
    fn real(&mut self, n: usize) -> Arc<RealFft<T>>;
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
