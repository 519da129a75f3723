//! Boxes as kernels see them, and how they are cut into tiles: `kernels/box.cuh`, the host's part.

use bytemuck::{Pod, Zeroable};
use fft_core::{DIMS, Transfer, View};

use crate::base::GpuError;

/// Bytes of a tile.
const TILE_BYTES: usize = 16 << 10;
/// Parts of a tile that stand together, of which a kernel knows where they are.
const PLACES: usize = 256;
/// Units of 16 bytes that stand together, at most: one for each thread of a block.
const UNITS: usize = 128;
/// Said of a side where units do not stand together.
const APART: u32 = 32;
/// Bytes of peers in the source that a tile reads at least, where they are no peers in the message: two lines of
/// the second-level cache.
const LINE_BYTES: usize = 256;
/// The longest rows of a box that are folded to runs where they could be cut, and of rows that are, as they tear apart what must not be, so
/// many elements are in a tile.
pub(crate) const SHORT: usize = 128;
// Rows of a skewed tile make lines of 128 bytes in shared memory: `Skewed::LINE` of `kernels/columns.cuh`.
const _: () = assert!(TILE_BYTES / SHORT == 128 && 2 * SHORT <= PLACES);
/// The shortest rows of a tile that has whole ones, where more elements than a row has must not be torn apart.
const WHOLE: usize = 64;
/// Elements must be counted in 31 bits, as [`Divisor`] wants it.
pub(crate) const MOST_ELEMENTS: usize = (1 << 31) - 1;

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
    pub(crate) fn of(self, n: usize) -> usize {
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
    inner: u32,
    low: u32,
    log_rows: u32,
    log_cols: u32,
    pitch: u32,
    log_from: u32,
    log_to: u32,
    skew: u32,
    height: u32,
    by_height: Divisor,
    /// Up to a multiple of 8 bytes.
    none: u32,
}

/// A tile of a box, from where the box begins. The fields are those of `Tile` in `kernels/box.cuh`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Tile {
    from: u64,
    to: u64,
    element: u32,
    start: u32,
    rows: u32,
    cols: u32,
    pub(crate) item: u32,
    first: u32,
    pub(crate) number: u32,
    /// Up to a multiple of 8 bytes.
    none: u32,
}

/// Items for a launch, boxes or messages, and their tiles, numbered through; with the number of the first tile of each item, and
/// of the end. Tiles are listed as they are numbered, or [`Items::along`] an array.
pub(crate) struct Items<I> {
    pub(crate) items: Vec<I>,
    pub(crate) tiles: Vec<Tile>,
    pub(crate) firsts: Vec<u32>,
}

impl<I> Items<I> {
    pub(crate) fn new() -> Self {
        Self { items: Vec::new(), tiles: Vec::new(), firsts: vec![0] }
    }

    /// Adds an item, of which `make` lists the tiles.
    ///
    /// # Errors
    /// Those of `make`; [`GpuError::TooLarge`] beyond 2^31 tiles.
    pub(crate) fn add(
        &mut self,
        make: impl FnOnce(u32, &mut Vec<Tile>) -> Result<I, GpuError>,
    ) -> Result<(), GpuError> {
        let item = make(self.items.len() as u32, &mut self.tiles)?;
        let (found, expected) = (self.tiles.len(), i32::MAX as usize);
        if found > expected {
            return Err(GpuError::TooLarge { what: "the number of tiles", found, expected });
        }
        self.items.push(item);
        self.firsts.push(found as u32);
        Ok(())
    }

    /// Lists the tiles of all items by where they lie in an array of which these are boxes, so that what is moved at a time is side by
    /// side there. Boxes share lines of memory where rows are of odd lengths: the two parts of such a line are then written soon after
    /// each other. If the second comes late, what of the line is not written by the first is read from memory.
    pub(crate) fn along(mut self, place: impl Fn(&I, &Tile) -> u64) -> Self {
        let Self { items, tiles, .. } = &mut self;
        tiles.sort_by_cached_key(|tile| place(&items[tile.item as usize], tile));
        self
    }
}

/// Which tiles a kernel takes besides those of one row, or part of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rows {
    /// None.
    One,
    /// Runs of the message that go over several.
    Folded,
    /// Any; what must not be torn apart is in one tile.
    Once,
    /// Any; what must not be torn apart, but is by rows, is in all that have some of it: they begin anywhere.
    Twice,
}

/// How a box is cut into tiles.
#[derive(Clone, Copy, Debug)]
enum Cutting {
    /// Each is a run of the message.
    Run,
    /// Each is one, but goes over so many rows along this axis, at most.
    Folded { axis: usize, height: usize },
    /// Each has so many rows along this axis. `skew` is one less than how many elements must not be torn apart, where rows of the box do; or 0.
    Rows { axis: usize, rows: usize, skew: usize },
}

/// What a kernel needs of tiles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiling {
    /// Elements that must not be torn apart: a power of two, at most 256.
    pub(crate) quantum: usize,
    /// Which tiles.
    pub(crate) rows: Rows,
    /// Bytes of an element.
    pub(crate) bytes: usize,
}

/// So few peers of so many bytes that rows that tear apart what must not be are not cut: most of a tile would be empty.
pub(crate) const fn few(bytes: usize) -> usize {
    TILE_BYTES / bytes / SHORT / 2
}

impl Tiling {
    /// Elements of a tile.
    pub(crate) fn tile(&self) -> usize {
        TILE_BYTES / self.bytes
    }
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

    /// The other way.
    pub(crate) fn reversed(self) -> Self {
        Self { from: self.to, to: self.from, ..self }
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

    /// Whether so many elements that are peers along an axis always are so on this side, at a multiple of as many.
    fn together(&self, view: &View, axis: usize, many: usize) -> bool {
        view.stride[axis] == 1
            && self.shape[axis].is_multiple_of(many)
            && view.offset.is_multiple_of(many)
            && (0..DIMS)
                .all(|d| d == axis || self.shape[d] == 1 || view.stride[d].is_multiple_of(many))
    }

    /// The same of peers in the message.
    fn runs_of(&self, view: &View, many: usize) -> bool {
        self.together(view, DIMS - 1, many)
    }

    /// The logarithm of how many units of 16 bytes stand together in rows of so many elements of a tile, or [`APART`].
    fn units(&self, view: &View, bytes: usize, cols: usize) -> u32 {
        if self.elements() == 0 {
            return APART;
        }
        let wide = 16 / bytes;
        let even = 1 << self.shape[DIMS - 1].trailing_zeros();
        let run = cols.min(UNITS * wide).min(even);
        match self.runs_of(view, wide) && cols / run <= PLACES {
            true => (run / wide).trailing_zeros(),
            false => APART,
        }
    }

    /// Whether this fills one run of the destination, as packing does, with what is at most so many elements from one to the next in the source.
    pub(crate) fn packs(&self, apart: usize) -> bool {
        self.end(&self.to) - self.to.offset == self.elements()
            && self.from.stride[DIMS - 1] <= apart
    }

    /// Whether [`Placement::joined`] can be had.
    pub(crate) fn joins(&self, many: usize) -> bool {
        self.runs_of(&self.from, many) && self.runs_of(&self.to, many)
    }

    /// The same with so many peers as one element.
    pub(crate) fn joined(mut self, many: usize) -> Self {
        self.shape[DIMS - 1] /= many;
        for view in [&mut self.from, &mut self.to] {
            view.offset /= many;
            view.stride[..DIMS - 1].iter_mut().for_each(|stride| *stride /= many);
        }
        self
    }

    /// Elements from one step along an axis to the next, in the message.
    fn pitch(&self, axis: usize) -> usize {
        self.shape[axis + 1..].iter().product()
    }

    /// Tiles with rows along an axis, if there can be.
    fn rows(&self, axis: usize, tiling: &Tiling) -> Option<Cutting> {
        let (tile, pitch) = (tiling.tile(), self.pitch(axis));
        if pitch.is_multiple_of(tiling.quantum) {
            let rows = (LINE_BYTES / tiling.bytes).max(tile / pitch.next_power_of_two());
            let rows = rows.min(UNITS * 16 / tiling.bytes).min(tile / tiling.quantum);
            let rows = rows.min(self.shape[axis].next_power_of_two());
            return Some(Cutting::Rows { axis, rows, skew: 0 });
        }
        // Whole rows, so that a tile is a run of the message: all tiles are full then, and none goes on behind the last row.
        let whole = pitch.is_power_of_two() && (WHOLE..tile).contains(&pitch);
        let full = (self.shape[axis] * pitch).is_multiple_of(tile);
        if whole && full && tiling.quantum <= tile {
            return Some(Cutting::Rows { axis, rows: tile / pitch, skew: 0 });
        }
        let rows = tile / SHORT;
        // Read twice, a row of a tile has one quantum less.
        let most = if tiling.rows == Rows::Twice { SHORT / 2 } else { SHORT };
        let cut = pitch > SHORT && tiling.quantum <= most && self.shape[axis] > few(tiling.bytes);
        cut.then_some(Cutting::Rows { axis, rows, skew: tiling.quantum - 1 })
    }

    /// How tiles are cut: with rows along the axis of peers in the source, unless it is the last.
    fn cutting(&self, tiling: &Tiling) -> Cutting {
        if self.elements() == 0 || tiling.rows == Rows::One || self.from.stride[DIMS - 1] == 1 {
            return Cutting::Run;
        }
        let peers = |&d: &usize| self.shape[d] > 1 && self.from.stride[d] == 1;
        let Some(axis) = (0..DIMS - 1).find(peers) else { return Cutting::Run };
        let rows = match tiling.rows {
            Rows::One | Rows::Folded => None,
            Rows::Once | Rows::Twice => self.rows(axis, tiling),
        };
        rows.unwrap_or_else(|| {
            let pitch = self.pitch(axis);
            // Of the first row all but one element may be before the tile.
            let height = (tiling.tile() + pitch - 1).div_ceil(pitch);
            let fits = pitch + height <= PLACES;
            if fits { Cutting::Folded { axis, height } } else { Cutting::Run }
        })
    }

    /// Cuts the box, which is the item of this number, into tiles.
    ///
    /// # Errors
    /// [`GpuError::TooLarge`].
    pub(crate) fn tiled(
        &self,
        tiling: &Tiling,
        item: u32,
        tiles: &mut Vec<Tile>,
    ) -> Result<Tiled, GpuError> {
        let within = |what, found: usize, expected: usize| match found <= expected {
            true => Ok(found as u32),
            false => Err(GpuError::TooLarge { what, found, expected }),
        };
        let elements = within("the number of elements of a box", self.elements(), MOST_ELEMENTS)?;
        let low = self.shape.iter().position(|n| *n != 1).unwrap_or(DIMS - 1);
        // The axis of rows of tiles, or of those over which tiles are folded; how many the latter are, at most.
        let (axis, along, log_rows, skew, height) = match self.cutting(tiling) {
            Cutting::Run => (None, None, 0, 0, 0),
            Cutting::Folded { axis, height } => (None, Some(axis), 0, 0, height),
            Cutting::Rows { axis, rows, skew } => {
                (Some(axis), Some(axis), rows.trailing_zeros(), skew, 0)
            }
        };
        let (rows, pitch) = axis.map_or((1, self.elements()), |d| (self.shape[d], self.pitch(d)));
        let cols = tiling.tile() >> log_rows;
        // Columns from one tile to the next, and of all.
        let (step, whole) = match tiling.rows {
            Rows::Twice if skew > 0 => (cols - skew - 1, pitch),
            _ => (cols, pitch.next_multiple_of(skew + 1)),
        };
        let (down, across) = (rows.div_ceil(1 << log_rows), whole.div_ceil(step).max(1));
        let side = |view: &View| {
            let mut stride = [0; DIMS];
            for d in (0..DIMS).filter(|&d| self.shape[d] > 1) {
                stride[d] = within("the stride of a box", view.stride[d], u32::MAX as usize)?;
            }
            let row = axis.map_or(0, |axis| stride[axis]);
            Ok(Side { offset: view.offset as u64, stride, row })
        };
        let (wide, high) = (16 / tiling.bytes, 1 << log_rows);
        // Rows that lie side by side in the source, of each column of a tile.
        let from = match axis {
            None => self.units(&self.from, tiling.bytes, cols),
            Some(axis) => {
                let found = self.together(&self.from, axis, wide) && high >= wide;
                if found && cols <= PLACES { (high / wide).trailing_zeros() } else { APART }
            }
        };
        let to = match axis.is_none() || high >= wide {
            true => self.units(&self.to, tiling.bytes, cols),
            false => APART,
        };
        // Elements are moved one by one.
        let (from, to) = if skew > 0 || height > 0 { (APART, APART) } else { (from, to) };
        let length = along.map_or(pitch, |axis| self.pitch(axis));
        let tiled = Tiled {
            from: side(&self.from)?,
            to: side(&self.to)?,
            shape: self.shape.map(|n| n as u32),
            by: self.shape.map(|n| Divisor::by(n.max(1))),
            elements,
            inner: along.map_or(0, |axis| axis as u32 + 1),
            low: low as u32,
            log_rows,
            log_cols: cols.trailing_zeros(),
            pitch: length as u32,
            log_from: from,
            log_to: to,
            skew: skew as u32,
            height: height as u32,
            by_height: Divisor::by(height.max(1)),
            none: 0,
        };
        let first = tiles.len();
        let outer = if elements == 0 { 0 } else { elements as usize / (rows * pitch) };
        for n in 0..outer * across * down {
            let (outer, start) = (n / down / across, n / down % across * step);
            let row = (n % down) << log_rows;
            // Where a row begins: of the last one's end, where the first of the next ones does.
            let place = |view: &View, row: usize| {
                let (mut rest, mut at) = (outer + row / rows, 0);
                for d in (0..axis.unwrap_or(0)).rev() {
                    at += rest % self.shape[d] * view.stride[d];
                    rest /= self.shape[d];
                }
                (at + axis.map_or(0, |axis| row % rows * view.stride[axis])) as u64
            };
            let (element, high) = ((outer * rows + row) * pitch + start, (rows - row).min(high));
            let (to, behind) = if skew == 0 { (&self.to, 0) } else { (&self.from, high) };
            tiles.push(Tile {
                from: place(&self.from, row),
                to: place(to, row + behind),
                element: element as u32,
                start: if height > 0 { element % length } else { start } as u32,
                rows: high as u32,
                cols: (whole - start).min(step) as u32,
                item,
                first: first as u32,
                number: tiles.len() as u32,
                none: 0,
            });
        }
        Ok(tiled)
    }
}

impl Tiled {
    /// Where it begins in the source.
    pub(crate) fn source(&self) -> u64 {
        self.from.offset
    }

    /// Redistribution where it begins in the source.
    pub(crate) fn set_source(&mut self, offset: u64) {
        self.from.offset = offset;
    }

    /// The number of elements.
    pub(crate) fn elements(&self) -> usize {
        self.elements as usize
    }

    /// Whether its tiles are runs of the message that go over several rows of the array.
    pub(crate) fn folds(&self) -> bool {
        self.height > 0
    }

    /// Whether its tiles have several rows.
    pub(crate) fn turns(&self) -> bool {
        self.log_rows > 0
    }

    /// Where a tile lies in the source: where it begins. Where rows tear apart what must not be, tiles begin anywhere on the axes that they
    /// have from end to end, which says nothing of where they lie: these are left out.
    pub(crate) fn source_of(&self, tile: &Tile) -> u64 {
        self.place_of(&self.from, tile, if self.skew > 0 { tile.cols } else { 0 })
    }

    /// Where a tile begins in the destination.
    pub(crate) fn destination_of(&self, tile: &Tile) -> u64 {
        self.place_of(&self.to, tile, 0)
    }

    /// Where a tile begins on a side, without what the last axes add that have no more than `whole` elements together.
    fn place_of(&self, side: &Side, tile: &Tile, whole: u32) -> u64 {
        let (mut rest, mut at, mut elements) = (tile.element, side.offset, 1);
        for (n, stride) in self.shape.into_iter().zip(side.stride).rev() {
            elements *= n;
            if elements > whole {
                at += u64::from(rest % n) * u64::from(stride);
            }
            rest /= n;
        }
        at
    }
}

#[cfg(test)]
mod tests;
