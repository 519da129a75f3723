//! Messages under way between a rank and its peers.

use std::sync::Arc;
use std::time::Duration;

use super::slot::{PinnedMemory, Slot};
use crate::base::Error;

type Result<T, E = Error> = std::result::Result<T, E>;

/// Messages under way between this rank and its peers, and the memory they travel in.
///
/// One exchange is: [`post_recv`](Flight::post_recv) every message, [`send`](Flight::send) every message, take
/// [`wait_any`](Flight::wait_any)s until there are none, [`wait_all`](Flight::wait_all). A [`Slot`] that is sent
/// moves into the flight, so that nobody can touch a buffer the network owns; one that is forgotten there
/// leaks instead of dangling. Messages between one pair of ranks arrive in the order they were sent.
///
/// What fails under way is told by [`wait_all`](Flight::wait_all): until then the exchange goes on, as others wait for this rank's
/// messages and know nothing of the failure. A message of a rank that has gone arrives as an empty one.
pub trait Flight: Send {
    /// PinnedMemory the memory of messages that is made from now on, where it can.
    fn pin(&mut self, _pins: Arc<dyn PinnedMemory>) {}

    /// Makes sure that an exchange with messages of these sizes needs no more memory. Not collective.
    ///
    /// # Errors
    /// [`Error::Memory`].
    fn reserve(&mut self, sends: &[usize], recvs: &[usize]) -> Result<()>;

    /// An empty slot for a message of `bytes` bytes. May wait until others of this rank's messages have left: announce all
    /// that are to come before.
    ///
    /// # Errors
    /// [`Error::Memory`].
    fn slot(&mut self, bytes: usize) -> Result<Slot>;

    /// Waits until no more than so many of this rank's messages are under way, so that there are slots for others, or an announced
    /// message is there: whether the former. Who waits reads what comes, as others may wait for that in turn.
    ///
    /// # Errors
    /// When the library fails.
    fn wait_until_in_flight(&mut self, most: usize) -> Result<bool>;

    /// Whether [`Flight::slot`] neither waits for such memory nor allocates it.
    fn has_slot(&self, _bytes: usize) -> bool {
        true
    }

    /// Announces a message of at most `bytes` bytes from rank `from`. Announcements are numbered from 0. Where it takes memory
    /// that was not reserved, and there is none, the job ends: the sender waits for the announcement, and cannot be told.
    ///
    /// # Errors
    /// When the library fails.
    fn post_recv(&mut self, from: usize, bytes: usize) -> Result<()>;

    /// As [`Flight::reserve`], but for slots: for messages in memory of the caller's, which its communicator
    /// [reaches](crate::DeviceComm::reaches), or for more than are under way at once.
    ///
    /// # Errors
    /// [`Error::Memory`].
    fn reserve_message_buffers(&mut self, _sends: &[usize], _recvs: &[usize]) -> Result<()> {
        Ok(())
    }

    /// As [`Flight::post_recv`], of a message of at most the slot's length, into that slot. It may be of memory that the
    /// communicator [reaches](crate::DeviceComm::reaches), and so may those that are sent.
    ///
    /// # Errors
    /// When the library fails.
    fn post_recv_into(&mut self, _from: usize, _slot: Slot) -> Result<()> {
        Err(Error::unreached())
    }

    /// Sends a filled slot to rank `to`, which expects at most `bound` bytes.
    ///
    /// # Errors
    /// When the library fails.
    fn send(&mut self, to: usize, bound: usize, message: Slot) -> Result<()>;

    /// The next announced message that is already there; `None` when there is none yet, or no more. Lets messages that
    /// are under way get on.
    ///
    /// # Errors
    /// When the library fails.
    fn test_any(&mut self) -> Result<Option<Arrival>>;

    /// Waits for the next announced message, whichever comes first; `None` when all have been handed out.
    ///
    /// # Errors
    /// When the library fails.
    fn wait_any(&mut self) -> Result<Option<Arrival>>;

    /// As [`Flight::wait_any`], for messages that may take minutes: a rank that would otherwise look for them all the
    /// time looks only so often, and takes nothing from others meanwhile.
    ///
    /// # Errors
    /// When the library fails.
    fn wait_any_sleeping(&mut self, _nap: Duration) -> Result<Option<Arrival>> {
        self.wait_any()
    }

    /// Gives the memory of a message back after reading it.
    fn recycle(&mut self, read: Arrival);

    /// Waits until every message sent has left, and forgets the announcements.
    ///
    /// # Errors
    /// [`Error::Left`] when a rank has gone; when the library fails, or has failed since the last time.
    fn wait_all(&mut self) -> Result<()>;

    /// Bytes of memory held.
    fn memory(&self) -> usize;
}

/// A message that came.
#[derive(Debug)]
pub struct Arrival {
    /// Which announcement it answers.
    pub number: usize,
    /// What it says.
    pub message: Slot,
}
