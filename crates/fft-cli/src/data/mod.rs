//! Data: bricks, fields and `.npy` files.

pub(crate) mod bricks;
pub(crate) mod fields;
pub(crate) mod files;
pub(crate) mod noise;
pub(crate) mod npy;
pub(crate) mod replace;
