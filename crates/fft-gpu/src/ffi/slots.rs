//! Slots of messages, in this rank's memory or in another's.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::CudaStream;

use super::block::Block;
use super::memory::DeviceMemory;
use crate::base::GpuError;

/// The memory of one message, held as long as the slot.
#[derive(Clone)]
pub(crate) struct DeviceSlot {
    pub(crate) at: u64,
    bytes: usize,
    keeper: Arc<dyn Any + Send + Sync>,
}

impl DeviceSlot {
    pub(crate) fn of_block(block: &Arc<Block>, range: Range<usize>) -> Self {
        Self::new(block.address(), block.bytes(), range, block.clone())
    }

    /// A part of memory at an address that the keeper keeps.
    pub(super) fn new(
        at: u64,
        bytes: usize,
        range: Range<usize>,
        keeper: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        assert!(range.start <= range.end && range.end <= bytes, "a slot is inside its memory");
        Self { at: at + range.start as u64, bytes: range.len(), keeper }
    }
}

/// The memory of all messages of a launch, whose descriptors hold addresses of slots.
pub(crate) struct SlotMemory {
    everywhere: DeviceMemory<u8>,
    _keepers: Vec<Arc<dyn Any + Send + Sync>>,
}

impl SlotMemory {
    /// The memory of slots, each of at least `bytes` bytes. The descriptors of a launch with this
    /// memory refer to no others.
    pub(crate) fn new<'s>(
        stream: &Arc<CudaStream>,
        slots: impl IntoIterator<Item = (&'s DeviceSlot, usize)>,
    ) -> Result<Self, GpuError> {
        let keep = |(slot, bytes): (&DeviceSlot, usize)| {
            GpuError::at_least("a slot", slot.bytes, bytes).map(|()| slot.keeper.clone())
        };
        let keepers = slots.into_iter().map(keep).collect::<Result<_, _>>()?;
        // SAFETY: launches with it access the slots alone, which are held and long enough.
        let everywhere = unsafe { DeviceMemory::everywhere(stream) };
        Ok(Self { everywhere, _keepers: keepers })
    }

    pub(crate) fn memory(&self) -> &DeviceMemory<u8> {
        &self.everywhere
    }

    pub(crate) fn memory_mut(&mut self) -> &mut DeviceMemory<u8> {
        &mut self.everywhere
    }
}
