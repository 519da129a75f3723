//! One-dimensional transforms of lines of numbers.
//!
//! [`fft_lines`] computes them. This module adds one calling convention for all kinds
//! ([`crate::recipe::local_fft`]).

use std::sync::Arc;

use fft_lines::{BatchFft, ComplexFft, Layout, LineCosts, Planner, RealFft, TrigonometricType};
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
    /// Transforms every line of the tile and multiplies the results by `factor`. Cosine and sine
    /// transforms follow SciPy.
    fn run(&self, tile: &mut [T], scratch: &mut [T], factor: T);
    /// Numbers between the starts of two lines: the longer of before and after.
    fn pitch(&self) -> usize {
        self.len_in().max(self.len_out())
    }
}

/// A cosine or sine transform of a line, with scratch.
type RealFn<T> = Box<dyn Fn(&mut [T], &mut [T]) + Send + Sync>;

/// The length of its scratch and the transform, each of which has its own trait in rustdct.
macro_rules! trigonometric {
    ($plan:expr, $run:ident) => {{
        let plan = $plan;
        (plan.get_scratch_len(), Box::new(move |line, scratch| plan.$run(line, scratch)))
    }};
}

/// Makes line transforms. Planners of a process share tables.
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

    /// Bytes of tables; where planners share some, each counts its part of them.
    pub(crate) fn table_bytes(&self) -> usize {
        self.0.table_bytes()
    }

    /// The transform of `n` physical points along an axis of this kind. If `complex`, cosine and
    /// sine transforms apply to both parts of complex data. `None` for [`Kind::None`].
    pub fn plan(
        &mut self,
        kind: Kind,
        direction: Direction,
        n: usize,
        complex: bool,
    ) -> Option<Arc<dyn LineFft<T>>> {
        let kind = if direction == Direction::Inverse { kind.undone_by() } else { kind };
        let planner = &mut self.0;
        let (scratch_len, transform): (usize, RealFn<T>) = match (kind, direction) {
            (Kind::None, _) => return None,
            (Kind::C2C, _) => {
                let forward = direction == Direction::Forward;
                return Some(Arc::new(ComplexLine(planner.complex(n, forward))));
            }
            (Kind::R2C, _) => {
                return Some(Arc::new(HalfLine { fft: planner.real(n), direction }));
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
        Kind::None | Kind::C2C | Kind::R2C => return None,
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

struct ComplexLine<T>(ComplexFft<T>);

impl<T: Real> LineFft<T> for ComplexLine<T> {
    fn len_in(&self) -> usize {
        2 * self.0.len()
    }
    fn len_out(&self) -> usize {
        2 * self.0.len()
    }
    fn scratch_len(&self) -> usize {
        2 * self.0.scratch_len()
    }
    fn run(&self, tile: &mut [T], scratch: &mut [T], factor: T) {
        self.0.run(as_complex(tile), as_complex(scratch), factor);
    }
}

/// Real lines to half a spectrum, or back.
struct HalfLine<T> {
    fft: Arc<RealFft<T>>,
    direction: Direction,
}

impl<T: Real> LineFft<T> for HalfLine<T> {
    fn len_in(&self) -> usize {
        self.direction.choose(self.fft.len(), 2 * self.fft.complex_len())
    }
    fn len_out(&self) -> usize {
        self.direction.choose(2 * self.fft.complex_len(), self.fft.len())
    }
    fn scratch_len(&self) -> usize {
        2 * self.fft.scratch_len()
    }
    fn run(&self, tile: &mut [T], scratch: &mut [T], factor: T) {
        let scratch = as_complex(scratch);
        for line in as_complex(tile).chunks_exact_mut(self.fft.complex_len()) {
            match self.direction {
                Direction::Forward => self.fft.forward(line, scratch, factor),
                Direction::Inverse => self.fft.inverse(line, scratch, factor),
            }
        }
    }
}

/// A cosine or sine transform of real lines, or of both parts of complex ones.
struct RealLine<T> {
    transform: RealFn<T>,
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
        // Parts of complex lines are copied to be contiguous.
        self.scratch_len + if self.parts == 1 { 0 } else { self.n }
    }
    fn run(&self, tile: &mut [T], scratch: &mut [T], factor: T) {
        let (scratch, part_line) = scratch.split_at_mut(self.scratch_len);
        // rustdct's transforms are half of SciPy's.
        let factor = T::of(2.0) * factor;
        for line in tile.chunks_exact_mut(self.pitch()) {
            if self.parts == 1 {
                (self.transform)(line, scratch);
                line.iter_mut().for_each(|x| *x = *x * factor);
                continue;
            }
            for part in 0..self.parts {
                for (x, y) in part_line.iter_mut().zip(line[part..].iter().step_by(self.parts)) {
                    *x = *y;
                }
                (self.transform)(part_line, scratch);
                for (x, y) in part_line.iter().zip(line[part..].iter_mut().step_by(self.parts)) {
                    *y = *x * factor;
                }
            }
        }
    }
}
