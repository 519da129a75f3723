//! What a reshape moves, from whom to whom, in which order.

pub(crate) mod axis_order;
pub(crate) mod redistribution;
pub(crate) mod send_order;
pub(crate) mod spill;

pub use axis_order::TurnedWhenRead;
pub use redistribution::{Chunk, Moves, Near, NearBox};
pub use send_order::by_host;
