//! Gains of transforms in the l2 norm of data and errors.
//!
//! Complex transforms multiply every norm by √n (Parseval), so the size of an error at the end
//! follows from its size where it was made. Cosine and sine transforms weight one or two vectors
//! differently, by at most √2.

use super::recipe::{Node, Step};
use crate::problem::{Direction, Gain, Problem};

pub(crate) fn gain_of(steps: &[Step], problem: &Problem, direction: Direction) -> Gain {
    steps.iter().fold(Gain::all(1.0), |gain, step| match *step {
        Step::Reshape { .. } => gain,
        Step::Fft { axis, kind } => gain.then(kind.gain(direction, problem.zero_padded[axis])),
        Step::Scale { forward, inverse } => {
            gain.then(Gain::all(direction.choose(forward, inverse)))
        }
    })
}

/// The gain of an error in the data of `from`. Errors in half spectra count twice.
pub(crate) fn gain_after(
    from: &Node,
    rest: &[Step],
    problem: &Problem,
    direction: Direction,
) -> Gain {
    let gain = gain_of(rest, problem, direction);
    match problem.halved_axis().filter(|_| from.complex) {
        Some(axis) => gain.then(Gain::of_half(problem.grid().len(axis))),
        None => gain,
    }
}

/// Factor by which a rank's squared error may exceed the expected one, within the margin.
const UNEVEN: f64 = 1.06;

/// The error of one operation.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// The gain of its errors up to the result.
    pub(crate) gain: Gain,
    /// Real numbers encoded with loss.
    pub(crate) reals: f64,
    /// Whether the quantization step is the common one.
    pub(crate) common: bool,
}

impl Loss {
    /// The allowed sum of squared errors for a uniform error of half a step to either side.
    pub fn room(reals: f64, step: f64) -> f64 {
        UNEVEN * reals * step * step / 12.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Cpu;
    use crate::problem::Kind;
    use crate::recipe::local_fft::{LocalFft, Pass};

    /// The matrix of a real transform, by columns.
    fn columns(kind: Kind, direction: Direction, n: usize) -> Vec<Vec<f64>> {
        let pass = Pass {
            kind,
            direction,
            n,
            resized: None,
            complex_before: false,
            complex_after: false,
            outer: 1,
            inner: 1,
            factor: 1.0,
            twiddles: None,
            strides: [1; 2],
        };
        let mut cpu = Cpu::<f64>::default();
        let fft = cpu
            .plan_fft(&LocalFft { blocks: 1, passes: vec![pass], cached: true, to_cache: true }, 0)
            .unwrap();
        let column = |j| {
            let mut unit = vec![0.0; n];
            unit[j] = 1.0;
            cpu.fft(&fft, 0..1, None, &mut unit);
            unit
        };
        (0..n).map(column).collect()
    }

    fn norm(x: &[f64]) -> f64 {
        x.iter().map(|x| x * x).sum::<f64>().sqrt()
    }

    /// The largest growth of a norm, by power iteration on AᵀA.
    fn largest(columns: &[Vec<f64>]) -> f64 {
        let n = columns.len();
        let mut x: Vec<f64> = (0..n).map(|i| 1.0 + (i as f64 * 0.7).sin()).collect();
        let mut growth = 0.0;
        for _ in 0..3000 {
            let scale = norm(&x);
            x.iter_mut().for_each(|x| *x /= scale);
            let y: Vec<f64> = (0..n).map(|k| (0..n).map(|j| columns[j][k] * x[j]).sum()).collect();
            growth = norm(&y);
            x = columns.iter().map(|a| a.iter().zip(&y).map(|(a, y)| a * y).sum()).collect();
        }
        growth
    }

    #[test]
    fn gains_are_those_of_the_matrices() {
        let real = Kind::ALL.into_iter().filter(|kind| kind.is_real());
        for (kind, n) in real.flat_map(|kind| [1, 2, 3, 5, 8, 13].map(|n| (kind, n))) {
            if n < kind.least_points() {
                continue;
            }
            for direction in [Direction::Forward, Direction::Inverse] {
                let columns = columns(kind, direction, n);
                let gain = kind.gain(direction, n);
                let what = format!("{kind} {direction:?} {n}: {gain:?}");
                let squares: f64 = columns.iter().map(|c| norm(c).powi(2)).sum();
                let typical = (squares / n as f64).sqrt();
                assert!((typical / gain.typical - 1.0).abs() < 1e-12, "{what}, found {typical}");
                assert!(largest(&columns) <= gain.most * (1.0 + 1e-12), "{what}");
                // The inverse is the other direction over the logical length.
                let other = direction.choose(Direction::Inverse, Direction::Forward);
                let least = kind.logical_len(n) as f64 / largest(&self::columns(kind, other, n));
                assert!(gain.least <= least * (1.0 + 1e-9), "{what}, found {least}");
            }
        }
    }

    #[test]
    fn half_a_spectrum_stands_for_all_of_it() {
        assert_eq!(Gain::of_half(1), Gain::all(1.0));
        assert_eq!(Gain::of_half(2), Gain::all(1.0));
        assert_eq!(Gain::of_half(4).typical, (4.0f64 / 3.0).sqrt());
        assert!(Gain::of_half(101).typical < Gain::of_half(101).most);
    }
}
