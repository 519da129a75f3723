//! The error that wires may add to a transform, and the error that they added.

use super::error::Error;

/// The largest relative l2 error that wires may add to a transform.
///
/// Norms are taken over the whole result: over all transforms of a batch, and over the full
/// spectrum of a real transform. Most numbers of half a spectrum therefore count twice. Numbers
/// that have no conjugate partner count once: the first along the halved axis and, for an even
/// length, the last. Small values next to large ones may lose all their digits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    relative: f64,
    strict: bool,
}

impl Tolerance {
    /// A tolerance under the assumption that errors of different reshapes are uncorrelated.
    ///
    /// Only adversarial data violates it. Encoders check that errors within a message are uniform.
    ///
    /// # Errors
    /// [`Error::Argument`] unless it is above 0 and at most 1.
    pub fn relative(error: f64) -> Result<Self, Error> {
        if error > 0.0 && error <= 1.0 {
            Ok(Self { relative: error, strict: false })
        } else {
            Err(Error::argument("tolerance", error, "above 0 and at most 1"))
        }
    }

    /// Drops the assumption: the bound holds for any data, except for halved spectra that do not
    /// come from real data. It costs 1 to 2 bits per number, more with more reshapes.
    pub fn strict(self) -> Self {
        Self { strict: true, ..self }
    }

    /// The relative error.
    pub fn value(self) -> f64 {
        self.relative
    }

    /// Whether it holds for any data.
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

/// Parses what [`Display`](std::fmt::Display) writes.
impl std::str::FromStr for Tolerance {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (number, strict) = match text.trim().strip_suffix(" strict") {
            Some(number) => (number, true),
            None => (text, false),
        };
        let expected = "a number above 0 and at most 1, as in 1e-6, or 1e-6 strict";
        let wrong = || Error::argument("tolerance", text, expected);
        let relative = number.trim().parse().map_err(|_| wrong())?;
        let tolerance = Self::relative(relative).map_err(|_| wrong())?;
        Ok(if strict { tolerance.strict() } else { tolerance })
    }
}

/// The relative l2 error that wires added to a transform, equal on all ranks.
///
/// Encoders sum the squares of their errors, and the unitarity of the transform carries the sums to
/// the result. A halved spectrum is assumed to come from real data.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WireError {
    /// The expected error. NaN for data that is not finite, or whose norm is extreme.
    pub estimate: f64,
    /// An upper bound, with an empirical one for rounding. NaN where the estimate is.
    pub bound: f64,
}

/// A sum of squares without overflow: of small, medium and large numbers (Blue, TOMS 4, 1978).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy(pub [f64; 3]);

impl std::iter::Sum for Energy {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self(std::array::from_fn(|unit| a.0[unit] + b.0[unit])))
    }
}

/// The limit of large numbers; the limit of small ones is its inverse.
pub(crate) const LARGE: f64 = 1e140;
/// 2⁶⁰⁰, the unit for large numbers; its inverse is the unit for small ones.
const UNIT: f64 = f64::from_bits((1023 + 600) << 52);

impl Energy {
    /// Adds the squares of numbers in one pass.
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

    /// `factor` times the sum, minus another.
    pub(crate) fn times(self, factor: f64, less: Self) -> Self {
        // Rounding must not make it negative. NaN stays NaN.
        let rest = |i: usize| match factor * self.0[i] - less.0[i] {
            rest if rest < 0.0 => 0.0,
            rest => rest,
        };
        Self(std::array::from_fn(rest))
    }

    /// The root of the sum; not finite if a number is not.
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
