//! All unsafe code of this crate: calls into the driver and cuFFT, launches, device memory.
#![allow(unsafe_code)]

mod block;
mod columns;
mod cufft;
mod driver;
mod event;
mod foreign;
mod gathering;
mod launch;
mod memory;
mod nvrtc;
mod peer_get;
mod peers;
mod pinned;
mod rank_exports;
mod rank_memory;
mod shared_arrays;
mod slots;
mod spectral;

pub(crate) use block::{Block, Owned, device_buffer};
pub(crate) use columns::{Columns, run_columns};
pub use cufft::FftPlan;
pub(crate) use cufft::links;
pub use driver::driver_is_present;
pub(crate) use event::CudaEvent;
pub use foreign::{borrow, borrow_stream, keeping_context};
pub(crate) use gathering::Gathering;
pub(crate) use launch::{
    NoiseSource, after_trig, before_trig, run_decode, run_distance, run_encode, run_energy,
    run_noise, run_transfer, scale,
};
pub use memory::{DeviceMemory, Lent, LentMut, lend, lend_mut, numbers, numbers_mut};
pub(crate) use nvrtc::{compiled, compiles};
pub(crate) use peer_get::{ChunkEvents, PeerGets};
pub(crate) use peers::{Peers, connect, identity, joined};
pub(crate) use pinned::{Pages, Pinned};
pub(crate) use rank_exports::{BLOCKS, MOST_CHUNKS, Peer, RankExports};
pub(crate) use rank_memory::RankMemory;
pub(crate) use shared_arrays::SharedArrays;
pub use shared_arrays::SharedSlice;
pub(crate) use slots::{DeviceSlot, SlotMemory};
pub(crate) use spectral::{
    Operands, SystemsKernel, SystemsMemory, by_wavenumbers, derivatives, products, run_systems,
};
