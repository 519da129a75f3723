//! The properties of transforms that cuFFT's plans depend on.

use fft_core::{Direction, FftGroup, LineRuns};

use crate::abi::{Fft, FftRun, Spread};

/// The kind of cuFFT's plan.
pub(super) fn fft_run(group: &FftGroup) -> FftRun {
    match (group.halved(), group.passes[0].1.direction) {
        (false, Direction::Forward) => FftRun::Forward,
        (false, Direction::Inverse) => FftRun::Inverse,
        (true, Direction::Forward) => FftRun::RealToComplex,
        (true, Direction::Inverse) => FftRun::ComplexToReal,
    }
}

pub(super) fn product(lens: &[usize]) -> usize {
    lens.iter().product()
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
    pub(super) fn new(group: &FftGroup) -> Self {
        let (_, pass) = &group.passes[0];
        let LineRuns { runs, lines, stride, are_columns } = group.line_runs();
        if stride == 1 {
            return Self { fft: Fft::rows([pass.n], lines), times: runs, steps: [0; 2] };
        }
        let lens = [pass.len_before(), pass.len_after()];
        let distance = |len: usize| if are_columns { 1 } else { len * stride };
        let steps = lens.map(|len| if are_columns { len * stride } else { 1 });
        let spread = |len| Some(Spread { embed: [len], stride, distance: distance(len) });
        let [input, output] = lens.map(spread);
        Self { fft: Fft { n: [pass.n], batch: lines, input, output }, times: runs, steps }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use fft_core::{Kind, Pass};

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
            twiddles: None,
            strides: [1; 2],
        }
    }

    fn group(lens: &[usize], place: usize, pass: Pass) -> FftGroup {
        let (lens, passes) = ([lens.to_vec(), lens.to_vec()], vec![(place, pass)]);
        FftGroup { lens, passes, factor: 1.0, pitch: None }
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
