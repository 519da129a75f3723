//! Memory that the ranks of a host show each other. Here a rank follows pointers of another.

pub(crate) mod epoch;
pub(crate) mod node_memory;
pub(crate) mod tile_copy;
