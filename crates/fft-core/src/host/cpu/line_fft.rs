//! One-dimensional transforms of lines of numbers.
//!
//! rustfft, realfft and rustdct compute them. This module adds one calling convention for all kinds
//! ([`crate::recipe::local_fft`]).

use std::sync::Arc;

use fft_lines::{
    ComplexToReal, Dct1, Dst1, Fft, Planner, RealToComplex, TransformType2And3, TransformType4,
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

/// Makes line transforms; lines of equal length share tables.
pub struct LinePlanner<T: Real>(Box<dyn Planner<T>>);

impl<T: Real> Default for LinePlanner<T> {
    fn default() -> Self {
        Self(T::planner())
    }
}

impl<T: Real> LinePlanner<T> {
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
        let real: Trigonometric<T> = match (kind, direction) {
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
            (Kind::Dct1, _) => Trigonometric::Dct1(planner.dct1(n)),
            (Kind::Dct2, _) => Trigonometric::Dct2(planner.type2_and_3(n)),
            (Kind::Dct3, _) => Trigonometric::Dct3(planner.type2_and_3(n)),
            (Kind::Dct4, _) => Trigonometric::Dct4(planner.type4(n)),
            (Kind::Dst1, _) => Trigonometric::Dst1(planner.dst1(n)),
            (Kind::Dst2, _) => Trigonometric::Dst2(planner.type2_and_3(n)),
            (Kind::Dst3, _) => Trigonometric::Dst3(planner.type2_and_3(n)),
            (Kind::Dst4, _) => Trigonometric::Dst4(planner.type4(n)),
        };
        Some(Arc::new(RealLine { transform: real, n, parts: if complex { 2 } else { 1 } }))
    }
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

/// The cosine and sine transforms, each with its own trait in rustdct.
enum Trigonometric<T> {
    Dct1(Arc<dyn Dct1<T>>),
    Dct2(Arc<dyn TransformType2And3<T>>),
    Dct3(Arc<dyn TransformType2And3<T>>),
    Dct4(Arc<dyn TransformType4<T>>),
    Dst1(Arc<dyn Dst1<T>>),
    Dst2(Arc<dyn TransformType2And3<T>>),
    Dst3(Arc<dyn TransformType2And3<T>>),
    Dst4(Arc<dyn TransformType4<T>>),
}

impl<T: Real> Trigonometric<T> {
    fn scratch_len(&self) -> usize {
        match self {
            Self::Dct1(t) => t.get_scratch_len(),
            Self::Dst1(t) => t.get_scratch_len(),
            Self::Dct2(t) | Self::Dct3(t) | Self::Dst2(t) | Self::Dst3(t) => t.get_scratch_len(),
            Self::Dct4(t) | Self::Dst4(t) => t.get_scratch_len(),
        }
    }

    fn run(&self, line: &mut [T], scratch: &mut [T]) {
        match self {
            Self::Dct1(t) => t.process_dct1_with_scratch(line, scratch),
            Self::Dct2(t) => t.process_dct2_with_scratch(line, scratch),
            Self::Dct3(t) => t.process_dct3_with_scratch(line, scratch),
            Self::Dct4(t) => t.process_dct4_with_scratch(line, scratch),
            Self::Dst1(t) => {
                // rustdct assumes zeros where it does not write.
                scratch.fill(T::default());
                t.process_dst1_with_scratch(line, scratch);
            }
            Self::Dst2(t) => t.process_dst2_with_scratch(line, scratch),
            Self::Dst3(t) => t.process_dst3_with_scratch(line, scratch),
            Self::Dst4(t) => t.process_dst4_with_scratch(line, scratch),
        }
    }
}

/// A cosine or sine transform of real lines, or of both parts of complex ones.
struct RealLine<T> {
    transform: Trigonometric<T>,
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
        self.transform.scratch_len() + self.n
    }
    fn run(&self, tile: &mut [T], scratch: &mut [T]) {
        let (line, scratch) = scratch.split_at_mut(self.n);
        let scratch = &mut scratch[..self.transform.scratch_len()];
        // rustdct's transforms are half of SciPy's.
        let two = T::of(2.0);
        for place in tile.chunks_exact_mut(self.pitch()) {
            for part in 0..self.parts {
                for (x, y) in line.iter_mut().zip(place[part..].iter().step_by(self.parts)) {
                    *x = *y;
                }
                self.transform.run(line, scratch);
                for (x, y) in line.iter().zip(place[part..].iter_mut().step_by(self.parts)) {
                    *y = *x * two;
                }
            }
        }
    }
}
