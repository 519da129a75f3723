//! The work that the threads of a plan divide.

use fft_core::{DynBrick, DynGrid, Kind, PerAxis};

use crate::field::DynTransform;
use crate::options::Options;

/// The transform of one call of the plans, and the number of calls.
pub(crate) struct Work {
    pub(crate) grid: DynGrid,
    pub(crate) options: Options,
    pub(crate) calls: usize,
}

impl Work {
    /// A large batch becomes an extra axis without a transform, so that threads get whole arrays. A
    /// small batch is transformed one array at a time, each cut between the threads.
    pub(crate) fn new(
        grid: DynGrid,
        transform: DynTransform,
        options: Options,
        threads: usize,
    ) -> Self {
        let calls = options.batch;
        let single = Options { batch: 1, ..options };
        let axes = grid.axes();
        if calls < threads.max(2) || axes == fft_core::MAX_AXES {
            return Self { grid, options: single, calls };
        }
        let shape =
            PerAxis::from_fn(axes + 1, |a| if a == 0 { calls } else { grid.shape()[a - 1] });
        let Ok(grid) = DynGrid::new(shape) else { return Self { grid, options: single, calls } };
        let order = |order: PerAxis<usize>| {
            PerAxis::from_fn(axes + 1, |place| if place == 0 { 0 } else { order[place - 1] + 1 })
        };
        let kinds = single.kinds_of(transform, axes);
        let kinds = PerAxis::from_fn(axes + 1, |a| if a == 0 { Kind::None } else { kinds[a - 1] });
        let longer = |lens: Option<PerAxis<usize>>| {
            lens.map(|lens| {
                PerAxis::from_fn(axes + 1, |a| if a == 0 { calls } else { lens[a - 1] })
            })
        };
        let all_of = |brick: Option<DynBrick>| {
            brick.map(|brick| {
                let ends = |ends: PerAxis<usize>, first| {
                    PerAxis::from_fn(axes + 1, |a| if a == 0 { first } else { ends[a - 1] })
                };
                DynBrick::new(ends(brick.lo, 0), ends(brick.hi, calls))
            })
        };
        let options = Options {
            input: all_of(single.input),
            output: all_of(single.output),
            kinds: Some(kinds),
            zero_padded: longer(single.zero_padded),
            modes: longer(single.modes),
            input_order: Some(order(single.input_order_of(axes))),
            output_order: Some(order(single.output_order_of(axes))),
            ..single
        };
        Self { grid, options, calls: 1 }
    }
}

/// The part of a brick that belongs to a thread. The parts of all threads follow each other in
/// memory.
pub(crate) fn part(
    brick: DynBrick,
    order: PerAxis<usize>,
    threads: usize,
    thread: usize,
) -> DynBrick {
    // Slower axes have one point.
    let axis = order.iter().copied().find(|&axis| brick.len(axis) > 1).unwrap_or(order[0]);
    let (mut part, first, len) = (brick, brick.lo[axis], brick.len(axis));
    let cut = |thread: usize| first + len * thread / threads;
    (part.lo[axis], part.hi[axis]) = (cut(thread), cut(thread + 1));
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts are the brick, one after the other in its order of memory.
    #[test]
    fn parts_follow_each_other_in_memory() {
        let place = |brick: &DynBrick, order: PerAxis<usize>, point: [usize; 3]| {
            order.iter().fold(0, |at, &axis| at * brick.len(axis) + point[axis] - brick.lo[axis])
        };
        for hi in [[5, 9, 7], [3, 9, 7], [3, 5, 7], [3, 5, 7], [2, 4, 6]] {
            let brick = DynBrick::new([2, 4, 6], hi);
            for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]].map(PerAxis::from) {
                for threads in [1, 2, 5] {
                    let mut before = 0;
                    for thread in 0..threads {
                        let part = part(brick, order, threads, thread);
                        assert_eq!(part.intersect(&brick).points(), part.points());
                        for x in part.lo[0]..part.hi[0] {
                            for y in part.lo[1]..part.hi[1] {
                                for z in part.lo[2]..part.hi[2] {
                                    let here = place(&part, order, [x, y, z]);
                                    let there = place(&brick, order, [x, y, z]);
                                    assert_eq!(before + here, there);
                                }
                            }
                        }
                        before += part.points();
                    }
                    assert_eq!(before, brick.points());
                }
            }
        }
    }
}
