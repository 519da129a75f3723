//! MPI processes as ranks, through rsmpi.
//!
//! Every communicator here is a duplicate, so that our messages never meet anybody else's, and returns
//! errors instead of aborting.

mod ffi;
mod flight;
mod host;
mod lines;
mod opaque;
mod pieces;
pub mod window;

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::{Arc, Once, OnceLock};

/// The bindings, for callers who use MPI themselves.
pub use ::mpi as rsmpi;
use fft_core::{Comm, DeviceBuffer, Error, Flight, NodeMemory, Part, Parts, Reduce, RmaWindow};

use crate::node_memory::node_memory::{HostNodeMemory, numbered};

use ffi::{Bytes, BytesMut, LineType, RawComm, Roll};
use flight::MpiFlight;
use host::Host;
use lines::{LONGEST, Lines};
use window::MpiWindow;
pub use window::{Rma, Window};

/// MPI, initialised by us; finalised when dropped, so keep it until the end. Stays on the thread that made it. With a panic
/// under way the job ends, with status 101: other ranks may wait for this one, and finalising waits for them.
#[must_use = "MPI is finalised when this is dropped"]
pub struct Mpi {
    universe: ::mpi::environment::Universe,
    stays: PhantomData<*const ()>,
}

/// Initialises MPI for use by one thread per process.
///
/// # Errors
/// [`Error::Transport`] when MPI has been initialised before in this process: use [`MpiComm::of`] then.
pub fn init() -> Result<Mpi, Error> {
    let universe = ::mpi::initialize_with_threading(::mpi::Threading::Funneled);
    let text = "MPI is already initialised; make communicators with MpiComm::of";
    let error = || Error::Transport { rank: 0, call: "MPI_Init_thread", text: text.into() };
    Ok(Mpi { universe: universe.ok_or_else(error)?.0, stays: PhantomData })
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if std::thread::panicking() {
            abort(101);
        }
    }
}

impl Mpi {
    /// All processes of the job.
    ///
    /// # Errors
    /// [`Error::Transport`] when the library fails.
    pub fn world(&self) -> Result<MpiComm, Error> {
        MpiComm::of(&self.universe.world())
    }

    /// The library's own words about its version.
    pub fn library(&self) -> String {
        library()
    }
}

/// The library's own words about its version.
pub(crate) fn library() -> String {
    rsmpi::environment::library_version().unwrap_or_else(|_| "unknown".into())
}

/// What may help where a rank cannot put into the memory of others: nothing, or a sentence behind a request.
fn remedy() -> &'static str {
    match library().starts_with("Open MPI v4") {
        true => " OMPI_MCA_osc=^ucx in the environment (mpirun --mca osc ^ucx) may repair it.",
        false => "",
    }
}

/// Ends all processes of the job with this exit status, for failures that cannot be agreed on.
pub fn abort(code: i32) -> ! {
    ffi::abort(code)
}

/// Waits until of all communicators that this process has dropped, those of plans too, the others have dropped theirs or on_progress of
/// it. For tests.
#[doc(hidden)]
pub fn hear_out() {
    ffi::hear_out();
}

/// A communicator whose ranks are MPI processes.
pub struct MpiComm {
    /// None where there is nobody else.
    roll: Option<Roll>,
    raw: RawComm,
    /// For every rank the lowest one of its host.
    hosts: Arc<[usize]>,
    scratch: RefCell<Scratch>,
    piece: usize,
    /// Whether these ranks can put, once it has been found out; shared with duplicates.
    can_put: Arc<OnceLock<bool>>,
    /// The same of memory on devices: whether messages can be there, and whether windows.
    devices: Arc<[OnceLock<bool>; 2]>,
}

/// Said once in a process, however many plans it makes.
static NO_PUTS: Once = Once::new();

/// What collectives need beside their arguments, kept so that they allocate nothing.
struct Scratch {
    line: LineType,
    send: Lines,
    recv: Lines,
    operands: Vec<f64>,
}

impl MpiComm {
    /// A duplicate of one of rsmpi's communicators. Collective over it.
    ///
    /// # Errors
    /// [`Error::Transport`] when the library fails.
    pub fn of(comm: &rsmpi::topology::SimpleCommunicator) -> Result<Self, Error> {
        Self::new(ffi::duplicate_of(comm)?)
    }

    /// A duplicate of a communicator handed in by a C or Fortran program. Collective over it.
    ///
    /// # Safety
    /// The handle must be of a communicator that has not been freed, or `MPI_COMM_NULL`, or zero.
    ///
    /// # Errors
    /// [`Error::Transport`] when MPI is not running, the handle is none, or an inter-communicator, or the library fails.
    #[allow(unsafe_code)]
    pub unsafe fn from_raw(handle: rsmpi::ffi::MPI_Comm) -> Result<Self, Error> {
        // SAFETY: the caller vouches for the handle.
        Self::new(unsafe { RawComm::duplicate_foreign(handle) }?)
    }

    /// As [`MpiComm::from_raw`], of a communicator as Fortran programs know it: an integer. Collective over it.
    ///
    /// # Safety
    /// The number must not be that of a communicator which has been freed.
    ///
    /// # Errors
    /// As [`MpiComm::from_raw`].
    #[allow(unsafe_code)]
    pub unsafe fn from_fortran(handle: rsmpi::ffi::RSMPI_Fint) -> Result<Self, Error> {
        // SAFETY: the caller vouches for the number, and one that is none's is that of no communicator.
        unsafe { Self::from_raw(ffi::of_fortran(handle)?) }
    }

    fn new(raw: RawComm) -> Result<Self, Error> {
        let hosts = host::hosts(&raw)?.into();
        Self::on(raw, hosts)
    }

    /// Collective, with an error on all ranks or on none.
    fn on(raw: RawComm, hosts: Arc<[usize]>) -> Result<Self, Error> {
        let line = raw.all(LineType::new(raw.rank))?;
        let roll = (raw.size > 1).then(|| Roll::new(&raw)).transpose()?;
        let (send, recv) = (Lines::default(), Lines::default());
        let scratch = RefCell::new(Scratch { line, send, recv, operands: Vec::new() });
        let (can_put, devices) = Default::default();
        Ok(Self { roll, raw, hosts, scratch, piece: LONGEST, can_put, devices })
    }

    /// Cuts messages of flights made from now on into pieces of at most so many bytes, on all ranks alike. For
    /// tests of what otherwise takes messages of 2 GiB.
    #[doc(hidden)]
    pub fn with_pieces_of(mut self, bytes: usize) -> Self {
        assert!((1..=LONGEST).contains(&bytes), "pieces of {bytes} bytes");
        self.piece = bytes;
        self
    }

    /// Plays that ranks are on as many hosts as there are different numbers, one per rank, the same on all: ranks of
    /// different hosts do not look at each other's memory. For tests.
    #[doc(hidden)]
    pub fn on_hosts(mut self, hosts: &[usize]) -> Self {
        assert_eq!(hosts.len(), self.raw.size, "a number for every rank");
        let lowest = |host| hosts.iter().position(|other| other == host).expect("its own");
        self.hosts = hosts.iter().map(lowest).collect();
        self
    }

    /// Of the same ranks, with what is known of them.
    fn duplicate(&self) -> Result<Self, Error> {
        let (piece, can_put, devices) = (self.piece, self.can_put.clone(), self.devices.clone());
        let raw = self.raw.all(self.raw.dup())?;
        Ok(Self { piece, can_put, devices, ..Self::on(raw, self.hosts.clone())? })
    }
}

impl MpiComm {
    /// The collective, of memory of any kind.
    fn all_to_all(
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

impl Comm for MpiComm {
    fn rank(&self) -> usize {
        self.raw.rank
    }

    fn size(&self) -> usize {
        self.raw.size
    }

    fn name(&self) -> &'static str {
        "mpi"
    }

    /// Ends the job: nobody else can be told.
    fn abandon(&self) {
        if self.raw.size > 1 {
            abort(101);
        }
    }

    fn barrier(&self) -> Result<(), Error> {
        self.raw.barrier()
    }

    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), Error> {
        self.raw.allgather(mine, all)
    }

    fn allreduce(&self, how: Reduce, values: &mut [f64]) -> Result<(), Error> {
        let operands = &mut self.scratch.borrow_mut().operands;
        operands.clear();
        operands.extend_from_slice(values);
        self.raw.allreduce(how, operands, values)
    }

    fn alltoallv(&self, send: Parts<'_, &[u8]>, recv: Parts<'_, &mut [u8]>) -> Result<(), Error> {
        let (send, out) = (Bytes::Host(send.bytes), send.parts);
        self.all_to_all((send, out), (BytesMut::Host(recv.bytes), recv.parts))
    }

    fn alltoallv_device(
        &self,
        send: Parts<'_, &DeviceBuffer>,
        recv: Parts<'_, &DeviceBuffer>,
    ) -> Result<(), Error> {
        let (send, out) = (Bytes::DeviceBuffer(send.bytes), send.parts);
        self.all_to_all((send, out), (BytesMut::DeviceBuffer(recv.bytes), recv.parts))
    }

    fn reaches(&self, memory: &DeviceBuffer) -> Result<bool, Error> {
        // Found out by all ranks together, and so known to all or to none.
        let known = self.devices[0].get().filter(|_| !memory.on_host());
        if let Some(known) = known {
            return Ok(*known);
        }
        let found = opaque::messages(self, memory)?;
        if !memory.on_host() {
            let _ = self.devices[0].set(found);
        }
        Ok(found)
    }

    fn window_on(&self, memory: &[DeviceBuffer; 2]) -> Result<Option<Box<dyn RmaWindow>>, Error> {
        let device = !memory[0].on_host();
        if device && self.devices[1].get() == Some(&false) {
            return Ok(None);
        }
        let found = opaque::window(self, memory)?;
        if device {
            let _ = self.devices[1].set(found.is_some());
        }
        let rma = Rma::known(self)?;
        Ok(found.map(|window| Box::new(MpiWindow::on(rma, window)) as Box<dyn RmaWindow>))
    }

    fn reserve_alltoallv(&self, send: &[Part], recv: &[Part]) -> Result<(), Error> {
        let scratch = &mut *self.scratch.borrow_mut();
        scratch.send.set(send, self.raw.rank)?;
        scratch.recv.set(recv, self.raw.rank)
    }

    fn flight(&self) -> Result<Box<dyn Flight>, Error> {
        Ok(Box::new(MpiFlight::new(self.raw.dup()?, self.piece)))
    }

    fn host(&self, rank: usize) -> usize {
        self.hosts[rank]
    }

    fn node_memory(&self) -> Result<Option<Box<dyn NodeMemory>>, Error> {
        // Each step is agreed on, so that no rank is left waiting in the next.
        let own = self.hosts[self.raw.rank];
        let host = self.raw.all(self.raw.split(own, self.raw.rank))?;
        let ranks: Vec<_> = (0..self.raw.size).filter(|&rank| self.hosts[rank] == own).collect();
        let dup = self.raw.all(host.dup())?;
        let as_here = |error| numbered(error, &ranks);
        let comm = Self::on(dup, vec![0; host.size].into()).map_err(as_here);
        let comm = self.raw.all(comm)?;
        if ranks.len() == 1 {
            return Ok(None);
        }
        let host = Host::new(host).map_err(as_here)?;
        Ok(Some(Box::new(HostNodeMemory::new(host, Box::new(comm), ranks))))
    }

    fn sync(&self, well: bool) -> Result<Option<bool>, Error> {
        self.roll.as_ref().map(|roll| roll.call(well)).transpose()
    }

    fn window(&self) -> Result<Option<Box<dyn RmaWindow>>, Error> {
        // Found out by all ranks together, and so known to all or to none.
        let found = match self.can_put.get() {
            Some(true) => Ok(Rma::known(self)?),
            Some(false) => return Ok(None),
            None => Rma::try_out(self)?,
        };
        let _ = self.can_put.set(found.is_ok());
        let why = match found {
            Ok(rma) => return Ok(Some(Box::new(MpiWindow::new(rma)))),
            Err(why) => why,
        };
        if self.raw.rank == 0 {
            NO_PUTS.call_once(|| {
                log::warn!(
                    "this MPI cannot put into the memory of other ranks ({why}); messages are sent instead.{} \
                     All ranks of a host together may do otherwise, or another MPI",
                    remedy()
                );
            });
        }
        Ok(None)
    }

    fn dup(&self) -> Result<Box<dyn Comm>, Error> {
        Ok(Box::new(self.duplicate()?))
    }

    fn split(&self, color: usize, key: usize) -> Result<Box<dyn Comm>, Error> {
        let raw = self.raw.all(self.raw.split(color, key))?;
        let ranks = raw.numbers(self.raw.rank)?;
        let part = self.raw.all(Self::new(raw).map_err(|error| numbered(error, &ranks)))?;
        Ok(Box::new(Self { piece: self.piece, ..part }))
    }
}
