//! [`Wire::Lossless`](super::Wire::Lossless): bytes of equal significance, compressed by Zstandard.

use std::sync::Mutex;

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::DCtx;

use super::codec::BadMessage;
use super::frame::{Piece, Scheme, Shape};
use super::number::{from_word, word};
use crate::base::{Real, locked};

/// Elements that are compressed together.
const SPAN: usize = 4096;
/// The fastest level: random numbers compress by the statistics of bytes, not by repetitions.
const LEVEL: i32 = 1;

/// The body: for each span and byte of a real, lowest first, a 16-bit length; then the Zstandard
/// frames. A length equal to the span's means bytes that did not shrink.
pub(super) struct Lossless(Mutex<Contexts>);

struct Contexts {
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
    plane: Vec<u8>,
}

impl Default for Lossless {
    fn default() -> Self {
        let compressor = Compressor::new(LEVEL).expect("memory for a compressor");
        let decompressor = Decompressor::new().expect("memory for a decompressor");
        Self(Mutex::new(Contexts { compressor, decompressor, plane: vec![0; 2 * SPAN] }))
    }
}

impl<T: Real> Scheme<T> for Lossless {
    const PIECE: usize = SPAN;

    fn varies(&self) -> bool {
        true
    }

    fn memory(&self) -> usize {
        let mut contexts = locked(&self.0);
        let Contexts { compressor, plane, .. } = &mut *contexts;
        // The decompressor is as large as any.
        compressor.context_mut().sizeof() + DCtx::create().sizeof() + size_of_val(&**plane)
    }

    fn fixed(&self, shape: Shape) -> usize {
        shape.elements.div_ceil(SPAN) * size_of::<T>() * size_of::<u16>()
    }

    #[inline(always)]
    fn encode(&self, piece: Piece, reals: &[T], body: &mut [u8], end: &mut usize) -> Option<f64> {
        let mut contexts = locked(&self.0);
        let Contexts { compressor, plane, .. } = &mut *contexts;
        let plane = &mut plane[..reals.len()];
        for byte in 0..size_of::<T>() {
            for (out, real) in plane.iter_mut().zip(reals) {
                *out = (word(*real) >> (8 * byte)) as u8;
            }
            // The frame must be smaller than the plane, and the message smaller than the numbers.
            let room = (plane.len() - 1).min(body.len() - *end);
            let frame = &mut body[*end..][..room];
            let len = match compressor.compress_to_buffer(plane, frame) {
                Ok(len) => len,
                Err(_) => {
                    body.get_mut(*end..*end + plane.len())?.copy_from_slice(plane);
                    plane.len()
                }
            };
            *end += len;
            let entry = piece.first / SPAN * size_of::<T>() + byte;
            body[2 * entry..][..2].copy_from_slice(&(len as u16).to_le_bytes());
        }
        (*end < body.len()).then_some(0.0)
    }

    #[inline(always)]
    fn decode(
        &self,
        piece: Piece,
        body: &[u8],
        end: &mut usize,
        reals: &mut [T],
    ) -> Result<(), BadMessage> {
        let mut contexts = locked(&self.0);
        let Contexts { decompressor, plane, .. } = &mut *contexts;
        let plane = &mut plane[..reals.len()];
        reals.fill(T::default());
        for byte in 0..size_of::<T>() {
            let entry = piece.first / SPAN * size_of::<T>() + byte;
            let len = usize::from(u16::from_le_bytes([body[2 * entry], body[2 * entry + 1]]));
            let bad = |expected| BadMessage::Entry {
                field: "length",
                at: entry,
                found: len as u64,
                expected,
            };
            let Some(frame) = body.get(*end..*end + len) else {
                return Err(bad("no more than what is left of the message"));
            };
            if len == plane.len() {
                plane.copy_from_slice(frame);
            } else if decompressor.decompress_to_buffer(frame, plane).ok() != Some(plane.len()) {
                return Err(bad("that of a Zstandard frame with one byte per number"));
            }
            for (real, part) in reals.iter_mut().zip(&*plane) {
                *real = from_word(word(*real) | u64::from(*part) << (8 * byte));
            }
            *end += len;
        }
        Ok(())
    }
}
