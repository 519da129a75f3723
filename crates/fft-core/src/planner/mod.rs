//! The search for the cheapest recipe, and predictions of costs.

pub(crate) mod candidates;
pub mod cost;
pub(crate) mod parse;
pub(crate) mod peer_read_order;
pub(crate) mod plan;
pub(crate) mod predict;
pub(crate) mod search;
pub(crate) mod small_keys;
pub(crate) mod volume;

pub use candidates::Layouts;
pub use predict::{BytesMoved, Expected, PredictedOperation, Prediction};
