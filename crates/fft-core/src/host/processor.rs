//! The interface to a processor that computes in host memory.

use std::borrow::BorrowMut;
use std::ops::Range;

use crate::base::{Energy, Error, Real};
use crate::codec::BadMessage;
use crate::codec::{Codec, Packed};
use crate::geometry::Transfer;
use crate::recipe::LocalFft;

/// A processor that computes in host memory, in pieces that fit into its caches. All accesses to
/// field data on a host use it. [`Host`](crate::Host) makes it a [`Device`](crate::Device).
///
/// Memory is an array of real numbers; a complex number is two, real part first.
pub trait Processor<T: Real> {
    /// The memory of operations: `[T]` on the CPU.
    type Memory: ?Sized;
    /// Memory owned by a plan.
    type Buffer: BorrowMut<Self::Memory> + Default;
    /// A local transform, ready to run.
    type Fft;

    /// Memory as bytes, to be shared with other ranks of the host.
    fn bytes(memory: &Self::Memory) -> &[u8];

    /// Memory as bytes, to be shared with other ranks of the host.
    fn bytes_mut(memory: &mut Self::Memory) -> &mut [u8];

    /// Bytes of another rank as memory.
    ///
    /// # Panics
    /// If they are no whole, aligned real numbers.
    fn memory(bytes: &[u8]) -> &Self::Memory;

    /// Bytes of a shared buffer as memory.
    ///
    /// # Panics
    /// As [`Processor::memory`].
    fn memory_mut(bytes: &mut [u8]) -> &mut Self::Memory;

    /// Sets the bytes of all ranks of this host. Large data may be written past the caches.
    fn data_of_host(&mut self, _bytes: usize) {}

    /// A buffer of this many real numbers.
    ///
    /// # Errors
    /// [`Error::Memory`], naming `rank`.
    fn buffer(&self, reals: usize, rank: usize) -> Result<Self::Buffer, Error>;

    /// Reserves this many real numbers in the tile, which holds all data in cache.
    ///
    /// # Errors
    /// [`Error::Memory`], naming `rank`.
    fn reserve_tile(&mut self, reals: usize, rank: usize) -> Result<(), Error>;

    /// The tile. Users take it out and put it back.
    fn tile(&mut self) -> &mut Self::Buffer;

    /// Reserves this many real numbers of spare memory, for data that does not fit into the output.
    ///
    /// # Errors
    /// [`Error::Memory`], naming `rank`.
    fn reserve_spare(&mut self, reals: usize, rank: usize) -> Result<(), Error>;

    /// The spare memory. Users take it out and put it back.
    fn spare(&mut self) -> &mut Self::Buffer;

    /// Prepares a local transform: tables, scratch.
    ///
    /// # Errors
    /// [`Error::Memory`], naming `rank`.
    fn plan_fft(&mut self, shape: &LocalFft, rank: usize) -> Result<Self::Fft, Error>;

    /// Bytes held for all transforms of a plan: the tile, spare memory, scratch.
    fn held(&self) -> usize;

    /// Transforms some of the blocks of `src` into `dst`, or of `dst` in place.
    fn fft(
        &mut self,
        fft: &Self::Fft,
        blocks: Range<usize>,
        src: Option<&Self::Memory>,
        dst: &mut Self::Memory,
    );

    /// Requests memory that is read after the next transform, to be prefetched meanwhile.
    fn prefetch(&mut self, _memory: &[u8]) {}

    /// Copies a box of elements of `width` real numbers each.
    fn copy(
        &mut self,
        transfer: &Transfer,
        width: usize,
        src: &Self::Memory,
        dst: &mut Self::Memory,
    );

    /// Copies a box to memory that is not read again soon.
    fn copy_nontemporal(
        &mut self,
        transfer: &Transfer,
        width: usize,
        src: &Self::Memory,
        dst: &mut Self::Memory,
    ) {
        self.copy(transfer, width, src, dst);
    }

    /// Adds the squares of the numbers of a box, the source side of a transfer.
    fn energy(&mut self, part: &Transfer, width: usize, src: &Self::Memory, sum: &mut Energy);

    /// Packs and encodes a box, with a step for [`Wire::Tolerance`](crate::Wire::Tolerance).
    fn pack(
        &mut self,
        codec: &dyn Codec<T>,
        gather: &Transfer,
        width: usize,
        src: &Self::Memory,
        step: f64,
        message: &mut [u8],
    ) -> Packed;

    /// Decodes and unpacks a message into a box.
    ///
    /// # Errors
    /// If the message does not decode.
    fn unpack(
        &mut self,
        codec: &dyn Codec<T>,
        message: &[u8],
        scatter: &Transfer,
        width: usize,
        dst: &mut Self::Memory,
    ) -> Result<(), BadMessage>;
}
