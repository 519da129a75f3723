//! The bytes of messages, by [`Wire`].
//!
//! A message is a header, tables and blocks of 64 numbers, or just the numbers if these are
//! shorter. `docs/wire.md` is the specification. The files in the order in which a message is made:
//!
//! 1. `frame.rs` gathers a box piece by piece into a cached scratch and writes the header.
//! 2. A scheme makes codes of a piece: `rounded.rs` (shorter floating-point formats), `bits.rs`
//!    (integers, a step per block), `tolerance.rs` (integers, one step), `lossless.rs` (Zstandard).
//! 3. `codes.rs` packs 64 codes of a few bits each into bytes.

mod bits;
pub(crate) mod codec;
mod codes;
mod edge;
mod frame;
mod header;
mod integers;
mod lossless;
mod number;
mod raw;
mod rounded;
mod scale;
mod tolerance;
mod wire;

#[cfg(test)]
mod tests;

pub use codec::{BadMessage, Codec, Packed};
pub(crate) use wire::CodecRate;
pub use wire::Wire;
