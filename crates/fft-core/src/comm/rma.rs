//! One-sided communication.

use crate::base::Error;
use crate::problem::Epochs;

/// Two pieces of memory on every rank, into which peers put bytes in alternating epochs.
///
/// Bytes of one epoch are read during the next. [`RmaWindow::make`], [`RmaWindow::epoch`] and
/// dropping the window are **collective**, in the same order on all ranks.
pub trait RmaWindow: Send {
    /// Allocates two zeroed pieces, aligned to [`SLOT_ALIGN`](crate::SLOT_ALIGN). Collective.
    ///
    /// # Errors
    /// The same on every rank. The window then has no memory.
    fn make(&mut self, bytes: usize) -> Result<(), Error>;

    /// Opens an epoch, calls `body` with the bytes of the previous one, and closes it.
    ///
    /// Collective with the same `how`; the epoch may open before all ranks have called this.
    ///
    /// # Errors
    /// The error of `body`, on this rank only, after closing; the errors of the library.
    fn epoch<'env>(&mut self, how: Epochs, body: &mut InEpoch<'_, 'env>) -> Result<(), Error>;

    /// The bytes of the last epoch.
    fn local(&self) -> &[u8];
}

/// The body of an epoch, given the bytes of the previous one.
pub type InEpoch<'b, 'env> = dyn FnMut(&dyn Epoch<'env>, &[u8]) -> Result<(), Error> + 'b;

/// An open epoch.
pub trait Epoch<'env> {
    /// Puts `bytes` at offset `at` of rank `to`, at the latest by the end of the epoch. Puts must
    /// not overlap.
    ///
    /// # Errors
    /// [`Error::Argument`] for bytes beyond the memory; the errors of the library.
    fn put(&self, to: usize, at: usize, bytes: &'env [u8]) -> Result<(), Error>;
}
