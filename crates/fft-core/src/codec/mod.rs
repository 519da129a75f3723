//! How a message is represented in flight.
//!
//! A message of any [`Wire`] but [`Wire::Raw`] is a header, tables and blocks of 64 numbers, unless the numbers
//! themselves are no longer; `docs/wire.md` has every byte of it. Read this module in the order in which a message is made:
//!
//! 1. `frame.rs` gathers a box piece by piece into a scratch that stays in cache and writes the header;
//! 2. a scheme turns a piece into codes: `rounded.rs` (shorter floating-point formats), `bits.rs` (integers with a step
//!    for every block) and `tolerance.rs` (integers with one step for all), both by `integers.rs`; `lossless.rs`;
//! 3. `codes.rs` puts 64 codes of a few bits each into bytes.

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
pub use wire::Wire;
