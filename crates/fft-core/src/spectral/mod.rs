//! Pointwise operators on spectra.

mod apply;
mod modes;
mod operator;
mod scheme;
mod systems;
mod tridiagonal;
mod wavenumbers;

pub use modes::{AxisModes, Modes, Spectrum};
pub use operator::Operator;
pub use scheme::Scheme;
pub use systems::{BindCopy, DividedAxis, SystemTask, Systems};
pub use tridiagonal::Tridiagonal;
pub use wavenumbers::{Wavenumbers, mode};
