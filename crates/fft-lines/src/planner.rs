//! What makes transforms of lines.

use std::sync::Arc;

use crate::complex_fft::ComplexFft;
use crate::costs::Layout;
use crate::lanes::{BatchFft, Trigonometric};
use crate::real_fft::RealFft;

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
    /// `None` for lines that are too long, for `n` with a prime factor above 13, and for processors
    /// without AVX2 or Neon.
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
    ) -> Option<Arc<dyn BatchFft<T>>>;
    /// A cosine or sine transform of real numbers: half of SciPy's.
    fn trigonometric(&mut self, transform: Trigonometric, n: usize) -> RealTransform<T>;
}

/// Transforms a line with scratch.
type RunLine<T> = dyn Fn(&mut [T], &mut [T]) + Send + Sync;

/// A transform of real numbers in place.
pub struct RealTransform<T> {
    /// Numbers of scratch.
    pub scratch_len: usize,
    /// Transforms a line with this scratch.
    pub run: Box<RunLine<T>>,
}
