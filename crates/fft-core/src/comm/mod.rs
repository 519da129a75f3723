//! The traits of communicators, exchanges and shared memory, and the slots that messages travel in.

pub(crate) mod check_matching;
pub(crate) mod comm;
pub(crate) mod device_buffer;
pub(crate) mod exchange;
pub(crate) mod node_memory;
pub(crate) mod rma;
pub(crate) mod slot;

pub use check_matching::matching;
pub use comm::{Arrival, Comm, Flight, Link, Part, Parts, Reduce, agree, agree_by};
pub use device_buffer::{DeviceAllocation, DeviceBuffer, MessageBuffers, Vouched};
pub use exchange::{
    Algorithm, Epochs, Exchange, MessageHandler, MessagePlan, MessageSpec, PackRequest,
};
pub use node_memory::{
    Expose, LocalBuffers, NodeMemory, PeerMemory, Segment, SharedMemory, Work, WritePartition,
};
pub use rma::{Epoch, InEpoch, RmaWindow};
pub use slot::{PinnedMemory, SLOT_ALIGN, Slot, SlotPool};
