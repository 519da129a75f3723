//! Buffers of messages.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::device_buffer::DeviceBuffer;
use crate::base::Error;

/// A cache line. As the unit of allocation it aligns slots for all element types.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; SLOT_ALIGN]);

/// The alignment of slots.
pub const SLOT_ALIGN: usize = 64;

/// A buffer of one message, aligned to [`SLOT_ALIGN`]. Its owner may access it.
///
/// Sending moves the slot into the `Flight`; receiving returns it (`docs/slots.md` of this crate).
pub struct Slot {
    memory: Memory,
    len: usize,
}

#[cfg(doctest)]
#[doc = include_str!("../../docs/slots.md")]
struct SlotsThatDoNotCompile;

enum Memory {
    Host {
        /// Unpins the memory. Dropped first.
        _pin: Option<Box<dyn Any + Send + Sync>>,
        lines: Vec<Line>,
    },
    DeviceBuffer(DeviceBuffer),
}

/// Pins memory, so that devices copy to and from it at full speed.
pub trait PinnedMemory: Debug + Send + Sync {
    /// Pins bytes until the result is dropped. `None` if that is impossible or not worthwhile.
    fn pin(&self, bytes: &mut [u8]) -> Option<Box<dyn Any + Send + Sync>>;
}

impl Slot {
    /// A zeroed slot. Errors name `rank`.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn new(bytes: usize, rank: usize) -> Result<Self, Error> {
        let lines = bytemuck::allocation::try_zeroed_vec(bytes.div_ceil(SLOT_ALIGN))
            .map_err(|()| Error::Memory { rank, bytes })?;
        Ok(Self { memory: Memory::Host { _pin: None, lines }, len: bytes })
    }

    /// A zeroed slot, pinned if possible.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn new_pinned(
        bytes: usize,
        rank: usize,
        pins: Option<&dyn PinnedMemory>,
    ) -> Result<Self, Error> {
        let mut slot = Self::new(bytes, rank)?;
        if let (Memory::Host { _pin, lines }, Some(pins)) = (&mut slot.memory, pins) {
            *_pin = pins.pin(bytemuck::cast_slice_mut(lines));
        }
        Ok(slot)
    }

    /// A slot in device memory. It has an address and no visible bytes.
    pub fn opaque(memory: DeviceBuffer) -> Self {
        Self { len: memory.bytes(), memory: Memory::DeviceBuffer(memory) }
    }

    /// Whether it is device memory.
    pub fn is_opaque(&self) -> bool {
        matches!(self.memory, Memory::DeviceBuffer(_))
    }

    /// The address to send from.
    pub fn address(&self) -> *const u8 {
        match &self.memory {
            Memory::Host { lines, .. } => lines.as_ptr().cast(),
            Memory::DeviceBuffer(memory) => memory.address(),
        }
    }

    /// The address to receive into.
    pub fn address_mut(&mut self) -> *mut u8 {
        match &mut self.memory {
            Memory::Host { lines, .. } => lines.as_mut_ptr().cast(),
            Memory::DeviceBuffer(memory) => memory.address(),
        }
    }

    /// The length of the message.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the message is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The length of the buffer.
    pub fn capacity(&self) -> usize {
        match &self.memory {
            Memory::Host { lines, .. } => lines.len() * SLOT_ALIGN,
            Memory::DeviceBuffer(memory) => memory.bytes(),
        }
    }

    /// Sets the length of the message.
    ///
    /// # Panics
    /// If it exceeds the capacity.
    pub fn set_len(&mut self, bytes: usize) {
        assert!(bytes <= self.capacity(), "{bytes} bytes in a slot of {}", self.capacity());
        self.len = bytes;
    }

    /// The message; empty in device memory.
    pub fn bytes(&self) -> &[u8] {
        match &self.memory {
            Memory::Host { lines, .. } => &bytemuck::cast_slice(lines)[..self.len],
            Memory::DeviceBuffer(_) => &[],
        }
    }

    /// Copies the message, as many bytes as fit, wherever its memory is.
    ///
    /// # Errors
    /// When device memory cannot be read.
    pub fn copy_to(&self, to: &mut [u8]) -> Result<(), Error> {
        let bytes = self.len.min(to.len());
        match &self.memory {
            Memory::Host { .. } => to[..bytes].copy_from_slice(&self.bytes()[..bytes]),
            Memory::DeviceBuffer(memory) => memory.read(&mut to[..bytes])?,
        }
        Ok(())
    }

    /// The message to be written; empty in device memory.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Host { lines, .. } => &mut bytemuck::cast_slice_mut(lines)[..self.len],
            Memory::DeviceBuffer(_) => &mut [],
        }
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Slot({} of {} bytes)", self.len, self.capacity())
    }
}

/// Idle slots for reuse.
///
/// Best fit: equal requests get the same slots, so a reserved exchange allocates nothing.
#[derive(Debug, Default)]
pub struct SlotPool {
    /// By capacity, ascending.
    idle: Vec<Slot>,
    held: usize,
    pins: Option<Arc<dyn PinnedMemory>>,
}

impl SlotPool {
    /// Pins slots that are allocated from now on.
    pub fn pin(&mut self, pins: Arc<dyn PinnedMemory>) {
        self.pins = Some(pins);
    }

    /// Allocates slots until all of `sizes` can be taken at once.
    ///
    /// # Errors
    /// [`Error::Memory`] of `rank`.
    pub fn reserve(&mut self, sizes: &[usize], rank: usize) -> Result<(), Error> {
        let mut taken = Vec::with_capacity(sizes.len());
        // In descending order, so that small messages do not take the large slots.
        let mut sizes = sizes.to_vec();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        for bytes in sizes {
            taken.push(self.take(bytes, rank)?);
        }
        taken.into_iter().for_each(|slot| self.put(slot));
        Ok(())
    }

    /// Whether there is an idle slot for `bytes` bytes.
    pub fn has(&self, bytes: usize) -> bool {
        self.idle.last().is_some_and(|largest| largest.capacity() >= bytes)
    }

    /// A slot of this length, from the pool if one is large enough.
    ///
    /// # Errors
    /// [`Error::Memory`] of `rank`.
    pub fn take(&mut self, bytes: usize, rank: usize) -> Result<Slot, Error> {
        let fit = self.idle.partition_point(|slot| slot.capacity() < bytes);
        if fit < self.idle.len() {
            let mut slot = self.idle.remove(fit);
            slot.set_len(bytes);
            return Ok(slot);
        }
        // The largest idle slot is replaced by a larger one, so that they are not both held.
        if let Some(small) = self.idle.pop() {
            self.held -= small.capacity();
        }
        let slot = Slot::new_pinned(bytes, rank, self.pins.as_deref())?;
        self.held += slot.capacity();
        Ok(slot)
    }

    /// Returns a slot. Device memory is just dropped.
    pub fn put(&mut self, slot: Slot) {
        if slot.is_opaque() {
            return;
        }
        let at = self.idle.partition_point(|other| other.capacity() < slot.capacity());
        self.idle.insert(at, slot);
    }

    /// Bytes of all slots, idle or taken.
    pub fn memory(&self) -> usize {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_pool_does_not_grow() {
        let mut pool = SlotPool::default();
        for sizes in [[100, 2000, 64, 0], [5000, 1, 1, 1], [64, 64, 64, 64]] {
            pool.reserve(&sizes, 0).unwrap();
        }
        let held = pool.memory();
        for sizes in [[64, 100, 0, 2000], [1, 1, 1, 5000], [64, 64, 64, 64]] {
            let taken: Vec<_> = sizes.iter().map(|&s| pool.take(s, 0).unwrap()).collect();
            assert!(taken.iter().zip(sizes).all(|(slot, s)| slot.len() == s));
            taken.into_iter().for_each(|slot| pool.put(slot));
        }
        assert_eq!(pool.memory(), held);
    }

    #[test]
    fn slots_are_aligned() {
        let slot = Slot::new(100, 0).unwrap();
        assert_eq!(slot.bytes().as_ptr().align_offset(SLOT_ALIGN), 0);
        assert_eq!((slot.len(), slot.capacity()), (100, 128));
    }

    #[test]
    fn too_much_memory_is_an_error() {
        let error = Slot::new(1 << 62, 3).unwrap_err();
        assert_eq!(error, Error::Memory { rank: 3, bytes: 1 << 62 });
    }
}
