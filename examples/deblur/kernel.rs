//! Blurs: how the light of a point is spread over other points.

use std::fmt;

/// Points of a motion per pixel of its way.
const STEPS: f64 = 16.0;
/// A Gaussian ends at this number of standard deviations.
const REACH: f64 = 4.0;

/// A blur. Lengths are in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kernel {
    /// The camera moved so far at this angle, in degrees, counter-clockwise from the right.
    Motion { length: f64, angle: f64 },
    /// A Gaussian of this standard deviation.
    Gaussian(f64),
}

impl Kernel {
    /// The weights of displacements, down and to the right. Their sum is 1, and displacements may
    /// occur several times.
    pub(super) fn weights(self) -> Vec<([isize; 2], f64)> {
        let mut weights = match self {
            Self::Motion { length, angle } => motion(length, angle.to_radians()),
            Self::Gaussian(sigma) => gaussian(sigma),
        };
        let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
        weights.iter_mut().for_each(|(_, weight)| *weight /= sum);
        weights
    }

    /// The largest displacement along an axis, or one more.
    pub(super) fn radius(self) -> usize {
        match self {
            Self::Motion { length, .. } => (length / 2.0).ceil() as usize + 1,
            Self::Gaussian(sigma) => (REACH * sigma).ceil() as usize,
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Motion { length, angle } => write!(f, "motion of {length} pixels at {angle}°"),
            Self::Gaussian(sigma) => write!(f, "a Gaussian of σ = {sigma} pixels"),
        }
    }
}

/// Points of a line through the origin, each shared by the four pixels around it.
fn motion(length: f64, angle: f64) -> Vec<([isize; 2], f64)> {
    let steps = (STEPS * length).ceil() as usize;
    let mut weights = Vec::with_capacity(4 * steps);
    for step in 0..steps {
        let along = length * ((step as f64 + 0.5) / steps as f64 - 0.5);
        // Rows are numbered downwards.
        let [y, x] = [-along * angle.sin(), along * angle.cos()];
        let [top, left] = [y.floor(), x.floor()];
        for (down, right) in [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)] {
            let [row, column] = [top + down, left + right];
            let weight = (1.0 - (y - row).abs()) * (1.0 - (x - column).abs());
            weights.push(([row as isize, column as isize], weight));
        }
    }
    weights
}

fn gaussian(sigma: f64) -> Vec<([isize; 2], f64)> {
    let radius = Kernel::Gaussian(sigma).radius() as isize;
    let square = (-radius..=radius).flat_map(|y| (-radius..=radius).map(move |x| [y, x]));
    let weight = |[y, x]: [isize; 2]| {
        let r = ((y * y + x * x) as f64).sqrt();
        (-0.5 * (r / sigma).powi(2)).exp()
    };
    square.map(|at| (at, weight(at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_balanced_and_within_the_radius() {
        let motion = |length, angle| Kernel::Motion { length, angle };
        for kernel in [motion(1.0, 0.0), motion(9.5, 30.0), Kernel::Gaussian(1.5)] {
            let weights = kernel.weights();
            let radius = kernel.radius() as isize;
            let mut sums = [0.0; 3];
            for ([y, x], weight) in weights {
                assert!(y.abs() <= radius && x.abs() <= radius, "{kernel}: {y}, {x}");
                let terms = [weight, weight * y as f64, weight * x as f64];
                (0..3).for_each(|i| sums[i] += terms[i]);
            }
            let [sum, y, x] = sums;
            assert!((sum - 1.0).abs() < 1e-12, "{kernel}: {sum}");
            assert!(y.abs() < 1e-12 && x.abs() < 1e-12, "{kernel}: {y}, {x}");
        }
    }
}
