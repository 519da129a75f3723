//! Plans on the host or on a GPU, for all families of transforms.

#[cfg(feature = "cuda")]
mod cuda;
pub(crate) mod engine;
pub(crate) mod family;
