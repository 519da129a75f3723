//! NumPy's names of scales.

use std::str::FromStr;

use fft_core::{Error, Scale};

/// The scales of both directions by NumPy's names.
///
/// ```
/// use thriffty::planning::Norm;
/// thriffty::threads(2, |world| {
///     thriffty::c2c(&world, [8, 8]).norm("ortho".parse::<Norm>()?).build()
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
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

/// Reads `backward`, `ortho` or `forward`.
impl FromStr for Norm {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "backward" => Ok(Self::Backward),
            "ortho" => Ok(Self::Ortho),
            "forward" => Ok(Self::Forward),
            _ => Err(Error::argument("norm", name, "backward, ortho or forward")),
        }
    }
}
