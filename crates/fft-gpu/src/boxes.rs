//! Boxes as kernels see them, and how they are cut into tiles: `kernels/box.cuh`, the host's part.

use bytemuck::{Pod, Zeroable};
use fft_core::{DIMS, Transfer, View};

use crate::GpuError;

/// Threads of a block, each of which works out where one run of a tile's elements is.
const THREADS: usize = 128;
/// Bytes of neighbours in the source that a tile reads at least, where they are no neighbours in the message: two lines of
/// the second-level cache.
const LINE_BYTES: usize = 256;
/// Elements must be counted in 31 bits, as [`Divisor`] wants it.
const MOST_ELEMENTS: usize = (1 << 31) - 1;

/// Division by `divisor` as a multiplication and a shift, exact for numbers below 2^31.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Divisor {
    multiplier: u32,
    shift: u32,
}

impl Divisor {
    /// Of a divisor from 1 to 2^31 − 1 (Granlund and Montgomery, Division by invariant integers using multiplication,
    /// PLDI 1994): the multiplier is 2^shift / divisor, rounded up; its error does not reach the quotient.
    pub(crate) fn by(divisor: usize) -> Self {
        let shift = 31 + divisor.next_power_of_two().trailing_zeros();
        let multiplier = (1u128 << shift).div_ceil(divisor as u128) as u32;
        Self { multiplier, shift }
    }

    #[cfg(test)]
    fn of(self, n: usize) -> usize {
        ((n as u64 * u64::from(self.multiplier)) >> self.shift) as usize
    }
}

/// One side of a box, in elements.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Side {
    offset: u64,
    stride: [u32; DIMS],
    row: u32,
}

/// A box and its tiling. The fields are those of `Box` in `kernels/box.cuh`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Tiled {
    from: Side,
    to: Side,
    shape: [u32; DIMS],
    by: [Divisor; DIMS],
    elements: u32,
    first_tile: u32,
    inner: u32,
    low: u32,
    log_rows: u32,
    log_cols: u32,
    rows: u32,
    pitch: u32,
    tiles_down: Divisor,
    tiles_across: Divisor,
    down: u32,
    across: u32,
    log_run: u32,
    uneven: u32,
    wide: u32,
}

/// What a kernel needs of tiles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiling {
    /// Elements that must not be torn apart: a power of two, at most 256.
    pub(crate) quantum: usize,
    /// Whether tiles must be runs of the message.
    pub(crate) in_order: bool,
    /// Bytes of an element.
    pub(crate) bytes: usize,
    /// Which side may be accessed in units of 16 bytes.
    pub(crate) wide: Wide,
}

impl Tiling {
    /// Elements of a tile.
    pub(crate) fn tile(&self) -> usize {
        if self.bytes == 16 { 1024 } else { 2048 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wide {
    Neither,
    From,
    To,
}

/// A transfer with offsets added, in elements of some size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Placement {
    pub(crate) shape: [usize; DIMS],
    pub(crate) from: View,
    pub(crate) to: View,
}

impl Placement {
    /// A transfer whose arrays begin so many elements into their memory.
    pub(crate) fn new(transfer: &Transfer, from: usize, to: usize) -> Self {
        let shift = |view: View, by: usize| View { offset: view.offset + by, ..view };
        Self {
            shape: transfer.shape(),
            from: shift(transfer.source(), from),
            to: shift(transfer.destination(), to),
        }
    }

    pub(crate) fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// One more than the last place of a side.
    pub(crate) fn end(&self, view: &View) -> usize {
        if self.elements() == 0 {
            return 0;
        }
        view.offset
            + self.shape.iter().zip(view.stride).map(|(n, s)| (n - 1) * s).sum::<usize>()
            + 1
    }

    /// Whether so many elements that are neighbours in the message always are so on this side, at a multiple of as many.
    fn runs_of(&self, view: &View, many: usize) -> bool {
        view.stride[DIMS - 1] == 1
            && self.shape[DIMS - 1].is_multiple_of(many)
            && view.offset.is_multiple_of(many)
            && (0..DIMS - 1).all(|d| self.shape[d] == 1 || view.stride[d].is_multiple_of(many))
    }

    /// Whether [`Placement::joined`] can be had.
    pub(crate) fn joins(&self, many: usize) -> bool {
        self.runs_of(&self.from, many) && self.runs_of(&self.to, many)
    }

    /// The same with so many neighbours as one element.
    pub(crate) fn joined(mut self, many: usize) -> Self {
        self.shape[DIMS - 1] /= many;
        for view in [&mut self.from, &mut self.to] {
            view.offset /= many;
            view.stride[..DIMS - 1].iter_mut().for_each(|stride| *stride /= many);
        }
        self
    }

    /// The axis of which a tile has several rows: that of neighbours in the source, unless it is the last.
    fn row_axis(&self, tiling: &Tiling) -> Option<usize> {
        if tiling.in_order || self.from.stride[DIMS - 1] == 1 {
            return None;
        }
        let axis = (0..DIMS - 1).find(|&d| self.shape[d] > 1 && self.from.stride[d] == 1)?;
        let pitch: usize = self.shape[axis + 1..].iter().product();
        pitch.is_multiple_of(tiling.quantum).then_some(axis)
    }

    /// Cuts the box into tiles, of which the first has this number.
    ///
    /// # Errors
    /// [`GpuError::TooLarge`].
    pub(crate) fn tiled(&self, tiling: &Tiling, first_tile: usize) -> Result<Tiled, GpuError> {
        let within = |what, found: usize, expected: usize| match found <= expected {
            true => Ok(found as u32),
            false => Err(GpuError::TooLarge { what, found, expected }),
        };
        let elements = within("the number of elements of a box", self.elements(), MOST_ELEMENTS)?;
        let low = self.shape.iter().position(|n| *n != 1).unwrap_or(DIMS - 1);
        let (axis, tile) = (self.row_axis(tiling), tiling.tile());
        let (rows, pitch, log_rows) = match axis {
            None => (1, self.elements(), 0),
            Some(axis) => {
                let pitch: usize = self.shape[axis + 1..].iter().product();
                let wanted = (LINE_BYTES / tiling.bytes).max(tile / pitch.next_power_of_two());
                let rows =
                    wanted.min(self.shape[axis].next_power_of_two()).min(tile / tiling.quantum);
                (self.shape[axis], pitch, rows.max(1).trailing_zeros())
            }
        };
        let cols = tile >> log_rows;
        let (down, across) = (rows.div_ceil(1 << log_rows), pitch.div_ceil(cols).max(1));
        let run = cols.div_ceil(THREADS);
        let side = |view: &View| {
            let mut stride = [0; DIMS];
            for d in (0..DIMS).filter(|&d| self.shape[d] > 1) {
                stride[d] = within("the stride of a box", view.stride[d], u32::MAX as usize)?;
            }
            let row = axis.map_or(0, |axis| stride[axis]);
            Ok(Side { offset: view.offset as u64, stride, row })
        };
        let wide = |view| axis.is_none() && self.runs_of(view, 16 / tiling.bytes);
        Ok(Tiled {
            from: side(&self.from)?,
            to: side(&self.to)?,
            shape: self.shape.map(|n| n as u32),
            by: self.shape.map(|n| Divisor::by(n.max(1))),
            elements,
            first_tile: within("the number of tiles of a launch", first_tile, MOST_ELEMENTS)?,
            inner: axis.map_or(0, |axis| axis as u32 + 1),
            low: low as u32,
            log_rows,
            log_cols: cols.trailing_zeros(),
            rows: rows as u32,
            pitch: pitch as u32,
            tiles_down: Divisor::by(down),
            tiles_across: Divisor::by(across),
            down: down as u32,
            across: across as u32,
            log_run: run.trailing_zeros(),
            uneven: u32::from(!self.shape[DIMS - 1].is_multiple_of(run)),
            wide: u32::from(match tiling.wide {
                Wide::Neither => false,
                Wide::From => wide(&self.from),
                Wide::To => wide(&self.to),
            }),
        })
    }
}

impl Tiled {
    /// Where it begins in the source.
    pub(crate) fn source(&self) -> u64 {
        self.from.offset
    }

    /// Moves where it begins in the source.
    pub(crate) fn set_source(&mut self, offset: u64) {
        self.from.offset = offset;
    }

    /// How many tiles the box has.
    pub(crate) fn tiles(&self) -> usize {
        if self.elements == 0 {
            return 0;
        }
        let outer = self.elements / (self.rows * self.pitch);
        outer as usize * self.down as usize * self.across as usize
    }

    /// The number of elements.
    pub(crate) fn elements(&self) -> usize {
        self.elements as usize
    }
}

#[cfg(test)]
mod tests;
