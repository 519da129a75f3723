//! Gains: how operations change norms.

/// Factors of a vector's norm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gain {
    /// The factor of the vector that shrinks most.
    pub(crate) least: f64,
    /// Root mean square for independent numbers of equal size, such as rounding errors.
    pub(crate) typical: f64,
    /// The factor of the vector that grows most.
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

    /// From the norm of `n/2 + 1` frequencies to the norm of all `n`, most of which occur twice.
    pub(crate) fn of_half(n: usize) -> Self {
        let twice = if n > 2 { 2f64.sqrt() } else { 1.0 };
        Self { least: 1.0, typical: (n as f64 / (n / 2 + 1) as f64).sqrt(), most: twice }
    }
}
