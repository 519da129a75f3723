//! Memory of a rank that the others write to.

use crate::base::Error;
use crate::problem::Epochs;

/// Two pieces of memory on every rank of a communicator, into which the others put bytes by turns, while an epoch is open:
/// what one epoch brought can be read during the next.
///
/// [`RmaWindow::make`] and [`RmaWindow::epoch`] are **collective**, and so is dropping it: all ranks do each of them, in the same
/// order.
pub trait RmaWindow: Send {
    /// Gives this rank two pieces of at least `bytes` zeroed bytes, starting at multiples of
    /// [`SLOT_ALIGN`](crate::SLOT_ALIGN), in place of those it had. Collective, and costs as much as several small
    /// collectives and a pass over the memory.
    ///
    /// # Errors
    /// The same on every rank: [`Error::OnRank`] when memory is short on one, or what the library returns. There is
    /// no memory then, not even the earlier.
    fn make(&mut self, bytes: usize) -> Result<(), Error>;

    /// Opens an epoch of the piece whose turn it is, calls `body` once, with what the epoch before brought this rank, and
    /// returns when everything that any rank put has arrived. Collective, `how` always the same; may begin on some ranks
    /// before others have come. What is put is borrowed for `'env`, and so for longer than the epoch lasts.
    ///
    /// # Errors
    /// What `body` returns, on this rank alone and after the epoch has been closed; or the library's.
    fn epoch<'env>(&mut self, how: Epochs, body: &mut InEpoch<'_, 'env>) -> Result<(), Error>;

    /// What the last epoch brought this rank, which nobody writes to while it is borrowed.
    fn local(&self) -> &[u8];
}

/// What is done in an epoch, given what the one before brought.
pub type InEpoch<'b, 'env> = dyn FnMut(&dyn Epoch<'env>, &[u8]) -> Result<(), Error> + 'b;

/// An epoch that is open.
pub trait Epoch<'env> {
    /// Writes `bytes` into the memory of rank `to`, from its byte `at` on. They are there when the epoch has been closed;
    /// puts of one epoch must not overlap.
    ///
    /// # Errors
    /// [`Error::Argument`] when they do not fit there, before anything is sent; or what the library returns.
    fn put(&self, to: usize, at: usize, bytes: &'env [u8]) -> Result<(), Error>;
}
