//! Messages between a rank and its peers.

use std::sync::Arc;

use super::slot::{PinnedMemory, Slot};
use crate::base::Error;

type Result<T, E = Error> = std::result::Result<T, E>;

/// Non-blocking messages between this rank and its peers, with their buffers.
///
/// An exchange calls [`post_recv`](Flight::post_recv) and [`send`](Flight::send) for every message,
/// [`wait_any`](Flight::wait_any) until it returns `None`, and [`wait_all`](Flight::wait_all).
/// Sending moves a [`Slot`] into the flight, so nobody can touch a buffer that the library owns. A
/// forgotten flight leaks its buffers. Messages of a pair of ranks arrive in order.
///
/// [`wait_all`](Flight::wait_all) reports errors. Until then the exchange goes on, because other
/// ranks wait for this one's messages. A message from a rank that left arrives empty.
pub trait Flight: Send {
    /// Pins buffers that are allocated from now on.
    fn pin(&mut self, _pins: Arc<dyn PinnedMemory>) {}

    /// Allocates the buffers of an exchange. Not collective.
    ///
    /// # Errors
    /// [`Error::Memory`].
    fn reserve(&mut self, sends: &[usize], recvs: &[usize]) -> Result<()>;

    /// An empty slot. It may wait for sends to complete, so post all receives before.
    ///
    /// # Errors
    /// [`Error::Memory`].
    fn slot(&mut self, bytes: usize) -> Result<Slot>;

    /// Waits until at most `most` sends are in flight, and then returns `true`, or until a message
    /// has arrived.
    ///
    /// Callers must then read the messages that came, because peers may wait for that.
    ///
    /// # Errors
    /// When the library fails.
    fn wait_until_in_flight(&mut self, most: usize) -> Result<bool>;

    /// Whether [`Flight::slot`] returns without waiting or allocating.
    fn has_slot(&self, _bytes: usize) -> bool {
        true
    }

    /// Posts the receive of a message of at most `bytes` bytes. Posts are numbered from 0.
    ///
    /// If memory was not reserved and there is none, the job aborts, because the sender would wait.
    ///
    /// # Errors
    /// When the library fails.
    fn post_recv(&mut self, from: usize, bytes: usize) -> Result<()>;

    /// As [`Flight::reserve`], but without slots: for messages in buffers of the caller.
    ///
    /// # Errors
    /// [`Error::Memory`].
    fn reserve_message_buffers(&mut self, _sends: &[usize], _recvs: &[usize]) -> Result<()> {
        Ok(())
    }

    /// Whether [`Flight::post_recv_into`] works.
    fn receives_into_slots(&self) -> bool {
        false
    }

    /// As [`Flight::post_recv`], into a slot. Device memory must be
    /// [reached](crate::DeviceComm::reaches).
    ///
    /// # Errors
    /// When the library fails.
    fn post_recv_into(&mut self, _from: usize, _slot: Slot) -> Result<()> {
        Err(Error::unreached())
    }

    /// Sends a slot to rank `to`, which posted at most `bound` bytes.
    ///
    /// # Errors
    /// When the library fails.
    fn send(&mut self, to: usize, bound: usize, message: Slot) -> Result<()>;

    /// The next posted message that has arrived, if any. Progresses messages in flight.
    ///
    /// # Errors
    /// When the library fails.
    fn test_any(&mut self) -> Result<Option<Arrival>>;

    /// Waits for the next posted message in any order; `None` when all have been returned.
    ///
    /// # Errors
    /// When the library fails.
    fn wait_any(&mut self) -> Result<Option<Arrival>>;

    /// Returns the buffer of a message.
    fn recycle(&mut self, read: Arrival);

    /// Waits until all sends have completed, and forgets the posts.
    ///
    /// # Errors
    /// [`Error::Left`] when a rank left; any failure of the library since the last call.
    fn wait_all(&mut self) -> Result<()>;

    /// Bytes of memory held.
    fn memory(&self) -> usize;
}

/// A received message.
#[derive(Debug)]
pub struct Arrival {
    /// The number of its post.
    pub number: usize,
    /// Its bytes.
    pub message: Slot,
}
