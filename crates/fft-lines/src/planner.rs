//! What makes transforms of lines.

use std::sync::Arc;

use rustdct::{Dct1, Dst1, TransformType2And3, TransformType4};

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
