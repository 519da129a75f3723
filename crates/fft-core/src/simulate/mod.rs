//! The messages of a recipe, played as events on a machine that is not here.

pub(crate) mod events;
pub(crate) mod message_list;
pub(crate) mod order;
pub(crate) mod simulate;

pub use message_list::{Message, Schedule, Summary};
pub use order::Order;
pub use simulate::{Played, Simulation, Simulator};
