//! Memory of a process that the others write to, without a way to get it wrong.
//!
//! What makes one-sided communication unsafe is that others read and write memory while its owner's code goes on. Here
//!
//! - MPI owns a [`Window`]'s memory. Over a borrowed slice a window would be unsound: forgetting it ends the borrow while
//!   puts still arrive.
//! - An epoch is a closure, not a guard. A guard's destructor closes the epoch, and a guard that is forgotten never does,
//!   while the borrows of what was put end. The call that runs a closure does not return before the epoch is closed, and
//!   ends the job when it cannot be: when the closure panics, or the library fails.
//! - What is put is borrowed from outside of that call; a window's own memory can be reached only outside of it.
//! - Elements are [`Pod`]: whatever bits arrive are a value.
//!
//! ```
//! use fft_comm::mpi::{self, Rma, Window};
//! use fft_core::Comm;
//!
//! let library = mpi::init()?;
//! let world = library.world()?;
//! let Some(rma) = Rma::probe(&world)? else { return Ok(()) };
//! let mut window: Window<f64> = rma.window(2 * world.size())?;
//! // Every rank tells every other its number.
//! let mine = [world.rank() as f64, 0.5];
//! window.fence(|epoch| {
//!     (0..world.size()).try_for_each(|to| epoch.put(to, 2 * world.rank(), &mine))
//! })?;
//! assert_eq!(window.local()[..2], [0.0, 0.5]);
//! window.free()?;
//! # Ok::<(), fft_core::Error>(())
//! ```
//!
//! Each of the following does not compile, and the example after it, which differs in that alone, does.
//!
//! A put outside of an epoch:
//! ```compile_fail,E0599
//! # fn f(window: &mut fft_comm::mpi::Window<f64>) -> Result<(), fft_core::Error> {
//! window.put(0, 0, &[1.0])
//! # }
//! ```
//! ```
//! # fn f(window: &mut fft_comm::mpi::Window<f64>) -> Result<(), fft_core::Error> {
//! window.fence(|epoch| epoch.put(0, 0, &[1.0]))
//! # }
//! ```
//! A look at local memory inside of one:
//! ```compile_fail,E0502
//! # fn f(window: &mut fft_comm::mpi::Window<f64>) -> Result<(), fft_core::Error> {
//! window.flush(|epoch| epoch.put(0, 0, &[1.0]).map(|()| window.local()[0])).map(drop)
//! # }
//! ```
//! ```
//! # fn f(window: &mut fft_comm::mpi::Window<f64>) -> Result<(), fft_core::Error> {
//! window.flush(|epoch| epoch.put(0, 0, &[1.0])).map(|()| window.local()[0]).map(drop)
//! # }
//! ```
//! Or one taken before and used after:
//! ```compile_fail,E0502
//! # fn f(window: &mut fft_comm::mpi::Window<f64>) -> Result<f64, fft_core::Error> {
//! let before = window.local();
//! window.fence(|epoch| epoch.put(0, 0, &[1.0]))?;
//! Ok(before[0])
//! # }
//! ```
//! ```
//! # fn f(window: &mut fft_comm::mpi::Window<f64>) -> Result<f64, fft_core::Error> {
//! window.fence(|epoch| epoch.put(0, 0, &[1.0]))?;
//! let after = window.local();
//! Ok(after[0])
//! # }
//! ```
//! Putting what dies before the epoch is closed:
//! ```compile_fail,E0597
//! # fn f(window: &mut fft_comm::mpi::Window<f64>, x: f64) -> Result<(), fft_core::Error> {
//! window.fence(|epoch| {
//!     let data = vec![x];
//!     epoch.put(0, 0, &data)
//! })
//! # }
//! ```
//! ```
//! # fn f(window: &mut fft_comm::mpi::Window<f64>, x: f64) -> Result<(), fft_core::Error> {
//! let data = vec![x];
//! window.fence(|epoch| {
//!     epoch.put(0, 0, &data)
//! })
//! # }
//! ```
//! Or what changes before:
//! ```compile_fail,E0506
//! # fn f(window: &mut fft_comm::mpi::Window<f64>, mut x: [f64; 1]) -> Result<(), fft_core::Error> {
//! window.fence(|epoch| {
//!     epoch.put(0, 0, &x)?;
//!     x[0] = 2.0;
//!     Ok(())
//! })
//! # }
//! ```
//! ```
//! # fn f(window: &mut fft_comm::mpi::Window<f64>, mut x: [f64; 1]) -> Result<(), fft_core::Error> {
//! window.fence(|epoch| {
//!     epoch.put(0, 0, &x)
//! })?;
//! x[0] = 2.0;
//! Ok(())
//! # }
//! ```
//! Using a window that has been freed:
//! ```compile_fail,E0382
//! # fn f(window: fft_comm::mpi::Window<f64>) -> Result<f64, fft_core::Error> {
//! window.free()?;
//! let first = window.local()[0];
//! # Ok(first)
//! # }
//! ```
//! ```
//! # fn f(window: fft_comm::mpi::Window<f64>) -> Result<f64, fft_core::Error> {
//! let first = window.local()[0];
//! window.free()?;
//! # Ok(first)
//! # }
//! ```
//! Elements for which not all bits are values:
//! ```compile_fail,E0277
//! # fn f(rma: &fft_comm::mpi::Rma) -> Result<(), fft_core::Error> {
//! rma.window::<bool>(1).map(drop)
//! # }
//! ```
//! ```compile_fail,E0277
//! # fn f(rma: &fft_comm::mpi::Rma) -> Result<(), fft_core::Error> {
//! rma.window::<char>(1).map(drop)
//! # }
//! ```
//! ```compile_fail,E0277
//! # fn f(rma: &fft_comm::mpi::Rma) -> Result<(), fft_core::Error> {
//! rma.window::<&'static u8>(1).map(drop)
//! # }
//! ```
//! ```
//! # fn f(rma: &fft_comm::mpi::Rma) -> Result<(), fft_core::Error> {
//! rma.window::<u8>(1).map(drop)
//! # }
//! ```
//! An epoch that goes on after its closure:
//! ```compile_fail
//! # fn f(window: &mut fft_comm::mpi::Window<f64>) -> Result<(), fft_core::Error> {
//! let epoch = window.fence(|epoch| Ok(epoch))?;
//! epoch.put(0, 0, &[1.0])
//! # }
//! ```
//! ```
//! # fn f(window: &mut fft_comm::mpi::Window<f64>) -> Result<(), fft_core::Error> {
//! window.fence(|epoch| Ok(epoch.put(0, 0, &[1.0])))?
//! # }
//! ```

use std::any::Any;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;
use fft_core::{
    Comm, DeviceBuffer, Epochs, Error, PinnedMemory, RmaWindow, SLOT_ALIGN, Slot, agree,
};

use super::MpiComm;
use super::ffi::{self, RawEpoch, RawPair, RawWindow};

/// The capability to put bytes into the memory of other ranks, which not every MPI has on every machine.
pub struct Rma {
    comm: MpiComm,
}

/// Bytes that the probe puts; what they are differs from rank to rank.
static SAMPLE: [u8; 64] = {
    let mut bytes = [0; 64];
    let mut i = 0;
    while i < 64 {
        bytes[i] = 0xa5 ^ i as u8;
        i += 1;
    }
    bytes
};

impl Rma {
    /// Finds out whether the ranks of a communicator can put: makes a small window, puts a few bytes to the next rank in
    /// both kinds of epoch, and frees it. `None` on every rank when any of that fails on any; over Open MPI also for
    /// a part of a host's ranks, whose windows it mixes up with those of another part; and over MPICH with
    /// `MPI_THREAD_MULTIPLE`, with which it mixes up those of several threads. Collective; costs as much as making a small
    /// window and four barriers.
    ///
    /// # Errors
    /// [`Error::Transport`] when something else fails than putting.
    pub fn probe(comm: &MpiComm) -> Result<Option<Self>, Error> {
        Ok(Self::try_out(comm)?.ok())
    }

    /// For ranks of which it is known that they can. Collective.
    pub(super) fn known(comm: &MpiComm) -> Result<Self, Error> {
        Ok(Self { comm: comm.duplicate()? })
    }

    /// Whether windows can be relied upon here, as far as is known of the library.
    ///
    /// Open MPI (4.1.4) keeps state of a window in a file named after the host, the job and the number of the communicator.
    /// Communicators without a rank in common, as a split makes them, have the same number, and on one host the same
    /// file: windows that are made at once fail, or would be one. MPICH (5.0.2) with `MPI_THREAD_MULTIPLE` mixes up which of
    /// the windows of several threads an acknowledgement is for: an assertion of its own fails, or a thread waits for ever.
    pub(super) fn sound(comm: &MpiComm) -> Result<(), Error> {
        let refuse =
            |text| Err(Error::Transport { rank: comm.rank(), call: "MPI_Win_allocate", text });
        // Collective, and some processes may have been initialised for several threads and others not.
        let here = comm.raw.host()?.size;
        if ffi::any_thread() && super::library().starts_with("MPICH") {
            let text = "MPICH mixes up windows of several threads; initialise MPI with less than \
                        MPI_THREAD_MULTIPLE to have windows";
            return refuse(text.into());
        }
        let all = std::env::var("OMPI_COMM_WORLD_LOCAL_SIZE").ok().and_then(|n| n.parse().ok());
        let Some(all) = all.filter(|&all: &usize| here > 1 && here != all) else { return Ok(()) };
        refuse(format!(
            "{here} of the {all} ranks of a host are in the communicator, and Open MPI \
             mixes up the windows of several such communicators"
        ))
    }

    /// As [`Rma::probe`], with the reason why not.
    pub(super) fn try_out(comm: &MpiComm) -> Result<Result<Self, Error>, Error> {
        if let Err(why) = agree(comm, Self::sound(comm)) {
            return Ok(Err(why));
        }
        let rma = agree(comm, Self::known(comm))?;
        // Every step is agreed on, so that no rank is left waiting in the next.
        let mut window = match rma.window::<u8>(2) {
            Ok(window) => window,
            Err(why) => return Ok(Err(why)),
        };
        for how in [Epochs::Fence, Epochs::Flush] {
            let tried = window.try_out(how);
            if let Err(why) = agree(&rma.comm, tried) {
                // Who knows what freeing it would wait for.
                std::mem::forget(window);
                return Ok(Err(why));
            }
        }
        Ok(window.free().map(|()| rma))
    }

    /// A window with `len` zeroed elements on this rank; other ranks may have other numbers of them. Collective; costs
    /// several small collectives and a pass over the memory, so make few and keep them.
    ///
    /// # Errors
    /// The same on every rank: [`Error::OnRank`] when memory is short on one, or the library fails.
    ///
    /// # Panics
    /// If `T` must be aligned to more than 64 bytes.
    pub fn window<T: Pod>(&self, len: usize) -> Result<Window<T>, Error> {
        let comm = agree(&self.comm, self.comm.duplicate())?;
        assert!(align_of::<T>() <= SLOT_ALIGN, "windows are aligned to {SLOT_ALIGN} bytes");
        let bytes = len.saturating_mul(size_of::<T>());
        // A rank without memory would leave the others waiting in MPI. Untouched memory costs nothing.
        agree(&comm, Slot::new(bytes, comm.rank()).map(drop))?;
        let made = RawWindow::allocate(&comm.raw, bytes, comm.piece);
        Window::met(made, comm)
    }

    /// A window on the second of these pieces, from the first of which this rank puts: bytes that cannot be looked at.
    /// Collective.
    pub(super) fn window_on(&self, memory: &[DeviceBuffer; 2]) -> Result<Window<u8>, Error> {
        let comm = agree(&self.comm, self.comm.duplicate())?;
        let made = RawWindow::create(&comm.raw, memory.clone(), comm.piece);
        Window::met(made, comm)
    }
}

/// Memory of this rank that the other ranks put elements into.
///
/// Dropping it frees it, which is **collective**: all ranks drop their windows in the same order. With a panic under way, or
/// after MPI has been finalised, it leaks instead. [`Window::free`] says whether all went well.
pub struct Window<T> {
    raw: RawWindow,
    comm: MpiComm,
    elements: PhantomData<T>,
}

/// An epoch of a [`Window`]; what is put is borrowed for `'env`.
pub struct Epoch<'w, 'env, T> {
    raw: &'w RawEpoch<'w, 'env>,
    elements: PhantomData<fn(T)>,
}

impl<T: Pod> Window<T> {
    /// Tells the other ranks of it. Collective.
    fn met(made: Result<RawWindow, Error>, comm: MpiComm) -> Result<Self, Error> {
        // Freeing takes all ranks: where some have nothing to free, the others' windows leak.
        let mut raw = agree(&comm, made.map(ManuallyDrop::new))?;
        agree(&comm, raw.sync(&comm.raw))?;
        Ok(Self { raw: ManuallyDrop::into_inner(raw), comm, elements: PhantomData })
    }

    /// Opens an epoch on all ranks, calls `body`, and returns when everything that any rank put has arrived: with
    /// `MPI_Win_fence` before and after. Collective; costs two barriers, what is put, and a small allreduce.
    ///
    /// # Errors
    /// The same on every rank, after the epoch has been closed: that of the lowest rank whose `body` failed. What others
    /// put has arrived, and the window can be used again.
    ///
    /// A panic in `body` ends the job, as do failures to open or close the epoch: the other ranks wait, and the network may
    /// still read what was put.
    pub fn fence<'env, R>(
        &mut self,
        body: impl for<'e> FnOnce(&'e Epoch<'e, 'env, T>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.epoch(Epochs::Fence, body)
    }

    /// As [`Window::fence`], by flushing: the window is open to all from the first such epoch on (`MPI_Win_lock_all`), puts
    /// are flushed, and barriers separate them from what is done locally. Collective; costs the same.
    ///
    /// # Errors
    /// As [`Window::fence`].
    pub fn flush<'env, R>(
        &mut self,
        body: impl for<'e> FnOnce(&'e Epoch<'e, 'env, T>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.epoch(Epochs::Flush, body)
    }

    fn epoch<'env, R>(
        &mut self,
        how: Epochs,
        body: impl for<'e> FnOnce(&'e Epoch<'e, 'env, T>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let run = |raw: &RawEpoch<'_, 'env>| body(&Epoch { raw, elements: PhantomData });
        let result = self.raw.epoch(&self.comm.raw, how, run);
        agree(&self.comm, result.and_then(|result| result))
    }

    /// This rank's elements.
    pub fn local(&self) -> &[T] {
        bytemuck::cast_slice(self.raw.local())
    }

    /// This rank's elements, to be written.
    pub fn local_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(self.raw.local_mut())
    }

    /// Gives the memory back. Collective.
    ///
    /// # Errors
    /// The same on every rank: [`Error::OnRank`] when the library fails.
    pub fn free(self) -> Result<(), Error> {
        let rank = self.comm.rank();
        agree(&self.comm, self.raw.free(rank))
    }
}

impl Window<u8> {
    /// An epoch of what outlives whatever the library may still do, so that every failure is a value. Collective.
    pub(super) fn trial(
        &mut self,
        how: Epochs,
        body: impl FnOnce(&RawEpoch<'_, 'static>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.raw.trial(&self.comm.raw, how, body)
    }

    /// Whether two bytes put to the next rank arrive there.
    fn try_out(&mut self, how: Epochs) -> Result<(), Error> {
        let (rank, size) = (self.comm.rank(), self.comm.size());
        let sample = |rank: usize| &SAMPLE[rank % 62..][..2];
        self.local_mut().fill(0);
        self.trial(how, |epoch| epoch.put((rank + 1) % size, 0, sample(rank)))?;
        let expected = sample((rank + size - 1) % size);
        if self.local() == expected {
            return Ok(());
        }
        let text = format!("{:?} arrived instead of {expected:?}", self.local());
        Err(Error::Transport { rank, call: "MPI_Put", text })
    }
}

impl<'env, T: Pod> Epoch<'_, 'env, T> {
    /// Writes `data` into the window of rank `to`, from its element `at` on. It is there when the epoch has been closed;
    /// puts of one epoch must not overlap, or what arrives where they do is any of them, or parts of several.
    ///
    /// # Errors
    /// [`Error::Argument`], counting in bytes, when the data does not fit there, before anything is sent;
    /// [`Error::Transport`] when the library fails. Both on this rank alone: it may go on, and returns them at the end.
    pub fn put(&self, to: usize, at: usize, data: &'env [T]) -> Result<(), Error> {
        self.raw.put(to, at.saturating_mul(size_of::<T>()), bytemuck::cast_slice(data))
    }
}

/// Windows of bytes for an exchange, made when their size is known, or one on memory of the exchange's.
pub(super) struct MpiWindow {
    rma: Rma,
    pins: Option<Arc<dyn PinnedMemory>>,
    /// What pins the memory: dropped before it.
    pinned: Vec<Box<dyn Any + Send + Sync>>,
    memory: Memory,
}

enum Memory {
    None,
    Pair(RawPair, MpiComm),
    On(Window<u8>),
}

impl MpiWindow {
    pub(super) fn new(rma: Rma) -> Self {
        Self { rma, pins: None, pinned: Vec::new(), memory: Memory::None }
    }

    pub(super) fn on(rma: Rma, window: Window<u8>) -> Self {
        Self { rma, pins: None, pinned: Vec::new(), memory: Memory::On(window) }
    }
}

impl RmaWindow for MpiWindow {
    fn pin(&mut self, pins: Arc<dyn PinnedMemory>) {
        self.pins = Some(pins);
    }

    fn make(&mut self, bytes: usize) -> Result<(), Error> {
        self.pinned.clear();
        match std::mem::replace(&mut self.memory, Memory::None) {
            Memory::None => {}
            Memory::Pair(raw, comm) => agree(&comm, raw.free(comm.rank()))?,
            Memory::On(window) => window.free()?,
        }
        let [mut one, mut other] = [self.rma.window::<u8>(bytes)?, self.rma.window(bytes)?];
        if let Some(pins) = &self.pins {
            let both = [one.local_mut(), other.local_mut()];
            self.pinned = both.into_iter().filter_map(|bytes| pins.pin(bytes)).collect();
        }
        self.memory = Memory::Pair(RawPair::new([one.raw, other.raw]), one.comm);
        Ok(())
    }

    fn epoch<'env>(
        &mut self,
        how: Epochs,
        body: &mut fft_core::InEpoch<'_, 'env>,
    ) -> Result<(), Error> {
        match &mut self.memory {
            Memory::None => {
                let (rank, text) = (self.rma.comm.rank(), "no memory has been made".into());
                Err(Error::Transport { rank, call: "epoch", text })
            }
            Memory::Pair(raw, comm) => {
                raw.epoch(&comm.raw, how, |epoch, before| body(epoch, before))?
            }
            Memory::On(window) => {
                window.raw.epoch(&window.comm.raw, how, |epoch| body(epoch, &[]))?
            }
        }
    }

    fn local(&self) -> &[u8] {
        match &self.memory {
            Memory::None => &[],
            Memory::Pair(raw, _) => raw.local(),
            Memory::On(window) => window.local(),
        }
    }
}

impl<'env> fft_core::Epoch<'env> for RawEpoch<'_, 'env> {
    fn put(&self, to: usize, at: usize, bytes: &'env [u8]) -> Result<(), Error> {
        RawEpoch::put(self, to, at, bytes)
    }

    fn put_opaque(&self, to: usize, at: usize, from: Range<usize>) -> Result<(), Error> {
        RawEpoch::put_opaque(self, to, at, from)
    }
}
