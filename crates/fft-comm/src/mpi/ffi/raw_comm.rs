//! Communicators and their collectives.

use std::mem::MaybeUninit;

use fft_core::{DeviceBuffer, Error, Reduce, agree_by};
use mpi::ffi;
use mpi::traits::AsRaw;

use super::callers::{Callers, running};
use super::calls::{TAG, checked, vital, world_rank};
use super::line_type::LineType;
use crate::mpi::lines::{Lines, count};

pub(in crate::mpi) enum Bytes<'a> {
    Host(&'a [u8]),
    DeviceBuffer(&'a DeviceBuffer),
}

pub(in crate::mpi) enum BytesMut<'a> {
    Host(&'a mut [u8]),
    DeviceBuffer(&'a DeviceBuffer),
}

/// A duplicated communicator, owned.
pub(in crate::mpi) struct RawComm {
    pub(super) handle: ffi::MPI_Comm,
    pub(in crate::mpi) rank: usize,
    pub(in crate::mpi) size: usize,
    pub(super) callers: Callers,
}

// SAFETY: a communicator handle is a number or a pointer to an object of the library, valid in
// every thread of the process. `ready` refuses calls from threads other than its maker, unless the
// library has MPI_THREAD_MULTIPLE and synchronises them, or has MPI_THREAD_SERIALIZED and whoever
// made the first communicator promised that calls do not overlap.
unsafe impl Send for RawComm {}
// SAFETY: as above.
unsafe impl Sync for RawComm {}

/// The communicator of a Fortran handle; zeros or MPI_COMM_NULL if there is none.
pub(in crate::mpi) fn of_fortran(handle: ffi::RSMPI_Fint) -> Result<ffi::MPI_Comm, Error> {
    running("MPI_Comm_f2c")?;
    // SAFETY: MPI is running; any number may be looked up.
    Ok(unsafe { ffi::RSMPI_Comm_f2c(handle) })
}

impl RawComm {
    /// A duplicate of a live communicator. Collective over it.
    ///
    /// # Safety
    /// `handle` must be a live intra-communicator, and MPI running. This thread must be one of the
    /// callers.
    unsafe fn duplicate(handle: ffi::MPI_Comm, callers: Callers) -> Result<Self, Error> {
        let mut dup = MaybeUninit::uninit();
        // SAFETY: the caller promises a live handle; the result is written on success.
        checked(world_rank(), "MPI_Comm_dup", unsafe {
            ffi::MPI_Comm_dup(handle, dup.as_mut_ptr())
        })?;
        // SAFETY: MPI_Comm_dup succeeded.
        unsafe { Self::own(dup.assume_init(), callers) }
    }

    /// A duplicate of a communicator that another program made. Null handles and
    /// inter-communicators are refused. Collective.
    ///
    /// # Safety
    /// `handle` must be live, `MPI_COMM_NULL` or zero, if MPI is running. With
    /// `MPI_THREAD_SERIALIZED`, no threads call MPI at the same time, by this crate or otherwise.
    pub(in crate::mpi) unsafe fn duplicate_foreign(handle: ffi::MPI_Comm) -> Result<Self, Error> {
        let call = "MPI_Comm_dup";
        let callers = Callers::here(call, true)?;
        // SAFETY: a handle is a number or a pointer, for which all zeros are valid; the other is a
        // constant.
        let none = unsafe { [std::mem::zeroed(), ffi::RSMPI_COMM_NULL] };
        let rank = world_rank();
        let refuse = |text: &str| Err(Error::Transport { rank, call, text: text.into() });
        if none.contains(&handle) {
            return refuse("the communicator is MPI_COMM_NULL");
        }
        let mut inter = 0;
        // SAFETY: the caller promises a live handle; the call writes one int.
        let code = unsafe { ffi::MPI_Comm_test_inter(handle, &mut inter) };
        checked(rank, "MPI_Comm_test_inter", code)?;
        match inter {
            // SAFETY: as above.
            0 => unsafe { Self::duplicate(handle, callers) },
            _ => refuse("the communicator is an inter-communicator"),
        }
    }

    /// Takes ownership of a communicator.
    ///
    /// # Safety
    /// `handle` must be live and nobody else's.
    unsafe fn own(handle: ffi::MPI_Comm, callers: Callers) -> Result<Self, Error> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: the caller promises a live handle; results are ints.
        unsafe {
            let code = ffi::MPI_Comm_set_errhandler(handle, ffi::RSMPI_ERRORS_RETURN);
            checked(world_rank(), "MPI_Comm_set_errhandler", code)?;
            checked(world_rank(), "MPI_Comm_rank", ffi::MPI_Comm_rank(handle, &mut rank))?;
            checked(world_rank(), "MPI_Comm_size", ffi::MPI_Comm_size(handle, &mut size))?;
        }
        Ok(Self { handle, rank: rank as usize, size: size as usize, callers })
    }

    pub(in crate::mpi) fn ready(&self, call: &'static str) -> Result<(), Error> {
        self.callers.check(self.rank, call)
    }

    pub(in crate::mpi) fn dup(&self) -> Result<Self, Error> {
        self.ready("MPI_Comm_dup")?;
        // SAFETY: our handle is live until dropped.
        unsafe { Self::duplicate(self.handle, self.callers) }
    }

    /// This rank's value, if all ranks have one; the same error on every rank otherwise.
    /// Collective.
    pub(in crate::mpi) fn all<T>(&self, mine: Result<T, Error>) -> Result<T, Error> {
        let least = |value: &mut [f64]| self.allreduce(Reduce::Min, &[value[0]], value);
        agree_by((self.rank, self.size), least, |mine, all| self.allgather(mine, all), mine)
    }

    pub(in crate::mpi) fn split(&self, color: usize, key: usize) -> Result<Self, Error> {
        self.ready("MPI_Comm_split")?;
        let call = "MPI_Comm_split";
        let (color, key) = (count(self.rank, call, color)?, count(self.rank, call, key)?);
        let mut part = MaybeUninit::uninit();
        // SAFETY: our handle is live; the result is written on success and then ours.
        unsafe {
            let code = ffi::MPI_Comm_split(self.handle, color, key, part.as_mut_ptr());
            checked(self.rank, call, code)?;
            Self::own(part.assume_init(), self.callers)
        }
    }

    /// The ranks of this host, in the order of ranks here. Collective.
    pub(in crate::mpi) fn host(&self) -> Result<Self, Error> {
        let call = "MPI_Comm_split_type";
        self.ready(call)?;
        let key = count(self.rank, call, self.rank)?;
        let mut part = MaybeUninit::uninit();
        // SAFETY: our handle is live; the result is written on success and then ours.
        unsafe {
            let (shared, info) = (ffi::RSMPI_COMM_TYPE_SHARED, ffi::RSMPI_INFO_NULL);
            let code = ffi::MPI_Comm_split_type(self.handle, shared, key, info, part.as_mut_ptr());
            checked(self.rank, call, code)?;
            Self::own(part.assume_init(), self.callers)
        }
    }

    pub(in crate::mpi) fn barrier(&self) -> Result<(), Error> {
        self.ready("MPI_Barrier")?;
        // SAFETY: our handle is live.
        checked(self.rank, "MPI_Barrier", unsafe { ffi::MPI_Barrier(self.handle) })
    }

    /// Lets the library make progress while this rank waits for something else.
    pub(in crate::mpi) fn progress(&self) {
        if self.ready("MPI_Iprobe").is_ok() {
            let mut flag = 0;
            // SAFETY: our handle is live; the call writes one int. Operations report their own
            // failures.
            unsafe {
                let (any, ignored) = (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_STATUS_IGNORE);
                ffi::MPI_Iprobe(any, TAG, self.handle, &mut flag, ignored);
            }
        }
    }

    pub(in crate::mpi) fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), Error> {
        assert_eq!(all.len(), mine.len() * self.size, "room for every rank's bytes");
        let call = "MPI_Allgather";
        self.ready(call)?;
        if mine.is_empty() {
            // Empty slices may have equal addresses, which MPI refuses.
            return Ok(());
        }
        let n = count(self.rank, call, mine.len())?;
        // SAFETY: `mine` has n bytes and `all` n per rank.
        let code = unsafe {
            let (from, to) = (mine.as_ptr().cast(), all.as_mut_ptr().cast());
            let byte = ffi::RSMPI_UINT8_T;
            ffi::MPI_Allgather(from, n, byte, to, n, byte, self.handle)
        };
        checked(self.rank, call, code)
    }

    /// A number of each rank. Collective.
    pub(in crate::mpi) fn numbers(&self, mine: usize) -> Result<Vec<usize>, Error> {
        let mut all = vec![0; self.size];
        self.allgather(bytemuck::bytes_of(&mine), bytemuck::cast_slice_mut(&mut all))?;
        Ok(all)
    }

    pub(in crate::mpi) fn allreduce(
        &self,
        how: Reduce,
        mine: &[f64],
        result: &mut [f64],
    ) -> Result<(), Error> {
        assert_eq!(mine.len(), result.len(), "as many results as operands");
        let call = "MPI_Allreduce";
        self.ready(call)?;
        let n = count(self.rank, call, mine.len())?;
        // SAFETY: reading a constant of the library; both slices have n numbers.
        let code = unsafe {
            let op = match how {
                Reduce::Min => ffi::RSMPI_MIN,
                Reduce::Max => ffi::RSMPI_MAX,
                Reduce::Sum => ffi::RSMPI_SUM,
            };
            let (from, to) = (mine.as_ptr().cast(), result.as_mut_ptr().cast());
            ffi::MPI_Allreduce(from, to, n, ffi::RSMPI_DOUBLE, op, self.handle)
        };
        checked(self.rank, call, code)
    }

    pub(in crate::mpi) fn line_type(&self) -> Result<LineType, Error> {
        LineType::new(self.rank, self.callers)
    }

    /// `MPI_Alltoallv` of lines of `SLOT_ALIGN` bytes, so that counts of 31 bits reach 128 GiB. A
    /// failure ends the job, because the other ranks are in the collective.
    pub(in crate::mpi) fn alltoallv(
        &self,
        unit: &LineType,
        send: (Bytes<'_>, &Lines),
        recv: (BytesMut<'_>, &Lines),
    ) -> Result<(), Error> {
        let call = "MPI_Alltoallv";
        self.ready(call)?;
        let (from, out_bytes) = match send.0 {
            Bytes::Host(bytes) => (bytes.as_ptr(), bytes.len()),
            Bytes::DeviceBuffer(memory) => (memory.address().cast_const(), memory.bytes()),
        };
        let (to, in_bytes) = match recv.0 {
            BytesMut::Host(bytes) => (bytes.as_mut_ptr(), bytes.len()),
            BytesMut::DeviceBuffer(memory) => (memory.address(), memory.bytes()),
        };
        for (bytes, lines) in [(out_bytes, send.1), (in_bytes, recv.1)] {
            assert_eq!(lines.counts.len(), self.size, "a part for every rank");
            assert!(lines.end <= bytes, "parts end at {} in {bytes} bytes", lines.end);
        }
        // SAFETY: both buffers reach to the end of the last part, as just checked; `Lines` has a
        // count and a place for every rank; the call has ended when it returns.
        let code = unsafe {
            let (from, to, unit) = (from.cast(), to.cast(), unit.handle);
            let (out, their) = (send.1.counts.as_ptr(), send.1.places.as_ptr());
            let (back, here) = (recv.1.counts.as_ptr(), recv.1.places.as_ptr());
            ffi::MPI_Alltoallv(from, out, their, unit, to, back, here, unit, self.handle)
        };
        vital(self.rank, call, code);
        Ok(())
    }
}

impl Drop for RawComm {
    fn drop(&mut self) {
        // A communicator that cannot be freed now (after MPI_Finalize, on a foreign thread) leaks.
        if self.ready("MPI_Comm_free").is_ok() {
            // SAFETY: the handle is live and nobody else's. A failure cannot be reported.
            unsafe { ffi::MPI_Comm_free(&mut self.handle) };
        }
    }
}

/// A duplicate of a communicator that rsmpi keeps alive.
pub(in crate::mpi) fn duplicate_of(
    comm: &mpi::topology::SimpleCommunicator,
) -> Result<RawComm, Error> {
    let callers = Callers::here("MPI_Comm_dup", false)?;
    // SAFETY: rsmpi's communicators are live while MPI is running, as was just checked.
    unsafe { RawComm::duplicate(comm.as_raw(), callers) }
}
