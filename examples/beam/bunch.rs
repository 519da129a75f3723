//! Gaussian bunches, their densities and their potentials.

use std::f64::consts::{PI, SQRT_2};

/// Intervals of Simpson's rule in the potential of long bunches; their error is below 1e-7.
const INTERVALS: usize = 64;

/// A Gaussian bunch of charge 1 in the middle of a box.
pub(super) struct Bunch {
    pub(super) name: &'static str,
    /// Standard deviations along the axes; the first is the smallest.
    pub(super) sigma: [f64; 3],
    pub(super) lengths: [f64; 3],
}

pub(super) const ROUND: Bunch = Bunch { name: "round", sigma: [0.1; 3], lengths: [1.0; 3] };
pub(super) const LONG: Bunch =
    Bunch { name: "long", sigma: [0.1, 0.1, 0.3], lengths: [1.0, 1.0, 3.0] };

impl Bunch {
    pub(super) fn spacing(&self, n: usize) -> [f64; 3] {
        self.lengths.map(|length| length / n as f64)
    }

    /// The position of a cell's middle, from the middle of the box.
    pub(super) fn position(&self, n: usize, index: [usize; 3]) -> [f64; 3] {
        let spacing = self.spacing(n);
        [0, 1, 2].map(|axis| (index[axis] as f64 + 0.5 - n as f64 / 2.0) * spacing[axis])
    }

    pub(super) fn density(&self, position: [f64; 3]) -> f64 {
        let mut exponent = 0.0;
        for axis in 0..3 {
            exponent -= 0.5 * (position[axis] / self.sigma[axis]).powi(2);
        }
        exponent.exp() / ((2.0 * PI).powf(1.5) * self.sigma.iter().product::<f64>())
    }

    /// The potential as a sum of Gaussians, by Simpson's rule in v of
    ///
    /// ```text
    /// 1/(2π^1.5) ∫ Π exp(-x² v²/w) / √w dv,  w = 1 + 2 (σ² - σ₀²) v²,  0 < v < 1/(√2 σ₀)
    /// ```
    ///
    /// where products are over axes. It is Gauss's integral of 1/r, convolved axis by axis.
    fn gaussians(&self) -> Vec<([f64; 3], f64)> {
        let step = 1.0 / (SQRT_2 * self.sigma[0] * INTERVALS as f64);
        let gaussian = |i: usize| {
            let square = (i as f64 * step).powi(2);
            let widths =
                self.sigma.map(|s| 1.0 + 2.0 * (s.powi(2) - self.sigma[0].powi(2)) * square);
            let simpson = match i {
                0 | INTERVALS => 1.0,
                _ if i % 2 == 1 => 4.0,
                _ => 2.0,
            };
            let weight = simpson * step / 3.0 / widths.iter().product::<f64>().sqrt();
            (widths.map(|width| square / width), weight / (2.0 * PI.powf(1.5)))
        };
        (0..=INTERVALS).map(gaussian).collect()
    }

    /// The exact potential as a function of positions.
    pub(super) fn potential(&self) -> impl Fn([f64; 3]) -> f64 {
        let sigma = self.sigma[0];
        let is_round = self.sigma == [sigma; 3];
        let gaussians = self.gaussians();
        move |[x, y, z]| {
            let r = (x * x + y * y + z * z).sqrt();
            if is_round && r > 0.0 {
                return erf(r / (SQRT_2 * sigma)) / (4.0 * PI * r);
            }
            let value = |&([a, b, c], weight): &([f64; 3], f64)| {
                weight * (-a * x * x - b * y * y - c * z * z).exp()
            };
            gaussians.iter().map(value).sum()
        }
    }
}

/// The error function of a number that is not negative, by a series of positive terms.
fn erf(x: f64) -> f64 {
    if x > 6.0 {
        return 1.0;
    }
    let (mut term, mut sum, mut n) = (x, x, 1.0);
    while term > sum * 1e-17 {
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
        n += 1.0;
    }
    sum * (-x * x).exp() * 2.0 / PI.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The integral of long bunches is the formula of round ones where deviations are equal.
    #[test]
    fn integrals_are_error_functions() {
        let gaussians = ROUND.gaussians();
        let exact = ROUND.potential();
        for r in [0.01, 0.1, 0.3, 0.8] {
            let at = [r / 3.0, r * 2.0 / 3.0, r * 2.0 / 3.0];
            let squares = at.map(|x| x * x);
            let sum: f64 = gaussians
                .iter()
                .map(|(a, weight)| weight * (0..3).map(|i| -a[i] * squares[i]).sum::<f64>().exp())
                .sum();
            assert!((sum / exact(at) - 1.0).abs() < 1e-6, "{sum} at {r}");
        }
        assert!((erf(0.5) - 0.520_499_877_813_046_5).abs() < 1e-15);
        assert!((erf(3.0) - 0.999_977_909_503_001_4).abs() < 1e-15);
    }
}
