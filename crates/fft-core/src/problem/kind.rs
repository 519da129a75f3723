//! Kinds of transforms along an axis.
//!
//! Each kind is described by its [`Traits`]. Other files depend only on these, so a new cosine or
//! sine transform needs a variant, a name and its traits here, and an algorithm for lines in
//! fft-lines.

use std::f64::consts::SQRT_2;

use fft_lines::{Trigonometric, TrigonometricType};
use num_complex::Complex;

use super::gain::Gain;
use super::scale::Direction;
use super::turn::turn;
use crate::base::Error;
use crate::base::named::names;

/// The transform along one axis.
///
/// Complex and real-to-complex transforms use `exp(-2πi jk/n)` forward. Cosine and sine transforms
/// are defined as in SciPy and FFTW, unscaled: DCT-II is `y[k] = 2 Σ x[j] cos(πk(2j+1)/(2n))`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// No transform.
    None,
    /// Complex to complex.
    C2C,
    /// Real to complex: `n` points become the `n/2 + 1` non-negative frequencies.
    R2C,
    /// Cosine transform I, of at least 2 points; its own inverse.
    Dct1,
    /// Cosine transform II, "the DCT"; its inverse is III.
    Dct2,
    /// Cosine transform III; its inverse is II.
    Dct3,
    /// Cosine transform IV; its own inverse.
    Dct4,
    /// Sine transform I; its own inverse.
    Dst1,
    /// Sine transform II; its inverse is III.
    Dst2,
    /// Sine transform III; its inverse is II.
    Dst3,
    /// Sine transform IV; its own inverse.
    Dst4,
    /// No transform, but whole lines in the spectrum, or lines that ranks divide alike: the axis of
    /// tridiagonal systems, one for each mode of the other axes.
    Tridiagonal,
}

names!(Kind, "kind", {
    None = "none",
    C2C = "c2c",
    R2C = "r2c",
    Dct1 = "dct1",
    Dct2 = "dct2",
    Dct3 = "dct3",
    Dct4 = "dct4",
    Dst1 = "dst1",
    Dst2 = "dst2",
    Dst3 = "dst3",
    Dst4 = "dst4",
    Tridiagonal = "tridiagonal",
});

/// The traits of a kind, for transforms of `n` points.
#[derive(Clone, Copy)]
struct Traits {
    /// The least number of points.
    least: usize,
    /// The algorithm for lines.
    lines: Lines,
    /// The kind of the inverse transform, up to scale.
    inverse: Kind,
    /// Points after the forward transform.
    spectral_len: fn(n: usize) -> usize,
    /// The factor of a forward followed by an inverse transform.
    logical_len: fn(n: usize) -> usize,
    /// The gain of the forward transform, from `n` and the root of the logical length.
    gain: fn(n: f64, root: f64) -> Gain,
    /// The factor of point `j` in spectral point `k`.
    basis: fn(n: u128, j: u128, k: u128) -> Complex<f64>,
    /// The mode of an index, among `n` modes.
    mode: fn(n: usize, index: usize) -> i64,
    /// Half waves of a mode along the axis.
    half_waves: fn(mode: f64) -> f64,
}

/// The traits of all kinds, in their order.
static TRAITS: [Traits; Kind::ALL.len()] = {
    let mut all = [Kind::None.define(); Kind::ALL.len()];
    let mut place = 0;
    while place < all.len() {
        assert!(Kind::ALL[place] as usize == place);
        all[place] = Kind::ALL[place].define();
        place += 1;
    }
    all
};

/// The algorithm for lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// Nothing.
    None,
    /// Complex transforms.
    Complex,
    /// Transforms from real numbers to half a spectrum.
    HalfSpectrum,
    /// Transforms of real numbers, or of both parts of complex ones.
    Real(Trigonometric),
}

impl Kind {
    fn traits(self) -> &'static Traits {
        &TRAITS[self as usize]
    }

    const fn define(self) -> Traits {
        match self {
            Self::None | Self::Tridiagonal => Traits {
                logical_len: |_| 1,
                basis: |_, j, k| Complex::from(if j == k { 1.0 } else { 0.0 }),
                half_waves: |_| 0.0,
                ..fourier(self, Lines::None)
            },
            Self::C2C => Traits {
                mode: |n, index| index as i64 - if index < n.div_ceil(2) { 0 } else { n as i64 },
                ..fourier(self, Lines::Complex)
            },
            Self::R2C => {
                Traits { spectral_len: |n| n / 2 + 1, ..fourier(self, Lines::HalfSpectrum) }
            }
            Self::Dct1 => Traits {
                least: 2,
                logical_len: |n| 2 * (n - 1),
                gain: weighted_ends,
                ..cosine(self, TrigonometricType::I, |n, j, k| {
                    cos(if j == 0 || j == n - 1 { 1.0 } else { 2.0 }, j * k, 2 * (n - 1))
                })
            },
            Self::Dct2 => Traits {
                inverse: Self::Dct3,
                gain: one_long_row,
                ..cosine(self, TrigonometricType::II, |n, j, k| cos(2.0, (2 * j + 1) * k, 4 * n))
            },
            Self::Dct3 => Traits {
                inverse: Self::Dct2,
                gain: one_short_column,
                half_waves: |mode| mode + 0.5,
                ..cosine(self, TrigonometricType::III, |n, j, k| {
                    cos(if j == 0 { 1.0 } else { 2.0 }, j * (2 * k + 1), 4 * n)
                })
            },
            Self::Dct4 => Traits {
                half_waves: |mode| mode + 0.5,
                ..cosine(self, TrigonometricType::IV, |n, j, k| {
                    cos(2.0, (2 * j + 1) * (2 * k + 1), 8 * n)
                })
            },
            Self::Dst1 => Traits {
                logical_len: |n| 2 * (n + 1),
                ..sine(self, TrigonometricType::I, |n, j, k| {
                    sin(2.0, (j + 1) * (k + 1), 2 * (n + 1))
                })
            },
            Self::Dst2 => Traits {
                inverse: Self::Dst3,
                gain: one_long_row,
                ..sine(self, TrigonometricType::II, |n, j, k| {
                    sin(2.0, (2 * j + 1) * (k + 1), 4 * n)
                })
            },
            Self::Dst3 => Traits {
                inverse: Self::Dst2,
                gain: one_short_column,
                half_waves: |mode| mode - 0.5,
                ..sine(self, TrigonometricType::III, |n, j, k| {
                    sin(if j == n - 1 { 1.0 } else { 2.0 }, (j + 1) * (2 * k + 1), 4 * n)
                })
            },
            Self::Dst4 => Traits {
                half_waves: |mode| mode - 0.5,
                ..sine(self, TrigonometricType::IV, |n, j, k| {
                    sin(2.0, (2 * j + 1) * (2 * k + 1), 8 * n)
                })
            },
        }
    }

    /// Points along the axis after the forward transform.
    pub fn spectral_len(self, n: usize) -> usize {
        (self.traits().spectral_len)(n)
    }

    /// The factor of an unscaled forward and inverse transform together: the logical length.
    pub fn logical_len(self, n: usize) -> usize {
        (self.traits().logical_len)(n)
    }

    /// The least number of points along the axis.
    pub fn least_points(self) -> usize {
        self.traits().least
    }

    /// The kind of the inverse transform, up to scale. `C2C` and `R2C` return themselves.
    pub fn undone_by(self) -> Self {
        self.traits().inverse
    }

    /// Whether this transforms real numbers to as many real ones: cosine and sine transforms.
    pub fn is_real(self) -> bool {
        matches!(self.lines(), Lines::Real(_))
    }

    /// Whether this transforms anything.
    pub fn is_transform(self) -> bool {
        self.lines() != Lines::None
    }

    /// Whether this is a Fourier transform, whose data may be padded and whose modes have
    /// derivatives along the axis.
    pub fn is_fourier(self) -> bool {
        matches!(self.lines(), Lines::Complex | Lines::HalfSpectrum)
    }

    /// The cosine or sine transform that this is.
    pub fn trigonometric(self) -> Option<Trigonometric> {
        match self.lines() {
            Lines::Real(transform) => Some(transform),
            _ => None,
        }
    }

    /// The definition: the factor of point `j` of an axis of `n` points in spectral point `k`.
    pub fn basis(self, n: usize, j: usize, k: usize) -> Complex<f64> {
        (self.traits().basis)(n as u128, j as u128, k as u128)
    }

    pub(crate) fn lines(self) -> Lines {
        self.traits().lines
    }

    /// The gain of the unscaled transform of `n` points, for whole spectra.
    pub(crate) fn gain(self, direction: Direction, n: usize) -> Gain {
        let root = (self.logical_len(n) as f64).sqrt();
        let kind = direction.choose(self, self.undone_by());
        (kind.traits().gain)(n as f64, root)
    }

    /// The mode of a frequency's index, along an axis of `n` modes.
    pub(crate) fn mode(self, n: usize, index: usize) -> i64 {
        (self.traits().mode)(n, index)
    }

    /// The length of an axis of `n` points, in units of their spacing, up to its ends, whether they
    /// are points of the data or a half or whole spacing beyond.
    pub(crate) fn intervals(self, n: usize) -> f64 {
        if self.is_real() { self.logical_len(n) as f64 / 2.0 } else { n as f64 }
    }

    /// Half waves of a mode along the axis.
    pub(crate) fn half_waves(self, mode: i64) -> f64 {
        (self.traits().half_waves)(mode as f64)
    }

    /// Checks the number of points of an axis.
    pub(crate) fn check(self, axis: usize, n: usize) -> Result<(), Error> {
        let least = self.least_points();
        if n < least {
            let what = format!("points along axis {axis} for {self}");
            return Err(Error::argument(what, n, format!("at least {least}")));
        }
        Ok(())
    }
}

/// The definition of a transform, as in [`Traits::basis`].
type Basis = fn(u128, u128, u128) -> Complex<f64>;

/// A Fourier transform; the other traits differ from it in a few points.
const fn fourier(kind: Kind, lines: Lines) -> Traits {
    Traits {
        least: 1,
        lines,
        inverse: kind,
        spectral_len: |n| n,
        logical_len: |n| n,
        gain: |_, root| Gain::all(root),
        basis: |n, j, k| turn(j * k, n).conj(),
        mode: |_, index| index as i64,
        half_waves: |mode| 2.0 * mode,
    }
}

/// A cosine transform that is its own inverse.
const fn cosine(kind: Kind, symmetry: TrigonometricType, basis: Basis) -> Traits {
    let lines = Lines::Real(Trigonometric { kind: symmetry, sine: false });
    Traits { logical_len: |n| 2 * n, basis, half_waves: |mode| mode, ..fourier(kind, lines) }
}

/// A sine transform that is its own inverse. It has no mode 0.
const fn sine(kind: Kind, symmetry: TrigonometricType, basis: Basis) -> Traits {
    let lines = Lines::Real(Trigonometric { kind: symmetry, sine: true });
    Traits { lines, mode: |_, index| index as i64 + 1, ..cosine(kind, symmetry, basis) }
}

/// `factor · cos(2π m/d)`
fn cos(factor: f64, m: u128, d: u128) -> Complex<f64> {
    Complex::from(factor * turn(m, d).re)
}

fn sin(factor: f64, m: u128, d: u128) -> Complex<f64> {
    Complex::from(factor * turn(m, d).im)
}

/// Rows are orthogonal; one is √2 as long as the others.
fn one_long_row(n: f64, root: f64) -> Gain {
    Gain { least: root, typical: root * (1.0 + 1.0 / n).sqrt(), most: root * SQRT_2 }
}

/// Columns are orthogonal; one is shorter by √2.
fn one_short_column(n: f64, root: f64) -> Gain {
    Gain { least: root / SQRT_2, typical: root * (1.0 - 0.5 / n).sqrt(), most: root }
}

/// An orthogonal matrix, with its ends weighted by √2 and 1/√2.
fn weighted_ends(n: f64, root: f64) -> Gain {
    let m = n - 1.0;
    let typical = ((2.0 * m * m + 4.0 * m - 2.0) / n).sqrt();
    Gain { least: root / SQRT_2, typical, most: root * SQRT_2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transform_and_the_one_that_undoes_it_give_the_logical_length() {
        for kind in Kind::ALL.into_iter().filter(|kind| kind.is_real()) {
            let n = 7;
            for (a, b) in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))) {
                let through = |k| kind.basis(n, a, k) * kind.undone_by().basis(n, k, b);
                let found: Complex<f64> = (0..n).map(through).sum();
                let expected = if a == b { kind.logical_len(n) as f64 } else { 0.0 };
                assert!((found - expected).norm() < 1e-13, "{kind} {a} {b}: {found}");
            }
        }
    }
}
