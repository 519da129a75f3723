//! Non-blocking messages under way.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use fft_core::{Error, Slot};
use mpi::ffi;

use super::calls::{checked, vital};
use super::raw_comm::RawComm;
use crate::idle::Idle;
use crate::mpi::lines::count;
use crate::mpi::pieces::{Done, Entry, Name, Peer, Pieces};

/// Non-blocking operations and the slots they use. Messages longer than `limit` bytes travel in
/// pieces.
pub(in crate::mpi) struct Requests {
    raw: Vec<ffi::MPI_Request>,
    entry_of: Vec<usize>,
    entries: Vec<Entry>,
    pieces: Pieces,
}

// SAFETY: request handles are valid in every thread of the process. They are used through a
// `RawComm`, which checks the thread.
unsafe impl Send for Requests {}

enum Tested {
    Inactive,
    Pending,
    /// The request of this index has completed or failed.
    Completed(usize, Result<MaybeUninit<ffi::MPI_Status>, Error>),
}

impl Requests {
    pub(in crate::mpi) fn new(limit: usize) -> Self {
        let pieces = Pieces { limit };
        Self { raw: Vec::new(), entry_of: Vec::new(), entries: Vec::new(), pieces }
    }

    /// Reserves memory for messages of at most these sizes.
    pub(in crate::mpi) fn reserve(&mut self, sizes: impl Iterator<Item = usize> + Clone) {
        let pieces: usize = sizes.clone().map(|bytes| self.pieces.of(bytes)).sum();
        self.raw.reserve(pieces);
        self.entry_of.reserve(pieces);
        self.entries.reserve(sizes.count());
    }

    /// Starts to send a slot to a rank that expects at most `bound` bytes. A failure of MPI ends
    /// the job.
    pub(in crate::mpi) fn send(
        &mut self,
        comm: &RawComm,
        Peer { rank: to, tag }: Peer,
        name: Name,
        bound: usize,
        slot: Slot,
    ) -> Result<(), Error> {
        let call = "MPI_Isend";
        comm.ready(call)?;
        assert!(to < comm.size && slot.len() <= bound, "a rank and no more than it expects");
        let (pieces, len, at) = (self.pieces.of(bound), slot.len(), slot.address());
        let entry = Entry { slot: Some(slot), name, is_received: false, pieces, bytes: 0 };
        self.start((comm.rank, call), entry, len, |first, n, request| {
            // SAFETY: the piece lies inside the slot's memory. The slot stays in `entries` until
            // completion (`next`, `drop`), and its memory does not move.
            unsafe {
                let (at, byte) = (at.add(first).cast(), ffi::RSMPI_UINT8_T);
                ffi::MPI_Isend(at, n, byte, to as c_int, tag, comm.handle, request)
            }
        });
        Ok(())
    }

    /// Starts to receive a message of at most the slot's length. A failure of MPI ends the job.
    pub(in crate::mpi) fn receive(
        &mut self,
        comm: &RawComm,
        Peer { rank: from, tag }: Peer,
        name: Name,
        mut slot: Slot,
    ) -> Result<(), Error> {
        let call = "MPI_Irecv";
        comm.ready(call)?;
        assert!(from < comm.size, "rank {from} of {}", comm.size);
        let (pieces, len, at) = (self.pieces.of(slot.len()), slot.len(), slot.address_mut());
        let entry = Entry { slot: Some(slot), name, is_received: true, pieces, bytes: 0 };
        self.start((comm.rank, call), entry, len, |first, n, request| {
            // SAFETY: as in `send`. Nobody reads or writes the slot before completion, because only
            // `next` hands it out, or it is device memory, which may be written at any time.
            unsafe {
                let (at, byte) = (at.add(first).cast(), ffi::RSMPI_UINT8_T);
                ffi::MPI_Irecv(at, n, byte, from as c_int, tag, comm.handle, request)
            }
        });
        Ok(())
    }

    /// Starts the operations of all pieces of a message of `len` bytes.
    fn start(
        &mut self,
        (rank, call): (usize, &'static str),
        entry: Entry,
        len: usize,
        start: impl Fn(usize, c_int, *mut ffi::MPI_Request) -> c_int,
    ) {
        let pieces = entry.pieces;
        self.entries.push(entry);
        for k in 0..pieces {
            let (first, n) = self.pieces.piece(len, k);
            let mut request = MaybeUninit::uninit();
            vital(rank, call, start(first, n, request.as_mut_ptr()));
            // SAFETY: the call succeeded and so wrote the request.
            self.raw.push(unsafe { request.assume_init() });
            self.entry_of.push(self.entries.len() - 1);
        }
    }

    /// Waits for the next operation to complete, or returns [`Done::Not`] if `idle` is `None`.
    /// Returns `None` when no operation is active. An operation that fails hands out its slot, too;
    /// the first error is put into `failure`.
    pub(in crate::mpi) fn next(
        &mut self,
        comm: &RawComm,
        failure: &mut Result<(), Error>,
        mut idle: Option<Idle>,
    ) -> Result<Option<Done>, Error> {
        comm.ready("MPI_Testany")?;
        loop {
            match (self.test_any(comm.rank)?, &mut idle) {
                (Tested::Pending, Some(idle)) => idle.wait(),
                (Tested::Pending, None) => return Ok(Some(Done::Not)),
                (Tested::Inactive, _) => {
                    self.raw.clear();
                    self.entry_of.clear();
                    self.entries.clear();
                    return Ok(None);
                }
                (Tested::Completed(index, result), _) => {
                    let status = result.map_err(|error| *failure = failure.clone().and(Err(error)));
                    if let Some(done) = self.completed(comm.rank, index, status.ok())? {
                        return Ok(Some(done));
                    }
                }
            }
        }
    }

    fn test_any(&mut self, rank: usize) -> Result<Tested, Error> {
        let call = "MPI_Testany";
        let n = count(rank, call, self.raw.len())?;
        // Not the index of a request, in case the call fails without setting it.
        let (mut index, mut flag) = (-1, 0);
        let mut status = MaybeUninit::uninit();
        // SAFETY: `raw` holds n requests that are active or null; the results are two ints and a
        // status.
        let code = unsafe {
            let raw = self.raw.as_mut_ptr();
            ffi::MPI_Testany(n, raw, &mut index, &mut flag, status.as_mut_ptr())
        };
        // SAFETY: reading a constant of the library.
        let none = index == unsafe { ffi::RSMPI_UNDEFINED };
        match checked(rank, call, code) {
            Err(error) if none || !(0..n).contains(&index) => Err(error),
            Err(error) => Ok(Tested::Completed(index as usize, Err(error))),
            Ok(()) if flag == 0 => Ok(Tested::Pending),
            Ok(()) if none => Ok(Tested::Inactive),
            Ok(()) => Ok(Tested::Completed(index as usize, Ok(status))),
        }
    }

    /// Counts a piece as complete, and hands out its message when it was the last one.
    fn completed(
        &mut self,
        rank: usize,
        index: usize,
        status: Option<MaybeUninit<ffi::MPI_Status>>,
    ) -> Result<Option<Done>, Error> {
        let entry = &mut self.entries[self.entry_of[index]];
        if let (Some(status), true) = (status, entry.is_received) {
            let mut bytes = 0;
            // SAFETY: MPI_Testany completed a receive and so wrote the status.
            let code =
                unsafe { ffi::MPI_Get_count(status.as_ptr(), ffi::RSMPI_UINT8_T, &mut bytes) };
            checked(rank, "MPI_Get_count", code)?;
            entry.bytes += bytes as usize;
        }
        // Removed, so that later tests do not look at it. The library may leave a failed request in
        // place.
        self.raw.swap_remove(index);
        self.entry_of.swap_remove(index);
        entry.pieces -= 1;
        if entry.pieces > 0 {
            return Ok(None);
        }
        let mut slot = entry.slot.take().expect("an open entry has its slot");
        let name = entry.name;
        Ok(Some(if entry.is_received {
            slot.set_len(entry.bytes);
            Done::Received { name, slot }
        } else {
            Done::Sent { name, slot }
        }))
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        // Memory that the network may still access must not be freed.
        for entry in self.entries.drain(..) {
            std::mem::forget(entry.slot);
        }
    }
}
