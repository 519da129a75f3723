//! An array in pieces that lie in several ranks' memory, as a transform reads or writes it whose elements are there: the
//! table of `kernels/pieces.cuh`.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use fft_core::LocalReadBox;

use super::boxes::{Divisor, MOST_ELEMENTS};

/// Axes of an array, those of length 1 left out.
const AXES: usize = 3;
/// Cuts along each of them. The first is the one that is cut most: what is dealt out.
const CUTS: [usize; AXES] = [7, 3, 3];
const PIECES: usize = (CUTS[0] + 1) * (CUTS[1] + 1) * (CUTS[2] + 1);
/// No cut.
const NOWHERE: u32 = u32::MAX;

/// `Piece` of `kernels/pieces.cuh`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Place {
    base: u64,
    strides: [u32; AXES],
    unused: u32,
}

/// `Pieces` there.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Table {
    lens: [u32; 2],
    by: [Divisor; 2],
    pieces: [u32; 2],
    cuts: [u32; CUTS[0] + CUTS[1] + CUTS[2]],
    unused: u32,
    factor: f64,
    places: [Place; PIECES],
}

/// How many cuts there are along the first axis and along the others, as the functions of `kernels/gather.cu` and
/// `kernels/scatter.cu` tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cuts {
    /// At most one and one.
    One,
    /// At most 7 and one.
    First,
    /// At most 7 and three.
    Most,
}

/// The table, and whose memory its pieces are in.
pub(crate) struct Pieces {
    table: Table,
    /// For each piece, its owner, and where the array's first element would be in that one's memory, in bytes.
    origins: Vec<(usize, u64)>,
    /// Bytes that each rank's memory must have.
    reaches: Vec<usize>,
    elements: usize,
    cuts: Cuts,
    /// Whether peers in the array are peers in memory.
    straight: bool,
}

impl Pieces {
    /// Of elements of so many bytes, times a factor, of so many ranks. `None` where pieces are no grid of as few cuts as the table
    /// has, or the array has more than three axes, or too many elements to be counted in 31 bits.
    pub(crate) fn new(
        pieces: &[LocalReadBox],
        ranks: usize,
        element: usize,
        factor: f64,
    ) -> Option<Self> {
        let dims = pieces.first()?.ranges.len();
        let len = |dim: usize| pieces.iter().map(|piece| piece.ranges[dim].end).max().unwrap_or(0);
        let mut axes: Vec<usize> = (0..dims).filter(|dim| len(*dim) > 1).collect();
        // Fewer axes are as many, of which the first have one index.
        while axes.len() < AXES {
            axes.insert(0, (0..dims).find(|dim| len(*dim) == 1 && !axes.contains(dim))?);
        }
        let &[n, columns, depth] = &axes[..] else { return None };
        let [n, columns, depth] = [n, columns, depth].map(len);
        let elements = n.checked_mul(columns)?.checked_mul(depth)?;
        if elements > MOST_ELEMENTS {
            return None;
        }
        let starts: Vec<Vec<usize>> = axes.iter().map(|axis| starts(pieces, *axis)).collect();
        let fits = |(starts, cuts): (&Vec<usize>, usize)| starts.len() <= cuts + 1;
        let cells: usize = starts.iter().map(Vec::len).product();
        if !starts.iter().zip(CUTS).all(fits) || cells != pieces.len() {
            return None;
        }
        let mut table = Table {
            lens: [columns as u32, depth as u32],
            by: [Divisor::by(columns), Divisor::by(depth)],
            pieces: [starts[1].len() as u32, starts[2].len() as u32],
            factor,
            ..Table::zeroed()
        };
        let all = (starts.iter().zip(CUTS)).flat_map(|(starts, cuts)| {
            let cuts = (1..=cuts).map(|cut| starts.get(cut));
            cuts.map(|cut| cut.map_or(NOWHERE, |cut| *cut as u32))
        });
        table.cuts.iter_mut().zip(all).for_each(|(cut, at)| *cut = at);
        let (mut origins, mut reaches) = (vec![(0, 0); cells], vec![0; ranks]);
        for piece in pieces {
            let at = |which: usize| {
                starts[which].iter().position(|start| *start == piece.ranges[axes[which]].start)
            };
            let cell = (at(0)? * starts[1].len() + at(1)?) * starts[2].len() + at(2)?;
            let (mut origin, mut last) = (piece.source.offset, piece.source.offset);
            for (which, &axis) in axes.iter().enumerate() {
                let (Range { start, end }, stride) =
                    (piece.ranges[axis].clone(), piece.source.stride[axis]);
                table.places[cell].strides[which] = u32::try_from(stride).ok()?;
                origin = origin.wrapping_sub(start * stride);
                last += (end - start - 1) * stride;
            }
            origins[cell] = (piece.owner, (origin as u64).wrapping_mul(element as u64));
            let reach = &mut reaches[piece.owner];
            *reach = (*reach).max((last + 1) * element);
        }
        let straight = pieces.iter().all(|piece| piece.source.stride[axes[2]] == 1);
        let cuts = match [0, 1, 2].map(|axis| starts[axis].len()) {
            [..=2, ..=2, ..=2] => Cuts::One,
            [_, ..=2, ..=2] => Cuts::First,
            _ => Cuts::Most,
        };
        Some(Self { table, origins, reaches, elements, cuts, straight })
    }

    pub(crate) fn cuts(&self) -> Cuts {
        self.cuts
    }

    /// Of the array.
    pub(crate) fn elements(&self) -> usize {
        self.elements
    }

    /// Whether peers in the array are peers in memory.
    pub(crate) fn is_straight(&self) -> bool {
        self.straight
    }

    /// Bytes that each rank's memory must have.
    pub(crate) fn reaches(&self) -> &[usize] {
        &self.reaches
    }

    /// The table, where ranks' memories begin at these addresses.
    pub(crate) fn table(&mut self, bases: &[u64]) -> &Table {
        for (place, (owner, origin)) in self.table.places.iter_mut().zip(&self.origins) {
            place.base = bases[*owner].wrapping_add(*origin);
        }
        &self.table
    }

    /// Where an element of the array is: the CPU twin of `place`, in bytes from nowhere.
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

/// Where pieces begin along an axis, in order.
fn starts(pieces: &[LocalReadBox], axis: usize) -> Vec<usize> {
    let mut starts: Vec<usize> = pieces.iter().map(|piece| piece.ranges[axis].start).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use fft_core::{Grid, Layout, Link, Node, ProcGrid, Redistribution, Transfer};

    /// Memories so far apart that no place is in two of them.
    const APART: u64 = 1 << 40;

    /// Compares with the transfers of the same reshape, for all ranks; how many have a table.
    fn check(from: &Node, to: &Node, howmany: usize) -> usize {
        let ranks = from.layout.ranks();
        let bases: Vec<u64> = (1..=ranks as u64).map(|rank| rank * APART).collect();
        let made = (0..ranks).filter(|rank| {
            let link = |peer: usize| if peer == *rank { Link::Own } else { Link::Shared };
            let redistribution = Redistribution::new(*rank, &link, from, to, howmany);
            let Some(mut pieces) = Pieces::new(&redistribution.pieces(), ranks, 16, 1.0) else {
                return false;
            };
            pieces.table(&bases);
            let all = redistribution.all();
            let mut places = vec![0; pieces.elements()];
            for local_reads in &redistribution.local_reads {
                let transfer: Transfer = redistribution.take(local_reads, &all).unwrap();
                assert_eq!(transfer.reach() * 16, pieces.reaches()[local_reads.owner]);
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
