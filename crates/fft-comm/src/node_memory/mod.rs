//! Memory that the ranks of a host expose to each other. Here a rank follows pointers of another.

mod address_space;
mod epoch;
mod message_slots;
mod node_memory;
mod room;
mod tile_copy;

#[cfg(feature = "mpi")]
pub(crate) use address_space::Freed;
pub(crate) use address_space::{AddressSpace, OneProcess, SyncFlags};
pub(crate) use message_slots::HostMessageSlots;
pub(crate) use node_memory::{HostNodeMemory, on_rank_of};
pub(crate) use room::{Room, check_room};
