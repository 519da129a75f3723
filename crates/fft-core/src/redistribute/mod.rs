//! Redistributions: the messages of a reshape and their order.

pub(crate) mod axis_order;
pub(crate) mod redistribution;
pub(crate) mod send_order;
pub(crate) mod spill;

pub use axis_order::TransposedWhenRead;
pub use redistribution::{Chunk, LocalRead, LocalReadBox, Redistribution};
pub use send_order::by_host;
