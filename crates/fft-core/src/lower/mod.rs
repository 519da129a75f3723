//! From a recipe to operations: what is fused, tiled and chunked.

pub(crate) mod stages;
pub(crate) mod tiling;
