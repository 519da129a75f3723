//! Communicators without MPI, made from groups of processes that another framework has started.
//!
//! A [`ProcessGroup`] has two collectives and, if possible, messages. [`GroupComm`] adds the rest:
//! the ranks of a host exchange everything through shared memory, and notice when one of them ends.
//! Only data between hosts goes through the group itself.
//!
//! ```
//! use fft_comm::group::{GroupComm, GroupError, ProcessGroup};
//! use fft_core::{Comm, Parts, Reduce};
//!
//! /// A group of one process.
//! struct Alone;
//!
//! impl ProcessGroup for Alone {
//!     fn rank(&self) -> usize {
//!         0
//!     }
//!
//!     fn size(&self) -> usize {
//!         1
//!     }
//!
//!     fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), GroupError> {
//!         all.copy_from_slice(mine);
//!         Ok(())
//!     }
//!
//!     fn alltoallv(
//!         &self,
//!         send: Parts<'_, &[u8]>,
//!         recv: Parts<'_, &mut [u8]>,
//!     ) -> Result<(), GroupError> {
//!         let ((from, bytes), (to, _)) = (send.parts[0], recv.parts[0]);
//!         recv.bytes[to..to + bytes].copy_from_slice(&send.bytes[from..from + bytes]);
//!         Ok(())
//!     }
//! }
//!
//! let comm = GroupComm::new(Alone)?;
//! let mut value = [2.5];
//! comm.allreduce(Reduce::Sum, &mut value)?;
//! assert_eq!(value, [2.5]);
//! # Ok::<(), fft_core::Error>(())
//! ```

mod board;
mod far;
mod flight;
mod group_comm;
mod host_memory;
mod impl_comm;
mod process_group;
mod processes;
mod ring;
mod shared_memory;

pub use group_comm::GroupComm;
pub use process_group::{
    DeviceMessages, GroupError, Messages, ProcessGroup, Request, default_host,
};
