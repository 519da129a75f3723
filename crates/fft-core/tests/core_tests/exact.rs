//! Printed recipes, read again; that every recipe can be is a property of recipes (`recipe.rs`).

use fft_core::Kind::{C2C, Dst1, Dst2, R2C};
use fft_core::{Access, Brick, Exchange, Grid, Layout, Precision, Problem, ProcGrid, Recipe};

#[test]
fn a_recipe_that_is_not_one_is_refused() {
    let grid = Grid::new([64; 3]).unwrap();
    let bricks = Layout::even(grid, ProcGrid::cubic(grid, 8), 8);
    let mut problem = Problem::new([C2C; 3], true, Precision::F64, bricks.clone(), bricks).unwrap();
    problem.options.exchange = Exchange::P2p;
    let recipe = Recipe::new(problem.clone()).unwrap();
    let text = recipe.to_string();
    let read = |text: &str| Recipe::exact(problem.clone(), text);
    assert_eq!(read(&format!(" {text}\n")).as_ref(), Ok(&recipe));
    for at in 0..text.len() {
        let damaged = format!("{}{}", &text[..at], &text[at + 1..]);
        // A damaged text may be another recipe, but must then print as itself.
        if let Ok(other) = read(&damaged) {
            assert_eq!(other.to_string(), damaged);
            assert_ne!(other, recipe);
        }
        assert!(read(&text[..at]).is_err());
    }
    let message = |text: &str| read(text).unwrap_err().to_string();
    let other = text.replace("64x64x64", "64x64x32");
    assert!(message(&other).contains(&text), "{}", message(&other));
    let early = text.replacen("(fft z)", "(fft x)", 1);
    assert!(message(&early).contains("found fft x, expected one that can come there"));
    let nowhere = text.replacen("[8x1x1]", "[7x1x1]", 1);
    assert!(message(&nowhere).contains("found exchange [7x1x1]"), "{}", message(&nowhere));
    let slow = text.replacen("p2p", "carrier-pigeon", 1);
    assert!(message(&slow).contains("carrier-pigeon"), "{}", message(&slow));
    // Another exchange is another recipe, and a good one.
    let other = text.replace("p2p", "alltoallv");
    assert_eq!(read(&other).unwrap().to_string(), other);
}

/// Different layouts are printed differently, so that a printed recipe is one recipe.
#[test]
fn what_is_printed_of_layouts_tells_them_apart() {
    let grid = Grid::new([4, 4]).unwrap();
    let rows = |lens: [usize; 3]| {
        let mut from = 0;
        let bricks = lens.map(|len| {
            from += len;
            Brick { lo: [from - len, 0], hi: [from, 4] }
        });
        Layout::new(grid, bricks.to_vec(), 3).unwrap()
    };
    let problem = |input: &Layout, output: &Layout| {
        let (input, output) = (input.clone(), output.clone());
        let mut problem = Problem::new([C2C; 2], true, Precision::F64, input, output).unwrap();
        problem.hosts = (0..problem.input.ranks()).map(|rank| rank / 2).collect();
        problem
    };
    let read = |problem: &Problem, text: &str| Recipe::exact(problem.clone(), text);

    let (input, output) = (rows([1, 2, 1]), rows([2, 1, 1]));
    let back = problem(&input, &output);
    let text = "(c2c 4x4 f64 ranks=3 [bricks~in] (exchange [1x3]yx p2p raw) (fft x) (exchange [bricks~in] p2p raw) (exchange [bricks] p2p raw) (fft y) (scale inverse))";
    let recipe = read(&back, text).unwrap();
    let layouts = recipe.nodes().iter().map(|node| &node.layout);
    assert_eq!(layouts.clone().filter(|layout| **layout == input).count(), 2);
    assert_eq!(layouts.filter(|layout| **layout == output).count(), 3);
    let twice = text.replace("(exchange [bricks~in]", "(exchange [bricks]");
    assert!(read(&back, &twice).unwrap_err().to_string().contains("one that can come there"));

    // Ranks without any are without any wherever they would be.
    let without = |nothing| {
        let [a, b] = [[0, 3], [3, 4]].map(|[lo, hi]| Brick { lo: [lo, 0], hi: [hi, 4] });
        Layout::new(grid, vec![a, nothing, b], 3).unwrap()
    };
    let same = [Brick::EMPTY, Brick { lo: [2, 1], hi: [2, 4] }].map(without);
    let recipe = Recipe::new(problem(&same[0], &same[1])).unwrap();
    assert!(recipe.to_string().contains("ranks=3 [bricks] "), "{recipe}");

    // Two cuts of two parts: on the first ranks, and one on each host.
    let even = Layout::even(grid, ProcGrid::new([2, 1]), 4);
    let text = "(c2c 4x4 f64 ranks=4 [2x1] (exchange [2x1~spread] p2p raw) (fft y) (exchange [1x2~spread]yx p2p raw) (fft x) (scale inverse) (exchange [2x1] p2p raw))";
    let recipe = read(&problem(&even, &even), text).unwrap();
    assert_eq!(recipe.nodes()[1].layout.brick(1), Brick::<2>::EMPTY);
    assert_eq!(recipe.nodes()[1].layout.brick(2), even.brick(1));
    // The name that one recipe uses means nothing to another, whose input it is.
    let spread = &recipe.nodes()[1].layout;
    let recipe = Recipe::new(problem(spread, spread)).unwrap();
    assert!(recipe.to_string().contains("ranks=4 [bricks] "), "{recipe}");

    // A cut that is the output, whatever it is called.
    let columns = Layout::even(grid, ProcGrid::new([1, 3]), 3);
    let mut bricks = Layout::even(grid, ProcGrid::new([3, 1]), 3).bricks().to_vec();
    bricks.swap(0, 2);
    let output = Layout::new(grid, bricks, 3).unwrap();
    let text =
        "(c2c 4x4 f64 ranks=3 [1x3] (fft x) (exchange [3x1~out] p2p raw) (fft y) (scale inverse))";
    let recipe = read(&problem(&columns, &output), text).unwrap();
    assert_eq!(recipe.nodes().last().unwrap().layout, output);
}

/// Names without orders are unique where transforms fetch: input and output differ in these only.
#[test]
fn what_is_fetched_comes_by_the_input_and_ends_in_the_output() {
    let (grid, kinds) = (Grid::new([2, 4, 3]).unwrap(), [R2C, Dst2, Dst1]);
    let even =
        |grid, order| Layout::even(grid, ProcGrid::new([1, 13, 7]), 129).ordered(order).unwrap();
    let (input, output) =
        (even(grid, [2, 1, 0]), even(Problem::spectral_grid(grid, kinds).typed(), [0, 2, 1]));
    let mut problem = Problem::new(kinds, false, Precision::F64, input, output).unwrap();
    (problem.options.access, problem.hosts) = (Access::Fetched, vec![0; 129]);
    let recipe = Recipe::new(problem.clone()).unwrap();
    assert_eq!(Recipe::exact(problem, &recipe.to_string()), Ok(recipe));
}
