//! Messages under way.

use super::*;

/// Non-blocking operations under way, with the slots they use. Messages longer than `limit` bytes travel in
/// pieces.
pub(in crate::mpi) struct Requests {
    raw: Vec<ffi::MPI_Request>,
    /// To which entry a request belongs.
    entry_of: Vec<usize>,
    entries: Vec<Entry>,
    pieces: Pieces,
}

// SAFETY: request handles are valid in every thread of the process; whoever uses them goes through a
// `RawComm`, which checks the thread.
unsafe impl Send for Requests {}

impl Requests {
    pub(in crate::mpi) fn new(limit: usize) -> Self {
        let pieces = Pieces { limit };
        Self { raw: Vec::new(), entry_of: Vec::new(), entries: Vec::new(), pieces }
    }

    /// Makes room for so many messages of at most these sizes.
    pub(in crate::mpi) fn reserve(&mut self, sizes: impl Iterator<Item = usize> + Clone) {
        let pieces: usize = sizes.clone().map(|bytes| self.pieces.of(bytes)).sum();
        self.raw.reserve(pieces);
        self.entry_of.reserve(pieces);
        self.entries.reserve(sizes.count());
    }

    /// Starts to send a slot to a rank that announced `bound` bytes. If MPI fails to, the job ends.
    pub(in crate::mpi) fn send(
        &mut self,
        comm: &RawComm,
        to: usize,
        bound: usize,
        slot: Slot,
    ) -> Result<(), Error> {
        comm.ready("MPI_Isend")?;
        assert!(to < comm.size && slot.len() <= bound, "a rank and no more than it expects");
        let (pieces, len) = (self.pieces.of(bound), slot.len());
        let bytes = slot.address();
        let entry = self.entries.len();
        self.entries.push(Entry { slot: Some(slot), number: None, pieces: 0, bytes: 0 });
        for k in 0..pieces {
            let (first, n) = self.pieces.piece(len, k);
            let mut request = MaybeUninit::uninit();
            // SAFETY: the piece lies inside the slot's memory, which stays where it is while the slot
            // is in `entries`; it leaves them, or is freed, only after completion (`next`, `drop`).
            let code = unsafe {
                let (at, byte) = (bytes.add(first).cast(), ffi::RSMPI_UINT8_T);
                let request = request.as_mut_ptr();
                ffi::MPI_Isend(at, n, byte, to as c_int, TAG, comm.handle, request)
            };
            vital(comm.rank, "MPI_Isend", code);
            // SAFETY: MPI_Isend succeeded.
            self.started(entry, unsafe { request.assume_init() });
        }
        Ok(())
    }

    /// Starts to receive a message of at most the slot's length. If MPI fails to, the job ends.
    pub(in crate::mpi) fn receive(
        &mut self,
        comm: &RawComm,
        from: usize,
        number: usize,
        mut slot: Slot,
    ) -> Result<(), Error> {
        comm.ready("MPI_Irecv")?;
        assert!(from < comm.size, "rank {from} of {}", comm.size);
        let (pieces, len) = (self.pieces.of(slot.len()), slot.len());
        let bytes = slot.address_mut();
        let entry = self.entries.len();
        self.entries.push(Entry { slot: Some(slot), number: Some(number), pieces: 0, bytes: 0 });
        for k in 0..pieces {
            let (first, n) = self.pieces.piece(len, k);
            let mut request = MaybeUninit::uninit();
            // SAFETY: as in `send`; nobody reads or writes the slot before completion, because only `next`
            // hands it out, or it is memory that may be written at any time.
            let code = unsafe {
                let (at, byte) = (bytes.add(first).cast(), ffi::RSMPI_UINT8_T);
                let request = request.as_mut_ptr();
                ffi::MPI_Irecv(at, n, byte, from as c_int, TAG, comm.handle, request)
            };
            vital(comm.rank, "MPI_Irecv", code);
            // SAFETY: MPI_Irecv succeeded.
            self.started(entry, unsafe { request.assume_init() });
        }
        Ok(())
    }

    fn started(&mut self, entry: usize, request: ffi::MPI_Request) {
        self.raw.push(request);
        self.entry_of.push(entry);
        self.entries[entry].pieces += 1;
    }

    /// Waits for the next operation to complete, being `idle` meanwhile or not waiting at all; `None` when none is under
    /// way. One that completes with an error hands out its slot all the same, the error being put into `failure` if that
    /// has none yet.
    pub(in crate::mpi) fn next(
        &mut self,
        comm: &RawComm,
        failure: &mut Result<(), Error>,
        mut idle: Option<Idle>,
    ) -> Result<Option<Done>, Error> {
        let call = "MPI_Testany";
        comm.ready(call)?;
        loop {
            let n = count(comm.rank, call, self.raw.len())?;
            // Not a number of a request, in case the call fails without saying which.
            let (mut index, mut flag) = (-1, 0);
            let mut status = MaybeUninit::uninit();
            // SAFETY: `raw` holds n requests that are active or null; the results are two ints and a status.
            let code = unsafe {
                let raw = self.raw.as_mut_ptr();
                ffi::MPI_Testany(n, raw, &mut index, &mut flag, status.as_mut_ptr())
            };
            // SAFETY: reading a constant of the library.
            let none = index == unsafe { ffi::RSMPI_UNDEFINED };
            let failed = checked(comm.rank, call, code);
            if failed.is_err() && (none || index < 0 || index >= n) {
                return Err(failed.expect_err("just seen"));
            }
            if failed.is_ok() && flag == 0 {
                match &mut idle {
                    Some(idle) => idle.wait(),
                    None => return Ok(Some(Done::Not)),
                }
                continue;
            }
            if none {
                self.raw.clear();
                self.entry_of.clear();
                self.entries.clear();
                return Ok(None);
            }
            let entry = &mut self.entries[self.entry_of[index as usize]];
            match failed {
                Ok(()) if entry.number.is_some() => {
                    let mut bytes = 0;
                    // SAFETY: MPI_Testany completed a receive and so wrote the status.
                    let code = unsafe {
                        ffi::MPI_Get_count(status.as_ptr(), ffi::RSMPI_UINT8_T, &mut bytes)
                    };
                    checked(comm.rank, "MPI_Get_count", code)?;
                    entry.bytes += bytes as usize;
                }
                Ok(()) => {}
                Err(error) => {
                    if failure.is_ok() {
                        *failure = Err(error);
                    }
                }
            }
            // It is not looked at again, so that many messages take no longer each. The library may leave a failed one in place.
            self.raw.swap_remove(index as usize);
            self.entry_of.swap_remove(index as usize);
            entry.pieces -= 1;
            if entry.pieces == 0 {
                let mut slot = entry.slot.take().expect("an open entry has its slot");
                return Ok(Some(match entry.number {
                    None => Done::Sent(slot),
                    Some(number) => {
                        slot.set_len(entry.bytes);
                        Done::Received { number, slot }
                    }
                }));
            }
        }
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        // What the network may still write to or read from must not be freed.
        for entry in self.entries.drain(..) {
            std::mem::forget(entry.slot);
        }
    }
}
