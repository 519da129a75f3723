//! What the transforms need of a communicator, and agreement on errors.

use std::sync::Arc;
use std::time::Duration;

use super::device_buffer::DeviceBuffer;
use super::node_memory::NodeMemory;
use super::rma::RmaWindow;
use super::slot::{PinnedMemory, Slot};
use crate::base::{Error, ErrorKind};
use crate::geometry::Topology;

/// How two ranks reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Link {
    /// The same rank: memory is copied, nothing is sent.
    Own,
    /// A rank of the same host: its memory can be read.
    Shared,
    /// Any other rank: a message.
    Remote,
}

/// How values of several ranks become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// All added up, in an order that does not change from call to call.
    Sum,
}

/// A group of ranks that exchange bytes: threads of this process or MPI processes.
///
/// Every method but `rank`, `size`, `host`, `link`, `name` and `abandon` is **collective**: all ranks of the communicator call
/// it in the same order with matching arguments. Counts are in bytes and 64-bit.
pub trait Comm: Send {
    /// Which rank this is, from 0.
    fn rank(&self) -> usize;

    /// How many there are.
    fn size(&self) -> usize;

    /// A number for the host that a rank runs on: ranks with equal numbers can show each other memory
    /// ([`Comm::node_memory`]). By default each is on its own.
    fn host(&self, rank: usize) -> usize {
        rank
    }

    /// Which ranks share a host.
    fn topology(&self) -> Topology {
        let hosts: Vec<_> = (0..self.size()).map(|rank| self.host(rank)).collect();
        Topology::new(&hosts, hosts.len())
    }

    /// How this rank reaches `peer`.
    fn link(&self, peer: usize) -> Link {
        match peer {
            own if own == self.rank() => Link::Own,
            near if self.host(near) == self.host(self.rank()) => Link::Shared,
            _ => Link::Remote,
        }
    }

    /// What ranks of one host need to show each other memory. `None` where each rank is on a host of its own.
    ///
    /// # Errors
    /// When the library fails.
    fn node_memory(&self) -> Result<Option<Box<dyn NodeMemory>>> {
        Ok(None)
    }

    /// Tells all ranks whether all is well with this one: whether all are well; `None` where nobody is asked, as any collective
    /// notices who has gone.
    ///
    /// # Errors
    /// [`Error::Left`] on every rank that comes when another has dropped this communicator, now and whenever they come again; when
    /// the library fails.
    fn sync(&self, _well: bool) -> Result<Option<bool>> {
        Ok(None)
    }

    /// `threads` or `mpi`: for people.
    fn name(&self) -> &'static str;

    /// Told when this rank unwinds out of what others do with it, and will not come back to it. Does nothing where others notice, or
    /// else ends the job.
    fn abandon(&self) {}

    /// Returns when every rank has come here.
    ///
    /// # Errors
    /// When a rank has gone or the library fails.
    fn barrier(&self) -> Result<(), Error>;

    /// Gathers every rank's `mine` into `all`, in order of ranks. `mine` is equally long everywhere and
    /// `all` is `size()` times that.
    ///
    /// # Errors
    /// When a rank has gone or the library fails.
    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), Error>;

    /// Combines `values` element by element over the ranks; every rank gets the same result.
    ///
    /// # Errors
    /// When a rank has gone or the library fails.
    fn allreduce(&self, how: Reduce, values: &mut [f64]) -> Result<(), Error>;

    /// Sends `send[parts[r]]` to each rank `r` and receives what each sent into `recv[parts[r]]`. What lies
    /// between a part's end and the next multiple of [`SLOT_ALIGN`](crate::SLOT_ALIGN) may be sent along.
    ///
    /// # Errors
    /// When a message has another length than announced, a rank has gone or the library fails.
    fn alltoallv(&self, send: Parts<'_, &[u8]>, recv: Parts<'_, &mut [u8]>) -> Result<(), Error>;

    /// Makes sure that [`Comm::alltoallv`] with these parts needs no more memory and can be counted. Not
    /// collective.
    ///
    /// # Errors
    /// [`Error::Memory`], or [`Error::Transport`] for more than the library can count.
    fn reserve_alltoallv(&self, send: &[Part], recv: &[Part]) -> Result<(), Error>;

    /// Memory and state for messages between pairs of ranks, to be made once per plan.
    ///
    /// # Errors
    /// When the library fails.
    fn flight(&self) -> Result<Box<dyn Flight>>;

    /// Memory that the other ranks can put bytes into, none of it made yet; `None` where there is no such thing, on
    /// every rank alike. Collective.
    ///
    /// # Errors
    /// When a rank has gone or the library fails.
    fn window(&self) -> Result<Option<Box<dyn RmaWindow>>> {
        Ok(None)
    }

    /// Whether messages can be sent from and received into memory like this, which the host does not look into: the same
    /// on every rank. Found out by trying it, with memory of the kind. Collective.
    ///
    /// # Errors
    /// When a rank has gone or the library fails otherwise.
    fn reaches(&self, _memory: &DeviceBuffer) -> Result<bool> {
        Ok(false)
    }

    /// As [`Comm::alltoallv`], from and into memory that this communicator [reaches](Comm::reaches).
    ///
    /// # Errors
    /// As [`Comm::alltoallv`].
    fn alltoallv_device(
        &self,
        _send: Parts<'_, &DeviceBuffer>,
        _recv: Parts<'_, &DeviceBuffer>,
    ) -> Result<()> {
        Err(Error::unreached())
    }

    /// As [`Comm::window`], on memory that this communicator [reaches](Comm::reaches): this rank puts from the first piece,
    /// and the others into the second. `None` where that cannot be done, on every rank alike. Found out by trying it, with
    /// memory of the kind. Collective.
    ///
    /// # Errors
    /// When a rank has gone or the library fails otherwise.
    fn window_on(&self, _memory: &[DeviceBuffer; 2]) -> Result<Option<Box<dyn RmaWindow>>> {
        Ok(None)
    }

    /// A communicator of the same ranks whose messages never meet this one's.
    ///
    /// # Errors
    /// When a rank has gone or the library fails.
    fn dup(&self) -> Result<Box<dyn Comm>>;

    /// Communicators of the ranks with equal `color`, ordered by `key` and then by rank here.
    ///
    /// # Errors
    /// When a rank has gone or the library fails.
    fn split(&self, color: usize, key: usize) -> Result<Box<dyn Comm>>;
}

type Result<T, E = Error> = std::result::Result<T, E>;

/// First byte and number of bytes.
pub type Part = (usize, usize);

/// A buffer and, for each rank, the first byte and the number of bytes of its part. Parts start at multiples
/// of [`SLOT_ALIGN`](crate::SLOT_ALIGN), and the buffer goes on to the next multiple after each.
#[derive(Debug)]
pub struct Parts<'a, B> {
    /// All parts.
    pub bytes: B,
    /// One per rank.
    pub parts: &'a [Part],
}

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
    /// [reaches](Comm::reaches), or for more than are under way at once.
    ///
    /// # Errors
    /// [`Error::Memory`].
    fn reserve_message_buffers(&mut self, _sends: &[usize], _recvs: &[usize]) -> Result<()> {
        Ok(())
    }

    /// As [`Flight::post_recv`], of a message of at most the slot's length, into that slot. It may be of memory that the
    /// communicator [reaches](Comm::reaches), and so may those that are sent.
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

/// Bytes of an error's text that travel between ranks.
const TEXT: usize = 1024;

/// Turns a result that may differ between ranks into one that does not: `mine` where every rank has `Ok`,
/// otherwise on **every** rank [`Error::OnRank`] with the error of the lowest failing rank, or of the rank that it
/// was of when it had been agreed on before.
///
/// Collective. Costs one small allreduce, or [`Comm::sync`], when all is well. Nothing fallible may stand between two
/// collectives without it: a rank that returned early would leave the others waiting.
///
/// # Errors
/// The lowest failing rank's; [`Error::Left`], whatever `mine` is, when one has dropped the communicator.
pub fn agree<T>(comm: &dyn Comm, mine: Result<T>) -> Result<T> {
    if comm.sync(mine.is_ok())? == Some(true) {
        return mine;
    }
    let least = |value: &mut [f64]| comm.allreduce(Reduce::Min, value);
    agree_by((comm.rank(), comm.size()), least, |mine, all| comm.allgather(mine, all), mine)
}

/// [`agree`], by collectives of any kind: of a rank and how many there are, the least of a number of each rank, and bytes of all
/// ranks one after another.
///
/// # Errors
/// The lowest failing rank's; what the collectives return.
#[doc(hidden)]
pub fn agree_by<T>(
    ranks: (usize, usize),
    mut least: impl FnMut(&mut [f64]) -> Result<()>,
    mut allgather: impl FnMut(&[u8], &mut [u8]) -> Result<()>,
    mine: Result<T>,
) -> Result<T> {
    lowest_error(ranks, &mut least, &mut allgather, mine.as_ref().err())?;
    mine
}

/// Gathers bytes of all ranks, one after another.
type Allgather<'a> = &'a mut dyn FnMut(&[u8], &mut [u8]) -> Result<()>;

/// The error of the lowest rank that has one. Compiled once, whatever is agreed on.
fn lowest_error(
    (own, size): (usize, usize),
    least: &mut dyn FnMut(&mut [f64]) -> Result<()>,
    allgather: Allgather<'_>,
    mine: Option<&Error>,
) -> Result<()> {
    let mut lowest = [if mine.is_none() { size } else { own } as f64];
    least(&mut lowest)?;
    let rank = lowest[0] as usize;
    if rank == size {
        return Ok(());
    }
    let mut text = [0u8; TEXT];
    if let Some(error) = mine {
        // What has been agreed on before is still of the rank that it was of.
        let (of, said) = match error {
            Error::OnRank { rank, message, .. } => (*rank, message.clone()),
            other => (own, other.to_string()),
        };
        let bytes = prefix(&said, TEXT - 11).as_bytes();
        text[0] = error.kind() as u8;
        text[1..3].copy_from_slice(&(bytes.len() as u16).to_le_bytes());
        text[3..11].copy_from_slice(&(of as u64).to_le_bytes());
        text[11..11 + bytes.len()].copy_from_slice(bytes);
    }
    let mut all = vec![0u8; TEXT * size];
    allgather(&text, &mut all)?;
    let text = &all[rank * TEXT..][..TEXT];
    let len = usize::from(u16::from_le_bytes([text[1], text[2]]));
    let mut of = [0; 8];
    of.copy_from_slice(&text[3..11]);
    let rank = u64::from_le_bytes(of) as usize;
    let message = String::from_utf8_lossy(&text[11..11 + len]).into_owned();
    Err(Error::OnRank { rank, kind: ErrorKind::from_code(text[0]), message })
}

/// The longest prefix of a text that fits into so many bytes.
fn prefix(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}
