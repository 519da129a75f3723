//! One-dimensional transforms of lines of numbers.
//!
//! [`fft_lines`] computes them. This module adds one calling convention for all kinds
//! ([`crate::recipe::local_fft`]).

use std::sync::Arc;

use fft_lines::{
    BatchFft, ComplexFft, Layout, LineCosts, ManyRoots, Planner, RealFft, RealTransform, Strides,
};
use num_complex::Complex;

use crate::base::Real;
use crate::problem::{Direction, Kind, Lines};

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

/// Makes line transforms. Planners of a process share tables.
pub struct LinePlanner<T: Real> {
    planner: Box<dyn Planner<T>>,
    /// Whether single lines are transformed as several are.
    reproducible: bool,
    /// Roots of unity for twiddles, by their order.
    roots: Vec<(usize, Arc<ManyRoots>)>,
}

impl<T: Real> Default for LinePlanner<T> {
    fn default() -> Self {
        Self::new(&LineCosts::default(), false)
    }
}

impl<T: Real> LinePlanner<T> {
    /// A planner by these costs. If it is `reproducible`, lines of one length and kind have the
    /// same bits wherever they lie, and however many there are.
    pub fn new(costs: &LineCosts, reproducible: bool) -> Self {
        Self { planner: T::planner_with(costs), reproducible, roots: Vec::new() }
    }

    /// Bytes of tables; where planners share some, each counts its part of them.
    pub(crate) fn table_bytes(&self) -> usize {
        let of_roots = self.roots.iter().map(|(_, roots)| roots.bytes()).sum::<usize>();
        self.planner.table_bytes() + of_roots
    }

    /// All roots of unity of an order.
    pub(crate) fn roots(&mut self, order: usize) -> Arc<ManyRoots> {
        if let Some((_, known)) = self.roots.iter().find(|(known, _)| *known == order) {
            return Arc::clone(known);
        }
        let roots = Arc::new(ManyRoots::new(order));
        self.roots.push((order, Arc::clone(&roots)));
        roots
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
        if self.reproducible
            && let Some(fft) = self.plan_batch(kind, direction, n, complex, Layout::Rows)
        {
            return Some(Arc::new(BatchedLines::new(fft, kind, direction, n, complex)));
        }
        let kind = direction.choose(kind, kind.undone_by());
        let planner = &mut self.planner;
        Some(match kind.lines() {
            Lines::None => return None,
            Lines::Complex => {
                Arc::new(ComplexLine(planner.complex(n, direction == Direction::Forward)))
            }
            Lines::HalfSpectrum => Arc::new(HalfLine { fft: planner.real(n), direction }),
            Lines::Real(transform) => {
                let parts = if complex { 2 } else { 1 };
                Arc::new(RealLine { transform: planner.trigonometric(transform, n), n, parts })
            }
        })
    }

    /// A transform of several lines at once, or `None` if there is none.
    pub(crate) fn plan_batch(
        &mut self,
        kind: Kind,
        direction: Direction,
        n: usize,
        complex: bool,
        layout: Layout,
    ) -> Option<Arc<dyn BatchFft<T>>> {
        let kind = direction.choose(kind, kind.undone_by());
        let (planner, contiguous) = (&mut self.planner, layout == Layout::Rows);
        match (kind.lines(), direction) {
            (Lines::Complex, _) => {
                planner.complex_batch(n, direction == Direction::Forward, layout)
            }
            (Lines::HalfSpectrum, Direction::Forward) if contiguous => {
                planner.real_to_complex_batch(n)
            }
            (Lines::HalfSpectrum, Direction::Inverse) if contiguous => {
                planner.complex_to_real_batch(n)
            }
            (Lines::Real(transform), _) => planner.trigonometric_batch(transform, n, complex),
            (Lines::None | Lines::HalfSpectrum, _) => None,
        }
    }
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

/// Transforms real lines to half a spectrum, or back.
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
    transform: RealTransform<T>,
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
        self.transform.scratch_len + if self.parts == 1 { 0 } else { self.n }
    }
    fn run(&self, tile: &mut [T], scratch: &mut [T], factor: T) {
        let (scratch, part_line) = scratch.split_at_mut(self.transform.scratch_len);
        // rustdct's transforms are half of SciPy's.
        let factor = T::of(2.0) * factor;
        for line in tile.chunks_exact_mut(self.pitch()) {
            if self.parts == 1 {
                (self.transform.run)(line, scratch);
                line.iter_mut().for_each(|x| *x = *x * factor);
                continue;
            }
            for part in 0..self.parts {
                for (x, y) in part_line.iter_mut().zip(line[part..].iter().step_by(self.parts)) {
                    *x = *y;
                }
                (self.transform.run)(part_line, scratch);
                for (x, y) in part_line.iter().zip(line[part..].iter_mut().step_by(self.parts)) {
                    *y = *x * factor;
                }
            }
        }
    }
}

/// Lines that are transformed as several at once, however few there are.
struct BatchedLines<T> {
    fft: Arc<dyn BatchFft<T>>,
    /// Real numbers of a line before and after.
    lens: [usize; 2],
    /// Real numbers of an element.
    width: usize,
}

impl<T: Real> BatchedLines<T> {
    fn new(
        fft: Arc<dyn BatchFft<T>>,
        kind: Kind,
        direction: Direction,
        n: usize,
        complex: bool,
    ) -> Self {
        let spectrum = 2 * kind.spectral_len(n);
        let (lens, width) = match kind.lines() {
            Lines::HalfSpectrum => ([n, spectrum], 2),
            Lines::Real(_) if !complex => ([n; 2], 1),
            _ => ([2 * n; 2], 2),
        };
        let [physical, spectral] = lens;
        let lens = [direction.choose(physical, spectral), direction.choose(spectral, physical)];
        Self { fft, lens, width }
    }
}

impl<T: Real> LineFft<T> for BatchedLines<T> {
    fn len_in(&self) -> usize {
        self.lens[0]
    }
    fn len_out(&self) -> usize {
        self.lens[1]
    }
    fn scratch_len(&self) -> usize {
        self.fft.scratch_len()
    }
    fn run(&self, tile: &mut [T], scratch: &mut [T], factor: T) {
        let at = Strides { stride: 1, dist: self.pitch() / self.width };
        let count = tile.len() / self.pitch();
        let lines =
            fft_lines::Lines { src: None, from: at, dst: tile, to: at, count, uncached: false };
        self.fft.run(lines, factor, scratch);
    }
}
