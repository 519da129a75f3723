//! Which bricks make a layout: every tiling does, and nothing else.

use crate::tiling::{Rng, tiling};
use fft_core::{Brick, DynBrick, Error, Grid, Layout, ProcGrid};
use proptest::prelude::*;

/// A grid with a random tiling of it.
fn tiled<const D: usize>(longest: usize) -> impl Strategy<Value = (Grid<D>, Vec<Brick<D>>, Rng)> {
    let shape: [_; D] = std::array::from_fn(|_| 1..=longest);
    (shape, 1..=12usize, any::<u64>().no_shrink()).prop_map(|(shape, ranks, seed)| {
        let (grid, mut rng) = (Grid::new(shape).unwrap(), Rng(seed));
        let bricks = tiling(grid, ranks, &mut rng);
        (grid, bricks, rng)
    })
}

/// How often each point of the grid is in a brick: the definition of a tiling.
fn covers<const D: usize>(grid: Grid<D>, bricks: &[Brick<D>]) -> Vec<usize> {
    let shape = grid.shape();
    let within = |brick: &Brick<D>, mut place: usize| {
        (0..D).rev().all(|axis| {
            let i = place % shape[axis];
            place /= shape[axis];
            brick.range(axis).contains(&i)
        })
    };
    let times = |place| bricks.iter().filter(|brick| within(brick, place)).count();
    (0..grid.points()).map(times).collect()
}

type Checked = Result<(), TestCaseError>;

fn accepted<const D: usize>(grid: Grid<D>, bricks: &[Brick<D>]) -> Checked {
    prop_assert!(covers(grid, bricks).iter().all(|times| *times == 1), "no tiling: {bricks:?}");
    let layout = Layout::new(grid, bricks.to_vec(), bricks.len());
    let layout = layout.map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(layout.bricks(), bricks);
    for axis in 0..D {
        let whole = bricks.iter().all(|b| b.is_empty() || b.len(axis) == grid.len(axis));
        prop_assert_eq!(layout.is_whole(axis), whole);
    }
    Ok(())
}

/// A brick of a tiling grows, shrinks, moves, disappears or comes twice. The error must follow from
/// how often each point is covered.
fn refused<const D: usize>(grid: Grid<D>, good: &[Brick<D>], rng: &mut Rng) -> Checked {
    let ranks = good.len();
    let held: Vec<usize> = (0..ranks).filter(|&rank| !good[rank].is_empty()).collect();
    let rank = held[rng.below(held.len())];
    let (axis, other) = (rng.below(D), (rank + 1 + rng.below(ranks)) % ranks);
    for mutation in ["grow up", "grow down", "shrink", "shift", "drop", "duplicate", "reverse"] {
        let mut bricks = good.to_vec();
        let brick = &mut bricks[rank];
        match mutation {
            "grow up" => brick.hi[axis] += 1,
            "grow down" if brick.lo[axis] > 0 => brick.lo[axis] -= 1,
            "shrink" => brick.hi[axis] -= 1,
            "shift" => (brick.lo[axis], brick.hi[axis]) = (brick.lo[axis] + 1, brick.hi[axis] + 1),
            "drop" => *brick = Brick::EMPTY,
            "duplicate" if other != rank => bricks[other] = good[rank],
            "reverse" => (brick.lo[axis], brick.hi[axis]) = (brick.hi[axis], brick.lo[axis]),
            _ => continue,
        }
        let error = match Layout::new(grid, bricks.clone(), ranks) {
            Ok(_) => {
                return Err(TestCaseError::fail(format!("{mutation} of rank {rank} accepted")));
            }
            Err(error) => error,
        };
        explained(grid, &bricks, &error).map_err(|why| {
            TestCaseError::fail(format!("{mutation} of rank {rank}: {error}: {why}"))
        })?;
    }
    Ok(())
}

/// Whether an error describes the fault of these bricks.
fn explained<const D: usize>(
    grid: Grid<D>,
    bricks: &[Brick<D>],
    error: &Error,
) -> Result<(), String> {
    let Error::Geometry(text) = error else { return Err("another variant was expected".into()) };
    let outside = |b: &Brick<D>| (0..D).any(|a| b.lo[a] > b.hi[a] || b.hi[a] > grid.len(a));
    let pairs = || (0..bricks.len()).flat_map(|a| (a + 1..bricks.len()).map(move |b| (a, b)));
    let common = |(a, b): (usize, usize)| bricks[a].intersect(&bricks[b]);
    let expected = if let Some(rank) = bricks.iter().position(outside) {
        format!("brick {} of rank {rank} is not inside the grid {grid}", bricks[rank])
    } else if let Some((a, b)) = pairs().find(|pair| !common(*pair).is_empty()) {
        let both = common((a, b));
        format!(
            "brick {} of rank {a} and brick {} of rank {b} overlap in {both}",
            bricks[a], bricks[b]
        )
    } else {
        // The hole is a box of the grid that no brick touches.
        let hole =
            text.split(" of ").next().and_then(brick_of::<D>).ok_or("the hole is no brick")?;
        if hole.is_empty()
            || outside(&hole)
            || bricks.iter().any(|b| !b.intersect(&hole).is_empty())
        {
            return Err("no hole".into());
        }
        let (covered, points) = (covers(grid, bricks).iter().sum::<usize>(), grid.points());
        format!(
            "{hole} of grid {grid} belongs to no rank ({covered} of {points} points are covered)"
        )
    };
    if *text == expected { Ok(()) } else { Err(format!("expected {expected}")) }
}

/// A brick as it is printed, back.
fn brick_of<const D: usize>(text: &str) -> Option<Brick<D>> {
    let mut brick = Brick::EMPTY;
    let ranges = text.strip_prefix('[')?.strip_suffix(']')?.split(", ");
    for (axis, range) in ranges.enumerate() {
        let (lo, hi) = range.split_once("..")?;
        (brick.lo[axis], brick.hi[axis]) = (lo.parse().ok()?, hi.parse().ok()?);
    }
    Some(brick)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tilings_are_accepted_in_1d((grid, bricks, _) in tiled::<1>(60)) {
        accepted(grid, &bricks)?;
    }
    #[test]
    fn tilings_are_accepted_in_2d((grid, bricks, _) in tiled::<2>(12)) {
        accepted(grid, &bricks)?;
    }
    #[test]
    fn tilings_are_accepted_in_3d((grid, bricks, _) in tiled::<3>(7)) {
        accepted(grid, &bricks)?;
    }
    #[test]
    fn tilings_are_accepted_in_4d((grid, bricks, _) in tiled::<4>(4)) {
        accepted(grid, &bricks)?;
    }
    #[test]
    fn mutations_are_refused_in_1d((grid, bricks, mut rng) in tiled::<1>(60)) {
        refused(grid, &bricks, &mut rng)?;
    }
    #[test]
    fn mutations_are_refused_in_2d((grid, bricks, mut rng) in tiled::<2>(12)) {
        refused(grid, &bricks, &mut rng)?;
    }
    #[test]
    fn mutations_are_refused_in_3d((grid, bricks, mut rng) in tiled::<3>(7)) {
        refused(grid, &bricks, &mut rng)?;
    }
    #[test]
    fn mutations_are_refused_in_4d((grid, bricks, mut rng) in tiled::<4>(4)) {
        refused(grid, &bricks, &mut rng)?;
    }
    #[test]
    fn even_cuts_tile(
        shape in [1..12usize, 1..12, 1..12], cut in [1..5usize, 1..5, 1..5], more in 0..3usize,
    ) {
        let (grid, cut) = (Grid::new(shape).unwrap(), ProcGrid::new(cut));
        let ranks = cut.ranks() + more;
        let layout = Layout::even(grid, cut, ranks);
        prop_assert_eq!(layout.ranks(), ranks);
        let bricks: Vec<_> = (0..ranks).map(|rank| cut.brick(&grid, rank)).collect();
        accepted(grid, &bricks)?;
        prop_assert_eq!(layout.bricks(), &bricks[..]);
    }
    #[test]
    fn default_bricks_tile(shape in [1..12usize, 1..12, 1..12, 1..6], ranks in 1..40usize) {
        let grid = Grid::new(shape).unwrap();
        let bricks: Vec<_> = (0..ranks).map(|rank| grid.brick(rank, ranks)).collect();
        accepted(grid, &bricks)?;
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let grid = Grid::new([8, 6]).unwrap();
    let brick = |lo, hi| Brick { lo, hi };
    let text = |bricks: &[Brick<2>], ranks| {
        Layout::new(grid, bricks.to_vec(), ranks).unwrap_err().to_string()
    };
    let (left, right) = (brick([0, 0], [8, 3]), brick([0, 3], [8, 6]));
    assert!(Layout::new(grid, vec![left, right], 2).is_ok());
    assert_eq!(text(&[left, right], 3), "a layout for 3 ranks needs 3 bricks, found 2");
    assert_eq!(
        text(&[left, brick([0, 2], [8, 6])], 2),
        "brick [0..8, 0..3] of rank 0 and brick [0..8, 2..6] of rank 1 overlap in [0..8, 2..3]"
    );
    assert_eq!(
        text(&[left, brick([0, 3], [8, 7])], 2),
        "brick [0..8, 3..7] of rank 1 is not inside the grid 8x6"
    );
    assert_eq!(
        text(&[left, brick([8, 3], [0, 6])], 2),
        "brick [8..0, 3..6] of rank 1 is not inside the grid 8x6"
    );
    assert_eq!(
        text(&[left, brick([4, 3], [8, 6])], 2),
        "[0..4, 3..6] of grid 8x6 belongs to no rank (36 of 48 points are covered)"
    );
    assert_eq!(
        Layout::new(grid, vec![left, right], 2).unwrap().ordered([1, 1]).unwrap_err().to_string(),
        "axis order: found [1, 1], expected a permutation of the 2 axes"
    );
    assert_eq!(
        Grid::new([3, 0]).unwrap_err().to_string(),
        "axis 1 of grid 3x0 has no points; every axis needs at least 1"
    );
    assert_eq!(
        Grid::new([1 << 30, 1 << 31]).unwrap_err().to_string(),
        "grid 1073741824x2147483648 with 1 batches has more than 2^58 points"
    );
}

#[test]
fn bricks_without_points_may_lie_anywhere_in_the_grid() {
    let grid = Grid::new([4, 5]).unwrap();
    let flat = [Brick { lo: [2, 1], hi: [2, 4] }, Brick { lo: [4, 5], hi: [4, 5] }, Brick::EMPTY];
    let bricks: Vec<_> = flat.into_iter().chain([grid.whole()]).collect();
    let layout = Layout::new(grid, bricks, 4).unwrap();
    assert!(layout.is_whole(0) && layout.is_whole(1));
}

#[test]
fn no_ranks_make_no_layout() {
    let grid = Grid::new([4, 5]).unwrap();
    let error = Layout::new(grid, Vec::<Brick<3>>::new(), 0).unwrap_err();
    assert_eq!(error.to_string(), "ranks of a layout: found 0, expected at least 1");
}

#[test]
fn bricks_have_the_axes_of_the_grid() {
    let grid = Grid::new([4, 5]).unwrap();
    let refused = |brick: DynBrick, found: usize| {
        let error = Layout::new(grid, vec![DynBrick::empty(2), brick], 2).unwrap_err();
        let expected = format!("axes of the brick of rank 1: found {found}, expected 2");
        assert_eq!(error.to_string(), expected);
    };
    refused(DynBrick::new([0], [4]), 1);
    refused(DynBrick::new([0, 0, 0], [4, 5, 1]), 3);
    refused(DynBrick { lo: [0, 0].into(), hi: [4, 5, 1].into() }, 3);
}

#[test]
#[should_panic(expected = "process grid 2x0 has no ranks")]
fn an_even_cut_into_nothing_is_refused() {
    let _ = Layout::even(Grid::new([4, 5]).unwrap(), ProcGrid::new([2, 0]), 1);
}

#[test]
fn layouts_are_equal_when_every_rank_holds_the_same_points() {
    let grid = Grid::new([4, 6]).unwrap();
    let layout = |bricks: &[Brick<2>]| Layout::new(grid, bricks.to_vec(), 2).unwrap();
    let none = layout(&[grid.whole(), Brick::EMPTY]);
    let flat = layout(&[grid.whole(), Brick { lo: [1, 1], hi: [3, 1] }]);
    assert_eq!(none, flat);
    assert_ne!(none, layout(&[Brick::EMPTY, grid.whole()]));
    assert_ne!(none, flat.ordered([1, 0]).unwrap());
}

#[test]
fn thousands_of_irregular_bricks_are_checked() {
    let grid = Grid::new([640, 480, 320]).unwrap();
    let ranks = 16384;
    let mut rng = Rng(1);
    let mut bricks = tiling(grid, ranks, &mut rng);
    while bricks.iter().filter(|brick| !brick.is_empty()).count() < ranks / 2 {
        bricks = tiling(grid, ranks, &mut rng);
    }
    let layout = Layout::new(grid, bricks.clone(), ranks).unwrap();
    assert_eq!(layout.bricks().iter().map(DynBrick::points).sum::<usize>(), grid.points());
    let held: Vec<usize> = (0..ranks).filter(|&rank| bricks[rank].points() > 1).collect();
    let rank = held[held.len() / 2];
    let axis = (0..3).find(|&axis| bricks[rank].len(axis) > 1).unwrap();
    bricks[rank].hi[axis] -= 1;
    let error = Layout::new(grid, bricks, ranks).unwrap_err();
    assert!(error.to_string().contains("belongs to no rank"), "{error}");
    let even = Layout::even(grid, ProcGrid::cubic(grid, ranks), ranks);
    assert!(Layout::new(grid, even.bricks().to_vec(), ranks).is_ok());
}
