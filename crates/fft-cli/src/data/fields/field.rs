//! The names of fields.

/// A field. Physical ones are real parts of complex numbers; the others fill both parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// Uniformly distributed from -½ to ½.
    Noise,
    /// Uniformly distributed from -1 to 1.
    Uniform,
    Gaussian,
    /// An energy spectrum k^-5/3 with random phases.
    Turbulence,
    /// Point charges on cubic B-splines, as in particle-mesh Ewald.
    Charges,
    /// Normally distributed, times 1 falling to 1e-12 along the first axis.
    Profile,
    /// A few waves, and 1e-6 of noise.
    Smooth,
    Spike,
    Constant,
    /// 1 and -1 alternating.
    Checkerboard,
    /// Noise of 1e300 and 1e-300 alternating (1e±30 in single precision), over the number of
    /// points.
    Extremes,
    /// Noise of 1e-310 (1e-40 in single precision).
    Subnormal,
    /// Noise in one corner, and zeros elsewhere.
    Delta,
}

impl Field {
    pub(crate) const ALL: [(&'static str, Self); 13] = [
        ("noise", Self::Noise),
        ("uniform", Self::Uniform),
        ("gaussian", Self::Gaussian),
        ("turbulence", Self::Turbulence),
        ("charges", Self::Charges),
        ("profile", Self::Profile),
        ("smooth", Self::Smooth),
        ("spike", Self::Spike),
        ("constant", Self::Constant),
        ("checkerboard", Self::Checkerboard),
        ("extremes", Self::Extremes),
        ("subnormal", Self::Subnormal),
        ("delta", Self::Delta),
    ];

    pub(crate) fn name(self) -> &'static str {
        let named = Self::ALL.into_iter().find(|(_, field)| *field == self);
        named.map_or("", |(name, _)| name)
    }

    /// The range of numbers that are uniform noise by the index, which a device makes as well.
    pub(crate) fn noise_scale(self) -> Option<f64> {
        match self {
            Self::Noise => Some(1.0),
            Self::Uniform => Some(2.0),
            _ => None,
        }
    }

    pub(super) fn is_real(self) -> bool {
        matches!(self, Self::Turbulence | Self::Charges | Self::Profile | Self::Smooth)
    }
}
