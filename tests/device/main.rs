//! All that is tested on CUDA devices. Where there is no GPU, each test prints why and passes.

#[path = "../common/mod.rs"]
mod common;
mod gpu;

mod calls;
mod fields;
mod ranks;
mod tune;
