//! Plans of any family and precision, on the host or on a GPU.

#[cfg(feature = "cuda")]
mod cuda;
pub(crate) mod draft;
pub(crate) mod engine;
pub(crate) mod family;
#[cfg(feature = "cuda")]
mod noise;
pub(crate) mod place;
