//! Plans on the host or on a GPU, for all families of transforms.

#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod engine;
pub(crate) mod family;
