//! One-sided communication that cannot be used wrongly.
//!
//! - MPI owns a [`Window`]'s memory. A window over a borrowed slice would be unsound: forgetting
//!   the window ends the borrow while puts still arrive.
//! - An epoch is a closure, not a guard, because a forgotten guard would never close it. The call
//!   returns after the epoch is closed, or ends the job where the closure panics or the library
//!   fails.
//! - Data to be put is borrowed for longer than that call. A window's own memory is accessible only
//!   outside of it.
//! - Elements are [`Pod`]: all bits that may arrive are valid.
//!
//! `docs/windows.md` of this crate shows what does not compile.
//!
//! ```
//! use fft_comm::mpi::{self, Rma, Window};
//! use fft_core::Comm;
//!
//! let library = mpi::init()?;
//! let world = library.world()?;
//! let Some(rma) = Rma::probe(&world)? else { return Ok(()) };
//! let mut window: Window<f64> = rma.window(2 * world.size())?;
//! let mine = [world.rank() as f64, 0.5];
//! let at = 2 * world.rank();
//! window.fence(|epoch| (0..world.size()).try_for_each(|to| epoch.put(to, at, &mine)))?;
//! assert_eq!(window.local()[..2], [0.0, 0.5]);
//! window.free()?;
//! # Ok::<(), fft_core::Error>(())
//! ```

use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use bytemuck::Pod;
use fft_core::{Comm, Epochs, Error, SLOT_ALIGN, Slot, agree};

use super::ffi::{self, RawEpoch, RawWindow};
use super::library::library;
use super::mpi_comm::MpiComm;

#[cfg(doctest)]
#[doc = include_str!("../../docs/windows.md")]
struct Windows;

/// The capability to put into the memory of other ranks, which not every MPI has on every machine.
pub struct Rma {
    comm: MpiComm,
}

/// Bytes that the probe puts, different ones on each rank.
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
    /// Tests whether the ranks of a communicator can put: in a small window, in both kinds of
    /// epoch. `None` on every rank if a step fails on any, or if the library confuses windows.
    /// Collective.
    ///
    /// # Errors
    /// [`Error::Transport`] when something else fails than putting.
    pub fn probe(comm: &MpiComm) -> Result<Option<Self>, Error> {
        Ok(Self::try_out(comm)?.ok())
    }

    /// For ranks that have passed the test. Collective.
    pub(super) fn known(comm: &MpiComm) -> Result<Self, Error> {
        Ok(Self { comm: comm.duplicate()? })
    }

    pub(super) fn rank(&self) -> usize {
        self.comm.rank()
    }

    /// A hint for the warning that ranks cannot put, if there is one.
    pub(super) fn remedy() -> &'static str {
        if library().starts_with("Open MPI v4") {
            " OMPI_MCA_osc=^ucx in the environment (mpirun --mca osc ^ucx) may repair it."
        } else {
            ""
        }
    }

    /// An error for libraries that confuse windows.
    ///
    /// Open MPI 4.1.4 keeps the state of a window in a file named after the host, the job and the
    /// number of the communicator. Disjoint communicators of a split have the same number, so that
    /// their windows collide on one host. MPICH 5.0.2 with `MPI_THREAD_MULTIPLE` confuses the
    /// acknowledgements of windows of several threads: an assertion fails, or a thread hangs.
    fn sound(comm: &MpiComm) -> Result<(), Error> {
        let refuse =
            |text| Err(Error::Transport { rank: comm.rank(), call: "MPI_Win_allocate", text });
        // Collective, so before the checks, which may differ between processes.
        let here = comm.raw.host()?.size;
        if ffi::any_thread() && library().starts_with("MPICH") {
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
        // Each step is agreed on, so that no rank is left waiting in the next.
        let mut window = match rma.window::<u8>(2) {
            Ok(window) => window,
            Err(why) => return Ok(Err(why)),
        };
        for how in [Epochs::Fence, Epochs::Flush] {
            let tried = window.try_out(how);
            if let Err(why) = agree(&rma.comm, tried) {
                // Leaked, as freeing it might hang.
                std::mem::forget(window);
                return Ok(Err(why));
            }
        }
        Ok(window.free().map(|()| rma))
    }

    /// A window with `len` zeroed elements on this rank. Other ranks may have other lengths.
    /// Collective.
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
        // A rank without memory would leave the others waiting in MPI. Untouched memory costs
        // nothing.
        agree(&comm, Slot::new(bytes, comm.rank()).map(drop))?;
        let made = RawWindow::allocate(&comm.raw, bytes, comm.piece);
        // Freeing is collective, so if one rank has nothing to free, the windows of the others
        // leak.
        let mut raw = agree(&comm, made.map(ManuallyDrop::new))?;
        agree(&comm, raw.sync(&comm.raw))?;
        Ok(Window { raw: ManuallyDrop::into_inner(raw), comm, elements: PhantomData })
    }
}

/// Memory of this rank that the other ranks put elements into.
///
/// Dropping it frees it, which is **collective**: all ranks drop their windows in the same order.
/// In a panic, or after MPI has been finalised, it leaks. [`Window::free`] reports errors.
pub struct Window<T> {
    raw: RawWindow,
    comm: MpiComm,
    elements: PhantomData<T>,
}

/// An epoch of a [`Window`]; data to be put is borrowed for `'env`.
pub struct Epoch<'w, 'env, T> {
    raw: &'w RawEpoch<'w, 'env>,
    elements: PhantomData<fn(T)>,
}

impl<T: Pod> Window<T> {
    /// Opens an epoch with `MPI_Win_fence`, calls `body`, and closes the epoch: every put of any
    /// rank has arrived. Collective.
    ///
    /// A panic in `body` ends the job, and so does a failure to open or close the epoch, because
    /// the other ranks wait and the network may still read the data.
    ///
    /// # Errors
    /// The same on every rank, after the epoch has been closed: the error of the lowest rank whose
    /// `body` failed.
    pub fn fence<'env, R>(
        &mut self,
        body: impl for<'e> FnOnce(&'e Epoch<'e, 'env, T>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.epoch(Epochs::Fence, body)
    }

    /// As [`Window::fence`], with `MPI_Win_flush_all` and barriers. The window stays locked
    /// (`MPI_Win_lock_all`) from the first such epoch on. Collective.
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

    /// Frees the memory. Collective.
    ///
    /// # Errors
    /// The same on every rank: [`Error::OnRank`] when the library fails.
    pub fn free(self) -> Result<(), Error> {
        let rank = self.comm.rank();
        agree(&self.comm, self.raw.free(rank))
    }
}

impl Window<u8> {
    /// The window and its communicator, for an exchange.
    pub(super) fn into_raw(self) -> (RawWindow, MpiComm) {
        (self.raw, self.comm)
    }

    fn try_out(&mut self, how: Epochs) -> Result<(), Error> {
        let (rank, size) = (self.comm.rank(), self.comm.size());
        let sample = |rank: usize| &SAMPLE[rank % 62..][..2];
        self.local_mut().fill(0);
        let put = |epoch: &RawEpoch<'_, 'static>| epoch.put((rank + 1) % size, 0, sample(rank));
        self.raw.trial(&self.comm.raw, how, put)?;
        let expected = sample((rank + size - 1) % size);
        if self.local() == expected {
            return Ok(());
        }
        let text = format!("{:?} arrived instead of {expected:?}", self.local());
        Err(Error::Transport { rank, call: "MPI_Put", text })
    }
}

impl<'env, T: Pod> Epoch<'_, 'env, T> {
    /// Puts `data` into the window of rank `to`, from its element `at` on. It has arrived when the
    /// epoch is closed. Puts of one epoch must not overlap; if they do, the bytes there are
    /// undefined.
    ///
    /// # Errors
    /// On this rank alone: [`Error::Argument`], in bytes, when the data does not fit;
    /// [`Error::Transport`] when the library fails.
    pub fn put(&self, to: usize, at: usize, data: &'env [T]) -> Result<(), Error> {
        self.raw.put(to, at.saturating_mul(size_of::<T>()), bytemuck::cast_slice(data))
    }
}
