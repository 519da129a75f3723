//! Memory that the ranks of a host expose to each other. Here a rank follows pointers of another.

mod address_space;
mod epoch;
mod node_memory;
mod tile_copy;

pub(crate) use address_space::{AddressSpace, Freed, Process, SyncFlags};
pub(crate) use node_memory::{HostNodeMemory, on_rank_of};
