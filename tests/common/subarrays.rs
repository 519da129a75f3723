//! Random bricks in local arrays of ranks, and copies between them.

use std::fmt::Debug;

use bytemuck::Pod;
use thriffty::arrays::{CopyPlan, Ghosts, GridData, Subarray};
use thriffty::planning::DynBrick;
use thriffty::{Brick, Comm, Error, Grid};

use crate::common::tiling::{Rng, tiling};

/// The value of elements outside all bricks.
const NOTHING: u32 = u32::MAX;

/// Bricks that tile the grid, several for some ranks and none for others.
pub(crate) fn bricks<const D: usize>(
    grid: Grid<D>,
    ranks: usize,
    rng: &mut Rng,
) -> Vec<Vec<Brick<D>>> {
    let mut of_ranks = vec![Vec::new(); ranks];
    for brick in tiling(grid, 1 + rng.below(3 * ranks), rng) {
        of_ranks[rng.below(ranks)].push(brick);
    }
    of_ranks
}

/// A brick somewhere in a larger array, of any order of axes.
pub(crate) fn placed<const D: usize>(brick: Brick<D>, batch: usize, rng: &mut Rng) -> Subarray {
    let start: [usize; D] = std::array::from_fn(|_| rng.below(3));
    let shape: [usize; D] =
        std::array::from_fn(|axis| start[axis] + brick.len(axis) + rng.below(3));
    let array = Subarray::placed(brick, start, shape, rng.order::<D>());
    match rng.below(2) {
        0 => array.interleaved(batch + rng.below(2)),
        _ => array,
    }
}

/// The place in its array of a point, in the brick or around it.
pub(crate) fn element(array: &Subarray, item: usize, index: &[isize]) -> usize {
    let steps = index.iter().zip(&*array.brick.lo).zip(&*array.strides);
    let steps = steps.map(|((i, lo), stride)| (i - *lo as isize) * *stride as isize);
    (array.offset + item * array.distance).checked_add_signed(steps.sum()).unwrap()
}

/// Every index of a box, from `lo` on.
pub(crate) fn indices(lo: &[isize], hi: &[isize]) -> Vec<Vec<isize>> {
    lo.iter().zip(hi).fold(vec![Vec::new()], |all, (lo, hi)| {
        let longer = |index: Vec<isize>| (*lo..*hi).map(move |i| [&index[..], &[i]].concat());
        all.into_iter().flat_map(longer).collect()
    })
}

pub(crate) fn points(brick: &DynBrick) -> Vec<Vec<isize>> {
    let bound = |it: &[usize]| it.iter().map(|i| *i as isize).collect::<Vec<_>>();
    indices(&bound(&brick.lo), &bound(&brick.hi))
}

/// A number for each point of each batch.
pub(crate) fn value(grid: DynShape<'_>, item: usize, index: &[isize]) -> u32 {
    let wrapped = index.iter().zip(grid).map(|(i, n)| i.rem_euclid(*n as isize) as usize);
    wrapped.zip(grid).fold(item, |place, (i, n)| place * n + i) as u32
}

type DynShape<'a> = &'a [usize];

/// An array with the values of a brick's points, and nothing elsewhere.
pub(crate) fn filled<E: Pod>(
    array: &Subarray,
    shape: DynShape<'_>,
    batch: usize,
    len: usize,
) -> Vec<E> {
    let mut words = vec![NOTHING; len * size_of::<E>() / 4];
    let per = size_of::<E>() / 4;
    for item in 0..batch {
        for index in points(&array.brick) {
            let at = element(array, item, &index);
            words[at * per..][..per].fill(value(shape, item, &index));
        }
    }
    bytemuck::pod_collect_to_vec(&words)
}

/// Elements of 4, 8 or 16 bytes.
pub(crate) trait Item: Pod + PartialEq + Debug {}
impl<E: Pod + PartialEq + Debug> Item for E {}

/// Runs planned copies: on the host, or on devices.
pub(crate) trait Runner {
    fn run<E: Item>(
        &self,
        comm: &dyn Comm,
        plan: CopyPlan,
        sources: &[Vec<E>],
        targets: &mut [Vec<E>],
    ) -> Result<(), Error>;

    fn run_in_place<E: Item>(
        &self,
        comm: &dyn Comm,
        plan: CopyPlan,
        arrays: &mut [Vec<E>],
    ) -> Result<(), Error>;
}

/// A random copy of each point to where it belongs. Collective.
pub(crate) fn copies<E: Item, const D: usize>(
    comm: &dyn Comm,
    runner: &impl Runner,
    seed: u64,
) -> Result<(), Error> {
    let ranks = comm.size();
    let mut rng = Rng(seed);
    let shape: [usize; D] = std::array::from_fn(|_| 1 + rng.below(7));
    let grid = Grid::new(shape).unwrap();
    let batch = 1 + rng.below(3);
    let sources = bricks(grid, ranks, &mut rng);
    let mut targets = bricks(grid, ranks, &mut rng);
    // Targets may overlap.
    targets[rng.below(ranks)].push(grid.whole());
    let mut place = |side: Vec<Vec<Brick<D>>>| -> Vec<Vec<Subarray>> {
        let mut one = |(array, it)| placed(it, batch, &mut rng).in_array(array);
        let mut all = |bricks: Vec<_>| bricks.into_iter().enumerate().map(&mut one).collect();
        side.into_iter().map(&mut all).collect()
    };
    let (sources, targets) = (place(sources), place(targets));
    let data = GridData::of::<E>(grid).batch(batch);
    let (from, to) = (&sources[comm.rank()], &targets[comm.rank()]);
    let plan = CopyPlan::new(comm, data, from, to)?;
    let len = |it: &Subarray| it.least_len(batch).unwrap();
    let read: Vec<Vec<E>> = from.iter().map(|it| filled(it, &shape, batch, len(it))).collect();
    let nothing =
        |it: &Subarray| filled(&Subarray { brick: DynBrick::empty(D), ..*it }, &shape, 0, len(it));
    let mut written: Vec<Vec<E>> = to.iter().map(nothing).collect();
    runner.run(comm, plan, &read, &mut written)?;
    for (it, found) in to.iter().zip(&written) {
        let expected = filled::<E>(it, &shape, batch, len(it));
        assert_eq!(*found, expected, "seed {seed}, {sources:?} to {it:?}");
    }
    Ok(())
}

/// Random ghost points, whose values must be the grid's. Collective.
pub(crate) fn halos<E: Item, const D: usize>(
    comm: &dyn Comm,
    runner: &impl Runner,
    seed: u64,
) -> Result<(), Error> {
    let ranks = comm.size();
    let mut rng = Rng(seed);
    let shape: [usize; D] = std::array::from_fn(|_| 1 + rng.below(5));
    let grid = Grid::new(shape).unwrap();
    let batch = 1 + rng.below(2);
    let [lower, upper]: [[usize; D]; 2] =
        [0; 2].map(|_| std::array::from_fn(|axis| rng.below(shape[axis] + 2)));
    let periodic: [bool; D] = std::array::from_fn(|_| rng.below(2) == 0);
    let ghosts = Ghosts::new(lower, upper, periodic);
    let all: Vec<Vec<Subarray>> = bricks(grid, ranks, &mut rng)
        .into_iter()
        .map(|bricks| {
            let one = |(array, brick): (usize, Brick<D>)| {
                let array = Subarray::with_ghosts(brick, lower, upper).in_array(array);
                if rng.below(2) == 0 { array.interleaved(batch) } else { array }
            };
            bricks.into_iter().enumerate().map(one).collect()
        })
        .collect();
    let data = GridData::of::<E>(grid).batch(batch);
    let arrays = &all[comm.rank()];
    let plan = CopyPlan::halo(comm, data, ghosts, arrays)?;
    let len = |it: &Subarray| -> usize {
        let around = (0..D).map(|axis| lower[axis] + it.brick.len(axis) + upper[axis]);
        around.product::<usize>() * batch
    };
    let mut found: Vec<Vec<E>> =
        arrays.iter().map(|it| filled(it, &shape, batch, len(it))).collect();
    let mut expected = found.clone();
    runner.run_in_place(comm, plan, &mut found)?;
    let per = size_of::<E>() / 4;
    for (it, expected) in arrays.iter().zip(&mut expected).filter(|it| !it.0.brick.is_empty()) {
        let words: &mut [u32] = bytemuck::cast_slice_mut(expected);
        let lo: Vec<_> =
            (0..D).map(|axis| it.brick.lo[axis] as isize - lower[axis] as isize).collect();
        let hi: Vec<_> = (0..D).map(|axis| (it.brick.hi[axis] + upper[axis]) as isize).collect();
        for index in indices(&lo, &hi) {
            let is_there = (0..D)
                .all(|axis| periodic[axis] || (0..shape[axis] as isize).contains(&index[axis]));
            for item in (0..batch).filter(|_| is_there) {
                let at = element(it, item, &index);
                words[at * per..][..per].fill(value(&shape, item, &index));
            }
        }
    }
    assert_eq!(found, expected, "seed {seed}, {ghosts:?} of {arrays:?}");
    Ok(())
}
