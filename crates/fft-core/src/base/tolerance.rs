//! How much a whole transform may lose on the wire, and how much it lost.

use super::error::Error;

/// The most that sending may add to the result of a transform: the l2 norm of the error over that of the result. Of a
/// real transform's spectrum both are norms of the whole, of which half is kept; of a batch, of all its transforms
/// together.
///
/// The promise is norm-wise, not for each number: beside huge ones, tiny ones lose relative accuracy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    relative: f64,
    strict: bool,
}

impl Tolerance {
    /// Kept as if errors were spread evenly over half a step to either side, and those of one reshape independent of those
    /// of another. Of the first every message is made sure of; the second holds unless data is made to spite it. The error
    /// comes out a few percent below the tolerance where numbers have nothing to do with each other, and lower elsewhere.
    ///
    /// # Errors
    /// [`Error::Argument`], unless it is above 0 and at most 1.
    pub fn relative(error: f64) -> Result<Self, Error> {
        match error > 0.0 && error <= 1.0 {
            true => Ok(Self { relative: error, strict: false }),
            false => Err(Error::argument("tolerance", error, "above 0 and at most 1")),
        }
    }

    /// Kept whatever the data, as if all errors conspired: 0.8 to 1.8 bits more for each number that is sent, the more
    /// reshapes the more. The data may be anything but half a spectrum that is none of real data.
    pub fn strict(self) -> Self {
        Self { strict: true, ..self }
    }

    /// The relative error.
    pub fn value(self) -> f64 {
        self.relative
    }

    /// Whether it is kept whatever the data.
    pub fn is_strict(self) -> bool {
        self.strict
    }
}

/// `1e-6`, `1e-6 strict`.
impl std::fmt::Display for Tolerance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:e}{}", self.relative, if self.strict { " strict" } else { "" })
    }
}

/// What a transform lost on the wire, as a share of the l2 norm of its result. The same on all ranks.
///
/// Half a spectrum that is transformed back is taken to be that of real data: of another, the part that is none counts as if
/// it were in the result.
///
/// Every encoder adds up the squares of the errors that it makes; what transforms then do to them is known, as the
/// discrete Fourier transform is unitary up to a factor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WireError {
    /// The error to be expected: errors of one reshape and of another do not point the same way. NaN when the data has
    /// a NaN or an infinity, or its norm is above 1e140 or, unless it is 0, below 1e-140.
    pub estimate: f64,
    /// What the error cannot exceed. That of rounding in the transform is included by a bound that is not proved, but ten
    /// times what was ever measured. NaN as the estimate.
    pub bound: f64,
}

/// A sum of squares that neither overflows nor vanishes: of numbers far below 1, near 1, and far above, each with its own
/// unit (Blue, ACM TOMS 4, 15-23, 1978).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy(pub [f64; 3]);

impl std::iter::Sum for Energy {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self(std::array::from_fn(|unit| a.0[unit] + b.0[unit])))
    }
}

/// Numbers beyond are large, those below its inverse small.
pub(crate) const LARGE: f64 = 1e140;
/// The unit of large numbers, and the inverse of that of small ones: 2⁶⁰⁰, so that the square of the smallest number is not
/// lost.
const UNIT: f64 = f64::from_bits((1023 + 600) << 52);

impl Energy {
    /// Adds the squares of these numbers. One pass.
    pub fn add<T: crate::Real>(&mut self, numbers: &[T]) {
        for chunk in numbers.chunks(1 << 10) {
            let mut sums = [0.0; 8];
            let (eights, rest) = chunk.as_chunks::<8>();
            for eight in eights {
                for (sum, x) in sums.iter_mut().zip(eight) {
                    *sum += x.as_f64() * x.as_f64();
                }
            }
            let sum =
                sums.iter().sum::<f64>() + rest.iter().map(|x| x.as_f64().powi(2)).sum::<f64>();
            if (LARGE.recip()..LARGE * LARGE).contains(&sum) {
                self.0[1] += sum;
            } else {
                chunk.iter().for_each(|x| self.add_one(x.as_f64()));
            }
        }
    }

    fn add_one(&mut self, x: f64) {
        let [small, middle, large] = &mut self.0;
        match x.abs() {
            x if x < LARGE.recip() => *small += (x * UNIT).powi(2),
            x if x <= LARGE => *middle += x * x,
            x => *large += (x / UNIT).powi(2),
        }
    }

    /// So many times the sum, less another.
    pub(crate) fn times(self, factor: f64, less: Self) -> Self {
        // Not below zero by rounding; what is not a number stays so.
        let rest = |i: usize| match factor * self.0[i] - less.0[i] {
            rest if rest < 0.0 => 0.0,
            rest => rest,
        };
        Self(std::array::from_fn(rest))
    }

    /// The root of the sum. Not finite if a number was not.
    pub fn norm(self) -> f64 {
        let [small, middle, large] = self.0;
        let middle = middle + small / UNIT / UNIT;
        if large != 0.0 {
            (large + middle / UNIT / UNIT).sqrt() * UNIT
        } else if middle > 1e-280 || middle.is_nan() {
            middle.sqrt()
        } else {
            (small + self.0[1] * UNIT * UNIT).sqrt() / UNIT
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn norm(numbers: &[f64]) -> f64 {
        let mut energy = Energy::default();
        energy.add(numbers);
        energy.norm()
    }

    #[test]
    fn norms_of_numbers_of_any_size() {
        for scale in [1.0, 1e-300, 1e300, 1e150, 1e-150, 1e-320, 1e140, 1e-140] {
            let found = norm(&[3.0 * scale, -4.0 * scale]);
            assert!(
                (found / (5.0 * scale) - 1.0).abs() < 1e-2_f64.min(1e-320 / scale + 1e-15),
                "{scale:e}"
            );
        }
        assert_eq!(norm(&[]), 0.0);
        assert_eq!(norm(&[0.0; 5000]), 0.0);
        assert_eq!(norm(&[1e200, 1.0, 1e-200]), 1e200);
        assert_eq!(norm(&[1.0; 4096]), 64.0);
        let mixed: Vec<_> = (0..4000).map(|i| if i % 2 == 0 { 1e300 } else { 1e-300 }).collect();
        assert!((norm(&mixed) / (1e300 * 2000f64.sqrt()) - 1.0).abs() < 1e-14);
        assert!(norm(&[1.0, f64::NAN]).is_nan());
        assert_eq!(norm(&[1.0, f64::NEG_INFINITY]), f64::INFINITY);
        let mut single = Energy::default();
        single.add(&[3e30f32, 4e30]);
        assert!((single.norm() / 5e30 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn tolerances_are_shares() {
        for error in [0.0, -1e-3, 1.1, f64::NAN, f64::INFINITY] {
            assert!(Tolerance::relative(error).is_err(), "{error}");
        }
        let tolerance = Tolerance::relative(1e-6).unwrap();
        assert_eq!((tolerance.value(), tolerance.is_strict()), (1e-6, false));
        assert_eq!(tolerance.strict().to_string(), "1e-6 strict");
    }
}
