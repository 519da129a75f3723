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
/// exceptions are `rank`, `size`, `host`, `topology`, `link`, `name`, `abandon`, `device`,
/// `has_messages` and `reserve_alltoallv`. Counts are 64-bit bytes.
pub trait Comm: Send {
    /// This rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// A number of the host of a rank. Ranks with equal numbers can share memory
    /// ([`Comm::node_memory`]). By default each rank has its own.
    fn host(&self, rank: usize) -> usize {
        rank
    }

    /// Which ranks share a host.
    fn topology(&self) -> Topology {
        let hosts: Vec<_> = (0..self.size()).map(|rank| self.host(rank)).collect();
        Topology::new(&hosts, hosts.len())
    }

    /// How this rank reaches a peer.
    fn link(&self, peer: usize) -> Link {
        match peer {
            own if own == self.rank() => Link::Own,
            near if self.host(near) == self.host(self.rank()) => Link::Shared,
            _ => Link::Remote,
        }
    }

    /// Shared memory of the ranks of this host. `None` if each rank has a host of its own.
    ///
    /// # Errors
    /// When the library fails.
    fn node_memory(&self) -> Result<Option<Box<dyn NodeMemory>>> {
        Ok(None)
    }

    /// Message slots of the ranks of this host. `None` on all ranks without support.
    ///
    /// # Errors
    /// When the library fails.
    fn message_slots(&self) -> Result<Option<Box<dyn MessageSlots>>> {
        Ok(None)
    }

    /// Whether all ranks pass `true`; `None` if any collective detects ranks that left.
    ///
    /// # Errors
    /// [`Error::Left`] on every rank that calls this after another has dropped the communicator.
    fn sync(&self, _well: bool) -> Result<Option<bool>> {
        Ok(None)
    }

    /// `threads`, `mpi`, or `mpi+threads`, for messages to people.
    fn name(&self) -> &'static str;

    /// Called when this rank unwinds out of a collective for good. It aborts the job if it must.
    fn abandon(&self) {}

    /// Waits for all ranks.
    ///
    /// # Errors
    /// When a rank left or the library fails.
    fn barrier(&self) -> Result<(), Error>;

    /// Gathers `mine` of every rank into `all`, in order of ranks.
    ///
    /// # Errors
    /// When a rank left or the library fails.
    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), Error>;

    /// Reduces `values` elementwise over the ranks, with the same result on all.
    ///
    /// # Errors
    /// When a rank left or the library fails.
    fn allreduce(&self, how: Reduce, values: &mut [f64]) -> Result<(), Error>;

    /// Sends part `r` of `send` to rank `r`, which receives it into this rank's part of `recv`.
    ///
    /// # Errors
    /// When a message has an unexpected length, a rank left or the library fails.
    fn alltoallv(&self, send: Parts<'_, &[u8]>, recv: Parts<'_, &mut [u8]>) -> Result<(), Error>;

    /// Prepares [`Comm::alltoallv`] of these parts, so that it allocates nothing. Returns the bytes
    /// that this communicator then holds for its collectives. Not collective.
    ///
    /// # Errors
    /// [`Error::Memory`]; [`Error::Transport`] for counts beyond those of the library.
    fn reserve_alltoallv(&self, send: &[Part], recv: &[Part]) -> Result<usize, Error>;

    /// Whether there are [flights](Comm::flight). Without them ranks exchange by
    /// [`Comm::alltoallv`] alone.
    fn has_messages(&self) -> bool {
        true
    }

    /// Point-to-point messages with their buffers, made once per plan.
    ///
    /// # Errors
    /// When the library fails.
    fn flight(&self) -> Result<Box<dyn Flight>>;

    /// As [`Comm::flight`], with messages in pieces of at most so many bytes, where the library
    /// would ask the receiver of longer ones first.
    ///
    /// # Errors
    /// When the library fails.
    fn flight_in_pieces(&self, _most: usize) -> Result<Box<dyn Flight>> {
        self.flight()
    }

    /// A window for one-sided communication. `None` on all ranks without support.
    ///
    /// # Errors
    /// When a rank left or the library fails.
    fn window(&self) -> Result<Option<Box<dyn RmaWindow>>> {
        Ok(None)
    }

    /// Messages in memory of devices; `None` where the communicator has none, on every rank alike.
    fn device(&self) -> Option<&dyn DeviceComm> {
        None
    }

    /// Communicators in which so many threads of each rank are the ranks, numbered by rank here and
    /// then by thread. Ranks may have different numbers of threads.
    ///
    /// # Errors
    /// The same on every rank: [`Error::Argument`] for a number of threads that the communicator
    /// cannot have; those of the library.
    fn team(&self, threads: usize) -> Result<TeamComms> {
        Err(Error::argument("threads of a rank", threads, "MPI, or one rank"))
    }

    /// A communicator of the same ranks with messages of its own.
    ///
    /// # Errors
    /// When a rank left or the library fails.
    fn dup(&self) -> Result<Box<dyn Comm>>;
}

/// Communicators of the threads of a rank, in order.
pub struct TeamComms {
    /// Of each thread.
    pub comms: Vec<Box<dyn Comm>>,
    /// Where threads cannot send by themselves.
    pub funnel: Option<Box<dyn Funnel>>,
}

impl std::fmt::Debug for TeamComms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TeamComms of {}", self.comms.len())
    }
}

/// Messages in device memory. Both methods are **collective**.
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
