//! Every call into CUDA that is not safe by itself, and all unsafe code of this crate: loading (`modules.rs`), launches (`launch.rs`), cuFFT
//! (`cufft.rs`), memory, and what others own (`foreign.rs`).
#![allow(unsafe_code)]

mod cufft;
mod event;
mod foreign;
mod gathering;
mod launch;
mod memory;
mod message_slots;
mod modules;
mod peer_get;
mod peers;
mod pinned;
mod shared_arrays;

pub(crate) use cufft::{FftReal, Handle, Many, Run, Span, links};
pub(crate) use event::Event;
pub use foreign::{borrow, borrow_stream, keeping_context};
pub(crate) use gathering::Gathering;
pub(crate) use launch::{
    after_trig, before_trig, gradient, poisson, queue_words, run_decode, run_encode, run_energy,
    run_transfer, scale,
};

pub(crate) use memory::{Block, Owned, Slot, device_buffer};
pub use memory::{DeviceMemory, Lent, LentMut, lend, lend_mut, numbers, numbers_mut};
pub(crate) use message_slots::{Inbox, Outbox};
pub(crate) use modules::{Kernel, Modules, Source};
pub(crate) use peer_get::{PeerGets, Place};
pub(crate) use peers::{BLOCKS, Estate, Peer, Peers, connect, identity, joined};
pub(crate) use pinned::{Pages, Pinned};
pub(crate) use shared_arrays::SharedArrays;
pub use shared_arrays::SharedSlice;

use std::sync::OnceLock;

use cudarc::driver::DriverError;

use crate::base::GpuError;

/// Whether the CUDA driver library can be loaded here. Everything else of CUDA panics where it cannot, so this is
/// asked first.
///
/// ```
/// // Without a driver the answer is no; it is not a panic.
/// println!("CUDA driver: {}", fft_gpu::driver_is_present());
/// ```
pub fn driver_is_present() -> bool {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: it only tries to open the driver library by its usual names. Opening runs the library's
    // initialisers, which NVIDIA's driver supports at any time and from any thread.
    *PRESENT.get_or_init(|| unsafe { cudarc::driver::sys::is_culib_present() })
}

/// Turns what the driver says into an error that says what was tried.
pub(crate) fn tried(what: &'static str) -> impl Fn(DriverError) -> GpuError {
    move |why| GpuError::Driver { what, why: why.to_string() }
}
