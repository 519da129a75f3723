//! Transforms that are to become one operation.

use fft_core::{Direction, Kind, Pass};

use crate::abi::{Fft, FftRun, Spread};

/// The least bytes of an array for which cuFFT links kernels, which costs planning time.
const LINKED_BYTES: usize = 1 << 20;

/// Whether an array of so many real numbers is worth linking kernels.
pub(super) fn is_large<T>(reals: usize) -> bool {
    reals.saturating_mul(size_of::<T>()) >= LINKED_BYTES
}

pub(super) fn product(lens: &[usize]) -> usize {
    lens.iter().product()
}

/// One or two passes over an array, with the axis of each, and a factor.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Lengths in memory, before the first pass and after the last.
    pub(super) lens: [Vec<usize>; 2],
    pub(super) passes: Vec<(usize, Pass)>,
    pub(super) factor: f64,
    /// From a point of the only pass to the next, in elements, where other columns of the array are
    /// between: the group is a part of it.
    pub(super) pitch: Option<usize>,
}

impl Group {
    /// Whether another pass, which follows, fits into one operation. Both are on the last two axes
    /// of memory, where the halved one must be the last, and of whole lines; cosine and sine
    /// transforms join each other.
    pub(super) fn joins(&self, place: usize, pass: &Pass) -> bool {
        let [(earlier, before)] = &self.passes[..] else { return false };
        let last = self.lens[0].len() - 1;
        // Of planes with one point along the last axis cuFFT halves the other.
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

    /// Whether it is two passes along the first two of three axes
    /// ([`FusedAcross`](super::fused_fetch::FusedAcross)).
    pub(super) fn is_across(&self) -> bool {
        let last = self.lens[0].len() - 1;
        self.passes.len() == 2 && self.passes.iter().all(|(place, _)| *place != last)
    }

    /// Each pass in a group of its own, the last with the factor.
    pub(super) fn apart(self) -> Vec<Self> {
        let Self { lens, passes, factor, pitch } = self;
        let last = passes.len() - 1;
        let alone = |(number, pass)| {
            let factor = if number == last { factor } else { 1.0 };
            Self { lens: lens.clone(), passes: vec![pass], factor, pitch }
        };
        passes.into_iter().enumerate().map(alone).collect()
    }

    /// Whether it is cosine or sine transforms.
    pub(super) fn is_trig(&self) -> bool {
        self.passes[0].1.kind.is_real()
    }

    /// Whether it is a transform of padded or truncated lines, by itself.
    pub(super) fn is_resized(&self) -> bool {
        self.passes[0].1.resized.is_some()
    }

    /// The first pass over whole lines, if there is data.
    pub(super) fn whole(&self) -> Self {
        let (place, pass) = &self.passes[0];
        let mut lens = self.lens.clone();
        if self.reals()[0] > 0 {
            let sides = pass.line_sides();
            lens.iter_mut().zip(sides).for_each(|(lens, side)| lens[*place] = side.whole);
        }
        let pass = Pass { resized: None, ..pass.clone() };
        Self { lens, passes: vec![(*place, pass)], factor: self.factor, pitch: None }
    }

    pub(super) fn halved(&self) -> bool {
        self.passes.iter().any(|(_, pass)| pass.kind == Kind::R2C)
    }

    /// The kind of cuFFT's plan.
    pub(super) fn run(&self) -> FftRun {
        match (self.halved(), self.passes[0].1.direction) {
            (false, Direction::Forward) => FftRun::Forward,
            (false, Direction::Inverse) => FftRun::Inverse,
            (true, Direction::Forward) => FftRun::RealToComplex,
            (true, Direction::Inverse) => FftRun::ComplexToReal,
        }
    }

    /// Real numbers of an element, before and after.
    pub(super) fn widths(&self) -> [usize; 2] {
        let width = |complex| if complex { 2 } else { 1 };
        let (first, last) = (&self.passes[0].1, &self.passes[self.passes.len() - 1].1);
        [width(first.complex_before), width(last.complex_after)]
    }

    /// Real numbers, before and after.
    pub(super) fn reals(&self) -> [usize; 2] {
        let [before, after] = self.widths();
        [before * product(&self.lens[0]), after * product(&self.lens[1])]
    }
}

/// Transforms along one axis as runs of one plan, in elements.
pub(super) struct LineLayout {
    pub(super) fft: Fft<1>,
    /// The number of runs, and the distance from one to the next, before and after.
    pub(super) times: usize,
    pub(super) steps: [usize; 2],
}

impl LineLayout {
    /// The layout of a group's first pass.
    pub(super) fn new(group: &Group) -> Self {
        let (place, pass) = &group.passes[0];
        let outer = product(&group.lens[0][..*place]);
        let inner = product(&group.lens[0][place + 1..]);
        let lens = [pass.len_before(), pass.len_after()];
        let stride = group.pitch.unwrap_or(inner);
        if stride == 1 {
            return Self { fft: Fft::rows([pass.n], outer), times: 1, steps: [0; 2] };
        }
        // cuFFT does one of two loops: the longer, unless that would begin in the middle of a
        // complex number.
        let side_by_side = outer <= inner || group.halved();
        let spread = |len: usize| match side_by_side {
            true => Spread { embed: [len], stride, distance: 1 },
            false => Spread { embed: [len], stride, distance: len * stride },
        };
        let [input, output] = lens.map(|len| Some(spread(len)));
        let (times, batch) = if side_by_side { (outer, inner) } else { (inner, outer) };
        let steps = lens.map(|len| if side_by_side { len * stride } else { 1 });
        Self { fft: Fft { n: [pass.n], batch, input, output }, times, steps }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::device) fn pass(kind: Kind, direction: Direction, n: usize) -> Pass {
        let (halved, real) = (kind == Kind::R2C, kind.is_real());
        let forward = direction == Direction::Forward;
        Pass {
            kind,
            direction,
            n,
            resized: None,
            complex_before: !(real || halved && forward),
            complex_after: !real && (!halved || forward),
            outer: 1,
            inner: 1,
            factor: 1.0,
        }
    }

    fn group(lens: &[usize], place: usize, pass: Pass) -> Group {
        let (lens, passes) = ([lens.to_vec(), lens.to_vec()], vec![(place, pass)]);
        Group { lens, passes, factor: 1.0, pitch: None }
    }

    #[test]
    fn planes_are_joined_with_the_halved_axis_last() {
        let (to, from) = (Direction::Forward, Direction::Inverse);
        let lens = [1, 4, 5, 6];
        let c2c = |direction, n| pass(Kind::C2C, direction, n);
        let r2c = |direction, n| pass(Kind::R2C, direction, n);
        assert!(group(&lens, 3, c2c(to, 6)).joins(2, &c2c(to, 5)));
        assert!(group(&lens, 2, c2c(to, 5)).joins(3, &c2c(to, 6)));
        assert!(group(&lens, 3, r2c(to, 6)).joins(2, &c2c(to, 5)));
        assert!(group(&lens, 2, c2c(from, 5)).joins(3, &r2c(from, 6)));
        assert!(!group(&lens, 2, r2c(to, 5)).joins(3, &c2c(to, 6)));
        assert!(!group(&lens, 1, c2c(to, 4)).joins(2, &c2c(to, 5)));
        assert!(!group(&lens, 3, c2c(to, 6)).joins(1, &c2c(to, 4)));
        let mut both = group(&lens, 3, c2c(to, 6));
        both.passes.push((2, c2c(to, 5)));
        assert!(!both.joins(1, &c2c(to, 4)));
        let padded = |n| Pass { resized: Some([n - 1, n]), ..c2c(to, n) };
        assert!(!group(&lens, 3, c2c(to, 6)).joins(2, &padded(5)));
        assert!(!group(&lens, 3, padded(6)).joins(2, &c2c(to, 5)));
        let cosines = |n| pass(Kind::Dct2, to, n);
        assert!(group(&lens, 3, cosines(6)).joins(2, &pass(Kind::Dst4, to, 5)));
        assert!(!group(&lens, 2, cosines(5)).joins(1, &cosines(4)));
        assert!(!group(&lens, 3, cosines(6)).joins(2, &c2c(to, 5)));
        assert!(!group(&lens, 3, r2c(to, 6)).joins(2, &cosines(5)));
    }

    #[test]
    fn the_last_of_passes_apart_has_the_factor() {
        let cosines = |n| pass(Kind::Dct2, Direction::Forward, n);
        let mut both = Group { factor: 0.5, ..group(&[1, 4, 5, 6], 3, cosines(6)) };
        let factors = |group: &Group| -> Vec<_> {
            group.clone().apart().iter().map(|alone| (alone.passes[0].0, alone.factor)).collect()
        };
        assert_eq!(factors(&both), [(3, 0.5)]);
        both.passes.push((2, cosines(5)));
        assert_eq!(factors(&both), [(3, 1.0), (2, 0.5)]);
    }

    #[test]
    fn whole_lines_are_those_of_the_data() {
        let pass = Pass { resized: Some([3, 4]), ..pass(Kind::R2C, Direction::Forward, 6) };
        let lens = |lens: [usize; 2]| lens.map(|len| vec![2, len, 5]);
        let group = |lens, pass: &Pass| Group {
            lens,
            passes: vec![(1, pass.clone())],
            factor: 1.0,
            pitch: None,
        };
        let padded = group(lens([3, 3]), &pass);
        assert_eq!(padded.whole().lens, lens([6, 4]));
        let empty = group([vec![1, 0], vec![1, 0]], &pass);
        assert_eq!(empty.whole().reals(), [0; 2]);
    }

    #[test]
    fn of_a_middle_axis_the_longer_loop_is_cufft_s() {
        let lines =
            LineLayout::new(&group(&[1, 3, 5, 7], 2, pass(Kind::C2C, Direction::Forward, 5)));
        assert_eq!((lines.times, lines.steps, lines.fft.batch), (3, [35, 35], 7));
        let lines =
            LineLayout::new(&group(&[2, 9, 5, 7], 2, pass(Kind::C2C, Direction::Forward, 5)));
        assert_eq!((lines.times, lines.steps, lines.fft.batch), (7, [1, 1], 18));
        assert_eq!(lines.fft.input.unwrap().distance, 35);
        let lines =
            LineLayout::new(&group(&[2, 9, 5, 7], 3, pass(Kind::C2C, Direction::Forward, 7)));
        assert_eq!((lines.times, lines.fft.batch, lines.fft.input), (1, 90, None));
        // The first 12 of 60 columns.
        let mut part = group(&[1, 9, 3, 4], 1, pass(Kind::C2C, Direction::Forward, 9));
        part.pitch = Some(60);
        let lines = LineLayout::new(&part);
        let spread = Spread { embed: [9], stride: 60, distance: 1 };
        assert_eq!((lines.times, lines.fft.batch, lines.fft.input), (1, 12, Some(spread)));
    }
}
