//! The bricks of ranks for files, and loops over the rows of a brick.

use thriffty::Comm;
use thriffty::planning::{DynBrick, DynGrid, PerAxis, ProcGrid};

/// This rank's slab along `slowest`, the axis that is slowest in a file: one run of the file. If
/// that axis is too short for all ranks, the library's brick.
pub(crate) fn slab(comm: &dyn Comm, grid: &DynGrid, slowest: usize) -> DynBrick {
    let (rank, ranks) = (comm.rank(), comm.size());
    if ranks > grid.len(slowest) {
        return grid.brick(rank, ranks);
    }
    let shape = PerAxis::from_fn(grid.axes(), |axis| if axis == slowest { ranks } else { 1 });
    ProcGrid::new(shape).part(grid, rank)
}

/// The order of axes in memory, slowest first, of an array in C or Fortran order.
pub(crate) fn order(axes: usize, fortran: bool) -> PerAxis<usize> {
    PerAxis::from_fn(axes, |axis| if fortran { axes - 1 - axis } else { axis })
}

/// Calls `visit(first, at)` for every row of a brick along the contiguous axis: the global index of
/// its first point, and that point's place in memory.
pub(crate) fn for_each_row(
    brick: &DynBrick,
    order: PerAxis<usize>,
    mut visit: impl FnMut(PerAxis<usize>, usize),
) {
    if brick.is_empty() {
        return;
    }
    let (fast, slow) = order.split_last().expect("at least one axis");
    let len = brick.len(*fast);
    let mut first = brick.lo;
    for at in (0..brick.points()).step_by(len) {
        visit(first, at);
        for &axis in slow.iter().rev() {
            first[axis] += 1;
            if first[axis] < brick.hi[axis] {
                break;
            }
            first[axis] = brick.lo[axis];
        }
    }
}

/// The place in memory of a point of a brick.
pub(crate) fn place(brick: &DynBrick, order: PerAxis<usize>, index: PerAxis<usize>) -> usize {
    order.iter().fold(0, |at, &axis| at * brick.len(axis) + index[axis] - brick.lo[axis])
}

pub(crate) fn holds(brick: &DynBrick, index: PerAxis<usize>) -> bool {
    (0..brick.axes()).all(|axis| brick.range(axis).contains(&index[axis]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_in_the_order_of_memory() {
        let brick = DynBrick::new([1, 2], [3, 5]);
        let rows = |order: [usize; 2]| {
            let mut rows = Vec::new();
            for_each_row(&brick, order.into(), |first, at| rows.push((first.array(), at)));
            rows
        };
        assert_eq!(rows([0, 1]), [([1, 2], 0), ([2, 2], 3)]);
        assert_eq!(rows([1, 0]), [([1, 2], 0), ([1, 3], 2), ([1, 4], 4)]);
        for order in [[0, 1], [1, 0]] {
            assert!(rows(order).iter().all(|&(first, at)| place(
                &brick,
                order.into(),
                first.into()
            ) == at));
        }
        assert!(holds(&brick, [2, 4].into()) && !holds(&brick, [3, 4].into()));
    }

    #[test]
    fn an_empty_brick_has_no_rows() {
        for_each_row(&DynBrick::new([0, 2], [4, 2]), [1, 0].into(), |_, _| panic!("a row"));
    }

    #[test]
    fn files_are_cut_into_slabs_while_there_are_enough_planes() {
        thriffty::threads(3, |comm| {
            let grid = DynGrid::new([3, 8, 2])?;
            let rank = comm.rank();
            assert_eq!(slab(&comm, &grid, 0).range(0), rank..rank + 1);
            assert_eq!(slab(&comm, &grid, 2), grid.brick(rank, 3));
            Ok::<_, thriffty::Error>(())
        })
        .unwrap();
    }
}
