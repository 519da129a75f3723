//! The coefficients of tridiagonal systems along an axis.

use std::cmp::Ordering;

use crate::base::Error;
use crate::problem::Ends;

/// The second derivative along an axis that is not transformed, by a difference scheme of your own:
/// on a stretched grid, for example.
///
/// ```text
/// (Lφ)[j] = lower[j] φ[j−1] + diagonal[j] φ[j] + upper[j] φ[j+1]
/// ```
///
/// `lower[0]` multiplies the last point and `upper[n−1]` the first; both are 0 unless the axis is
/// periodic. Systems are solved without pivoting: `lower` and `upper` should not be negative, nor
/// the sum of a row of L positive, as of any discrete Laplacian with ends.
///
/// A coefficient in front of the other derivatives, such as a density that depends on the place
/// along this axis, divides the row and its right-hand side.
#[derive(Clone, Debug, PartialEq)]
pub struct Tridiagonal {
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    pub(super) excess: Vec<f64>,
    pub(super) weights: Vec<f64>,
}

impl Tridiagonal {
    /// The scheme with these coefficients.
    ///
    /// # Errors
    /// [`Error::Argument`] for no coefficients, for different numbers of them, and for those that
    /// are not finite.
    pub fn new(lower: &[f64], diagonal: &[f64], upper: &[f64]) -> Result<Self, Error> {
        let n = diagonal.len();
        if n == 0 {
            return Err(Error::argument("number of diagonal coefficients", 0, "1 or more"));
        }
        for (what, found) in [("lower", lower), ("diagonal", diagonal), ("upper", upper)] {
            if found.len() != n {
                return Err(Error::argument(
                    format!("number of {what} coefficients"),
                    found.len(),
                    n,
                ));
            }
            if let Some(at) = found.iter().position(|c| !c.is_finite()) {
                let what = format!("{what} coefficient {at}");
                return Err(Error::argument(what, found[at], "a finite number"));
            }
        }
        let excess = (0..n).map(|j| {
            let [a, b, c] = [lower[j], diagonal[j], upper[j]];
            let sum = -(a + b + c);
            // What is rounding in the coefficients is no end.
            if sum.abs() <= 4.0 * f64::EPSILON * (a.abs() + b.abs() + c.abs()) { 0.0 } else { sum }
        });
        let mut weights = vec![1.0; n];
        for j in 1..n {
            let ratio = upper[j - 1] / lower[j];
            weights[j] = weights[j - 1] * if ratio.is_finite() { ratio } else { 1.0 };
        }
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= sum);
        Ok(Self { lower: lower.to_vec(), upper: upper.to_vec(), excess: excess.collect(), weights })
    }

    /// The second derivative of second order on cells between faces, which ascend, or at the faces
    /// themselves.
    ///
    /// With n + 1 faces there are n points at cells. [`Ends`] at faces have their points at the
    /// faces, except at an end where the value is 0; periodic ones are at cells.
    ///
    /// ```
    /// use fft_core::{Ends, Tridiagonal};
    /// let scheme = Tridiagonal::second_derivative(&[0.0, 1.0, 2.0, 3.0], Ends::NeumannDirichlet)?;
    /// let rows = [0, 1, 2].map(|j| scheme.row(j));
    /// assert_eq!(rows, [[0.0, -1.0, 1.0], [1.0, -2.0, 1.0], [1.0, -3.0, 0.0]]);
    /// # Ok::<(), fft_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`] for ends that are no conditions, for faces that do not ascend, or too
    /// few for a point.
    pub fn second_derivative(faces: &[f64], ends: Ends) -> Result<Self, Error> {
        if !ends.kind().is_transform() {
            return Err(Error::argument("ends of a second derivative", ends, "conditions"));
        }
        if let Some(at) =
            faces.windows(2).position(|pair| pair[0].partial_cmp(&pair[1]) != Some(Ordering::Less))
        {
            return Err(Error::argument(
                format!("face {}", at + 1),
                faces[at + 1],
                "one above the last",
            ));
        }
        let middles: Vec<f64> = faces.windows(2).map(|pair| 0.5 * (pair[0] + pair[1])).collect();
        let slopes = ends.slopes();
        let [first, last] = [faces.first(), faces.last()].map(|face| face.copied().unwrap_or(0.0));
        // Points, and the borders of what each stands for: one more.
        let (points, borders) = if ends.is_at_faces() {
            let inner =
                usize::from(!slopes[0])..faces.len().saturating_sub(usize::from(!slopes[1])).max(1);
            let mut borders = middles;
            if slopes[0] {
                borders.insert(0, first);
            }
            if slopes[1] {
                borders.push(last);
            }
            (faces.get(inner).unwrap_or(&[]).to_vec(), borders)
        } else {
            (middles, faces.to_vec())
        };
        let n = points.len();
        if n == 0 || borders.len() != n + 1 {
            return Err(Error::argument(
                "number of faces",
                faces.len(),
                "those of one point or more",
            ));
        }
        let (mut lower, mut upper, mut diagonal) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        for j in 0..n {
            let width = borders[j + 1] - borders[j];
            let below = match j {
                0 if ends == Ends::Periodic => points[0] - first + last - points[n - 1],
                0 => points[0] - first,
                _ => points[j] - points[j - 1],
            };
            let above = match j + 1 {
                next if next < n => points[next] - points[j],
                _ if ends == Ends::Periodic => points[0] - first + last - points[j],
                _ => last - points[j],
            };
            let [a, c] = [below, above].map(|distance| 1.0 / (width * distance));
            let has_end = |is_last: bool| is_last && ends != Ends::Periodic;
            let (at_first, at_last) = (has_end(j == 0), has_end(j + 1 == n));
            lower[j] = if at_first { 0.0 } else { a };
            upper[j] = if at_last { 0.0 } else { c };
            diagonal[j] = -(if at_first && slopes[0] { 0.0 } else { a }
                + if at_last && slopes[1] { 0.0 } else { c });
        }
        Self::new(&lower, &diagonal, &upper)
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.lower.len()
    }

    /// Never: there is at least one point.
    pub fn is_empty(&self) -> bool {
        self.lower.is_empty()
    }

    /// The coefficients of a row: lower, diagonal, upper.
    pub fn row(&self, j: usize) -> [f64; 3] {
        let [a, c] = [self.lower[j], self.upper[j]];
        [a, -(a + c + self.excess[j]), c]
    }

    /// Minus the sum of each row, which is 0 except at ends.
    pub fn excess(&self) -> &[f64] {
        &self.excess
    }

    /// The weights of points in the sum of all rows that has no fluxes: on a grid of cells their
    /// widths. The sum of weights is 1.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Whether the first point follows the last.
    pub(super) fn is_periodic(&self) -> bool {
        self.lower[0] != 0.0 || self.upper[self.len() - 1] != 0.0
    }

    /// Whether a constant has no second derivative, so that a solution is known up to one.
    pub fn is_singular(&self) -> bool {
        self.excess.iter().all(|excess| *excess == 0.0)
    }
}
