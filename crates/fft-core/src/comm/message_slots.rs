//! Message slots in memory that the ranks of a host share.
//!
//! A slot is written by all ranks and sent by its owner, or received by its owner and read by all.
//! Nothing is copied in between.

use super::slot::Slot;
use crate::base::Error;

/// A slot, the same on all ranks of its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotSpec {
    /// The rank that sends it or receives into it, as an index among the host's ranks.
    pub owner: usize,
    /// Bytes in all.
    pub bytes: usize,
    /// The bytes that each rank of the host writes, in order of ranks: bytes of its first part, and
    /// of its second. All first parts come before all second parts. Empty for a slot that is
    /// received.
    pub parts: Vec<[usize; 2]>,
}

impl SlotSpec {
    /// A slot that is received.
    pub fn received(owner: usize, bytes: usize) -> Self {
        Self { owner, bytes, parts: Vec::new() }
    }

    /// A slot that ranks write to.
    pub fn written(owner: usize, parts: Vec<[usize; 2]>) -> Self {
        let bytes = parts.iter().flatten().sum();
        Self { owner, bytes, parts }
    }

    /// The offsets of a rank's two parts.
    pub fn offsets(&self, rank: usize) -> [usize; 2] {
        let sum = |parts: &[[usize; 2]], which: usize| parts.iter().map(|it| it[which]).sum();
        let [first, second]: [usize; 2] = [0, 1].map(|which| sum(&self.parts[..rank], which));
        [first, sum(&self.parts, 0) + second]
    }
}

/// A rank's two parts of a slot, and where the second one begins in the slot.
pub struct SlotParts<'m> {
    /// The first part.
    pub first: &'m mut [u8],
    /// The second part.
    pub second: &'m mut [u8],
    /// The offset of the second part.
    pub offset: usize,
}

/// The bytes that each rank has used of its second part of a slot: `None` for a rank that has left,
/// and for a rank without parts.
pub type UsedBytes<'a> = dyn Fn(usize) -> Option<usize> + 'a;

/// Message slots of the ranks of a host. Ranks are indices among these, ascending.
///
/// A *run* is from [`begin`](MessageSlots::begin) to [`finish`](MessageSlots::finish). In each run
/// a rank writes its parts of a slot once, and the owner sends it, or receives into it, once.
///
/// `allgather`, `reserve` and dropping it are **collective** on the host.
///
/// # Panics
/// Methods of a run panic outside a run, for another rank's slot if only its owner may call them,
/// and in any other order than here.
pub trait MessageSlots: Send {
    /// The ranks of the host, as numbered in the communicator.
    fn ranks(&self) -> &[usize];

    /// Gathers the numbers of each rank of the host.
    ///
    /// # Errors
    /// When a rank left or the library fails.
    fn allgather(&self, mine: &[u64]) -> Result<Vec<Vec<u64>>, Error>;

    /// Makes room for these slots, and returns the number of the list.
    ///
    /// # Errors
    /// On every rank of the host: [`Error::Disagreement`] for different lists, and when a rank does
    /// not get its memory.
    fn reserve(&mut self, slots: &[SlotSpec]) -> Result<usize, Error>;

    /// Lets the library make progress while this rank waits.
    fn progress(&self);

    /// Begins a run with a list of slots.
    ///
    /// # Errors
    /// [`Error::Transport`] if MPI cannot be called, and after a run that did not finish.
    fn begin(&mut self, list: usize) -> Result<(), Error>;

    /// Whether all ranks have finished the previous run. Until then nothing may be written or
    /// received.
    fn is_free(&self) -> bool;

    /// Whether a rank has left, and will write and send no more.
    fn is_gone(&self, rank: usize) -> bool;

    /// Lets this rank write its parts of a slot, unless the owner has gone. `write` returns how
    /// many bytes of the second part it has used.
    fn write(&mut self, slot: usize, write: &mut dyn FnMut(SlotParts<'_>) -> usize);

    /// Whether all ranks that have parts of a slot, except ranks that have left, have written them.
    fn is_written(&self, slot: usize) -> bool;

    /// Shows a written slot to its owner, and the bytes that ranks have used.
    fn edit(&mut self, slot: usize, edit: &mut dyn FnMut(&mut [u8], &UsedBytes<'_>));

    /// A slot from which its owner sends `bytes` bytes, or into which it receives as many.
    fn lend(&mut self, slot: usize, bytes: usize) -> Slot;

    /// Copies a message into a slot of this rank, as many bytes as fit.
    ///
    /// # Errors
    /// When its memory cannot be read.
    fn copy(&mut self, slot: usize, message: &Slot) -> Result<(), Error>;

    /// Publishes the first `bytes` bytes of a slot to the ranks of the host. Must not be called
    /// while the slot is lent.
    fn publish(&mut self, slot: usize, bytes: usize);

    /// The message in a slot that its owner has published.
    fn message(&self, slot: usize) -> Option<&[u8]>;

    /// Ends a run. This rank must have read everything, and dropped everything that it lent.
    ///
    /// # Errors
    /// [`Error::Transport`] if something has not been: then this rank has gone.
    fn finish(&mut self) -> Result<(), Error>;

    /// Bytes of memory held by this rank.
    fn memory(&self) -> usize;
}
