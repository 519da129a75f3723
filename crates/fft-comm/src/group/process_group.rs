//! What a communicator is made of: the collectives of somebody else's process group.

use fft_core::{DeviceBuffer, Parts, Slot};

/// Why a call of a process group failed.
pub type GroupError = Box<dyn std::error::Error + Send + Sync>;

type Result<T, E = GroupError> = std::result::Result<T, E>;

/// A group of processes that a launcher or a framework has started: `torchrun`, `srun`, sockets.
/// [`GroupComm`](crate::group::GroupComm) makes a communicator from it.
///
/// `allgather` and `alltoallv` are **collective**: all ranks call them in the same order. If a rank
/// has ended, they must fail on the others instead of waiting for it.
pub trait ProcessGroup: Send {
    /// This rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// Gathers `mine` of every rank into `all`, in order of ranks. All have the same length.
    ///
    /// # Errors
    /// When a rank has ended, or the group fails.
    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<()>;

    /// Sends part `r` of `send` to rank `r`, which receives it into this rank's part of `recv`.
    /// Both ends have the same length.
    ///
    /// # Errors
    /// When a rank has ended, or the group fails.
    fn alltoallv(&self, send: Parts<'_, &[u8]>, recv: Parts<'_, &mut [u8]>) -> Result<()>;

    /// Messages between two ranks. Without them, ranks on several hosts exchange by `alltoallv`.
    fn messages(&self) -> Option<&dyn Messages> {
        None
    }

    /// Messages in memory of devices. Without them, data of devices passes through the host.
    fn device_messages(&self) -> Option<&dyn DeviceMessages> {
        None
    }

    /// The host of this process. Processes share memory if they return equal names.
    fn host(&self) -> String {
        default_host()
    }

    /// A rank that has ended, if the group notices that by itself. Called while this rank waits for
    /// messages, and after a failure. Ranks on the same host need no such notice.
    fn lost(&self) -> Option<usize> {
        None
    }

    /// Called when this rank can take part in no more collectives, so that others waiting in one
    /// should fail: closes connections, if the group has any.
    fn abandon(&self) {}
}

/// Non-blocking messages between two ranks. Messages of a pair with equal tags arrive in order.
/// Their receives are posted in that order, and each is tested only after the earlier ones have
/// completed.
pub trait Messages {
    /// Starts to send the bytes of a slot. [`Messages::test`] returns the slot.
    ///
    /// # Errors
    /// When the group fails.
    fn isend(&self, to: usize, tag: u32, message: Slot) -> Result<Request>;

    /// Starts to receive a message that is at most as long as this slot.
    ///
    /// # Errors
    /// When the group fails.
    fn irecv(&self, from: usize, tag: u32, room: Slot) -> Result<Request>;

    /// The slot of a request that has completed, which is not tested again. The slot of a received
    /// message has [its length](Slot::set_len). `None` while the request is active.
    ///
    /// # Errors
    /// When the peer has ended, or the group fails. The request is not tested again.
    fn test(&self, request: Request) -> Result<Option<Slot>>;
}

/// Messages in memory of devices, as with NCCL.
pub trait DeviceMessages {
    /// As [`ProcessGroup::alltoallv`], of memory on each rank's device. The data to send is ready
    /// when this is called, and it must return only after all data has arrived.
    ///
    /// # Errors
    /// When a rank has ended, or the group fails.
    fn alltoallv(
        &self,
        send: Parts<'_, &DeviceBuffer>,
        recv: Parts<'_, &DeviceBuffer>,
    ) -> Result<()>;
}

/// A number that a group gives to a message that it sends or receives.
pub type Request = u64;

/// A name of the machine as it runs now, of the namespace of process numbers, and of the user:
/// processes for which these are equal can open each other's files under `/proc`.
///
/// Host names are not enough, because containers of one machine may have different ones, and
/// different machines the same.
pub fn default_host() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let user = rustix::process::geteuid().as_raw();
    format!("{} {} {user}", boot.trim(), namespace.display())
}
