//! All tests of what this crate shows, with threads as ranks, but those of the tuner: they sleep
//! for so long as runs should take, and
//! want no busy peers.

#[path = "../../../fft-core/tests/core_tests/options.rs"]
mod options;
#[path = "../../../fft-core/tests/core_tests/tiling.rs"]
mod tiling;

mod calibrate;
mod desk;
mod device_programs;
mod emulator;
#[cfg(target_os = "linux")]
mod group;
mod hosts;
mod kway;
mod liar;
mod node_memory;
mod passes;
mod streaming;
mod threads;
mod together;
