//! Bytes that recipes send over the network, compared with the rules of classic libraries: slabs
//! and pencils.

use crate::tiling::Rng;
use fft_core::{Brick, Exchange, Grid, Kind, Layout, Precision, Problem, ProcGrid, Recipe, Step};

/// Points that change hosts on a way through layouts.
fn over_network(layouts: &[Layout], hosts: &[usize]) -> usize {
    let between = |from: &Layout, to: &Layout| -> usize {
        let pairs = from.bricks().iter().zip(hosts);
        pairs
            .map(|(a, here)| {
                let others = to.bricks().iter().zip(hosts).filter(|(_, there)| *there != here);
                others.map(|(b, _)| a.intersect(b).points()).sum::<usize>()
            })
            .sum()
    };
    layouts.windows(2).map(|pair| between(&pair[0], &pair[1])).sum()
}

fn of_recipe(recipe: &Recipe, hosts: &[usize]) -> usize {
    let mut layouts = vec![recipe.nodes()[0].layout.clone()];
    for (number, step) in recipe.steps().iter().enumerate() {
        if matches!(step, Step::Reshape { .. }) {
            layouts.push(recipe.nodes()[number + 1].layout.clone());
        }
    }
    over_network(&layouts, hosts)
}

/// The better of the two classic rules.
fn of_classic(problem: &Problem, hosts: &[usize]) -> usize {
    let (grid, ranks) = (problem.grid(), problem.input.ranks());
    let divisors = (1..=ranks).filter(|a| ranks % a == 0);
    let a = divisors.min_by_key(|a| (a + ranks / a, *a)).unwrap();
    let b = ranks / a;
    let ways = [vec![[a, b, 1], [a, 1, b], [1, a, b]], vec![[ranks, 1, 1], [1, ranks, 1]]];
    let bytes = |way: &Vec<[usize; 3]>| {
        let through = way.iter().map(|cut| Layout::even(grid, ProcGrid::new(*cut), ranks));
        let mut layouts = vec![problem.input.clone()];
        layouts.extend(through);
        layouts.push(problem.output.clone());
        over_network(&layouts, hosts)
    };
    ways.iter().map(bytes).min().unwrap()
}

#[derive(Clone, Copy, PartialEq)]
enum Bricks {
    /// As close to cubes as it goes.
    Cubic,
    /// All axes whole but one.
    Slabs,
    /// Bricks of different sizes.
    Irregular,
}

#[test]
fn never_more_than_the_classic_rules_and_far_less_from_bricks_to_bricks() {
    let mut rng = Rng(2026);
    let mut below = |n: usize| rng.below(n);
    let mut saved = Vec::new();
    for number in 0..60 {
        let sides = [128, 192, 200, 243, 256, 320, 384, 500, 512];
        let grid = Grid::new(std::array::from_fn(|_| sides[below(sides.len())])).unwrap();
        let ranks = 2 + below(63);
        // Hosts are full.
        let per_host = [1, 2, 4, 6][below(4)];
        let per_host = if ranks % per_host == 0 { per_host } else { 1 };
        let kinds = [Bricks::Cubic, Bricks::Cubic, Bricks::Cubic, Bricks::Slabs, Bricks::Irregular];
        let bricks = kinds[number % kinds.len()];
        let mut layout = || match bricks {
            Bricks::Cubic => Layout::even(grid, ProcGrid::cubic(grid, ranks), ranks),
            Bricks::Slabs => Layout::even(grid, ProcGrid::new([1, 1, ranks]), ranks),
            Bricks::Irregular => {
                let mut bricks = Vec::new();
                bisect(grid.whole(), ranks, &mut below, &mut bricks);
                Layout::new(grid, bricks, ranks).unwrap()
            }
        };
        let (input, output) = (layout(), layout());
        let mut problem =
            Problem::new([Kind::C2C; 3], true, Precision::F64, input, output).unwrap();
        problem.options.exchange = [Exchange::P2p, Exchange::Shared][number % 2];
        let hosts: Vec<_> = (0..ranks).map(|rank| rank / per_host).collect();
        problem.hosts.clone_from(&hosts);
        let classic = of_classic(&problem, &hosts);
        let recipe = Recipe::new(problem).unwrap();
        let ours = of_recipe(&recipe, &hosts);
        // Another cut may send slightly less where its largest part is larger, and be slower.
        assert!(ours <= classic, "{ours} points instead of {classic}, {per_host} a host: {recipe}");
        let first = recipe.problem().input.brick(0);
        let cut = (0..3).filter(|axis| first.len(*axis) < grid.len(*axis)).count();
        if bricks == Bricks::Cubic && cut > 1 && classic > 0 {
            saved.push(1.0 - ours as f64 / classic as f64);
        }
    }
    saved.sort_by(f64::total_cmp);
    let median = saved[saved.len() / 2];
    println!(
        "{} from bricks to bricks: {median:.3} saved in the median of {saved:.3?}",
        saved.len()
    );
    assert!(median >= 0.15, "{median:.3} saved in the median of {saved:.3?}");
}

/// Cuts a brick into `pieces` bricks of different size, the longest axis first.
fn bisect(
    brick: Brick<3>,
    pieces: usize,
    below: &mut impl FnMut(usize) -> usize,
    found: &mut Vec<Brick<3>>,
) {
    if pieces == 1 {
        return found.push(brick);
    }
    let axis = (0..3).max_by_key(|axis| brick.len(*axis)).unwrap();
    let left = pieces / 2;
    let n = brick.len(axis);
    // Up to a tenth away from where the pieces would be equal.
    let at = (n * left / pieces + below(n / 5 + 1)).saturating_sub(n / 10).clamp(1, n - 1);
    let (mut a, mut b) = (brick, brick);
    (a.hi[axis], b.lo[axis]) = (brick.lo[axis] + at, brick.lo[axis] + at);
    bisect(a, left, below, found);
    bisect(b, pieces - left, below, found);
}
