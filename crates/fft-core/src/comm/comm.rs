//! What the transforms need of a communicator.

use super::device_buffer::DeviceBuffer;
use super::flight::Flight;
use super::node_memory::NodeMemory;
use super::rma::RmaWindow;
use crate::base::Error;
use crate::geometry::Topology;
use crate::problem::Link;

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

    /// Messages in memory of devices; `None` where the communicator has none, on every rank alike.
    fn device(&self) -> Option<&dyn DeviceComm> {
        None
    }

    /// A communicator of the same ranks whose messages never meet this one's.
    ///
    /// # Errors
    /// When a rank has gone or the library fails.
    fn dup(&self) -> Result<Box<dyn Comm>>;
}

/// Messages in memory of devices. Both methods are **collective**.
pub trait DeviceComm {
    /// Whether messages can be sent from and received into memory of this kind: the same on every rank. Tried with
    /// messages in such memory.
    ///
    /// # Errors
    /// When a rank has gone or the library fails otherwise.
    fn reaches(&self, memory: &DeviceBuffer) -> Result<bool>;

    /// As [`Comm::alltoallv`], from and into memory that is [reached](DeviceComm::reaches).
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
