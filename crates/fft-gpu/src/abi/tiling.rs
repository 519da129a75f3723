//! How boxes are cut into tiles: the host's part of `kernels/box.cuh`.
//!
//! ```text
//! for each box:
//!     where the source's contiguous axis is the message's last one:
//!         each tile is a run of the message
//!     otherwise, with rows along the source's contiguous axis where the rules allow it:
//!         each tile has 2^log_rows rows of cols elements, whole lines of memory on both sides
//!         where rows cut through a quantum: rows are skewed to its multiples
//!     otherwise:
//!         each tile is a run that is folded over several rows
//! ```

use fft_core::{DIMS, Transfer, View};

use super::boxes::{BoxSide, TileRecord, TiledBox};
use super::divisor::{Divisor, MOST_ELEMENTS};
use crate::base::GpuError;

const TILE_BYTES: usize = 16 << 10;
/// The most contiguous parts of a tile whose places a kernel keeps.
const PLACES: usize = 256;
/// The most contiguous units of 16 bytes: one for each thread of a block.
const UNITS: usize = 128;
/// Marks a side whose units are not contiguous.
const APART: u32 = 32;
/// The least contiguous bytes of the source that a row of a tile reads: two cache lines.
const LINE_BYTES: usize = 256;
/// The longest rows that are folded although they could be cut, and elements of skewed columns.
pub(crate) const SHORT: usize = 128;
// Rows of a skewed tile are lines of 128 bytes: `Skewed::LINE` of `kernels/columns.cuh`.
const _: () = assert!(TILE_BYTES / SHORT == 128 && 2 * SHORT <= PLACES);

/// Which tiles a kernel supports in addition to tiles of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rows {
    One,
    /// Runs of the message that span several rows.
    Folded,
    /// Any; a quantum that spans rows is in one tile.
    Once,
    /// Any; a quantum that spans rows is in every tile that has a part of it.
    Twice,
}

/// How a box is cut into tiles.
#[derive(Clone, Copy, Debug)]
enum Cutting {
    /// Runs of the message.
    Run,
    /// Runs that span at most `height` rows along `axis`.
    Folded { axis: usize, height: usize },
    /// Tiles of `rows` rows along `axis`; `skew` is the quantum less one if rows cut it, or 0.
    Rows { axis: usize, rows: usize, skew: usize },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TileRules {
    /// Elements that are coded together: a power of two, at most 256.
    pub(crate) quantum: usize,
    /// Supported tiles.
    pub(crate) rows: Rows,
    pub(crate) bytes: usize,
}

impl TileRules {
    pub(crate) fn tile(&self) -> usize {
        TILE_BYTES / self.bytes
    }
}

/// The most rows that are not cut if they cut a quantum, because most of a tile would be empty.
pub(crate) const fn few(bytes: usize) -> usize {
    TILE_BYTES / bytes / SHORT / 2
}

/// A transfer with offsets added, in elements of some size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Placement {
    pub(crate) shape: [usize; DIMS],
    pub(crate) from: View,
    pub(crate) to: View,
}

impl Placement {
    /// A transfer whose arrays begin `from` and `to` elements into their buffers.
    pub(crate) fn new(transfer: &Transfer, from: usize, to: usize) -> Self {
        let shift = |view: View, by: usize| View { offset: view.offset + by, ..view };
        Self {
            shape: transfer.shape(),
            from: shift(transfer.source(), from),
            to: shift(transfer.destination(), to),
        }
    }

    pub(crate) fn reversed(self) -> Self {
        Self { from: self.to, to: self.from, ..self }
    }

    pub(crate) fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// One more than the last element of a side.
    pub(crate) fn end(&self, view: &View) -> usize {
        if self.elements() == 0 {
            return 0;
        }
        view.offset
            + self.shape.iter().zip(view.stride).map(|(n, s)| (n - 1) * s).sum::<usize>()
            + 1
    }

    /// Whether groups of `many` elements along an axis are contiguous and aligned on this side.
    fn contiguous(&self, view: &View, axis: usize, many: usize) -> bool {
        view.stride[axis] == 1
            && self.shape[axis].is_multiple_of(many)
            && view.offset.is_multiple_of(many)
            && (0..DIMS)
                .all(|d| d == axis || self.shape[d] == 1 || view.stride[d].is_multiple_of(many))
    }

    /// The same along the last axis of the message.
    fn runs_of(&self, view: &View, many: usize) -> bool {
        self.contiguous(view, DIMS - 1, many)
    }

    /// The logarithm of the contiguous units of 16 bytes in rows of `cols` elements, or [`APART`].
    fn units(&self, view: &View, bytes: usize, cols: usize) -> u32 {
        if self.elements() == 0 {
            return APART;
        }
        let wide = 16 / bytes;
        let even = 1 << self.shape[DIMS - 1].trailing_zeros();
        let run = cols.min(UNITS * wide).min(even);
        if self.runs_of(view, wide) && cols / run <= PLACES {
            (run / wide).trailing_zeros()
        } else {
            APART
        }
    }

    /// Whether this fills one run of the destination, with source strides of at most `apart`.
    pub(crate) fn packs(&self, apart: usize) -> bool {
        self.end(&self.to) - self.to.offset == self.elements()
            && self.from.stride[DIMS - 1] <= apart
    }

    /// Whether [`Placement::joined`] applies.
    pub(crate) fn joins(&self, many: usize) -> bool {
        self.runs_of(&self.from, many) && self.runs_of(&self.to, many)
    }

    /// The same with `many` contiguous elements as one.
    pub(crate) fn joined(mut self, many: usize) -> Self {
        self.shape[DIMS - 1] /= many;
        for view in [&mut self.from, &mut self.to] {
            view.offset /= many;
            view.stride[..DIMS - 1].iter_mut().for_each(|stride| *stride /= many);
        }
        self
    }

    /// The stride of an axis in the message.
    fn pitch(&self, axis: usize) -> usize {
        self.shape[axis + 1..].iter().product()
    }

    /// Tiles with rows along an axis, where possible.
    fn rows(&self, axis: usize, rules: &TileRules) -> Option<Cutting> {
        let (tile, pitch) = (rules.tile(), self.pitch(axis));
        if pitch.is_multiple_of(rules.quantum) {
            let rows = (LINE_BYTES / rules.bytes).max(tile / pitch.next_power_of_two());
            let rows = rows.min(UNITS * 16 / rules.bytes).min(tile / rules.quantum);
            let rows = rows.min(self.shape[axis].next_power_of_two());
            return Some(Cutting::Rows { axis, rows, skew: 0 });
        }
        let rows = tile / SHORT;
        // If quanta are read twice, a row of a tile has one quantum less.
        let most = if rules.rows == Rows::Twice { SHORT / 2 } else { SHORT };
        let cut = pitch > SHORT && rules.quantum <= most && self.shape[axis] > few(rules.bytes);
        cut.then_some(Cutting::Rows { axis, rows, skew: rules.quantum - 1 })
    }

    /// The cutting: with rows along the source's contiguous axis, unless that is the last.
    fn cutting(&self, rules: &TileRules) -> Cutting {
        if self.elements() == 0 || rules.rows == Rows::One || self.from.stride[DIMS - 1] == 1 {
            return Cutting::Run;
        }
        let contiguous = |&d: &usize| self.shape[d] > 1 && self.from.stride[d] == 1;
        let Some(axis) = (0..DIMS - 1).find(contiguous) else { return Cutting::Run };
        let rows = match rules.rows {
            Rows::One | Rows::Folded => None,
            Rows::Once | Rows::Twice => self.rows(axis, rules),
        };
        rows.unwrap_or_else(|| {
            let pitch = self.pitch(axis);
            // All but one element of the first row may be before the tile.
            let height = (rules.tile() + pitch - 1).div_ceil(pitch);
            let fits = pitch + height <= PLACES;
            if fits { Cutting::Folded { axis, height } } else { Cutting::Run }
        })
    }

    /// Cuts the box, which is item number `item`, into tiles.
    pub(crate) fn tiled(
        &self,
        rules: &TileRules,
        item: u32,
        tiles: &mut Vec<TileRecord>,
    ) -> Result<TiledBox, GpuError> {
        let elements = self.elements();
        GpuError::at_most("the number of elements of a box", elements, MOST_ELEMENTS)?;
        let cut = TileCut::new(self, rules);
        let tiled = cut.record(rules.bytes)?;
        cut.push_tiles(item, tiles);
        Ok(tiled)
    }
}

/// The sizes of a box's tiles.
struct TileCut<'p> {
    placement: &'p Placement,
    /// The axis of a tile's rows.
    axis: Option<usize>,
    /// The axis of a tile's rows, or of the rows that it is folded over.
    along: Option<usize>,
    log_rows: u32,
    skew: usize,
    height: usize,
    /// Rows of the box, and elements of each.
    rows: usize,
    pitch: usize,
    /// Columns of a tile, from one tile to the next, and of all tiles.
    cols: usize,
    step: usize,
    whole: usize,
}

impl<'p> TileCut<'p> {
    fn new(placement: &'p Placement, rules: &TileRules) -> Self {
        let (axis, along, log_rows, skew, height) = match placement.cutting(rules) {
            Cutting::Run => (None, None, 0, 0, 0),
            Cutting::Folded { axis, height } => (None, Some(axis), 0, 0, height),
            Cutting::Rows { axis, rows, skew } => {
                (Some(axis), Some(axis), rows.trailing_zeros(), skew, 0)
            }
        };
        let (rows, pitch) = match axis {
            Some(axis) => (placement.shape[axis], placement.pitch(axis)),
            None => (1, placement.elements()),
        };
        let cols = rules.tile() >> log_rows;
        let (step, whole) = match rules.rows {
            Rows::Twice if skew > 0 => (cols - skew - 1, pitch),
            _ => (cols, pitch.next_multiple_of(skew + 1)),
        };
        Self { placement, axis, along, log_rows, skew, height, rows, pitch, cols, step, whole }
    }

    /// Elements of a row of the box, also if tiles are folded over rows.
    fn length(&self) -> usize {
        self.along.map_or(self.pitch, |axis| self.placement.pitch(axis))
    }

    fn side(&self, view: &View) -> Result<BoxSide, GpuError> {
        let mut stride = [0; DIMS];
        for d in (0..DIMS).filter(|&d| self.placement.shape[d] > 1) {
            GpuError::at_most("the stride of a box", view.stride[d], u32::MAX as usize)?;
            stride[d] = view.stride[d] as u32;
        }
        let row = self.axis.map_or(0, |axis| stride[axis]);
        Ok(BoxSide { offset: view.offset as u64, stride, row })
    }

    /// The logarithms of contiguous units of 16 bytes, in the source and in the destination.
    fn units(&self, bytes: usize) -> (u32, u32) {
        let Self { placement, cols, .. } = *self;
        let (wide, high) = (16 / bytes, 1 << self.log_rows);
        if self.skew > 0 || self.height > 0 {
            // Elements are moved one by one.
            return (APART, APART);
        }
        let Some(axis) = self.axis else {
            let units = |view| placement.units(view, bytes, cols);
            return (units(&placement.from), units(&placement.to));
        };
        let found = placement.contiguous(&placement.from, axis, wide) && high >= wide;
        let from = if found && cols <= PLACES { (high / wide).trailing_zeros() } else { APART };
        let to = if high >= wide { placement.units(&placement.to, bytes, cols) } else { APART };
        (from, to)
    }

    /// The box as kernels read it.
    fn record(&self, bytes: usize) -> Result<TiledBox, GpuError> {
        let Placement { shape, from, to } = self.placement;
        let (log_from, log_to) = self.units(bytes);
        Ok(TiledBox {
            from: self.side(from)?,
            to: self.side(to)?,
            shape: shape.map(|n| n as u32),
            by: shape.map(|n| Divisor::by(n.max(1))),
            elements: self.placement.elements() as u32,
            inner: self.along.map_or(0, |axis| axis as u32 + 1),
            low: shape.iter().position(|n| *n != 1).unwrap_or(DIMS - 1) as u32,
            log_rows: self.log_rows,
            log_cols: self.cols.trailing_zeros(),
            pitch: self.length() as u32,
            log_from,
            log_to,
            skew: self.skew as u32,
            height: self.height as u32,
            by_height: Divisor::by(self.height.max(1)),
            none: 0,
        })
    }

    /// The place of a row on a side; for the end, the place of the next row.
    fn place(&self, view: &View, outer: usize, row: usize) -> u64 {
        let (mut rest, mut at) = (outer + row / self.rows, 0);
        for d in (0..self.axis.unwrap_or(0)).rev() {
            at += rest % self.placement.shape[d] * view.stride[d];
            rest /= self.placement.shape[d];
        }
        (at + self.axis.map_or(0, |axis| row % self.rows * view.stride[axis])) as u64
    }

    fn push_tiles(&self, item: u32, tiles: &mut Vec<TileRecord>) {
        let Self { placement, rows, pitch, step, whole, .. } = *self;
        let (elements, first) = (placement.elements(), tiles.len());
        let high = 1 << self.log_rows;
        let (down, across) = (rows.div_ceil(high), whole.div_ceil(step).max(1));
        let outer = if elements == 0 { 0 } else { elements / (rows * pitch) };
        for n in 0..outer * across * down {
            let (outer, start) = (n / down / across, n / down % across * step);
            let row = (n % down) << self.log_rows;
            let (element, high) = ((outer * rows + row) * pitch + start, (rows - row).min(high));
            // Skewed tiles continue in the row after their last one.
            let (to, behind) =
                if self.skew == 0 { (&placement.to, 0) } else { (&placement.from, high) };
            tiles.push(TileRecord {
                from: self.place(&placement.from, outer, row),
                to: self.place(to, outer, row + behind),
                element: element as u32,
                start: if self.height > 0 { element % self.length() } else { start } as u32,
                rows: high as u32,
                cols: (whole - start).min(step) as u32,
                item,
                first: first as u32,
                number: tiles.len() as u32,
                none: 0,
            });
        }
    }
}

#[cfg(test)]
mod tests;
