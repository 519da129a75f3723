//! Boxes, tiles and lists of them: the records of `kernels/box.cuh`.

use bytemuck::{Pod, Zeroable};
use fft_core::DIMS;

use super::divisor::Divisor;
use crate::base::GpuError;

/// One side of a box, in elements: `Side` of the kernels.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct BoxSide {
    pub(crate) offset: u64,
    pub(super) stride: [u32; DIMS],
    /// The stride of the axis of a tile's rows.
    pub(super) row: u32,
}

/// A box and its tiling: `Box` of the kernels, where the fields are explained.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct TiledBox {
    pub(crate) from: BoxSide,
    pub(super) to: BoxSide,
    pub(super) shape: [u32; DIMS],
    pub(super) by: [Divisor; DIMS],
    pub(super) elements: u32,
    pub(super) inner: u32,
    pub(super) low: u32,
    pub(super) log_rows: u32,
    pub(super) log_cols: u32,
    pub(super) pitch: u32,
    pub(super) log_from: u32,
    pub(super) log_to: u32,
    pub(super) skew: u32,
    pub(super) height: u32,
    pub(super) by_height: Divisor,
    /// Up to a multiple of 8 bytes.
    pub(super) none: u32,
}

/// A tile of a box, relative to where the box begins: `Tile` of the kernels.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct TileRecord {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) element: u32,
    pub(super) start: u32,
    pub(super) rows: u32,
    pub(super) cols: u32,
    pub(crate) item: u32,
    pub(super) first: u32,
    pub(crate) number: u32,
    /// Up to a multiple of 8 bytes.
    pub(super) none: u32,
}

/// The boxes or messages of a launch, and their tiles. Tiles are numbered through. They are listed
/// by number, or [`along`](Self::along) an array.
pub(crate) struct Items<I> {
    pub(crate) items: Vec<I>,
    pub(crate) tiles: Vec<TileRecord>,
    /// The number of the first tile of each item, and of the end.
    pub(crate) firsts: Vec<u32>,
}

impl<I> Items<I> {
    pub(crate) fn new() -> Self {
        Self { items: Vec::new(), tiles: Vec::new(), firsts: vec![0] }
    }

    /// Adds an item; `make` lists its tiles.
    pub(crate) fn add(
        &mut self,
        make: impl FnOnce(u32, &mut Vec<TileRecord>) -> Result<I, GpuError>,
    ) -> Result<(), GpuError> {
        let item = make(self.items.len() as u32, &mut self.tiles)?;
        let count = self.tiles.len();
        GpuError::at_most("the number of tiles", count, i32::MAX as usize)?;
        self.items.push(item);
        self.firsts.push(count as u32);
        Ok(())
    }

    /// Sorts the list of tiles by their places in an array. Tiles that share a line of memory then
    /// follow each other. A partly written line whose other part came late would have to be read
    /// again.
    pub(crate) fn along(mut self, place: impl Fn(&I, &TileRecord) -> u64) -> Self {
        let Self { items, tiles, .. } = &mut self;
        tiles.sort_by_cached_key(|tile| place(&items[tile.item as usize], tile));
        self
    }
}

impl TiledBox {
    pub(crate) fn elements(&self) -> usize {
        self.elements as usize
    }

    /// Whether tiles are runs of the message that span several rows of the array.
    pub(crate) fn folds(&self) -> bool {
        self.height > 0
    }

    /// Whether tiles have several rows.
    pub(crate) fn transposes(&self) -> bool {
        self.log_rows > 0
    }

    /// The place of a tile in the source. If a quantum spans rows, tiles begin anywhere along the
    /// axes that they cover whole. These axes are left out.
    pub(crate) fn source_of(&self, tile: &TileRecord) -> u64 {
        self.place_of(&self.from, tile, if self.skew > 0 { tile.cols } else { 0 })
    }

    /// The place of a tile in the destination.
    pub(crate) fn destination_of(&self, tile: &TileRecord) -> u64 {
        self.place_of(&self.to, tile, 0)
    }

    /// The place of a tile on a side, without the last axes of at most `whole` elements together.
    fn place_of(&self, side: &BoxSide, tile: &TileRecord, whole: u32) -> u64 {
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
