//! What a transform needs of a processor that computes in host memory.

use std::borrow::BorrowMut;
use std::ops::Range;

use crate::base::{Energy, Error, Real};
use crate::codec::BadMessage;
use crate::codec::{Codec, Packed};
use crate::geometry::Transfer;
use crate::recipe::LocalFft;

/// What computes in host memory, in pieces that fit into its caches. Everything on a host that touches field data goes through
/// these methods; with one a [`Host`](crate::Host) is a [`Device`](crate::Device).
///
/// Memory is an array of real numbers; a complex number is two, real part first.
pub trait Processor<T: Real> {
    /// What steps read and write: `[T]` on the CPU.
    type Memory: ?Sized;
    /// Memory owned by a plan.
    type Buffer: BorrowMut<Self::Memory> + Default;
    /// A local transform, ready to run.
    type Fft;

    /// Memory as bytes, to be shown to other ranks of the host.
    fn bytes(memory: &Self::Memory) -> &[u8];

    /// Memory as bytes, to be shown to other ranks of the host.
    fn bytes_mut(memory: &mut Self::Memory) -> &mut [u8];

    /// Bytes as memory: what another rank shows.
    ///
    /// # Panics
    /// If they are no whole, aligned real numbers.
    fn memory(bytes: &[u8]) -> &Self::Memory;

    /// Bytes as memory: a buffer that can be shown.
    ///
    /// # Panics
    /// As [`Processor::memory`].
    fn memory_mut(bytes: &mut [u8]) -> &mut Self::Memory;

    /// Says how many bytes all ranks of this host hold at most between two steps: what is larger than the caches may be written past them.
    fn data_of_host(&mut self, _bytes: usize) {}

    /// A buffer of so many real numbers.
    ///
    /// # Errors
    /// [`Error::Memory`], naming `rank`.
    fn buffer(&self, reals: usize, rank: usize) -> Result<Self::Buffer, Error>;

    /// Makes sure that the tile has room for so many real numbers. There is one, for all that is brought into cache.
    ///
    /// # Errors
    /// [`Error::Memory`], naming `rank`.
    fn reserve_tile(&mut self, reals: usize, rank: usize) -> Result<(), Error>;

    /// The tile. Who uses it takes it out, and puts it back.
    fn tile(&mut self) -> &mut Self::Buffer;

    /// Makes sure that the spare memory has room for so many real numbers: what does not fit into the output.
    ///
    /// # Errors
    /// [`Error::Memory`], naming `rank`.
    fn reserve_spare(&mut self, reals: usize, rank: usize) -> Result<(), Error>;

    /// The spare memory. Who uses it takes it out, and puts it back.
    fn spare(&mut self) -> &mut Self::Buffer;

    /// Prepares a local transform: tables, scratch.
    ///
    /// # Errors
    /// [`Error::Memory`], naming `rank`.
    fn plan_fft(&mut self, shape: &LocalFft, rank: usize) -> Result<Self::Fft, Error>;

    /// Bytes that it holds for all of a plan's transforms: the tile, spare memory, scratch.
    fn held(&self) -> usize;

    /// Transforms some of the blocks of `src` into `dst`, or of `dst` in place.
    fn fft(
        &mut self,
        fft: &Self::Fft,
        blocks: Range<usize>,
        src: Option<&Self::Memory>,
        dst: &mut Self::Memory,
    );

    /// Says which memory is wanted after the next transform: it may be fetched ahead while that computes, or some of it. Nothing is
    /// allocated for it, and it is forgotten when the transform has ended.
    fn prefetch(&mut self, _memory: &[u8]) {}

    /// Copies a box of elements of `width` real numbers each.
    fn copy(
        &mut self,
        transfer: &Transfer,
        width: usize,
        src: &Self::Memory,
        dst: &mut Self::Memory,
    );

    /// The same to where it is not used soon.
    fn copy_nontemporal(
        &mut self,
        transfer: &Transfer,
        width: usize,
        src: &Self::Memory,
        dst: &mut Self::Memory,
    ) {
        self.copy(transfer, width, src, dst);
    }

    /// Adds the squares of the numbers of a box, the source's side of a transfer.
    fn energy(&mut self, part: &Transfer, width: usize, src: &Self::Memory, sum: &mut Energy);

    /// Packs and encodes a box into a message, with a step for [`Wire::Tolerance`](crate::Wire::Tolerance).
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
    /// When the message does not decode.
    fn unpack(
        &mut self,
        codec: &dyn Codec<T>,
        message: &[u8],
        scatter: &Transfer,
        width: usize,
        dst: &mut Self::Memory,
    ) -> Result<(), BadMessage>;
}
