//! The part of a rank's data that no other rank touches, while ranks transform in shared memory.
//!
//! Shared memory belongs to the plan. Points that their owner transforms in every step stay in the
//! caller's output; only the others are copied to where peers reach them.

use super::brick::DynBrick;
use super::layout::Layout;

/// Per rank, the exclusive part of its brick and the public rest.
#[derive(Debug)]
pub(crate) struct Exclusive {
    ranks: Vec<Parted>,
}

#[derive(Debug)]
struct Parted {
    exclusive: DynBrick,
    /// The rest as boxes, contiguous one after the other, each with the number of points before it.
    public: Vec<(DynBrick, usize)>,
}

impl Exclusive {
    pub(crate) fn nothing(home: &Layout) -> Self {
        Self::parted(home, |_| home.grid().nothing())
    }

    /// A rank's points in `home` that it has in each of `works` as well.
    pub(crate) fn of(home: &Layout, works: &[&Layout]) -> Self {
        Self::parted(home, |rank| {
            let common = |mine: DynBrick, work: &&Layout| mine.intersect(&work.brick(rank));
            works.iter().fold(home.brick(rank), common)
        })
    }

    fn parted(home: &Layout, exclusive: impl Fn(usize) -> DynBrick) -> Self {
        let part = |(rank, brick): (usize, &DynBrick)| {
            let exclusive = exclusive(rank);
            let mut before = 0;
            let place = |part: DynBrick| {
                let first = before;
                before += part.points();
                (part, first)
            };
            let public = brick.without(&exclusive, home.order()).into_iter().map(place).collect();
            Parted { exclusive, public }
        };
        Self { ranks: home.bricks().iter().enumerate().map(part).collect() }
    }

    pub(crate) fn is_any(&self) -> bool {
        self.ranks.iter().any(|rank| !rank.exclusive.is_empty())
    }

    /// The exclusive part of a rank's brick.
    pub(crate) fn brick(&self, rank: usize) -> DynBrick {
        self.ranks[rank].exclusive
    }

    /// The public boxes of a rank, contiguous in a row, with the number of points before each.
    pub(crate) fn public(&self, rank: usize) -> &[(DynBrick, usize)] {
        &self.ranks[rank].public
    }

    pub(crate) fn public_points(&self, rank: usize) -> usize {
        self.public(rank).last().map_or(0, |(last, before)| before + last.points())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{grid::DynGrid, process_grid::ProcGrid};

    #[test]
    fn a_brick_is_its_private_part_and_boxes_that_do_not_overlap() {
        let grid = DynGrid::new([5, 7, 6]).unwrap();
        let even = |shape| Layout::even(grid, ProcGrid::new(shape), 6);
        let all = [[6, 1, 1], [1, 2, 3], [2, 3, 1], [1, 1, 4], [1, 1, 1]].map(even);
        for home in &all {
            let home = home.clone().ordered([1, 2, 0]).unwrap();
            for works in [[&all[0], &all[1]], [&all[2], &all[4]], [&home, &all[3]], [&home, &home]]
            {
                let exclusive = Exclusive::of(&home, &works);
                for (rank, brick) in home.bricks().iter().enumerate() {
                    let mine = exclusive.brick(rank);
                    let mut boxes = vec![mine];
                    let mut before = 0;
                    for (part, first) in exclusive.public(rank) {
                        assert_eq!(*first, before);
                        before += part.points();
                        boxes.push(*part);
                    }
                    assert_eq!(exclusive.public_points(rank), before);
                    assert_eq!(boxes.iter().map(DynBrick::points).sum::<usize>(), brick.points());
                    for (i, a) in boxes.iter().enumerate() {
                        assert_eq!(a.intersect(brick).points(), a.points());
                        assert!(boxes[..i].iter().all(|b| a.intersect(b).is_empty()));
                    }
                    for work in works {
                        assert_eq!(mine.intersect(&work.brick(rank)).points(), mine.points());
                    }
                }
            }
            assert!(!Exclusive::nothing(&home).is_any());
        }
    }

    #[test]
    fn half_of_two_slabs_and_a_quarter_of_four_bricks_is_private() {
        let grid = DynGrid::new([8; 3]).unwrap();
        let share = |home, works: &[[usize; 3]], ranks| {
            let even = |shape| Layout::even(grid, ProcGrid::new(shape), ranks);
            let (home, works) = (even(home), works.iter().map(|&w| even(w)).collect::<Vec<_>>());
            let exclusive = Exclusive::of(&home, &works.iter().collect::<Vec<_>>());
            (exclusive.public_points(ranks - 1), home.brick(ranks - 1).points())
        };
        assert_eq!(share([2, 1, 1], &[[1, 2, 1]], 2), (128, 256));
        assert_eq!(share([4, 1, 1], &[[1, 4, 1]], 4), (96, 128));
        assert_eq!(share([2, 2, 1], &[[4, 1, 1], [1, 4, 1]], 4), (96, 128));
    }
}
