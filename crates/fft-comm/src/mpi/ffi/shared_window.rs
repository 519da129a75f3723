//! Memory shared by the ranks of a host (`MPI_Win_allocate_shared`).

use std::ffi::c_int;
use std::mem::{ManuallyDrop, MaybeUninit};

use fft_core::Error;
use mpi::ffi;

use super::calls::checked;
use super::raw_comm::RawComm;
use crate::node_memory::{Room, check_room};

const PAGE: usize = 4096;

/// The folder in which common MPI libraries keep shared memory.
const SHARED: &str = "/dev/shm";

/// Memory that all ranks of a host can address. Allocated and freed collectively.
pub(in crate::mpi) struct SharedWindow {
    handle: ffi::MPI_Win,
    pub(in crate::mpi) comm: RawComm,
    /// Each rank's part, as an address in this process.
    parts: Vec<(*mut u8, usize)>,
}

// SAFETY: the handle is valid in every thread of the process, and freed only on the thread that may
// (`drop`). Parts do not move until then.
unsafe impl Send for SharedWindow {}
// SAFETY: as above; `&self` only gives out pointers.
unsafe impl Sync for SharedWindow {}

impl SharedWindow {
    /// `bytes` zeroed bytes for this rank. Collective over `comm`, whose ranks must be on one host.
    pub(in crate::mpi) fn allocate(comm: &RawComm, bytes: usize) -> Result<Self, Error> {
        let call = "MPI_Win_allocate_shared";
        comm.ready(call)?;
        // Whole pages and one more, because the library may begin parts anywhere.
        let room = bytes.checked_next_multiple_of(PAGE).unwrap_or(bytes).saturating_add(PAGE);
        let reduce = |how, value| {
            let mut result = [0.0];
            comm.allreduce(how, &[value], &mut result).map(|()| result[0])
        };
        check_room(&Room::in_file_system(SHARED), comm.rank, room, &reduce)?;
        let own = comm.all(comm.dup())?;
        let size =
            ffi::MPI_Aint::try_from(room).map_err(|_| Error::Memory { rank: comm.rank, bytes });
        let size = comm.all(size)?;
        let (mut base, mut handle) = (std::ptr::null_mut::<u8>(), MaybeUninit::uninit());
        // SAFETY: the communicator is live; the call writes the address and the handle.
        let code = unsafe {
            let (info, base, window) =
                (ffi::RSMPI_INFO_NULL, (&raw mut base).cast(), handle.as_mut_ptr());
            ffi::MPI_Win_allocate_shared(size, 1, info, own.handle, base, window)
        };
        // Freeing is collective: either all ranks keep the window or all leak it.
        let made = checked(comm.rank, call, code).and_then(|()| {
            // SAFETY: the call succeeded.
            let handle = unsafe { handle.assume_init() };
            let mut window = ManuallyDrop::new(Self { handle, comm: own, parts: Vec::new() });
            window.find_parts().map(|()| window)
        });
        comm.all(made).map(ManuallyDrop::into_inner)
    }

    /// Finds every rank's part and clears this one's.
    fn find_parts(&mut self) -> Result<(), Error> {
        for rank in 0..self.comm.size {
            let (mut size, mut unit, mut at) = (0, 0, std::ptr::null_mut::<u8>());
            // SAFETY: the window is live; the call writes a length, a unit and an address.
            let code = unsafe {
                let at = (&raw mut at).cast();
                ffi::MPI_Win_shared_query(self.handle, rank as c_int, &mut size, &mut unit, at)
            };
            checked(self.comm.rank, "MPI_Win_shared_query", code)?;
            // Mappings begin at pages in every process, so that all skip the same number of bytes.
            let skip = at.align_offset(PAGE);
            self.parts.push((at.wrapping_add(skip), (size as usize).saturating_sub(skip)));
        }
        let (own, len) = self.parts[self.comm.rank];
        // SAFETY: this is the rank's own part, which nobody else accesses before the window is
        // handed out.
        unsafe { own.write_bytes(0, len) };
        Ok(())
    }

    /// The address and length of a rank's part, valid as long as this window.
    pub(in crate::mpi) fn part(&self, rank: usize) -> (*mut u8, usize) {
        self.parts[rank]
    }

    /// Whether a drop would free it now. Freeing waits for all ranks, which do not join one that
    /// panics.
    pub(in crate::mpi) fn can_be_freed(&self) -> bool {
        !std::thread::panicking() && self.comm.ready("MPI_Win_free").is_ok()
    }
}

impl Drop for SharedWindow {
    fn drop(&mut self) {
        if self.can_be_freed() {
            // SAFETY: the window is ours and live, and no pointer into it is used any more.
            unsafe { ffi::MPI_Win_free(&mut self.handle) };
        }
    }
}
