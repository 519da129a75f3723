//! The communicator: a duplicate of a caller's, and the state that its collectives keep.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use ::mpi::topology::SimpleCommunicator;
use fft_core::{Error, Part};

use super::ffi::{self, Bytes, BytesMut, FailureDetector, LineType, RawComm};
use super::host;
use super::lines::{LONGEST, Lines};
use crate::node_memory::on_rank_of;

/// A communicator whose ranks are MPI processes.
pub struct MpiComm {
    /// None on a communicator of one rank.
    pub(super) failure_detector: Option<FailureDetector>,
    pub(super) raw: RawComm,
    /// The lowest rank of each rank's host.
    pub(super) hosts: Arc<[usize]>,
    pub(super) scratch: RefCell<Scratch>,
    pub(super) piece: usize,
    /// Whether these ranks can put, once tried; shared with duplicates.
    pub(super) can_put: Arc<OnceLock<bool>>,
    /// Whether messages can be in memory of devices, once tried; shared with duplicates.
    pub(super) reaches_devices: Arc<OnceLock<bool>>,
}

/// Memory of collectives, kept so that they allocate nothing.
pub(super) struct Scratch {
    pub(super) line: LineType,
    pub(super) send: Lines,
    pub(super) recv: Lines,
    pub(super) operands: Vec<f64>,
}

impl MpiComm {
    /// A duplicate of one of rsmpi's communicators. Collective over it. Without
    /// `MPI_THREAD_MULTIPLE` it is used on this thread alone.
    ///
    /// # Errors
    /// [`Error::Transport`] when the library fails.
    pub fn of(comm: &SimpleCommunicator) -> Result<Self, Error> {
        Self::new(ffi::duplicate_of(comm)?)
    }

    /// A duplicate of a communicator of a C or Fortran program. Collective over it.
    ///
    /// With `MPI_THREAD_SERIALIZED` it may be used on any thread, and so may everything made from
    /// it.
    ///
    /// # Safety
    /// The handle must be `MPI_COMM_NULL`, zero, or the handle of a communicator that has not been
    /// freed. With `MPI_THREAD_SERIALIZED`, no two threads of the process may call MPI at the same
    /// time, by this crate or otherwise.
    ///
    /// # Errors
    /// [`Error::Transport`] when MPI is not running, the handle does not belong to an
    /// intra-communicator, or the library fails.
    #[allow(unsafe_code)]
    pub unsafe fn from_raw(handle: ::mpi::ffi::MPI_Comm) -> Result<Self, Error> {
        // SAFETY: the caller's.
        Self::new(unsafe { RawComm::duplicate_foreign(handle) }?)
    }

    /// As [`MpiComm::from_raw`], of a Fortran handle. Collective over it.
    ///
    /// # Safety
    /// The handle must not belong to a communicator that has been freed. The rules for threads are
    /// the same as for [`MpiComm::from_raw`].
    ///
    /// # Errors
    /// As [`MpiComm::from_raw`].
    #[allow(unsafe_code)]
    pub unsafe fn from_fortran(handle: ::mpi::ffi::RSMPI_Fint) -> Result<Self, Error> {
        // SAFETY: the caller's; the library maps unknown handles to no communicator.
        unsafe { Self::from_raw(ffi::of_fortran(handle)?) }
    }

    fn new(raw: RawComm) -> Result<Self, Error> {
        let hosts = host::hosts(&raw)?.into();
        Self::on(raw, hosts)
    }

    /// Collective, with an error on all ranks or on none.
    pub(super) fn on(raw: RawComm, hosts: Arc<[usize]>) -> Result<Self, Error> {
        let line = raw.all(raw.line_type())?;
        let failure_detector = (raw.size > 1).then(|| FailureDetector::new(&raw)).transpose()?;
        let (send, recv) = (Lines::default(), Lines::default());
        let scratch = RefCell::new(Scratch { line, send, recv, operands: Vec::new() });
        let (can_put, reaches_devices) = Default::default();
        Ok(Self { failure_detector, raw, hosts, scratch, piece: LONGEST, can_put, reaches_devices })
    }

    /// Communicators of the ranks with equal `color`, ordered by `key` and then by rank here.
    /// Collective.
    ///
    /// # Errors
    /// When a rank has gone or the library fails.
    pub fn split(&self, color: usize, key: usize) -> Result<Self, Error> {
        let raw = self.raw.all(self.raw.split(color, key))?;
        let ranks = raw.numbers(self.raw.rank)?;
        let part = self.raw.all(Self::new(raw).map_err(|error| on_rank_of(error, &ranks)))?;
        Ok(Self { piece: self.piece, ..part })
    }

    /// Cuts messages of flights made from now on into pieces of at most `bytes` bytes; the same on
    /// all ranks. For tests that would otherwise need messages of 2 GiB.
    #[doc(hidden)]
    pub fn with_pieces_of(mut self, bytes: usize) -> Self {
        assert!((1..=LONGEST).contains(&bytes), "pieces of {bytes} bytes");
        self.piece = bytes;
        self
    }

    /// Pretends that the ranks are on these hosts: one number for each rank, the same on all. For
    /// tests.
    #[doc(hidden)]
    pub fn on_hosts(mut self, hosts: &[usize]) -> Self {
        assert_eq!(hosts.len(), self.raw.size, "a number for every rank");
        let lowest = |host| hosts.iter().position(|other| other == host).expect("its own");
        self.hosts = hosts.iter().map(lowest).collect();
        self
    }

    /// Sets the rank whose exit the others get an error about when this process leaves.
    pub(super) fn set_rank(&self, rank: usize) {
        self.failure_detector.iter().for_each(|detector| detector.set_rank(rank));
    }

    /// Announces to the others, once, that a rank of this process has left.
    pub(super) fn leave(&mut self, rank: usize) {
        self.set_rank(rank);
        self.failure_detector.take();
    }

    /// A communicator of the same ranks, which shares the results of trials. Collective.
    pub(super) fn duplicate(&self) -> Result<Self, Error> {
        let raw = self.raw.all(self.raw.dup())?;
        Ok(Self {
            piece: self.piece,
            can_put: self.can_put.clone(),
            reaches_devices: self.reaches_devices.clone(),
            ..Self::on(raw, self.hosts.clone())?
        })
    }

    /// `MPI_Alltoallv` between memory of any kind.
    pub(super) fn all_to_all(
        &self,
        (send, out): (Bytes<'_>, &[Part]),
        (recv, come): (BytesMut<'_>, &[Part]),
    ) -> Result<(), Error> {
        let scratch = &mut *self.scratch.borrow_mut();
        scratch.send.set(out, self.raw.rank)?;
        scratch.recv.set(come, self.raw.rank)?;
        self.raw.alltoallv(&scratch.line, (send, &scratch.send), (recv, &scratch.recv))
    }
}
