//! What makes messages of boxes, and boxes of messages.

use num_complex::Complex;

use crate::base::{Error, Real};
use crate::geometry::Transfer;

/// Makes messages out of boxes of an array and boxes out of messages. Packing and encoding are one pass
/// over memory, and so are decoding and unpacking. Neither allocates once both have run.
///
/// A box is a [`Transfer`] of elements of `width` real numbers each (1 or 2) between the array and a dense
/// sequence, in which batches come first and axes follow in their order.
pub trait Codec<T: Real>: Send + Sync {
    /// The most bytes that a message of so many real numbers can take: those that they take in memory.
    fn bound(&self, reals: usize) -> usize {
        reals * size_of::<T>()
    }

    /// The bytes of a message of so many elements of `width` real numbers each; `None` where that depends on the data:
    /// with [`Wire::Tolerance`](crate::Wire::Tolerance), [`Wire::Lossless`](crate::Wire::Lossless), and `Mantissa(0)`, which has no code for a NaN.
    fn fixed(&self, elements: usize, width: usize) -> Option<usize>;

    /// Whether [`Codec::unpack`] can read any part of a message, not only all of it in order.
    fn random_access(&self) -> bool {
        false
    }

    /// Writes the box of `src` to the front of `message`. The `step` is the distance of neighbouring values that
    /// [`Wire::Tolerance`](crate::Wire::Tolerance) can send, in units of the data, at most ([`Wire::step`](crate::Wire::step)); others do not look at it.
    ///
    /// # Panics
    /// If the message is shorter than [`Codec::fixed`], or [`Codec::bound`] where that is unknown; or the box reaches
    /// outside `src`.
    fn pack(
        &self,
        src: &[T],
        gather: &Transfer,
        width: usize,
        step: f64,
        message: &mut [u8],
    ) -> Packed;

    /// Reads a message, or with [`Codec::random_access`] a part of it, into a box of `dst`. After an error the box holds
    /// anything.
    ///
    /// # Errors
    /// [`BadMessage`], when the message is not one of this wire, precision, width and number of elements, has another
    /// length than it says, or does not decode. There is no checksum: a message that was damaged and still decodes
    /// gives wrong numbers.
    ///
    /// # Panics
    /// If the box reaches outside `dst`.
    fn unpack(
        &self,
        message: &[u8],
        scatter: &Transfer,
        width: usize,
        dst: &mut [T],
    ) -> Result<(), BadMessage>;
}

/// What became of a box.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Packed {
    /// Bytes of the message.
    pub bytes: usize,
    /// The sum over all real numbers of (decoded − original)², 0 if every bit arrives. Numbers that are not finite
    /// count nothing, as they arrive as such. In units of the data, hence infinite where errors are above 1e154, and 0
    /// where they are below 1e-162: what its square does not fit into `f64`.
    pub squared_error: f64,
}

/// A message that does not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadMessage {
    /// It is cut off, or goes on for too long.
    #[error("a message of {found} bytes, expected {expected}")]
    Length {
        /// Bytes it has.
        found: usize,
        /// Bytes it should have.
        expected: usize,
    },
    /// Its header is for something else.
    #[error("a message with {field} {found}, expected {expected}")]
    Header {
        /// What of it.
        field: &'static str,
        /// The value it has.
        found: u64,
        /// The value it should have.
        expected: u64,
    },
    /// What follows contradicts the header.
    #[error("a message whose {field} number {at} is {found}, expected {expected}")]
    Entry {
        /// Of which table.
        field: &'static str,
        /// Which entry.
        at: usize,
        /// What it holds.
        found: u64,
        /// What it should hold, in words.
        expected: &'static str,
    },
}

impl BadMessage {
    /// The error that `rank` reports for a message from rank `from`.
    pub fn at(self, rank: usize, from: usize) -> Error {
        let (found, expected) = match self {
            Self::Length { found, expected } => {
                return Error::Message { rank, from, found, expected };
            }
            Self::Header { field, found, expected } => {
                (format!("a message with {field} {found}"), expected.to_string())
            }
            Self::Entry { field, at, found, expected } => {
                (format!("a message whose {field} number {at} is {found}"), expected.to_owned())
            }
        };
        Error::Header { rank, from, found, expected }
    }
}

/// Copies elements of one or two real numbers. Where complex data passes through memory made for real data,
/// that may be one number too long for whole elements.
pub(crate) fn copy<T: Real>(transfer: &Transfer, width: usize, src: &[T], dst: &mut [T]) {
    if width == 2 {
        transfer.run(pairs(src), pairs_mut(dst));
    } else {
        transfer.run(src, dst);
    }
}

/// The complex numbers in memory made for real ones.
pub(super) fn pairs<T: Real>(reals: &[T]) -> &[Complex<T>] {
    bytemuck::cast_slice(&reals[..reals.len() / 2 * 2])
}

pub(super) fn pairs_mut<T: Real>(reals: &mut [T]) -> &mut [Complex<T>] {
    let whole = reals.len() / 2 * 2;
    bytemuck::cast_slice_mut(&mut reals[..whole])
}
