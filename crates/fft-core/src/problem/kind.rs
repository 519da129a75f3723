//! Kinds of transforms along an axis, and scales of results.

use std::fmt;
use std::str::FromStr;

use crate::base::Error;

/// The transform along one axis.
///
/// Complex and real-to-complex transforms use `exp(-2πi jk/n)` forward. Cosine and sine transforms
/// are those of SciPy and FFTW, unscaled: DCT-II is `y[k] = 2 Σ x[j] cos(πk(2j+1)/(2n))`.
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
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::None,
        Self::C2C,
        Self::R2C,
        Self::Dct1,
        Self::Dct2,
        Self::Dct3,
        Self::Dct4,
        Self::Dst1,
        Self::Dst2,
        Self::Dst3,
        Self::Dst4,
    ];

    /// Points along the axis after the forward transform.
    pub fn spectral_len(self, n: usize) -> usize {
        if self == Self::R2C { n / 2 + 1 } else { n }
    }

    /// The factor of an unscaled forward and inverse transform together: the logical length.
    pub fn logical_len(self, n: usize) -> usize {
        match self {
            Self::None => 1,
            Self::C2C | Self::R2C => n,
            Self::Dct1 => 2 * (n - 1),
            Self::Dst1 => 2 * (n + 1),
            _ => 2 * n,
        }
    }

    /// The kind of the inverse transform, up to scale. `C2C` and `R2C` return themselves.
    pub fn undone_by(self) -> Self {
        match self {
            Self::Dct2 => Self::Dct3,
            Self::Dct3 => Self::Dct2,
            Self::Dst2 => Self::Dst3,
            Self::Dst3 => Self::Dst2,
            other => other,
        }
    }

    /// Whether this is a cosine or sine transform.
    pub fn is_real(self) -> bool {
        !matches!(self, Self::None | Self::C2C | Self::R2C)
    }

    /// Checks the number of points of an axis.
    pub(crate) fn check(self, axis: usize, n: usize) -> Result<(), Error> {
        if self == Self::Dct1 && n < 2 {
            let what = format!("points along axis {axis} for dct1");
            return Err(Error::argument(what, n, "at least 2"));
        }
        Ok(())
    }

    /// For example `c2c` or `dct2`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::C2C => "c2c",
            Self::R2C => "r2c",
            Self::Dct1 => "dct1",
            Self::Dct2 => "dct2",
            Self::Dct3 => "dct3",
            Self::Dct4 => "dct4",
            Self::Dst1 => "dst1",
            Self::Dst2 => "dst2",
            Self::Dst3 => "dst3",
            Self::Dst4 => "dst4",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The direction of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Physical to spectral.
    Forward,
    /// Spectral to physical.
    Inverse,
}

impl Direction {
    /// The value for this direction.
    pub fn choose<V>(self, forward: V, inverse: V) -> V {
        match self {
            Self::Forward => forward,
            Self::Inverse => inverse,
        }
    }
}

/// The scale of a result. `N` is the product of the logical lengths ([`Kind::logical_len`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scale {
    /// 1: the default of the forward transform.
    None,
    /// `1/N`: the default of the inverse transform.
    Full,
    /// `1/√N`: complex transforms with it in both directions are unitary.
    Symmetric,
}

impl Scale {
    /// The factor for a transform of `logical` points.
    pub fn factor(self, logical: f64) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Full => 1.0 / logical,
            Self::Symmetric => 1.0 / logical.sqrt(),
        }
    }
}

/// `none`, `full` or `symmetric`.
impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "none",
            Self::Full => "full",
            Self::Symmetric => "symmetric",
        })
    }
}

/// Parses the names that [`Display`](fmt::Display) writes.
impl FromStr for Scale {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let all = [Self::None, Self::Full, Self::Symmetric];
        let found = all.into_iter().find(|known| known.to_string() == name);
        found.ok_or_else(|| Error::argument("scale", name, "none, full or symmetric"))
    }
}
