//! Recipes: the plans of a few problems, to the letter, and properties of every plan.

use Kind::{C2C, Dct2, Dct3, Dst1, Dst4, R2C};
use fft_core::{
    Access, Exchange, Grid, Kind, Layout, PerAxis, Precision, Problem, ProcGrid, Recipe, Scale,
    Tolerance, Wire,
};

/// A problem with the default bricks.
fn problem<const D: usize>(shape: [usize; D], kinds: [Kind; D], ranks: usize) -> Problem {
    let grid = Grid::new(shape).unwrap();
    let layout = |grid: Grid<D>| Layout::even(grid, ProcGrid::cubic(grid, ranks), ranks);
    let spectral = Problem::spectral_grid(grid, kinds).typed::<D>();
    // Whatever becomes complex along the way starts as real numbers, and so do cosine transforms.
    let complex = !kinds.contains(&R2C) && kinds.contains(&C2C);
    let mut problem =
        Problem::new(kinds, complex, Precision::F64, layout(grid), layout(spectral)).unwrap();
    problem.options.exchange = Exchange::P2p;
    problem
}

fn text(problem: Problem) -> String {
    Recipe::new(problem).unwrap().to_string()
}

fn plain<const D: usize>(shape: [usize; D], kinds: [Kind; D], ranks: usize) -> String {
    text(problem(shape, kinds, ranks))
}

#[test]
fn one_rank_exchanges_nothing() {
    for (found, expected) in [
        (plain([16], [C2C], 1), "(c2c 16 f64 ranks=1 [1] (fft x) (scale inverse))"),
        (
            plain([16, 8], [C2C; 2], 1),
            "(c2c 16x8 f64 ranks=1 [1x1] (fft y) (fft x) (scale inverse))",
        ),
        (
            plain([32; 3], [C2C, C2C, R2C], 1),
            "(r2c 32x32x32 f64 ranks=1 [1x1x1] (r2c z) (fft y) (fft x) (scale inverse))",
        ),
        (
            plain([4; 4], [Dct2; 4], 1),
            "(dct2 4x4x4x4 f64 ranks=1 [1x1x1x1] (dct2 z) (dct2 y) (dct2 x) (dct2 w) (scale \
             inverse))",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn every_axis_has_a_kind() {
    let grid = Grid::new([8, 8, 8]).unwrap();
    let bricks = Layout::even(grid, ProcGrid::cubic(grid, 2), 2);
    let with = |kinds: PerAxis<Kind>| {
        Problem::new(kinds, true, Precision::F64, bricks.clone(), bricks.clone())
    };
    for axes in [2, 4] {
        let error = with(PerAxis::splat(axes, C2C)).unwrap_err();
        assert_eq!(error.to_string(), format!("axes with a kind: found {axes}, expected 3"));
    }
    let mut problem = with(PerAxis::splat(3, C2C)).unwrap();
    problem.kinds = [C2C; 2].into();
    let error = Recipe::new(problem).unwrap_err();
    assert_eq!(error.to_string(), "axes with a kind: found 2, expected 3");
}

#[test]
fn one_axis() {
    for (found, expected) in [
        (
            plain([64], [C2C], 4),
            "(c2c 64 f64 ranks=4 [4] (exchange [1] p2p raw) (fft x) (scale inverse) (exchange [4] \
             p2p raw))",
        ),
        (
            plain([64], [R2C], 3),
            "(r2c 64 f64 ranks=3 [3] (exchange [1] p2p raw) (r2c x) (scale inverse) (exchange [3] \
             p2p raw))",
        ),
        (plain([64], [Kind::None], 3), "(none 64 f64 ranks=3 [3])"),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn two_axes() {
    for (found, expected) in [
        (
            plain([64, 64], [C2C; 2], 4),
            "(c2c 64x64 f64 ranks=4 [2x2] (exchange [4x1] p2p raw) (fft y) (exchange [1x4~in]yx p2p raw) (fft x) (scale inverse) (exchange [2x2] p2p raw))",
        ),
        (
            plain([64, 48], [C2C, R2C], 6),
            "(r2c 64x48 f64 ranks=6 [2x3] (exchange [2x1~spread] p2p raw) (r2c y) (exchange [1x2~spread]yx p2p raw) (fft x) (scale inverse) (exchange [6x1] p2p raw))",
        ),
        (
            plain([64, 48], [R2C, C2C], 6),
            "(r2c,c2c 64x48 f64 ranks=6 [2x3] (exchange [1x6~in]yx p2p raw) (r2c x) (exchange [6x1] p2p raw) (fft y) (scale inverse) (exchange [3x2] p2p raw))",
        ),
        (
            plain([64, 48], [Kind::None, Dct3], 2),
            "(none,dct3 64x48 f64 ranks=2 [2x1] (dct3 y) (scale inverse))",
        ),
        (
            plain([1000, 2], [C2C; 2], 8),
            "(c2c 1000x2 f64 ranks=8 [8x1] (fft y) (exchange [1x2~spread]yx p2p raw) (fft x) (scale inverse) (exchange [8x1] p2p raw))",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn three_axes() {
    for (found, expected) in [
        (
            plain([64; 3], [C2C; 3], 2),
            "(c2c 64x64x64 f64 ranks=2 [2x1x1] (fft z) (fft y) (exchange [1x1x2]zyx p2p raw) (fft x) (scale inverse) (exchange [2x1x1] p2p raw))",
        ),
        (
            plain([64; 3], [C2C; 3], 8),
            "(c2c 64x64x64 f64 ranks=8 [2x2x2] (exchange [8x1x1]xzy p2p raw) (fft z) (fft y) (exchange [1x4x2~in]yzx p2p raw) (fft x) (scale inverse) (exchange [2x2x2] p2p raw))",
        ),
        (
            plain([64; 3], [C2C, C2C, R2C], 6),
            "(r2c 64x64x64 f64 ranks=6 [3x2x1] (r2c z) (exchange [1x2x3]yzx p2p raw) (fft x) (exchange [2x1x3] p2p raw) (fft y) (scale inverse))",
        ),
        (
            plain([64; 3], [R2C, C2C, C2C], 4),
            "(r2c,c2c,c2c 64x64x64 f64 ranks=4 [2x2x1] (exchange [1x4x1~in]yxz p2p raw) (r2c x) (fft z) (exchange [1x1x4~out]zxy p2p raw) (fft y) (scale inverse) (exchange [1x2x2] p2p raw))",
        ),
        (
            plain([64; 3], [Dst1, R2C, Dct2], 4),
            "(dst1,r2c,dct2 64x64x64 f64 ranks=4 [2x2x1] (exchange [1x4x1~in]yzx p2p raw) (dct2 z) (dst1 x) (exchange [2x1x2] p2p raw) (r2c y) (scale inverse))",
        ),
        (
            plain([64, 64, 4], [C2C; 3], 64),
            "(c2c 64x64x4 f64 ranks=64 [8x8x1] (fft z) (exchange [16x1x4]xzy p2p raw) (fft y) (exchange [1x16x4~in]yzx p2p raw) (fft x) (scale inverse) (exchange [8x8x1] p2p raw))",
        ),
        (
            plain([4; 3], [C2C; 3], 64),
            "(c2c 4x4x4 f64 ranks=64 [4x4x4] (exchange [4x16x1] p2p raw) (fft z) (exchange [1x4x4~spread]yzx p2p raw) (fft x) (exchange [4x1x16]xzy p2p raw) (fft y) (scale inverse) (exchange [4x4x4] p2p raw))",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn four_axes() {
    for (found, expected) in [
        (
            plain([16; 4], [C2C; 4], 4),
            "(c2c 16x16x16x16 f64 ranks=4 [2x2x1x1] (fft z) (exchange [1x1x1x4]zxyw p2p raw) (fft y) (fft x) (fft w) (scale inverse) (exchange [2x2x1x1] p2p raw))",
        ),
        (
            plain([8, 9, 10, 11], [C2C, R2C, Dst4, C2C], 6),
            "(c2c,r2c,dst4,c2c 8x9x10x11 f64 ranks=6 [1x3x2x1] (exchange [2x3x1x1~in]wxzy p2p raw) (dst4 y) (exchange [3x1x2x1~out]wyxz p2p raw) (r2c x) (fft z) (exchange [1x1x2x3] p2p raw) (fft w) (scale inverse))",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn options_are_printed() {
    let with = |change: fn(&mut Problem)| {
        let mut problem = problem([32; 3], [C2C; 3], 4);
        change(&mut problem);
        text(problem)
    };
    let fortran = |layout: &Layout| layout.clone().ordered([2, 1, 0]).unwrap();
    let mut ordered = problem([32; 3], [C2C; 3], 4);
    (ordered.input, ordered.output) = (fortran(&ordered.input), fortran(&ordered.output));
    for (found, expected) in [
        (
            with(|p| p.batch = 3),
            "(c2c 32x32x32 f64 batch=3 ranks=4 [2x2x1] (fft z) (exchange [1x1x4]zyx p2p raw) (fft y) (fft x) (scale inverse) (exchange [2x2x1] p2p raw))",
        ),
        (
            with(|p| p.options.exchange = Exchange::Alltoallv),
            "(c2c 32x32x32 f64 ranks=4 [2x2x1] (fft z) (exchange [1x1x4]zyx alltoallv raw) (fft y) (fft x) (scale inverse) (exchange [2x2x1] alltoallv raw))",
        ),
        (
            with(|p| (p.forward_scale, p.inverse_scale) = (Scale::Symmetric, Scale::Symmetric)),
            "(c2c 32x32x32 f64 ranks=4 [2x2x1] (fft z) (exchange [1x1x4]zyx p2p raw) (fft y) (fft x) (scale both) (exchange [2x2x1] p2p raw))",
        ),
        (
            with(|p| (p.forward_scale, p.inverse_scale) = (Scale::Full, Scale::None)),
            "(c2c 32x32x32 f64 ranks=4 [2x2x1] (fft z) (exchange [1x1x4]zyx p2p raw) (fft y) (fft x) (scale forward) (exchange [2x2x1] p2p raw))",
        ),
        (
            with(|p| (p.forward_scale, p.inverse_scale) = (Scale::None, Scale::None)),
            "(c2c 32x32x32 f64 ranks=4 [2x2x1] (fft z) (exchange [1x1x4]zyx p2p raw) (fft y) (fft x) (exchange [2x2x1] p2p raw))",
        ),
        (
            with(|p| p.precision = Precision::F32),
            "(c2c 32x32x32 f32 ranks=4 [2x2x1] (fft z) (exchange [1x1x4]zyx p2p raw) (fft y) (fft x) (scale inverse) (exchange [2x2x1] p2p raw))",
        ),
        (
            with(|p| {
                p.options.tolerance = Some(Tolerance::relative(1e-6).unwrap());
                p.options.wire = Wire::Tolerance;
            }),
            "(c2c 32x32x32 f64 ranks=4 [2x2x1] tolerance=1e-6 (fft z) (exchange [1x1x4]zyx p2p tolerance) (fft y) (fft x) (scale inverse) (exchange [2x2x1] p2p tolerance))",
        ),
        (
            with(|p| {
                p.options.tolerance = Some(Tolerance::relative(1e-6).unwrap().strict());
                p.options.wire = Wire::Tolerance;
            }),
            "(c2c 32x32x32 f64 ranks=4 [2x2x1] tolerance=1e-6 strict (fft z) (exchange [1x1x4]zyx p2p tolerance) (fft y) (fft x) (scale inverse) (exchange [2x2x1] p2p tolerance))",
        ),
        (
            with(|p| (p.options.exchange, p.options.chunk) = (Exchange::Pipelined, 1 << 17)),
            "(c2c 32x32x32 f64 ranks=4 [2x2x1] chunk=131072 (fft z) (exchange [1x1x4] pipelined raw) (fft y) (fft x) (scale inverse) (exchange [2x2x1] pipelined raw))",
        ),
        (
            text(ordered),
            "(c2c 32x32x32 f64 ranks=4 [2x2x1]zyx (fft z) (exchange [1x1x4]zyx p2p raw) (fft y) (fft x) (scale inverse) (exchange [2x2x1]zyx p2p raw))",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

/// Ranks alone on their hosts and several on one, large and small, with and without a tolerance.
#[test]
fn several_hosts() {
    let on = |shape: [usize; 3], cut: [usize; 3], per_host: usize, tolerance: Option<f64>| {
        let grid = Grid::new(shape).unwrap();
        let cut = ProcGrid::new(cut);
        let bricks = Layout::even(grid, cut, cut.ranks());
        let mut problem =
            Problem::new([C2C; 3], true, Precision::F64, bricks.clone(), bricks).unwrap();
        problem.options.exchange = Exchange::P2p;
        problem.hosts = (0..cut.ranks()).map(|rank| rank / per_host).collect();
        if let Some(tolerance) = tolerance {
            problem.options.tolerance = Some(Tolerance::relative(tolerance).unwrap());
            problem.options.wire = Wire::Tolerance;
        }
        text(problem)
    };
    for (found, expected) in [
        (
            on([256; 3], [4, 4, 2], 1, None),
            "(c2c 256x256x256 f64 ranks=32 [4x4x2] (exchange [8x4x1~in] p2p raw) (fft z) (exchange [1x1x32~in]zyx p2p raw) (fft y) (fft x) (scale inverse) (exchange [4x4x2] p2p raw))",
        ),
        (
            on([256; 3], [4, 4, 2], 8, None),
            "(c2c 256x256x256 f64 ranks=32 [4x4x2] (exchange [8x4x1~in] p2p raw) (fft z) (exchange [1x1x32~in]zyx p2p raw) (fft y) (fft x) (scale inverse) (exchange [4x4x2] p2p raw))",
        ),
        (
            on([256; 3], [4, 4, 2], 8, Some(1e-4)),
            "(c2c 256x256x256 f64 ranks=32 [4x4x2] tolerance=1e-4 (exchange [8x4x1~in] p2p tolerance) (fft z) (exchange [1x1x32~in]zyx p2p tolerance) (fft y) (fft x) (scale inverse) (exchange [4x4x2] p2p tolerance))",
        ),
        (
            on([24; 3], [4, 2, 2], 4, None),
            "(c2c 24x24x24 f64 ranks=16 [4x2x2] (exchange [16x1x1]xzy p2p raw) (fft z) (fft y) (exchange [4x2x2] p2p raw) (exchange [1x8x2~in]yzx p2p raw) (fft x) (scale inverse) (exchange [4x2x2] p2p raw))",
        ),
        (
            on([24; 3], [4, 2, 2], 4, Some(1e-4)),
            "(c2c 24x24x24 f64 ranks=16 [4x2x2] tolerance=1e-4 (exchange [16x1x1]xzy p2p tolerance) (fft z) (fft y) (exchange [4x2x2] p2p tolerance) (exchange [1x8x2~in]yzx p2p tolerance) (fft x) (scale inverse) (exchange [4x2x2] p2p tolerance))",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

/// Where all ranks share memory, data stays, and a reshape says who works on what.
#[test]
fn ranks_of_one_host() {
    let near = |shape: [usize; 3], kinds: [Kind; 3], ranks: usize| {
        let mut problem = problem(shape, kinds, ranks);
        problem.options.exchange = Exchange::Shared;
        problem.hosts = vec![0; ranks];
        text(problem)
    };
    for (found, expected) in [
        (
            near([256; 3], [C2C; 3], 2),
            "(c2c 256x256x256 f64 ranks=2 [2x1x1] (fft z) (fft y) (exchange [1x2x1] shared raw) (fft \
             x) (scale inverse) (exchange [2x1x1] shared raw))",
        ),
        (
            near([256; 3], [C2C; 3], 4),
            "(c2c 256x256x256 f64 ranks=4 [2x2x1] (exchange [4x1x1] shared raw) (fft z) (fft y) \
             (exchange [1x4x1~out] shared raw) (fft x) (scale inverse) (exchange [2x2x1] shared raw))",
        ),
        (
            near([256; 3], [C2C, C2C, R2C], 2),
            "(r2c 256x256x256 f64 ranks=2 [2x1x1] (r2c z) (fft y) (exchange [1x2x1] shared raw) (fft \
             x) (scale inverse) (exchange [2x1x1] shared raw))",
        ),
        // Planes across the axis of peers would be tiles of short runs.
        (
            near([128; 3], [C2C; 3], 4),
            "(c2c 128x128x128 f64 ranks=4 [2x2x1] (exchange [4x1x1] shared raw) (fft z) (fft y) \
             (exchange [1x4x1~out] shared raw) (fft x) (scale inverse) (exchange [2x2x1] shared raw))",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn slabs_that_match_need_one_exchange() {
    let grid = Grid::new([64; 3]).unwrap();
    let slabs = |axis: usize| {
        let shape: [usize; 3] = std::array::from_fn(|a| if a == axis { 4 } else { 1 });
        Layout::even(grid, ProcGrid::new(shape), 4)
    };
    let problem = |input, output| {
        let mut problem = Problem::new([C2C; 3], true, Precision::F64, input, output).unwrap();
        problem.options.exchange = Exchange::P2p;
        problem
    };
    assert_eq!(
        text(problem(slabs(0), slabs(1))),
        "(c2c 64x64x64 f64 ranks=4 [4x1x1] (fft z) (fft y) (exchange [1x4x1] p2p raw) (fft x) (scale inverse))"
    );
    assert_eq!(
        text(problem(slabs(2), slabs(0))),
        "(c2c 64x64x64 f64 ranks=4 [1x1x4] (fft x) (exchange [4x1x1] p2p raw) (fft z) (fft y) \
             (scale inverse))"
    );
}

/// What devices read of each other has nothing to do with the exchange.
#[test]
fn shared_is_pipelined_on_devices() {
    for shape in [[16; 3], [256; 3]] {
        for access in [Access::Contiguous, Access::Fetched] {
            let on = |exchange| {
                let mut problem = problem(shape, [C2C; 3], 8);
                (problem.options.exchange, problem.options.access) = (exchange, access);
                (problem.hosts, problem.options.chunk) = (vec![0; 8], 1 << 17);
                Recipe::new(problem).unwrap()
            };
            let [shared, pipelined] = [Exchange::Shared, Exchange::Pipelined].map(on);
            assert_eq!(shared.nodes(), pipelined.nodes());
            assert_eq!(shared.predict().seconds, pipelined.predict().seconds);
            assert_eq!(shared.to_string().replace("shared", "pipelined"), pipelined.to_string());
            assert!(!shared.problem().near(0, 1), "{shared}");
        }
    }
}

/// How a layout was made is no part of the problem.
#[test]
fn listed_bricks_are_planned_as_cut_ones() {
    let grid = Grid::new([64; 3]).unwrap();
    for cut in [[1, 2, 8], [1, 4, 4], [2, 2, 8]] {
        let even = Layout::even(grid, ProcGrid::new(cut), 32);
        let listed = Layout::new(grid, even.bricks().to_vec(), 32).unwrap();
        let planned = [even, listed].map(|output| {
            let input = Layout::even(grid, ProcGrid::cubic(grid, 32), 32);
            let mut problem = Problem::new([C2C; 3], true, Precision::F64, input, output).unwrap();
            problem.options.exchange = Exchange::P2p;
            problem.hosts = (0..32).map(|rank| rank / 2).collect();
            Recipe::new(problem).unwrap()
        });
        let [even, listed] = &planned;
        assert_eq!((even.nodes(), even.steps()), (listed.nodes(), listed.steps()), "{even}");
    }
}
