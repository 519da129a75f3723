//! Boxes that a device's copy engines move: rows, in planes, of arrays with a pitch.

use crate::geometry::Transfer;

/// The least bytes of a row: shorter ones do not use all of a link.
pub(crate) const LEAST_ROW: usize = 256;
/// The longest distance of rows, in bytes.
const MOST_PITCH: usize = i32::MAX as usize;
/// The most calls for a box.
pub(crate) const MOST_CALLS: usize = 64;

/// One side of a copy, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineSide {
    /// From a row to the next.
    pub pitch: usize,
    /// Rows from a plane to the next.
    pub height: usize,
}

/// Copies of `row` bytes, for a number of rows in a number of planes, by several calls.
#[derive(Debug, PartialEq, Eq)]
pub struct EngineCopy {
    /// Bytes of a row.
    pub row: usize,
    /// Rows of a plane.
    pub rows: usize,
    /// The number of planes.
    pub planes: usize,
    /// Source and destination.
    pub sides: [EngineSide; 2],
    /// Where each call begins in the source and in the destination.
    pub calls: Vec<[usize; 2]>,
}

impl EngineCopy {
    /// The copy of elements of `element` bytes; `None` for short rows, and for arrays that engines
    /// do not copy in few calls.
    pub fn new(transfer: &Transfer, element: usize) -> Option<Self> {
        let ([a, b, mut planes, rows, row], views) =
            (transfer.shape(), [transfer.source(), transfer.destination()]);
        let row = row * element;
        if views.iter().any(|view| view.stride[4] != 1) || row < LEAST_ROW {
            return None;
        }
        let [from, to] = views.map(|view| view.stride.map(|stride| stride * element));
        let pitch = |stride: [usize; 5]| if rows > 1 { stride[3] } else { row };
        let are_planes =
            |stride: [usize; 5]| planes == 1 || stride[2].is_multiple_of(pitch(stride));
        let mut outer = vec![(a, from[0], to[0]), (b, from[1], to[1])];
        if !(are_planes(from) && are_planes(to)) {
            outer.push((planes, from[2], to[2]));
            planes = 1;
        }
        let sides = [from, to].map(|stride| EngineSide {
            pitch: pitch(stride),
            height: if planes > 1 { stride[2] / pitch(stride) } else { rows },
        });
        let count: usize = outer.iter().map(|(count, ..)| count).product();
        if count > MOST_CALLS || sides.iter().any(|side| !(row..=MOST_PITCH).contains(&side.pitch))
        {
            return None;
        }
        let mut calls = vec![views.map(|view| view.offset * element)];
        for (count, from, to) in outer {
            let along =
                |[at, there]: [usize; 2]| (0..count).map(move |i| [at + i * from, there + i * to]);
            calls = calls.into_iter().flat_map(along).collect();
        }
        Some(Self { row, rows, planes, sides, calls })
    }
}

#[cfg(test)]
mod tests {
    use crate::geometry::{DynBrick, Placed};

    use super::*;

    fn copy(part: DynBrick, from: DynBrick, order: [usize; 3], batch: usize) -> Option<EngineCopy> {
        let placed = |brick, order| Placed::new(brick, order, batch);
        let (from, to) = (placed(from, order), placed(part, [0, 1, 2]));
        EngineCopy::new(&Transfer::new(&part, 0..batch, &from, &to), 16)
    }

    #[test]
    fn boxes_are_rows_of_planes() {
        let all = DynBrick::new([0; 3], [8, 10, 40]);
        // A box inside on all sides: rows of 20 elements, 5 of them in each of 4 planes.
        let found = copy(DynBrick::new([2, 3, 10], [6, 8, 30]), all, [0, 1, 2], 2).unwrap();
        assert_eq!((found.row, found.rows, found.planes), (320, 5, 4));
        let [from, to] = found.sides;
        assert_eq!(from, EngineSide { pitch: 640, height: 10 });
        assert_eq!(to, EngineSide { pitch: 320, height: 5 });
        let first = ((2 * 10 + 3) * 40 + 10) * 16;
        assert_eq!(found.calls, [[first, 0], [first + 8 * 10 * 40 * 16, 400 * 16]]);
        // Whole rows are one row of a plane.
        let found = copy(DynBrick::new([2, 3, 0], [6, 8, 40]), all, [0, 1, 2], 1).unwrap();
        assert_eq!((found.row, found.rows, found.planes), (5 * 640, 4, 1));
    }

    #[test]
    fn others_are_not_for_engines() {
        let all = DynBrick::new([0; 3], [8, 10, 40]);
        assert_eq!(
            copy(DynBrick::new([0, 0, 0], [8, 10, 15]), all, [0, 1, 2], 1),
            None,
            "short rows"
        );
        assert_eq!(copy(all, all, [0, 2, 1], 1), None, "transposed");
    }
}
