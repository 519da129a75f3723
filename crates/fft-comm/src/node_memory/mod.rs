//! Memory that the ranks of a host expose to each other. Here a rank follows pointers of another.

mod address_space;
mod epoch;
mod message_slots;
mod node_memory;
mod tile_copy;

#[cfg(feature = "mpi")]
pub(crate) use address_space::{AddressSpace, Freed};
pub(crate) use address_space::{OneProcess, SyncFlags};
pub(crate) use message_slots::HostMessageSlots;
pub(crate) use node_memory::HostNodeMemory;
#[cfg(feature = "mpi")]
pub(crate) use node_memory::on_rank_of;
