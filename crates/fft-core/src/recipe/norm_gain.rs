//! Gains of transforms in the l2 norm of data and errors.
//!
//! Complex transforms multiply every norm by √n (Parseval), so an error made anywhere is known at
//! the end. Cosine and sine transforms weight one or two vectors differently, by at most √2.

use super::recipe::{Node, Step};
use crate::problem::{Direction, Kind, Problem};

/// Factors of a vector's norm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gain {
    /// Of the vector that shrinks most.
    pub(crate) least: f64,
    /// Root mean square for independent numbers of equal size, such as rounding errors.
    pub(crate) typical: f64,
    /// Of the vector that grows most.
    pub(crate) most: f64,
}

impl Gain {
    /// The same factor for all vectors.
    pub(crate) fn all(factor: f64) -> Self {
        let factor = factor.abs();
        Self { least: factor, typical: factor, most: factor }
    }

    /// The gain of this operation followed by another.
    pub(crate) fn then(self, next: Self) -> Self {
        Self {
            least: self.least * next.least,
            typical: self.typical * next.typical,
            most: self.most * next.most,
        }
    }

    /// The gain of the unscaled transform of `n` points, of whole spectra.
    pub(crate) fn of(kind: Kind, direction: Direction, n: usize) -> Self {
        let points = n as f64;
        let root = (kind.logical_len(n) as f64).sqrt();
        let kind = direction.choose(kind, kind.undone_by());
        match kind {
            // Rows are orthogonal; one is √2 as long as the others.
            Kind::Dct2 | Kind::Dst2 => Self {
                least: root,
                typical: root * (1.0 + 1.0 / points).sqrt(),
                most: root * 2f64.sqrt(),
            },
            // Columns are orthogonal; one is shorter by √2.
            Kind::Dct3 | Kind::Dst3 => Self {
                least: root / 2f64.sqrt(),
                typical: root * (1.0 - 0.5 / points).sqrt(),
                most: root,
            },
            // An orthogonal matrix, with its ends weighted by √2 and 1/√2.
            Kind::Dct1 => {
                let m = points - 1.0;
                Self {
                    least: root / 2f64.sqrt(),
                    typical: ((2.0 * m * m + 4.0 * m - 2.0) / points).sqrt(),
                    most: root * 2f64.sqrt(),
                }
            }
            _ => Self::all(root),
        }
    }

    /// From the norm of `n/2 + 1` frequencies to that of all `n`, most of which occur twice.
    pub(crate) fn of_half(n: usize) -> Self {
        let twice = if n > 2 { 2f64.sqrt() } else { 1.0 };
        Self { least: 1.0, typical: (n as f64 / (n / 2 + 1) as f64).sqrt(), most: twice }
    }
}

pub(crate) fn gain_of(steps: &[Step], problem: &Problem, direction: Direction) -> Gain {
    steps.iter().fold(Gain::all(1.0), |gain, step| match *step {
        Step::Reshape { .. } => gain,
        Step::Fft { axis, kind } => gain.then(Gain::of(kind, direction, problem.transform[axis])),
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
            if kind == Kind::Dct1 && n < 2 {
                continue;
            }
            for direction in [Direction::Forward, Direction::Inverse] {
                let columns = columns(kind, direction, n);
                let gain = Gain::of(kind, direction, n);
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
