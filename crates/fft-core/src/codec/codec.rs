//! The trait of codecs.

use num_complex::Complex;

use crate::base::{Error, Real};
use crate::geometry::Transfer;

/// Encodes boxes of an array as messages, and decodes them.
///
/// Packing and encoding are one pass over memory, as are decoding and unpacking. Only first calls
/// allocate. A box is a [`Transfer`] between the array and a dense sequence, batches first. An
/// element is `width` (1 or 2) reals.
pub trait Codec<T: Real>: Send + Sync {
    /// The most bytes of a message, which is the size of its numbers in memory.
    fn bound(&self, reals: usize) -> usize {
        reals * size_of::<T>()
    }

    /// The bytes of a message, or `None` if they depend on the data.
    ///
    /// They depend on it with [`Wire::Tolerance`](crate::Wire::Tolerance),
    /// [`Wire::Lossless`](crate::Wire::Lossless) and `Mantissa(0)`, which has no code for a NaN.
    fn fixed(&self, elements: usize, width: usize) -> Option<usize>;

    /// Whether [`Codec::unpack`] can read any part of a message.
    fn random_access(&self) -> bool {
        false
    }

    /// Encodes the box of `src` at the front of `message`.
    ///
    /// `step` is the largest step of [`Wire::Tolerance`](crate::Wire::Tolerance), in units of the
    /// data; other wires ignore it. Panics if the box reaches outside `src`, or `message` is
    /// shorter than [`Codec::fixed`] or, where that is unknown, [`Codec::bound`].
    fn pack(
        &self,
        src: &[T],
        gather: &Transfer,
        width: usize,
        step: f64,
        message: &mut [u8],
    ) -> Packed;

    /// Decodes a message, or with [`Codec::random_access`] a part of one, into the box of `dst`.
    ///
    /// There is no checksum: a damaged message that still decodes gives wrong numbers. After an
    /// error the content of the box is unspecified. Panics if the box reaches outside `dst`, or
    /// `message` does not begin at a multiple of the size of `T`.
    ///
    /// # Errors
    /// [`BadMessage`] unless it is a message of this wire, precision, width and length.
    fn unpack(
        &self,
        message: &[u8],
        scatter: &Transfer,
        width: usize,
        dst: &mut [T],
    ) -> Result<(), BadMessage>;

    /// Bytes of memory held.
    fn memory(&self) -> usize {
        0
    }
}

/// The result of [`Codec::pack`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Packed {
    /// Bytes of the message.
    pub bytes: usize,
    /// The sum of (decoded − original)² over all finite numbers, 0 if the encoding is lossless. It
    /// overflows or underflows for errors above 1e154 or below 1e-162.
    pub squared_error: f64,
}

/// A message that does not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadMessage {
    /// The message is cut off or too long.
    #[error("a message of {found} bytes, expected {expected}")]
    Length {
        /// Its bytes.
        found: usize,
        /// The expected bytes.
        expected: usize,
    },
    /// The header belongs to another message.
    #[error("a message with {field} {found}, expected {expected}")]
    Header {
        /// The field.
        field: &'static str,
        /// Its value.
        found: u64,
        /// The expected value.
        expected: u64,
    },
    /// A table contradicts the header.
    #[error("a message whose {field} number {at} is {found}, expected {expected}")]
    Entry {
        /// The table.
        field: &'static str,
        /// The entry.
        at: usize,
        /// Its value.
        found: u64,
        /// The valid values.
        expected: &'static str,
    },
}

impl BadMessage {
    /// The error of `rank` for a message from rank `from`.
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

/// Copies elements of one or two reals. A real array of odd length may hold complex data.
pub(crate) fn copy<T: Real>(transfer: &Transfer, width: usize, src: &[T], dst: &mut [T]) {
    if width == 2 {
        transfer.run(pairs(src), pairs_mut(dst));
    } else {
        transfer.run(src, dst);
    }
}

/// The complex numbers in a real array.
pub(super) fn pairs<T: Real>(reals: &[T]) -> &[Complex<T>] {
    bytemuck::cast_slice(&reals[..reals.len() / 2 * 2])
}

pub(super) fn pairs_mut<T: Real>(reals: &mut [T]) -> &mut [Complex<T>] {
    let whole = reals.len() / 2 * 2;
    bytemuck::cast_slice_mut(&mut reals[..whole])
}
