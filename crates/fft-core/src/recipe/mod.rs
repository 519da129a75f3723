//! Recipes: intermediate layouts and the steps between them.

pub(crate) mod local_fft;
pub(crate) mod norm_gain;
pub(crate) mod recipe;
pub(crate) mod resized;
pub(crate) mod twiddles;

pub use local_fft::{LocalFft, Pass};
pub use norm_gain::Loss;
pub use recipe::{Node, Recipe, Step};
pub use resized::LineSide;
pub use twiddles::Twiddles;
