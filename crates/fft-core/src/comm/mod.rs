//! Traits of communicators, exchanges and shared memory, and the buffers of messages.

pub(crate) mod agreement;
pub(crate) mod assert_same;
pub(crate) mod check_matching;
pub(crate) mod comm;
pub(crate) mod device_buffer;
pub(crate) mod exchange;
pub(crate) mod flight;
pub(crate) mod funnel;
pub(crate) mod gather_lists;
pub(crate) mod message_buffers;
pub(crate) mod message_slots;
pub(crate) mod node_memory;
pub(crate) mod rma;
pub(crate) mod slot;
pub(crate) mod unwinding;

pub use agreement::{agree, agree_by, agree_by_memory, on_all_ranks, on_any_rank};
pub use assert_same::assert_same;
pub use check_matching::matching;
pub use comm::{
    Comm, DeviceComm, FailureDetector, OneSided, Part, Parts, Reduce, SharesMemory, TeamComms,
    Teams,
};
pub use device_buffer::{DeviceAllocation, DeviceBuffer};
pub use exchange::{Exchanger, MessageHandler, MessagePlan, MessageSpec, PackRequest};
pub use flight::{Arrival, Flight};
pub use funnel::Funnel;
pub use gather_lists::gather_lists;
pub use message_buffers::MessageBuffers;
pub use message_slots::{MessageSlots, SlotParts, SlotSpec, UsedBytes};
pub use node_memory::{
    Expose, LocalBuffers, NodeMemory, PeerMemory, Segment, SharedMemory, Work, WritePartition,
};
pub use rma::{Epoch, InEpoch, RmaWindow};
pub use slot::{PinnedMemory, SLOT_ALIGN, Slot, SlotPool};
pub use unwinding::Unwinding;
