//! The symbols of difference schemes.
//!
//! A scheme multiplies the wave `exp(ikx)` by its symbol, as a derivative multiplies it by `ik`.
//! With ends, the waves are cosines or sines and the points beyond an end are mirror images, so
//! the symbols are the same. All are written in `s = sin(kh/2)` for a spacing `h`.

use crate::base::named::names;

/// How derivatives along an axis are discretised, which decides the wavenumbers that operators use.
///
/// The number in a name is the order of the error. Staggered schemes have scalars at cells and the
/// components of vectors at the faces between them: component `i` along the axis is at the face
/// between the cells `i` and `i + 1`. A gradient is a forward difference, from cells to faces, a
/// divergence a backward one, from faces to cells, and a curl a forward one, from faces to edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// The derivatives of the waves themselves.
    #[default]
    Exact,
    /// `(f[i+1] − f[i−1])/2h`, and `(f[i+1] − 2f[i] + f[i−1])/h²`.
    Central2,
    /// The five points of fourth order, for both derivatives.
    Central4,
    /// `(f[i+1] − f[i])/h`; the second derivative is the divergence of the gradient.
    Staggered2,
    /// The four points of fourth order; the second derivative is the divergence of the gradient.
    Staggered4,
}

names!(Scheme, "scheme", {
    Exact = "exact",
    Central2 = "central2",
    Central4 = "central4",
    Staggered2 = "staggered2",
    Staggered4 = "staggered4",
});

/// The symbols of a scheme for one wave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol {
    /// The square of this is minus the symbol of the second derivative.
    pub(super) k: f64,
    /// The first derivative, over `i`; at a staggered point without its phase.
    pub(super) odd: f64,
}

impl Scheme {
    /// Whether components of vectors are at faces.
    pub fn is_staggered(self) -> bool {
        matches!(self, Self::Staggered2 | Self::Staggered4)
    }

    /// The symbols for a wavenumber on points of this spacing. `middle` is the mode that stands for
    /// both signs.
    pub(super) fn symbol(self, k: f64, spacing: f64, middle: bool) -> Symbol {
        let (s, c) = (0.5 * k * spacing).sin_cos();
        let difference = 2.0 * s / spacing;
        let symbol = match self {
            Self::Exact => Symbol { k, odd: k },
            Self::Central2 => Symbol { k: difference, odd: difference * c },
            Self::Central4 => Symbol {
                k: difference * (1.0 + s * s / 3.0).sqrt(),
                odd: difference * c * (1.0 + 2.0 * s * s / 3.0),
            },
            Self::Staggered2 => Symbol { k: difference, odd: difference },
            Self::Staggered4 => {
                let wider = difference * (1.0 + s * s / 6.0);
                Symbol { k: wider, odd: wider }
            }
        };
        let odd = if middle && !self.is_staggered() { 0.0 } else { symbol.odd };
        Symbol { odd, ..symbol }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stencils that are applied to a wave.
    #[test]
    fn symbols_are_those_of_stencils() {
        let (k, h) = (1.3, 0.4);
        let even = |stencil: &[f64]| {
            let terms = stencil.iter().enumerate();
            -terms.map(|(i, c)| c * (k * h * i as f64).cos()).sum::<f64>() / (h * h)
        };
        let odd = |stencil: &[f64], first: f64| {
            let terms = stencil.iter().enumerate();
            terms.map(|(i, c)| 2.0 * c * (k * h * (first + i as f64)).sin()).sum::<f64>() / h
        };
        let wide = odd(&[27.0 / 24.0, -1.0 / 24.0], 0.5);
        for (scheme, square, first) in [
            (Scheme::Exact, k * k, k),
            (Scheme::Central2, even(&[-2.0, 2.0]), odd(&[0.5], 1.0)),
            (
                Scheme::Central4,
                even(&[-2.5, 8.0 / 3.0, -1.0 / 6.0]),
                odd(&[2.0 / 3.0, -1.0 / 12.0], 1.0),
            ),
            (Scheme::Staggered2, even(&[-2.0, 2.0]), odd(&[1.0], 0.5)),
            (Scheme::Staggered4, wide * wide, wide),
        ] {
            let found = scheme.symbol(k, h, false);
            assert!((found.k * found.k - square).abs() < 1e-13, "{scheme}: {found:?}, {square}");
            assert!((found.odd - first).abs() < 1e-13, "{scheme}: {found:?}, {first}");
        }
    }
}
