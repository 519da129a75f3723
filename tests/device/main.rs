//! Tests on CUDA devices. Without a GPU they print why and pass.

#[path = "../common/mod.rs"]
mod common;
mod gpu;
#[path = "../common/subarrays.rs"]
mod subarrays;

mod calibrate;
mod calls;
mod fields;
mod ranks;
mod trace;
mod tune;
mod walls;
