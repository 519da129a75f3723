//! Chunks: how a rank's transforms before an exchange are divided, so that copy engines move one
//! chunk while later ones are transformed.
//!
//! A chunk is a part of one array of a batch, or several whole ones. All ranks divide the batch,
//! and the same axis, which is not transformed, into as many parts.

use std::ops::Range;

use super::group::FftGroup;
use crate::base::Precision;
use crate::geometry::DynBrick;
use crate::problem::Kind;
use crate::redistribute::LocalRead;

/// Chunks begin at multiples of this, so that they are aligned.
const STEP: usize = 4;
/// The least bytes of a chunk that copy engines move, and the most chunks. The first pair is for
/// two ranks with GPUs of their own, the second for more. Found by measurement.
///
/// Each of more than two ranks is read by the others in turn. Many short copies get out of step,
/// and then two share a link.
const DEVICE_CHUNKS: [(usize, usize); 2] = [(32 << 20, 16), (256 << 20, 4)];

/// The number of chunks in which copy engines move a rank's `bytes`. 1 means that they are not
/// divided. Ranks have GPUs of their own.
pub const fn device_chunks(bytes: usize, ranks: usize) -> usize {
    let (least, most) = DEVICE_CHUNKS[(ranks > 2) as usize];
    match bytes / least {
        0 => 1,
        chunks if chunks < most => chunks,
        _ => most,
    }
}

/// How a batch of arrays is divided: into parts of whole arrays, and each array along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunks {
    /// Parts of the batch: as many as arrays, if these are divided.
    pub parts: usize,
    /// The axis along which arrays are divided.
    pub axis: usize,
    /// Parts of an array along the axis.
    pub count: usize,
}

impl Chunks {
    /// The number of chunks.
    pub fn all(&self) -> usize {
        self.parts * self.count
    }

    /// The arrays of chunk `number` in a batch of `batch`.
    pub fn arrays(&self, batch: usize, number: usize) -> Range<usize> {
        let part = number / self.count;
        batch * part / self.parts..batch * (part + 1) / self.parts
    }

    /// The indices of a chunk along an axis of this length.
    pub fn range(&self, len: usize, number: usize) -> Range<usize> {
        let begin = |number: usize| {
            if number == self.count { len } else { len * number / self.count / STEP * STEP }
        };
        let number = number % self.count;
        begin(number)..begin(number + 1)
    }

    /// The chunks of a box of a rank's brick, and the arrays of each.
    pub fn of_read(
        &self,
        read: &LocalRead,
        brick: &DynBrick,
        batch: usize,
    ) -> Vec<(LocalRead, Range<usize>)> {
        let axis = self.axis;
        let chunk = |number| {
            let Range { start, end } = self.range(brick.len(axis), number);
            let part = read.within(axis, brick.lo[axis] + start..brick.lo[axis] + end);
            (part, self.arrays(batch, number))
        };
        (0..self.all()).map(chunk).collect()
    }

    /// The best division of a group's arrays, with axes of memory in this order, between `ranks`
    /// ranks. `None` for small arrays, and if chunks would not be transformed by one plan each.
    pub fn of(
        group: &FftGroup,
        precision: Precision,
        order: &[usize],
        ranks: usize,
    ) -> Option<Self> {
        let bytes = group.reals().map(|reals| reals * precision.bytes());
        let most = device_chunks(bytes[0].min(bytes[1]), ranks);
        let (batch, place) = (group.lens[0][0], group.divided_place());
        let parts = batch.clamp(1, most);
        let len = place.map_or(0, |place| group.lens[0][place]);
        let count = (most / parts).min(len / STEP).max(1);
        let chunks = Self { parts, axis: order[place.unwrap_or(1) - 1], count };
        (chunks.all() > 1).then_some(chunks)
    }
}

impl FftGroup {
    /// The place in memory of the axis that is divided: the slowest that is not transformed.
    pub fn divided_place(&self) -> Option<usize> {
        let place = match &self.passes[..] {
            passes if passes.iter().all(|(place, _)| *place != 1) => 1,
            [(1, pass)] if pass.kind != Kind::R2C => 2,
            _ => return None,
        };
        (place < self.lens[0].len()).then_some(place)
    }
}
