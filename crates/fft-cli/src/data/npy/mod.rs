//! NumPy's `.npy` files, read and written by brick: each rank moves its own box of the array.
//!
//! `Header::open` and `read_brick` read. `Output::create` on one rank, `write_brick` on every rank
//! and `Output::commit` on the first one write. No function communicates. An error is a text
//! without the path, which the caller adds.

mod dtype;
mod header;
mod item;
mod read;
mod runs;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use dtype::Dtype;
pub(crate) use header::Header;
pub(crate) use item::Item;
pub(crate) use read::read_brick;
pub(crate) use write::{Output, write_brick};

#[cfg(target_endian = "big")]
compile_error!("bricks go between file and memory as they are, and the files are little-endian");
