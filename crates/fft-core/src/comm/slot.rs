//! Memory that messages travel in.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::device_buffer::DeviceBuffer;
use crate::base::Error;

/// One cache line. As the unit of allocation it aligns every slot for every element type.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; SLOT_ALIGN]);

/// Slots start at multiples of this many bytes.
pub const SLOT_ALIGN: usize = 64;

/// A buffer for one message, aligned to [`SLOT_ALIGN`]. It moves: into the network when sent, out of it on
/// arrival. Whoever holds it may touch it.
///
/// Each of the following does not compile, and the example after it, which differs in that alone, does.
///
/// Writing into a message that is under way:
/// ```compile_fail,E0382
/// # fn f(flight: &mut dyn fft_core::Flight) -> Result<(), fft_core::Error> {
/// let mut slot = flight.slot(8)?;
/// flight.send(1, 8, slot)?;
/// slot.bytes_mut().fill(7);
/// # Ok(())
/// # }
/// ```
/// ```
/// # fn f(flight: &mut dyn fft_core::Flight) -> Result<(), fft_core::Error> {
/// let mut slot = flight.slot(8)?;
/// slot.bytes_mut().fill(7);
/// flight.send(1, 8, slot)?;
/// # Ok(())
/// # }
/// ```
/// Keeping a view of one:
/// ```compile_fail,E0505
/// # fn f(flight: &mut dyn fft_core::Flight, slot: fft_core::Slot) -> Result<u8, fft_core::Error> {
/// let view = slot.bytes();
/// flight.send(1, 8, slot)?;
/// Ok(view[0])
/// # }
/// ```
/// ```
/// # fn f(flight: &mut dyn fft_core::Flight, slot: fft_core::Slot) -> Result<u8, fft_core::Error> {
/// let first = slot.bytes()[0];
/// flight.send(1, 8, slot)?;
/// Ok(first)
/// # }
/// ```
/// Reading one that came after its memory has been given back:
/// ```compile_fail,E0382
/// # fn f(flight: &mut dyn fft_core::Flight, came: fft_core::Arrival) -> u8 {
/// flight.release(came);
/// came.message.bytes()[0]
/// # }
/// ```
/// ```
/// # fn f(flight: &mut dyn fft_core::Flight, came: fft_core::Arrival) -> u8 {
/// let first = came.message.bytes()[0];
/// flight.release(came);
/// first
/// # }
/// ```
pub struct Slot {
    memory: Memory,
    len: usize,
}

enum Memory {
    Host {
        /// What pins the memory: dropped first.
        _pin: Option<Box<dyn Any + Send + Sync>>,
        lines: Vec<Line>,
    },
    DeviceBuffer(DeviceBuffer),
}

/// What pins memory, so that a device copies to and from it as fast as its link is.
pub trait PinnedMemory: Debug + Send + Sync {
    /// PinnedMemory these bytes until what is returned is dropped, before they are. Nothing where they cannot be pinned, or it does
    /// not pay: they are memory all the same.
    fn pin(&self, bytes: &mut [u8]) -> Option<Box<dyn Any + Send + Sync>>;
}

impl Slot {
    /// A zeroed slot of `bytes` bytes, for `rank`'s error message.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn new(bytes: usize, rank: usize) -> Result<Self, Error> {
        let lines = bytemuck::allocation::try_zeroed_vec(bytes.div_ceil(SLOT_ALIGN))
            .map_err(|()| Error::Memory { rank, bytes })?;
        Ok(Self { memory: Memory::Host { _pin: None, lines }, len: bytes })
    }

    /// The same, pinned if possible.
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

    /// Memory of somebody else's, as long as it is, that the host does not look into: the slot has a length and an address,
    /// and no bytes to be seen.
    pub fn opaque(memory: DeviceBuffer) -> Self {
        Self { len: memory.bytes(), memory: Memory::DeviceBuffer(memory) }
    }

    /// Whether the host does not look into it.
    pub fn is_opaque(&self) -> bool {
        matches!(self.memory, Memory::DeviceBuffer(_))
    }

    /// Where the message is, to be told to a library that sends it.
    pub fn address(&self) -> *const u8 {
        match &self.memory {
            Memory::Host { lines, .. } => lines.as_ptr().cast(),
            Memory::DeviceBuffer(memory) => memory.address(),
        }
    }

    /// Where the message is to be, to be told to a library that receives it.
    pub fn address_mut(&mut self) -> *mut u8 {
        match &mut self.memory {
            Memory::Host { lines, .. } => lines.as_mut_ptr().cast(),
            Memory::DeviceBuffer(memory) => memory.address(),
        }
    }

    /// Bytes of the message.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the message has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes there is room for.
    pub fn capacity(&self) -> usize {
        match &self.memory {
            Memory::Host { lines, .. } => lines.len() * SLOT_ALIGN,
            Memory::DeviceBuffer(memory) => memory.bytes(),
        }
    }

    /// Sets the length of the message.
    ///
    /// # Panics
    /// If `bytes` exceeds the capacity.
    pub fn set_len(&mut self, bytes: usize) {
        assert!(bytes <= self.capacity(), "{bytes} bytes in a slot of {}", self.capacity());
        self.len = bytes;
    }

    /// The message; nothing where the host does not look.
    pub fn bytes(&self) -> &[u8] {
        match &self.memory {
            Memory::Host { lines, .. } => &bytemuck::cast_slice(lines)[..self.len],
            Memory::DeviceBuffer(_) => &[],
        }
    }

    /// The message, to be written; nothing where the host does not look.
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

/// Slots at rest, taken out and put back in the course of every exchange.
///
/// Best fit, so that the same sequence of takes always finds the same slots: once an exchange has run, or
/// has been reserved for, running it again allocates nothing.
#[derive(Debug, Default)]
pub struct SlotPool {
    /// By capacity, ascending.
    idle: Vec<Slot>,
    held: usize,
    pins: Option<Arc<dyn PinnedMemory>>,
}

impl SlotPool {
    /// PinnedMemory slots from now on.
    pub fn pin(&mut self, pins: Arc<dyn PinnedMemory>) {
        self.pins = Some(pins);
    }

    /// Adds slots until all of `sizes` can be taken at once.
    ///
    /// # Errors
    /// [`Error::Memory`], naming `rank`.
    pub fn reserve(&mut self, sizes: &[usize], rank: usize) -> Result<(), Error> {
        let mut taken = Vec::with_capacity(sizes.len());
        // Largest first, so that small messages do not take the slots that large ones need.
        let mut sizes = sizes.to_vec();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        for bytes in sizes {
            taken.push(self.take(bytes, rank)?);
        }
        taken.into_iter().for_each(|slot| self.put(slot));
        Ok(())
    }

    /// Whether there is an idle slot for so many bytes.
    pub fn has(&self, bytes: usize) -> bool {
        self.idle.last().is_some_and(|largest| largest.capacity() >= bytes)
    }

    /// A slot of this length, from the pool where one is large enough.
    ///
    /// # Errors
    /// [`Error::Memory`], naming `rank`.
    pub fn take(&mut self, bytes: usize, rank: usize) -> Result<Slot, Error> {
        let fit = self.idle.partition_point(|slot| slot.capacity() < bytes);
        if fit < self.idle.len() {
            let mut slot = self.idle.remove(fit);
            slot.set_len(bytes);
            return Ok(slot);
        }
        // Grow the largest idle slot rather than keep it beside a larger one.
        if let Some(small) = self.idle.pop() {
            self.held -= small.capacity();
        }
        let slot = Slot::new_pinned(bytes, rank, self.pins.as_deref())?;
        self.held += slot.capacity();
        Ok(slot)
    }

    /// RmaWindow a slot back. One of somebody else's memory is no more than dropped.
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
