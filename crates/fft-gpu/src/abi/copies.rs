//! Copies of boxes, cut into tiles.

use fft_core::Transfer;

use super::batch::Reach;
use super::boxes::{Items, TiledBox};
use super::tiling::{Placement, Rows, TileRules};
use crate::base::GpuError;

/// One copy, between arrays that begin at offsets of their buffers.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    /// From a box to a box.
    pub transfer: &'a Transfer,
    /// The first element of the source's array.
    pub from: usize,
    /// The first element of the destination's array.
    pub to: usize,
}

/// Larger strides are on other pages of memory.
const NEAR_BYTES: usize = 64 << 10;

pub(crate) struct TiledCopies {
    pub(crate) all: Items<TiledBox>,
    /// Whether each fills one run of the destination, with source strides of at most
    /// [`NEAR_BYTES`].
    packs: bool,
    /// Bytes that are copied as one element.
    pub(crate) unit: usize,
    pub(crate) reaches: (Reach, Reach),
}

impl TiledCopies {
    /// Cuts copies of elements of 4, 8 or 16 bytes.
    pub(crate) fn new(element_bytes: usize, moves: &[Move<'_>]) -> Result<Self, GpuError> {
        if ![4, 8, 16].contains(&element_bytes) {
            return Err(GpuError::argument("bytes of an element", element_bytes, "4, 8 or 16"));
        }
        let filled = moves.iter().filter(|one| one.transfer.elements() > 0);
        let mut placements: Vec<_> =
            filled.map(|one| Placement::new(one.transfer, one.from, one.to)).collect();
        // Contiguous elements are copied as one, of 16 bytes if all boxes allow it.
        let joins = |many: &usize| placements.iter().all(|placement| placement.joins(*many));
        let many =
            [4, 2].into_iter().filter(|many| many * element_bytes <= 16).find(joins).unwrap_or(1);
        placements.iter_mut().for_each(|placement| *placement = placement.joined(many));
        let bytes = many * element_bytes;
        let rules = TileRules { quantum: 1, rows: Rows::Once, bytes };
        let mut all = Items::new();
        for placement in &placements {
            all.add(|item, tiles| placement.tiled(&rules, item, tiles))?;
        }
        let reach = |end: fn(&Placement) -> usize| Reach {
            bytes: placements.iter().map(end).max().unwrap_or(0) * bytes,
            align: bytes,
        };
        let reaches = (reach(|p| p.end(&p.from)), reach(|p| p.end(&p.to)));
        let packs = placements.iter().all(|placement| placement.packs(NEAR_BYTES / bytes));
        Ok(Self { all, packs, unit: bytes, reaches })
    }

    /// Lists tiles for copies from one array to another: in the destination's order. Runs of what
    /// lies close together in the source are listed in the source's order.
    pub(crate) fn between_two(mut self) -> Self {
        let place = if self.packs { TiledBox::source_of } else { TiledBox::destination_of };
        self.all = self.all.along(place);
        self
    }

    /// Lists tiles for copies from several arrays to one, in the destination's order. The list is
    /// rotated to begin with the first copy. Ranks that begin with different copies do not all read
    /// the same array at the same time.
    pub(crate) fn into_one(mut self) -> Self {
        self.all = self.all.along(TiledBox::destination_of);
        let first = self.all.tiles.iter().position(|tile| tile.item == 0);
        self.all.tiles.rotate_left(first.unwrap_or(0));
        self
    }
}
#[cfg(test)]
mod tests {
    use fft_core::{Brick, Placed};

    use super::*;
    use crate::abi::boxes::TileRecord;

    const SHAPE: [usize; 3] = [8, 64, 256];

    /// Copies of quarters of an array along an axis, from this one on: into messages one after the
    /// other, in this order, or back.
    fn quarters((axis, first): (usize, usize), order: [usize; 3], unpacks: bool) -> TiledCopies {
        let whole = Placed::new(Brick { lo: [0; 3], hi: SHAPE }, [0, 1, 2], 1);
        let (many, each) = (SHAPE.iter().product::<usize>() / 4, SHAPE[axis] / 4);
        let part = |i: usize| {
            let (mut brick, i) = (whole.brick, (first + i) % 4);
            (brick.lo[axis], brick.hi[axis]) = (each * i, each * (i + 1));
            let message = Placed::new(brick, order, 1);
            let [from, to] = if unpacks { [&message, &whole] } else { [&whole, &message] };
            Transfer::new(&brick, 0..1, from, to)
        };
        let parts: Vec<_> = (0..4).map(part).collect();
        let moves = parts.iter().enumerate().map(|(i, transfer)| {
            if unpacks {
                Move { transfer, from: many * i, to: 0 }
            } else {
                Move { transfer, from: 0, to: many * i }
            }
        });
        TiledCopies::new(16, &moves.collect::<Vec<_>>()).unwrap()
    }

    fn is_along(
        TiledCopies { all, .. }: &TiledCopies,
        place: fn(&TiledBox, &TileRecord) -> u64,
    ) -> bool {
        all.tiles.is_sorted_by_key(|tile| place(&all.items[tile.item as usize], tile))
    }

    #[test]
    fn copies_are_listed_as_they_are_written_or_what_is_packed_as_it_lies() {
        let packed = quarters((2, 0), [0, 1, 2], false).between_two();
        assert!(
            is_along(&packed, TiledBox::source_of) && !is_along(&packed, TiledBox::destination_of)
        );
        let unpacked = quarters((2, 0), [0, 1, 2], true).between_two();
        assert!(is_along(&unpacked, TiledBox::destination_of));
        assert!(!is_along(&unpacked, TiledBox::source_of));
        // Adjacent elements of the message are 64 × 256 × 16 bytes apart.
        let apart = quarters((2, 0), [1, 2, 0], false).between_two();
        assert!(
            is_along(&apart, TiledBox::destination_of) && !is_along(&apart, TiledBox::source_of)
        );
    }

    #[test]
    fn what_comes_from_several_arrays_is_listed_in_a_circle() {
        // The first copy writes the third quarter.
        let TiledCopies { all, .. } = quarters((0, 2), [0, 1, 2], true).into_one();
        let each = all.tiles.len() / 4;
        let found: Vec<u32> = all.tiles.iter().map(|tile| tile.item).collect();
        let expected: Vec<u32> = (0..4).flat_map(|item| vec![item; each]).collect();
        assert_eq!(found, expected);
        let places: Vec<u64> = (all.tiles.iter())
            .map(|tile| all.items[tile.item as usize].destination_of(tile))
            .collect();
        assert!(places[..2 * each].is_sorted() && places[2 * each..].is_sorted());
        assert_eq!([places[0], places[2 * each]], [2 * 2 * 64 * 256, 0]);
    }
}
