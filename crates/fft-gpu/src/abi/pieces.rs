//! An array in pieces that lie in several ranks' memory: the table of `kernels/pieces.cuh`.
//!
//! Transforms load or store elements at the places in the table.

use bytemuck::{Pod, Zeroable};
use fft_core::{LocalReadBox, PieceGrid};

use super::divisor::Divisor;

/// The most axes of an array, without those of length 1.
const AXES: usize = 3;
const CUTS: [usize; AXES] = PieceGrid::CUTS;
const PIECES: usize = (CUTS[0] + 1) * (CUTS[1] + 1) * (CUTS[2] + 1);
/// Marks an unused cut.
const NOWHERE: u32 = u32::MAX;

/// `Piece` of `kernels/pieces.cuh`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct PieceRecord {
    base: u64,
    strides: [u32; AXES],
    unused: u32,
}

/// `Pieces` of `kernels/pieces.cuh`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Table {
    lens: [u32; 2],
    by: [Divisor; 2],
    pieces: [u32; 2],
    cuts: [u32; CUTS[0] + CUTS[1] + CUTS[2]],
    unused: u32,
    factor: f64,
    places: [PieceRecord; PIECES],
}

/// The variants of the functions of `kernels/gather.cu` and `kernels/scatter.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cuts {
    /// At most one cut along each axis.
    One,
    /// At most 7 along the first axis, and one along the others.
    First,
    /// At most 7 along the first axis, and three along the others.
    Most,
}

/// The table, and the owners of its pieces.
pub(crate) struct Pieces {
    table: Table,
    /// For each piece, its owner and the byte at which the array's first element would be in the
    /// owner's memory.
    origins: Vec<(usize, u64)>,
    /// Bytes of each rank's memory that are accessed.
    pub(crate) reaches: Vec<usize>,
    pub(crate) elements: usize,
    pub(crate) cuts: Cuts,
    /// Whether the array's last axis is contiguous in memory.
    pub(crate) straight: bool,
}

impl Pieces {
    /// The table of elements of `element` bytes, multiplied by a factor. `None` if the pieces form
    /// no grid with few enough cuts, or if the array has more than three axes or too many elements.
    pub(crate) fn new(
        pieces: &[LocalReadBox],
        ranks: usize,
        element: usize,
        factor: f64,
    ) -> Option<Self> {
        let PieceGrid { axes, lens, starts, elements, straight } = PieceGrid::new(pieces)?;
        let [_, columns, depth] = lens;
        let cells = pieces.len();
        let mut table = Table {
            lens: [columns as u32, depth as u32],
            by: [Divisor::by(columns), Divisor::by(depth)],
            pieces: [starts[1].len() as u32, starts[2].len() as u32],
            cuts: cuts_of(&starts),
            factor,
            ..Table::zeroed()
        };
        let (mut origins, mut reaches) = (vec![(0, 0); cells], vec![0; ranks]);
        for piece in pieces {
            let at = |which: usize| {
                starts[which].iter().position(|start| *start == piece.ranges[axes[which]].start)
            };
            let cell = (at(0)? * starts[1].len() + at(1)?) * starts[2].len() + at(2)?;
            let (mut origin, mut last) = (piece.source.offset, piece.source.offset);
            for (which, &axis) in axes.iter().enumerate() {
                let (range, stride) = (&piece.ranges[axis], piece.source.stride[axis]);
                table.places[cell].strides[which] = u32::try_from(stride).ok()?;
                origin = origin.wrapping_sub(range.start * stride);
                last += (range.len() - 1) * stride;
            }
            origins[cell] = (piece.owner, (origin as u64).wrapping_mul(element as u64));
            let reach = &mut reaches[piece.owner];
            *reach = (*reach).max((last + 1) * element);
        }
        let cuts = match [0, 1, 2].map(|axis| starts[axis].len()) {
            [..=2, ..=2, ..=2] => Cuts::One,
            [_, ..=2, ..=2] => Cuts::First,
            _ => Cuts::Most,
        };
        Some(Self { table, origins, reaches, elements, cuts, straight })
    }

    /// The table for these addresses of ranks' memory.
    pub(crate) fn table(&mut self, bases: &[u64]) -> &Table {
        for (place, (owner, origin)) in self.table.places.iter_mut().zip(&self.origins) {
            place.base = bases[*owner].wrapping_add(*origin);
        }
        &self.table
    }

    /// The address of an element of the array: the CPU twin of the kernels' `place`.
    #[cfg(test)]
    pub(crate) fn place(&self, number: u32, element: u64) -> u64 {
        let table = &self.table;
        let split = |n: u32, axis: usize| {
            let quotient = table.by[axis].of(n as usize) as u32;
            (quotient, n - quotient * table.lens[axis])
        };
        let (row, k) = split(number, 1);
        let (i, j) = split(row, 0);
        let (first, others) = table.cuts.split_at(CUTS[0]);
        let (second, third) = others.split_at(CUTS[1]);
        let [most, others] = match self.cuts {
            Cuts::One => [1, 1],
            Cuts::First => [7, 1],
            Cuts::Most => [7, 3],
        };
        let [a, b, c] = [(&first[..most], i), (&second[..others], j), (&third[..others], k)]
            .map(|(cuts, index)| cuts.iter().filter(|cut| index >= **cut).count());
        let cell = (a * table.pieces[0] as usize + b) * table.pieces[1] as usize + c;
        let place = &table.places[cell];
        let steps = [i, j, k].into_iter().zip(place.strides);
        let steps = steps.map(|(i, stride)| u64::from(i) * u64::from(stride));
        place.base.wrapping_add(steps.sum::<u64>().wrapping_mul(element))
    }
}

/// The cuts of all axes, as the table has them.
fn cuts_of(starts: &[Vec<usize>; AXES]) -> [u32; CUTS[0] + CUTS[1] + CUTS[2]] {
    let mut all = [NOWHERE; CUTS[0] + CUTS[1] + CUTS[2]];
    let mut first = 0;
    for (starts, cuts) in starts.iter().zip(CUTS) {
        let found = starts.iter().skip(1).map(|cut| *cut as u32);
        all[first..first + cuts].iter_mut().zip(found).for_each(|(cut, at)| *cut = at);
        first += cuts;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use fft_core::{Grid, Layout, Link, Node, ProcGrid, Redistribution, Transfer};

    /// The distance of memories, so large that no place is in two of them.
    const APART: u64 = 1 << 40;

    /// Compares with the transfers of the same reshape, for all ranks; how many have a table.
    fn check(from: &Node, to: &Node, batch: usize) -> usize {
        let ranks = from.layout.ranks();
        let bases: Vec<u64> = (1..=ranks as u64).map(|rank| rank * APART).collect();
        let made = (0..ranks).filter(|rank| {
            let link = |peer: usize| if peer == *rank { Link::Own } else { Link::Shared };
            let redistribution = Redistribution::new(*rank, &link, from, to, batch);
            let Some(mut pieces) = Pieces::new(&redistribution.pieces(), ranks, 16, 1.0) else {
                return false;
            };
            pieces.table(&bases);
            let all = redistribution.all();
            let mut places = vec![0; pieces.elements];
            for local_reads in &redistribution.local_reads {
                let transfer: Transfer = redistribution.take(local_reads, &all).unwrap();
                assert_eq!(transfer.reach() * 16, pieces.reaches[local_reads.owner]);
                transfer.runs(|read, write, len| {
                    for i in 0..len {
                        places[write + i] = bases[local_reads.owner] + 16 * (read + i) as u64;
                    }
                });
            }
            for (number, place) in places.into_iter().enumerate() {
                assert_eq!(pieces.place(number as u32, 16), place, "element {number} of {rank}");
            }
            true
        });
        made.count()
    }

    #[test]
    fn elements_are_where_transfers_read_them() {
        let grid = Grid::new([12, 10, 9]).unwrap();
        let node = |parts: [usize; 3], order: [usize; 3]| Node {
            layout: Layout::even(grid, ProcGrid::new(parts), parts.iter().product())
                .ordered(order)
                .unwrap(),
            complex: true,
        };
        let row_major = [0, 1, 2];
        let cases = [
            ([2, 2, 1], row_major, [1, 1, 4], [1, 2, 0]),
            ([2, 2, 1], row_major, [1, 1, 4], [2, 1, 0]),
            ([2, 2, 2], row_major, [8, 1, 1], row_major),
            ([8, 1, 1], row_major, [1, 4, 2], row_major),
            ([1, 3, 2], [2, 0, 1], [3, 2, 1], [1, 0, 2]),
            ([1, 1, 1], row_major, [1, 1, 1], [1, 0, 2]),
        ];
        for (from, before, to, after) in cases {
            let (from, to) = (node(from, before), node(to, after));
            assert_eq!(check(&from, &to, 1), from.layout.ranks(), "{from:?} {to:?}");
        }
        // One array after the other is an axis more.
        assert_eq!(check(&node([2, 1, 1], row_major), &node([1, 2, 1], row_major), 2), 0);
        // More pieces than there is room for, in the second axis.
        assert_eq!(check(&node([1, 5, 1], row_major), &node([5, 1, 1], row_major), 1), 0);
        assert_eq!(check(&node([1, 5, 1], row_major), &node([5, 1, 1], [1, 0, 2]), 1), 5);
    }
}
