//! One-dimensional transforms of lines of numbers.
//!
//! rustfft, realfft and rustdct compute them. This module adds one calling convention for all kinds
//! ([`crate::recipe::local_fft`]).

use std::sync::Arc;

use fft_lines::{
    BatchFft, ComplexToReal, Fft, Layout, LineCosts, Planner, RealToComplex, TrigonometricType,
};
use num_complex::Complex;

use crate::base::Real;
use crate::problem::{Direction, Kind};

/// A transform of one line, applied to many lines at once.
///
/// A *tile* holds lines at distances of [`pitch`](LineFft::pitch) numbers. The first
/// [`len_in`](LineFft::len_in) numbers of each are the input, and the first
/// [`len_out`](LineFft::len_out) the output. All lengths are in real numbers; a complex number is
/// two, real part first.
pub trait LineFft<T: Real>: Send + Sync {
    /// Numbers per line before.
    fn len_in(&self) -> usize;
    /// Numbers per line after.
    fn len_out(&self) -> usize;
    /// Numbers of scratch that [`run`](LineFft::run) needs.
    fn scratch_len(&self) -> usize;
    /// Transforms every line of the tile. Unscaled; cosine and sine transforms follow SciPy.
    fn run(&self, tile: &mut [T], scratch: &mut [T]);
    /// Numbers between the starts of two lines: the longer of before and after.
    fn pitch(&self) -> usize {
        self.len_in().max(self.len_out())
    }
}

/// A cosine or sine transform of a line, with scratch.
type RealFft<T> = Box<dyn Fn(&mut [T], &mut [T]) + Send + Sync>;

/// The length of its scratch and the transform, each of which has its own trait in rustdct.
macro_rules! trigonometric {
    ($plan:expr, $run:ident) => {{
        let plan = $plan;
        (plan.get_scratch_len(), Box::new(move |line, scratch| plan.$run(line, scratch)))
    }};
}

/// Makes line transforms; lines of equal length share tables.
pub struct LinePlanner<T: Real>(Box<dyn Planner<T>>);

impl<T: Real> Default for LinePlanner<T> {
    fn default() -> Self {
        Self::new(&LineCosts::default())
    }
}

impl<T: Real> LinePlanner<T> {
    /// A planner by these costs.
    pub fn new(costs: &LineCosts) -> Self {
        Self(T::planner_with(costs))
    }

    /// The transform of `n` physical points along an axis of this kind. If `complex`, cosine and
    /// sine transforms apply to both parts of complex data. `None` for [`Kind::Identity`].
    pub fn plan(
        &mut self,
        kind: Kind,
        direction: Direction,
        n: usize,
        complex: bool,
    ) -> Option<Arc<dyn LineFft<T>>> {
        let kind = if direction == Direction::Inverse { kind.undone_by() } else { kind };
        let planner = &mut self.0;
        let (scratch_len, transform): (usize, RealFft<T>) = match (kind, direction) {
            (Kind::Identity, _) => return None,
            (Kind::C2C, Direction::Forward) => {
                return Some(Arc::new(ComplexLine(planner.complex(n, true))));
            }
            (Kind::C2C, Direction::Inverse) => {
                return Some(Arc::new(ComplexLine(planner.complex(n, false))));
            }
            (Kind::R2C, Direction::Forward) => {
                return Some(Arc::new(HalvingLine(planner.real_to_complex(n))));
            }
            (Kind::R2C, Direction::Inverse) => {
                return Some(Arc::new(DoublingLine(planner.complex_to_real(n))));
            }
            (Kind::Dct1, _) => trigonometric!(planner.dct1(n), process_dct1_with_scratch),
            (Kind::Dct2, _) => trigonometric!(planner.type2_and_3(n), process_dct2_with_scratch),
            (Kind::Dct3, _) => trigonometric!(planner.type2_and_3(n), process_dct3_with_scratch),
            (Kind::Dct4, _) => trigonometric!(planner.type4(n), process_dct4_with_scratch),
            (Kind::Dst1, _) => {
                let plan = planner.dst1(n);
                let scratch_len = plan.get_scratch_len();
                let run = move |line: &mut [T], scratch: &mut [T]| {
                    // rustdct assumes zeros where it does not write.
                    scratch.fill(T::default());
                    plan.process_dst1_with_scratch(line, scratch);
                };
                (scratch_len, Box::new(run))
            }
            (Kind::Dst2, _) => trigonometric!(planner.type2_and_3(n), process_dst2_with_scratch),
            (Kind::Dst3, _) => trigonometric!(planner.type2_and_3(n), process_dst3_with_scratch),
            (Kind::Dst4, _) => trigonometric!(planner.type4(n), process_dst4_with_scratch),
        };
        let parts = if complex { 2 } else { 1 };
        Some(Arc::new(RealLine { transform, scratch_len, n, parts }))
    }

    /// A transform of several lines at once, or `None` if there is none or if it is slower.
    pub(crate) fn plan_batch(
        &mut self,
        kind: Kind,
        direction: Direction,
        n: usize,
        complex: bool,
        layout: Layout,
    ) -> Option<Arc<dyn BatchFft<T>>> {
        let kind = if direction == Direction::Inverse { kind.undone_by() } else { kind };
        let (planner, contiguous) = (&mut self.0, layout == Layout::Rows);
        match (kind, direction) {
            (Kind::C2C, _) => planner.complex_batch(n, direction == Direction::Forward, layout),
            (Kind::R2C, Direction::Forward) if contiguous => planner.real_to_complex_batch(n),
            (Kind::R2C, Direction::Inverse) if contiguous => planner.complex_to_real_batch(n),
            _ => planner.trigonometric_batch(trigonometric(kind)?, n, complex, layout),
        }
    }
}

fn trigonometric(kind: Kind) -> Option<fft_lines::Trigonometric> {
    let (kind, sine) = match kind {
        Kind::Identity | Kind::C2C | Kind::R2C => return None,
        Kind::Dct1 => (TrigonometricType::I, false),
        Kind::Dct2 => (TrigonometricType::II, false),
        Kind::Dct3 => (TrigonometricType::III, false),
        Kind::Dct4 => (TrigonometricType::IV, false),
        Kind::Dst1 => (TrigonometricType::I, true),
        Kind::Dst2 => (TrigonometricType::II, true),
        Kind::Dst3 => (TrigonometricType::III, true),
        Kind::Dst4 => (TrigonometricType::IV, true),
    };
    Some(fft_lines::Trigonometric { kind, sine })
}

fn as_complex<T: Real>(numbers: &mut [T]) -> &mut [Complex<T>] {
    bytemuck::cast_slice_mut(numbers)
}

struct ComplexLine<T>(Arc<dyn Fft<T>>);

impl<T: Real> LineFft<T> for ComplexLine<T> {
    fn len_in(&self) -> usize {
        2 * self.0.len()
    }
    fn len_out(&self) -> usize {
        2 * self.0.len()
    }
    fn scratch_len(&self) -> usize {
        2 * self.0.get_inplace_scratch_len()
    }
    fn run(&self, tile: &mut [T], scratch: &mut [T]) {
        self.0.process_with_scratch(as_complex(tile), as_complex(scratch));
    }
}

struct HalvingLine<T>(Arc<dyn RealToComplex<T>>);

impl<T: Real> LineFft<T> for HalvingLine<T> {
    fn len_in(&self) -> usize {
        self.0.len()
    }
    fn len_out(&self) -> usize {
        2 * self.0.complex_len()
    }
    fn scratch_len(&self) -> usize {
        2 * self.0.get_scratch_len() + self.pitch()
    }
    fn run(&self, tile: &mut [T], scratch: &mut [T]) {
        let (scratch, line) = scratch.split_at_mut(2 * self.0.get_scratch_len());
        let line = &mut line[..self.len_in()];
        for place in tile.chunks_exact_mut(self.pitch()) {
            line.copy_from_slice(&place[..self.len_in()]);
            self.0
                .process_with_scratch(line, as_complex(place), as_complex(scratch))
                .expect("lengths are the plan's own");
        }
    }
}

struct DoublingLine<T>(Arc<dyn ComplexToReal<T>>);

impl<T: Real> LineFft<T> for DoublingLine<T> {
    fn len_in(&self) -> usize {
        2 * self.0.complex_len()
    }
    fn len_out(&self) -> usize {
        self.0.len()
    }
    fn scratch_len(&self) -> usize {
        2 * self.0.get_scratch_len() + self.pitch()
    }
    fn run(&self, tile: &mut [T], scratch: &mut [T]) {
        let (scratch, line) = scratch.split_at_mut(2 * self.0.get_scratch_len());
        let line = &mut line[..self.len_in()];
        let (n, zero) = (self.len_out(), T::default());
        for place in tile.chunks_exact_mut(self.pitch()) {
            line.copy_from_slice(place);
            // As NumPy's irfft: imaginary parts of the mean and the highest frequency are ignored.
            line[1] = zero;
            if n.is_multiple_of(2) {
                line[n + 1] = zero;
            }
            self.0
                .process_with_scratch(as_complex(line), &mut place[..n], as_complex(scratch))
                .expect("lengths are the plan's own, and the parts that must vanish do");
        }
    }
}

/// A cosine or sine transform of real lines, or of both parts of complex ones.
struct RealLine<T> {
    transform: RealFft<T>,
    scratch_len: usize,
    n: usize,
    parts: usize,
}

impl<T: Real> LineFft<T> for RealLine<T> {
    fn len_in(&self) -> usize {
        self.n * self.parts
    }
    fn len_out(&self) -> usize {
        self.n * self.parts
    }
    fn scratch_len(&self) -> usize {
        self.scratch_len + self.n
    }
    fn run(&self, tile: &mut [T], scratch: &mut [T]) {
        let (line, scratch) = scratch.split_at_mut(self.n);
        let scratch = &mut scratch[..self.scratch_len];
        // rustdct's transforms are half of SciPy's.
        let two = T::of(2.0);
        for place in tile.chunks_exact_mut(self.pitch()) {
            for part in 0..self.parts {
                for (x, y) in line.iter_mut().zip(place[part..].iter().step_by(self.parts)) {
                    *x = *y;
                }
                (self.transform)(line, scratch);
                for (x, y) in line.iter().zip(place[part..].iter_mut().step_by(self.parts)) {
                    *y = *x * two;
                }
            }
        }
    }
}
