//! Pieces of an array that lie in several ranks' memory: the grid that they form.

use crate::redistribute::LocalReadBox;

/// The most axes of an array, without those of length 1.
pub(crate) const AXES: usize = 3;
/// The most cuts along each axis; the first axis is cut most.
const CUTS: [usize; AXES] = [7, 3, 3];
/// The most elements of an array, whose numbers are of 31 bits.
const MOST_ELEMENTS: usize = i32::MAX as usize;

/// Pieces that form a grid with few cuts, so that the piece of an element is found fast.
#[derive(Clone, Debug)]
pub struct PieceGrid {
    /// The axes of pieces that are the axes of the array.
    pub axes: [usize; AXES],
    /// Lengths of the array.
    pub lens: [usize; AXES],
    /// The first indices of pieces along each axis, in order.
    pub starts: [Vec<usize>; AXES],
    /// Elements of the array.
    pub elements: usize,
    /// Whether the array's last axis is contiguous in memory.
    pub straight: bool,
}

impl PieceGrid {
    /// The most cuts along each axis.
    pub const CUTS: [usize; AXES] = CUTS;

    /// The grid of pieces. `None` if they form no grid with so few cuts, or the array has more than
    /// three axes or too many elements.
    pub fn new(pieces: &[LocalReadBox]) -> Option<Self> {
        let axes = axes_of(pieces)?;
        let lens @ [n, columns, depth] = axes.map(|axis| len(pieces, axis));
        let elements = n.checked_mul(columns)?.checked_mul(depth)?;
        let starts = axes.map(|axis| starts(pieces, axis));
        let fits = |(starts, cuts): (&Vec<usize>, usize)| starts.len() <= cuts + 1;
        let cells: usize = starts.iter().map(Vec::len).product();
        let is_grid = starts.iter().zip(CUTS).all(fits) && cells == pieces.len();
        let straight = pieces.iter().all(|piece| piece.source.stride[axes[2]] == 1);
        let found = Self { axes, lens, starts, elements, straight };
        (elements <= MOST_ELEMENTS && is_grid).then_some(found)
    }
}

/// The length of the array along an axis.
fn len(pieces: &[LocalReadBox], axis: usize) -> usize {
    pieces.iter().map(|piece| piece.ranges[axis].end).max().unwrap_or(0)
}

/// The three axes of the array; if it has fewer, axes of length 1 come first.
fn axes_of(pieces: &[LocalReadBox]) -> Option<[usize; AXES]> {
    let dims = pieces.first()?.ranges.len();
    let mut axes: Vec<usize> = (0..dims).filter(|axis| len(pieces, *axis) > 1).collect();
    while axes.len() < AXES {
        let one = (0..dims).find(|axis| len(pieces, *axis) == 1 && !axes.contains(axis))?;
        axes.insert(0, one);
    }
    axes.try_into().ok()
}

/// The first indices of pieces along an axis, in order.
fn starts(pieces: &[LocalReadBox], axis: usize) -> Vec<usize> {
    let mut starts: Vec<usize> = pieces.iter().map(|piece| piece.ranges[axis].start).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}
