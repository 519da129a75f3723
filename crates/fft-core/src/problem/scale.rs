//! Directions of transforms, and scales of their results.

use crate::base::named::names;

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

/// The scale of a result. `N` is the product of the logical lengths
/// ([`Kind::logical_len`](crate::Kind::logical_len)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scale {
    /// 1: the default of the forward transform.
    None,
    /// `1/N`: the default of the inverse transform.
    Full,
    /// `1/√N`: complex transforms with it in both directions are unitary.
    Symmetric,
}

names!(Scale, "scale", { None = "none", Full = "full", Symmetric = "symmetric" });

/// The scales of both directions by NumPy's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Norm {
    /// The inverse divides by the number of points.
    #[default]
    Backward,
    /// Both directions divide by its square root.
    Ortho,
    /// The forward transform divides by it.
    Forward,
}

names!(Norm, "norm", { Backward = "backward", Ortho = "ortho", Forward = "forward" });

impl Norm {
    /// The scales of forward and of inverse transforms.
    pub fn scales(self) -> [Scale; 2] {
        match self {
            Self::Backward => [Scale::None, Scale::Full],
            Self::Ortho => [Scale::Symmetric; 2],
            Self::Forward => [Scale::Full, Scale::None],
        }
    }
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
