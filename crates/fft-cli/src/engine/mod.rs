//! Plans of any kinds and precision, on the host or on a GPU.

#[cfg(feature = "cuda")]
mod cuda;
pub(crate) mod draft;
pub(crate) mod engine;
#[cfg(feature = "cuda")]
mod noise;
pub(crate) mod place;
