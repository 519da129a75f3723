//! Operators as values.

use crate::base::Error;

/// An operation on each mode of a spectrum.
///
/// `∇` is `i·k` with the wavenumbers `k` of the axes that are transformed. Only axes of kind C2C
/// and R2C have derivatives of first order. These are 0 for the middle mode of an even number of
/// points, which stands for both signs; `∇²` is not.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Operator {
    /// The derivative along an axis of the grid.
    Derivative(usize),
    /// `∇φ`: of one field its derivatives along all axes.
    Gradient,
    /// `∇·u`.
    Divergence,
    /// `∇×u` in three dimensions; in two the one component `∂₀u₁ − ∂₁u₀`.
    Curl,
    /// `∇²φ`.
    Laplacian,
    /// Solves `-∇²φ = ρ`. The mean of φ, which is arbitrary, is 0; the mean of ρ is ignored.
    Poisson,
    /// Solves `(s − ∇²)φ = ρ` for this shift `s`. Modes with `s + k² = 0` become 0.
    Helmholtz(f64),
    /// Subtracts the gradient part: the result has no divergence, and the mean stays.
    Project,
    /// The convolution with a normalised Gaussian of this standard deviation, 0 or more:
    /// `exp(-σ²k²/2)`. The heat equation's solution after a time t, with `σ² = 2t`.
    Gaussian(f64),
    /// Keeps modes below this fraction, 0 or more, of the highest wavenumber `πn/length` of each
    /// axis, and sets others to 0. With 2/3, products of two fields have no aliases among the modes
    /// that are kept.
    Cutoff(f64),
}

impl Operator {
    /// The components of an operand and of the result, in this number of dimensions.
    ///
    /// # Errors
    /// [`Error::Argument`] for a curl in one or four dimensions, and for derivatives in none.
    pub fn components(self, dimensions: usize) -> Result<[usize; 2], Error> {
        if dimensions == 0 && self.derives() {
            return Err(Error::argument("axes that are transformed", 0, "at least 1"));
        }
        match self {
            Self::Gradient => Ok([1, dimensions]),
            Self::Divergence => Ok([dimensions, 1]),
            Self::Project => Ok([dimensions; 2]),
            Self::Curl => match dimensions {
                2 => Ok([2, 1]),
                3 => Ok([3, 3]),
                _ => Err(Error::argument("dimensions of a curl", dimensions, "2 or 3")),
            },
            _ => Ok([1, 1]),
        }
    }

    /// The relative wavenumber below which [`Operator::Cutoff`] keeps modes.
    pub fn limit(fraction: f64) -> f64 {
        // A wavenumber at the limit is not below it, whatever its rounding.
        fraction * (1.0 - 16.0 * f64::EPSILON)
    }

    /// Whether it has derivatives of first order, along all axes or along one.
    pub fn derives(self) -> bool {
        use Operator::{Curl, Derivative, Divergence, Gradient, Project};
        matches!(self, Derivative(_) | Gradient | Divergence | Curl | Project)
    }

    /// Checks that its parameter makes sense.
    pub(super) fn check(self) -> Result<(), Error> {
        let (what, found, least) = match self {
            Self::Helmholtz(shift) => ("shift", shift, f64::MIN),
            Self::Gaussian(deviation) => ("standard deviation", deviation, 0.0),
            Self::Cutoff(fraction) => ("fraction", fraction, 0.0),
            _ => return Ok(()),
        };
        if !found.is_finite() {
            return Err(Error::argument(what, found, "a finite number"));
        }
        if found < least {
            return Err(Error::argument(what, found, "0 or more"));
        }
        Ok(())
    }
}
