//! Codecs of all wires with a header: gathering, scattering, and the raw fallback.

use std::ops::Range;
use std::sync::Mutex;

use super::codec::{BadMessage, Codec, Packed, pairs, pairs_mut};
use super::codes::BLOCK;
use super::header::{self, HEADER, Known};
use super::number::{from_word, word};
use crate::base::{Real, locked};
use crate::geometry::Transfer;

/// The number of elements of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) elements: usize,
    /// Reals per element.
    pub(super) width: usize,
}

impl Shape {
    pub(super) fn reals(self) -> usize {
        self.elements * self.width
    }

    /// Blocks of 64. Real and imaginary parts have blocks of their own, next to each other.
    pub(super) fn blocks(self) -> usize {
        self.elements.div_ceil(BLOCK) * self.width
    }
}

/// A part of a message from the element `first` on, a multiple of [`Scheme::PIECE`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) shape: Shape,
    pub(super) first: usize,
    pub(super) step: f64,
}

/// Elements that are encoded together by default. They fit into the first-level cache.
pub(super) const PIECE: usize = 1024;

/// Encodes numbers as the body of a message.
pub(super) trait Scheme<T: Real>: Send + Sync {
    /// Elements that are encoded together: a multiple of 64.
    const PIECE: usize = PIECE;

    /// Whether the length of the message depends on the data.
    fn varies(&self) -> bool {
        false
    }

    /// Bytes of the body in front of those that depend on the data.
    fn fixed(&self, shape: Shape) -> usize;

    /// Encodes a piece and returns the sum of its squared errors.
    ///
    /// Appends data of variable length at `end`. A scheme that [varies](Scheme::varies) returns
    /// `None` when the body would not be shorter than the numbers.
    fn encode(&self, piece: Piece, reals: &[T], body: &mut [u8], end: &mut usize) -> Option<f64>;

    /// Decodes a piece from a body of at least [`Scheme::fixed`] bytes.
    fn decode(
        &self,
        piece: Piece,
        body: &[u8],
        end: &mut usize,
        reals: &mut [T],
    ) -> Result<(), BadMessage>;

    /// Bytes of memory held.
    fn memory(&self) -> usize {
        0
    }
}

/// A scheme as a codec. Boxes are gathered and scattered in pieces that stay in cache.
pub(super) struct Frame<T, S> {
    code: u64,
    scheme: S,
    /// The instruction set. Loops are compiled for several, with identical results.
    pub(super) arch: pulp::Arch,
    scratch: Mutex<Vec<T>>,
}

impl<T: Real, S: Scheme<T>> Frame<T, S> {
    pub(super) fn new(code: u64, scheme: S) -> Self {
        let scratch = Mutex::new(vec![T::default(); 2 * S::PIECE]);
        Self { code, scheme, arch: pulp::Arch::new(), scratch }
    }

    fn known(&self, shape: Shape) -> Known {
        Known {
            code: self.code,
            real: size_of::<T>() as u8,
            width: shape.width as u8,
            elements: shape.elements,
        }
    }

    /// The bytes of a message, if they do not depend on the data.
    fn exact(&self, shape: Shape) -> Option<usize> {
        let (raw, least) = (raw_bytes::<T>(shape), HEADER + self.scheme.fixed(shape));
        (!self.scheme.varies() || least >= raw).then_some(least.min(raw))
    }

    /// Encodes a message, or returns `None` when it would not be shorter than the numbers.
    fn encode(
        &self,
        gather: &Transfer,
        shape: Shape,
        step: f64,
        src: &[T],
        message: &mut [u8],
    ) -> Option<Packed> {
        if self.exact(shape) == Some(raw_bytes::<T>(shape)) {
            return None;
        }
        let mut end = self.scheme.fixed(shape);
        let (head, body) = message.split_at_mut(HEADER);
        header::write(self.known(shape), head);
        let mut scratch = locked(&self.scratch);
        let mut squared_error = 0.0;
        for (part, piece) in pieces::<T, S>(shape, step) {
            let len = part.len() * shape.width;
            let reals = match gather.source_run(&part) {
                Some(at) => &src[at * shape.width..][..len],
                None => {
                    let reals = &mut scratch[..len];
                    gather_part(gather, shape.width, part, src, reals);
                    &*reals
                }
            };
            let encode = Encode { scheme: &self.scheme, piece, reals, body, end: &mut end };
            squared_error += self.arch.dispatch(encode)?;
        }
        Some(Packed { bytes: HEADER + end, squared_error })
    }
}

/// The pieces of a message, with their elements.
fn pieces<T: Real, S: Scheme<T>>(
    shape: Shape,
    step: f64,
) -> impl Iterator<Item = (Range<usize>, Piece)> {
    (0..shape.elements).step_by(S::PIECE).map(move |first| {
        let part = first..shape.elements.min(first + S::PIECE);
        (part, Piece { shape, first, step })
    })
}

fn gather_part<T: Real>(
    gather: &Transfer,
    width: usize,
    part: Range<usize>,
    src: &[T],
    reals: &mut [T],
) {
    match width {
        2 => gather.gather(part, pairs(src), pairs_mut(reals)),
        _ => gather.gather(part, src, reals),
    }
}

fn scatter_part<T: Real>(
    scatter: &Transfer,
    width: usize,
    part: Range<usize>,
    reals: &[T],
    dst: &mut [T],
) {
    match width {
        2 => scatter.scatter(part, pairs(reals), pairs_mut(dst)),
        _ => scatter.scatter(part, reals, dst),
    }
}

impl<T: Real, S: Scheme<T>> Codec<T> for Frame<T, S> {
    fn fixed(&self, elements: usize, width: usize) -> Option<usize> {
        if self.scheme.varies() { None } else { self.exact(Shape { elements, width }) }
    }

    fn memory(&self) -> usize {
        let scratch = locked(&self.scratch);
        size_of_val(&**scratch) + self.scheme.memory()
    }

    fn pack(
        &self,
        src: &[T],
        gather: &Transfer,
        width: usize,
        step: f64,
        message: &mut [u8],
    ) -> Packed {
        let shape = Shape { elements: gather.elements(), width };
        let room = self.exact(shape).unwrap_or(raw_bytes::<T>(shape));
        let message = &mut message[..room];
        if let Some(packed) = self.encode(gather, shape, step, src, message) {
            return packed;
        }
        let mut scratch = locked(&self.scratch);
        for (part, piece) in pieces::<T, S>(shape, step) {
            let reals = &mut scratch[..part.len() * width];
            gather_part(gather, width, part, src, reals);
            put_words(reals, &mut message[piece.first * width * size_of::<T>()..]);
        }
        Packed { bytes: room, squared_error: 0.0 }
    }

    fn unpack(
        &self,
        message: &[u8],
        scatter: &Transfer,
        width: usize,
        dst: &mut [T],
    ) -> Result<(), BadMessage> {
        let shape = Shape { elements: scatter.elements(), width };
        let (found, raw_bytes) = (message.len(), raw_bytes::<T>(shape));
        let exact = self.exact(shape);
        if found > raw_bytes {
            return Err(BadMessage::Length { found, expected: exact.unwrap_or(raw_bytes) });
        }
        let raw = exact.unwrap_or(found) == raw_bytes;
        let body = if raw { message } else { header::read(self.known(shape), message)? };
        let mut end = if raw { 0 } else { self.scheme.fixed(shape) };
        let least = exact.unwrap_or(HEADER + end);
        if found < least || exact.is_some_and(|exact| found > exact) {
            return Err(BadMessage::Length { found, expected: least });
        }
        let mut scratch = locked(&self.scratch);
        for (part, piece) in pieces::<T, S>(shape, 0.0) {
            let len = part.len() * width;
            let mut read = |reals: &mut [T]| {
                if raw {
                    get_words(&body[piece.first * width * size_of::<T>()..], reals);
                    return Ok(());
                }
                let end = &mut end;
                self.arch.dispatch(Decode { scheme: &self.scheme, piece, body, end, reals })
            };
            match scatter.destination_run(&part) {
                Some(at) => read(&mut dst[at * width..][..len])?,
                None => {
                    let reals = &mut scratch[..len];
                    read(reals)?;
                    scatter_part(scatter, width, part, reals, dst);
                }
            }
        }
        if raw || end == body.len() {
            Ok(())
        } else {
            Err(BadMessage::Length { found, expected: HEADER + end })
        }
    }
}

fn raw_bytes<T>(shape: Shape) -> usize {
    shape.reals() * size_of::<T>()
}

/// A call of [`Scheme::encode`], compiled for several instruction sets. Closures are not.
struct Encode<'a, T, S> {
    scheme: &'a S,
    piece: Piece,
    reals: &'a [T],
    body: &'a mut [u8],
    end: &'a mut usize,
}

impl<T: Real, S: Scheme<T>> pulp::NullaryFnOnce for Encode<'_, T, S> {
    type Output = Option<f64>;

    #[inline(always)]
    fn call(self) -> Option<f64> {
        self.scheme.encode(self.piece, self.reals, self.body, self.end)
    }
}

/// A call of [`Scheme::decode`], likewise.
struct Decode<'a, T, S> {
    scheme: &'a S,
    piece: Piece,
    body: &'a [u8],
    end: &'a mut usize,
    reals: &'a mut [T],
}

impl<T: Real, S: Scheme<T>> pulp::NullaryFnOnce for Decode<'_, T, S> {
    type Output = Result<(), BadMessage>;

    #[inline(always)]
    fn call(self) -> Result<(), BadMessage> {
        self.scheme.decode(self.piece, self.body, self.end, self.reals)
    }
}

/// Writes numbers as they are, little-endian.
fn put_words<T: Real>(reals: &[T], out: &mut [u8]) {
    for (out, real) in out.chunks_exact_mut(size_of::<T>()).zip(reals) {
        out.copy_from_slice(&word(*real).to_le_bytes()[..size_of::<T>()]);
    }
}

fn get_words<T: Real>(bytes: &[u8], reals: &mut [T]) {
    for (real, bytes) in reals.iter_mut().zip(bytes.chunks_exact(size_of::<T>())) {
        let mut word = [0; 8];
        word[..size_of::<T>()].copy_from_slice(bytes);
        *real = from_word(u64::from_le_bytes(word));
    }
}
