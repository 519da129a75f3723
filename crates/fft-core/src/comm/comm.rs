//! Communicators.

use super::device_buffer::DeviceBuffer;
use super::flight::Flight;
use super::funnel::Funnel;
use super::message_slots::MessageSlots;
use super::node_memory::NodeMemory;
use super::rma::RmaWindow;
use crate::base::Error;
use crate::geometry::Topology;
use crate::problem::Link;

/// A reduction over ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The sum, in an order that is the same in every call.
    Sum,
}

/// A group of ranks: threads of this process or MPI processes.
///
/// Methods are **collective**: all ranks call them in the same order with matching arguments. The
/// exceptions are `rank`, `size`, `name`, `topology`, `link`, `has_messages`, `reserve_alltoallv`,
/// `abandon`, and the last four, which return what only some communicators can do. Counts are
/// 64-bit bytes.
pub trait Comm: SharesMemory + Send {
    /// This rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// `threads`, `mpi`, `mpi+threads` or `group`, for messages to people.
    fn name(&self) -> &'static str;

    /// Which ranks share a host.
    fn topology(&self) -> Topology {
        let hosts: Vec<_> = (0..self.size()).map(|rank| self.host(rank)).collect();
        Topology::new(&hosts, hosts.len())
    }

    /// How this rank reaches a peer.
    fn link(&self, peer: usize) -> Link {
        if peer == self.rank() {
            Link::Own
        } else if self.host(peer) == self.host(self.rank()) {
            Link::Shared
        } else {
            Link::Remote
        }
    }

    /// Waits for all ranks.
    ///
    /// # Errors
    /// When a rank left or the library fails.
    fn barrier(&self) -> Result<()>;

    /// Gathers `mine` of every rank into `all`, in order of ranks.
    ///
    /// # Errors
    /// When a rank left or the library fails.
    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<()>;

    /// Reduces `values` elementwise over the ranks, with the same result on all.
    ///
    /// # Errors
    /// When a rank left or the library fails.
    fn allreduce(&self, how: Reduce, values: &mut [f64]) -> Result<()>;

    /// Sends part `r` of `send` to rank `r`, which receives it into this rank's part of `recv`.
    ///
    /// # Errors
    /// When a message has an unexpected length, a rank left or the library fails.
    fn alltoallv(&self, send: Parts<'_, &[u8]>, recv: Parts<'_, &mut [u8]>) -> Result<()>;

    /// Prepares [`Comm::alltoallv`] of these parts, so that it allocates nothing. Returns the bytes
    /// that this communicator then holds for its collectives. Not collective.
    ///
    /// # Errors
    /// [`Error::Memory`]; [`Error::Transport`] for counts that the library cannot represent.
    fn reserve_alltoallv(&self, send: &[Part], recv: &[Part]) -> Result<usize>;

    /// Whether there are [flights](Comm::flight). Without them ranks exchange only by
    /// [`Comm::alltoallv`].
    fn has_messages(&self) -> bool {
        true
    }

    /// Point-to-point messages with their buffers, made once per plan. If the library would ask the
    /// receiver first before it sends messages longer than `piece` bytes, they are sent in pieces
    /// of at most this length.
    ///
    /// # Errors
    /// When the library fails.
    fn flight(&self, piece: Option<usize>) -> Result<Box<dyn Flight>>;

    /// A communicator of the same ranks with separate messages.
    ///
    /// # Errors
    /// When a rank left or the library fails.
    fn dup(&self) -> Result<Box<dyn Comm>>;

    /// Called when a panic of this rank unwinds out of a collective. It aborts the job if the
    /// others would wait forever.
    fn abandon(&self) {}

    /// Windows for one-sided communication.
    fn one_sided(&self) -> Option<&dyn OneSided> {
        None
    }

    /// Messages in memory of devices; `None` on every rank if the communicator has none.
    fn device(&self) -> Option<&dyn DeviceComm> {
        None
    }

    /// Threads of each rank as ranks.
    fn teams(&self) -> Option<&dyn Teams> {
        None
    }

    /// The detector of ranks that have left. Without it, every collective detects them.
    fn failure_detector(&self) -> Option<&dyn FailureDetector> {
        None
    }
}

/// The memory that the ranks of a host share.
pub trait SharesMemory {
    /// The number of a rank's host: ranks with equal numbers can share memory. Not collective.
    fn host(&self, rank: usize) -> usize;

    /// Shared memory of the ranks of this host. `None` if each rank has a host of its own.
    /// Collective.
    ///
    /// # Errors
    /// When the library fails.
    fn node_memory(&self) -> Result<Option<Box<dyn NodeMemory>>>;

    /// Message slots of the ranks of this host. Collective.
    ///
    /// # Errors
    /// When the library fails.
    fn message_slots(&self) -> Result<Option<Box<dyn MessageSlots>>>;
}

/// One-sided communication.
pub trait OneSided {
    /// A window; `None` on all ranks if the library cannot put into the memory of other ranks.
    /// Collective.
    ///
    /// # Errors
    /// When a rank left or the library fails.
    fn window(&self) -> Result<Option<Box<dyn RmaWindow>>>;
}

/// Ranks that can have several threads.
pub trait Teams {
    /// Communicators in which this number of threads of each rank are the ranks, numbered by rank
    /// here and then by thread. Ranks may have different numbers of threads. Collective.
    ///
    /// # Errors
    /// The same on every rank: [`Error::Argument`] for a number of threads that the communicator
    /// cannot have; the errors of the library.
    fn team(&self, threads: usize) -> Result<TeamComms>;
}

/// A detector of ranks that leave.
pub trait FailureDetector {
    /// Whether all ranks have succeeded. Collective.
    ///
    /// # Errors
    /// [`Error::Left`] on every rank that calls this after another has dropped the communicator.
    fn sync(&self, succeeded: bool) -> Result<bool>;
}

/// Communicators of the threads of a rank, in order.
pub struct TeamComms {
    /// One for each thread.
    pub comms: Vec<Box<dyn Comm>>,
    /// The funnel, if threads cannot send by themselves.
    pub funnel: Option<Box<dyn Funnel>>,
}

impl std::fmt::Debug for TeamComms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TeamComms of {}", self.comms.len())
    }
}

/// Messages in device memory. `reaches` and `alltoallv` are **collective**.
pub trait DeviceComm {
    /// Whether messages can be sent from and received into memory of this kind. All ranks try it.
    ///
    /// # Errors
    /// When a rank left or the library fails otherwise.
    fn reaches(&self, memory: &DeviceBuffer) -> Result<bool>;

    /// Whether a [`Flight`] sends and receives messages there, too.
    fn has_flights(&self) -> bool {
        true
    }

    /// Prepares calls of [`DeviceComm::alltoallv`] with these parts, so that they allocate nothing.
    ///
    /// # Errors
    /// As [`Comm::reserve_alltoallv`].
    fn reserve_device_alltoallv(&self, _send: &[Part], _recv: &[Part]) -> Result<()> {
        Ok(())
    }

    /// [`Comm::alltoallv`] of memory that is [reached](DeviceComm::reaches).
    ///
    /// # Errors
    /// As [`Comm::alltoallv`].
    fn alltoallv(
        &self,
        send: Parts<'_, &DeviceBuffer>,
        recv: Parts<'_, &DeviceBuffer>,
    ) -> Result<()>;
}

type Result<T, E = Error> = std::result::Result<T, E>;

/// Offset and length in bytes.
pub type Part = (usize, usize);

/// A buffer with a part per rank. Parts start at multiples of [`SLOT_ALIGN`](crate::SLOT_ALIGN),
/// and the buffer is padded to the next multiple after each.
#[derive(Debug)]
pub struct Parts<'a, B> {
    /// The buffer.
    pub bytes: B,
    /// The part of each rank.
    pub parts: &'a [Part],
}
