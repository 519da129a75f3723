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

pub use complex_fft::ComplexFft;
pub use costs::{Costs, Layout, LineCosts, RADICES};
pub use lanes::{BatchFft, Lines, Strides, Trigonometric, TrigonometricType};
pub use per_process::PerProcess;
pub use planner::{Planner, RealTransform};
pub use real_fft::RealFft;
pub use roots::ManyRoots;
pub use rustdct::DctNum;

use planners::Planners;

mod bluestein;
mod complex_fft;
mod costs;
mod lanes;
mod one_by_one;
mod per_process;
mod planner;
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
