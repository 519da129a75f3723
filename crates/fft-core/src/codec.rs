//! How a message is represented in flight.

use std::fmt;

use num_complex::Complex;

use crate::{Error, Real, Transfer};

/// The representation of messages on the wire. Without a choice every bit arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wire {
    /// The numbers as they are in memory.
    #[default]
    Raw,
}

impl Wire {
    /// The codec that makes and reads this representation.
    pub fn codec<T: Real>(self) -> Box<dyn Codec<T>> {
        match self {
            Self::Raw => Box::new(Raw),
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Raw => "raw",
        })
    }
}

/// Makes messages out of boxes of an array and boxes out of messages. Packing and encoding are one pass
/// over memory, and so are decoding and unpacking.
///
/// A box is a [`Transfer`] of elements of `width` real numbers each (1 or 2) between the array and a dense
/// sequence, in which batches come first and axes follow in the order of the receiver's memory.
pub trait Codec<T: Real>: Send + Sync {
    /// The most bytes that a message of so many real numbers can take.
    fn bound(&self, reals: usize) -> usize;

    /// Whether [`Codec::unpack`] can read any part of a message, not only all of it in order.
    fn random_access(&self) -> bool {
        false
    }

    /// Writes the box of `src` to the front of `message` and returns how many bytes it took.
    ///
    /// # Panics
    /// If the message is shorter than [`Codec::bound`].
    fn pack(&self, src: &[T], gather: &Transfer, width: usize, message: &mut [u8]) -> usize;

    /// Reads a message, or with [`Codec::random_access`] a part of it, into a box of `dst`.
    ///
    /// # Errors
    /// [`BadMessage`], when the message is too short or does not decode.
    fn unpack(
        &self,
        message: &[u8],
        scatter: &Transfer,
        width: usize,
        dst: &mut [T],
    ) -> Result<(), BadMessage>;
}

/// A message that does not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadMessage {
    /// Bytes it has.
    pub found: usize,
    /// Bytes it should have.
    pub expected: usize,
}

impl BadMessage {
    /// The error that `rank` reports for a message from rank `from`.
    pub(crate) fn at(self, rank: usize, from: usize) -> Error {
        Error::Message { rank, from, found: self.found, expected: self.expected }
    }
}

/// Copies elements of one or two real numbers. Where complex data passes through memory made for real data,
/// that may be one number too long for whole elements.
pub(crate) fn copy<T: Real>(transfer: &Transfer, width: usize, src: &[T], dst: &mut [T]) {
    if width == 2 {
        let (from, to) = (src.len() / 2 * 2, dst.len() / 2 * 2);
        let (src, dst): (&[Complex<T>], &mut [Complex<T>]) =
            (bytemuck::cast_slice(&src[..from]), bytemuck::cast_slice_mut(&mut dst[..to]));
        transfer.run(src, dst);
    } else {
        transfer.run(src, dst);
    }
}

/// [`Wire::Raw`].
struct Raw;

impl<T: Real> Codec<T> for Raw {
    fn bound(&self, reals: usize) -> usize {
        reals * size_of::<T>()
    }

    fn random_access(&self) -> bool {
        true
    }

    fn pack(&self, src: &[T], gather: &Transfer, width: usize, message: &mut [u8]) -> usize {
        let bytes = Codec::<T>::bound(self, gather.elements() * width);
        copy(gather, width, src, bytemuck::cast_slice_mut(&mut message[..bytes]));
        bytes
    }

    fn unpack(
        &self,
        message: &[u8],
        scatter: &Transfer,
        width: usize,
        dst: &mut [T],
    ) -> Result<(), BadMessage> {
        let expected = Codec::<T>::bound(self, scatter.reach() * width);
        if message.len() < expected {
            return Err(BadMessage { found: message.len(), expected });
        }
        copy(scatter, width, bytemuck::cast_slice(&message[..expected]), dst);
        Ok(())
    }
}
