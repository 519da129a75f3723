//! Simulation of a recipe's messages as events on a modelled machine.

pub(crate) mod events;
pub(crate) mod message_list;
pub(crate) mod order;
pub(crate) mod simulate;

pub use message_list::{Message, Schedule, Summary};
pub use order::Order;
pub use simulate::{SimulatedStep, Simulation, Simulator};
