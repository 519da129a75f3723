//! Groups of transforms that are one operation of a device.

use crate::base::Precision;
use crate::problem::{Direction, Kind};
use crate::recipe::Pass;

/// The least bytes of an array for which kernels are linked.
const LINKED_BYTES: usize = 1 << 20;

/// Whether kernels are worth linking for an array of `bytes` bytes.
pub fn is_large(bytes: usize) -> bool {
    bytes >= LINKED_BYTES
}

/// One or two passes over an array, with the axis of each, and a factor.
#[derive(Clone, Debug)]
pub struct FftGroup {
    /// Lengths in memory, before the first pass and after the last.
    pub lens: [Vec<usize>; 2],
    /// The passes, each with the place of its axis in memory, after the batch.
    pub passes: Vec<(usize, Pass)>,
    /// The factor of results.
    pub factor: f64,
    /// The distance between points of the only pass, in elements, if the group is a part of an
    /// array, with other columns in between.
    pub pitch: Option<usize>,
}

/// Lines along one axis, as several runs of a plan.
#[derive(Clone, Copy, Debug)]
pub struct LineRuns {
    /// The number of runs.
    pub runs: usize,
    /// The number of lines of a run.
    pub lines: usize,
    /// Elements between the points of a line.
    pub stride: usize,
    /// Whether the lines of a run are adjacent columns; otherwise each follows the previous one.
    pub are_columns: bool,
}

impl FftGroup {
    /// Whether another pass, which follows, fits into one operation. Both are on the last two axes
    /// of memory, where the halved one must be the last, and of whole lines; cosine and sine
    /// transforms join each other.
    pub fn joins(&self, place: usize, pass: &Pass) -> bool {
        let [(earlier, before)] = &self.passes[..] else { return false };
        let last = self.lens[0].len() - 1;
        // In planes with one point along the last axis, cuFFT halves the other axis.
        let halves =
            |place: usize, pass: &Pass| pass.kind != Kind::R2C || (place == last && pass.n > 1);
        // Halving comes first, and doubling last.
        let in_order = match pass.direction {
            Direction::Forward => pass.kind != Kind::R2C,
            Direction::Inverse => before.kind != Kind::R2C,
        };
        let both = [*earlier, place];
        let resized = before.resized.is_some() || pass.resized.is_some();
        (both == [last - 1, last] || both == [last, last - 1])
            && before.kind.is_real() == pass.kind.is_real()
            && !resized
            && halves(*earlier, before)
            && halves(place, pass)
            && in_order
    }

    /// Whether it is two passes along the first two of three axes (rule **across**).
    pub fn is_across(&self) -> bool {
        let last = self.lens[0].len() - 1;
        self.passes.len() == 2 && self.passes.iter().all(|(place, _)| *place != last)
    }

    /// Whether the result is large enough for linking kernels, which takes planning time.
    pub fn is_large(&self, precision: Precision) -> bool {
        is_large(self.reals()[1].saturating_mul(precision.bytes()))
    }

    /// The lines of the first pass as runs of one plan. The lines before and after the axis in
    /// memory are two loops, and a plan has one: the longer one, unless that would begin in the
    /// middle of a complex number.
    pub fn line_runs(&self) -> LineRuns {
        let (place, _) = self.passes[0];
        let [outer, inner] = [product(&self.lens[0][..place]), product(&self.lens[0][place + 1..])];
        let stride = self.pitch.unwrap_or(inner);
        let are_columns = stride > 1 && (outer <= inner || self.halved());
        let (runs, lines) = if are_columns { (outer, inner) } else { (inner, outer) };
        LineRuns { runs, lines, stride, are_columns }
    }

    /// Each pass in a group of its own, the last with the factor.
    pub fn apart(self) -> Vec<Self> {
        let Self { lens, passes, factor, pitch } = self;
        let last = passes.len() - 1;
        let alone = |(number, pass)| {
            let factor = if number == last { factor } else { 1.0 };
            Self { lens: lens.clone(), passes: vec![pass], factor, pitch }
        };
        passes.into_iter().enumerate().map(alone).collect()
    }

    /// Whether it is cosine or sine transforms.
    pub fn is_trig(&self) -> bool {
        self.passes[0].1.kind.is_real()
    }

    /// Whether it is a transform of padded or truncated lines, by itself.
    pub fn is_resized(&self) -> bool {
        self.passes[0].1.resized.is_some()
    }

    /// The first pass over whole lines, if there is data.
    pub fn whole(&self) -> Self {
        let (place, pass) = &self.passes[0];
        let mut lens = self.lens.clone();
        if self.reals()[0] > 0 {
            let sides = pass.line_sides();
            lens.iter_mut().zip(sides).for_each(|(lens, side)| lens[*place] = side.whole);
        }
        let pass = Pass { resized: None, ..pass.clone() };
        Self { lens, passes: vec![(*place, pass)], factor: self.factor, pitch: None }
    }

    /// Whether it transforms real data to half spectra, or back.
    pub fn halved(&self) -> bool {
        self.passes.iter().any(|(_, pass)| pass.kind == Kind::R2C)
    }

    /// Real numbers of an element, before and after.
    pub fn widths(&self) -> [usize; 2] {
        let width = |complex| if complex { 2 } else { 1 };
        let (first, last) = (&self.passes[0].1, &self.passes[self.passes.len() - 1].1);
        [width(first.complex_before), width(last.complex_after)]
    }

    /// Real numbers, before and after.
    pub fn reals(&self) -> [usize; 2] {
        let [before, after] = self.widths();
        [before * product(&self.lens[0]), after * product(&self.lens[1])]
    }
}

fn product(lens: &[usize]) -> usize {
    lens.iter().product()
}
