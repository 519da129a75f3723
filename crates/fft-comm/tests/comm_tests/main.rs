//! All tests of what this crate shows, with threads as ranks, but those of the tuner: they sleep
//! for so long as runs should take, and
//! want no busy peers.

mod calibrate;
mod kway;
mod node_memory;
mod streaming;
mod threads;
mod together;
