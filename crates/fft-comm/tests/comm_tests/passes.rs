//! The passes over memory of a recipe, as predicted and as lowered, are the operations that every
//! rank binds, for 1,000 random problems.

use fft_comm::{exchanger_in, threads_on};
use fft_core::{
    Access, Capabilities, Direction, Exchange, Grid, Kind, Layout, Layouts, Precision, Problem,
    Program, Recipe, Wire, bind_on_host,
};

use crate::options::options;
use crate::tiling::{Rng, layout};

const PROBLEMS: u64 = 1000;
const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Inverse];
/// Ranks at most.
const RANKS: usize = 6;
/// Points along an axis at most, of arrays with 1 to 4 axes.
const SHORT: [usize; 4] = [512, 40, 14, 7];
/// Points along two axes that may not fit into cache together, at least and at most.
const LONG: [usize; 2] = [72, 300];
/// Points of an array with such axes at most.
const POINTS: usize = 1 << 17;
/// Points of an array whose messages may be read as they come.
const STREAMED: usize = 1 << 18;

/// Mostly short axes; sometimes two long ones among very short ones, or a large array.
fn shape<const D: usize>(rng: &mut Rng) -> [usize; D] {
    let mut shape = std::array::from_fn(|_| 2 + rng.below(SHORT[D - 1] - 1));
    let order = rng.order::<D>();
    match rng.below(24) {
        0 => {
            let others: usize = order[1..].iter().map(|axis| shape[*axis]).product();
            shape[order[0]] = STREAMED.div_ceil(others);
        }
        1..=8 if D > 1 => {
            let (long, others) = order.split_at(2);
            others.iter().for_each(|axis| shape[*axis] = 2 + rng.below(3));
            long.iter().for_each(|axis| shape[*axis] = LONG[0] + rng.below(LONG[1] - LONG[0]));
            while shape.iter().product::<usize>() > POINTS {
                long.iter().for_each(|axis| shape[*axis] = shape[*axis] * 7 / 8);
            }
        }
        _ => {}
    }
    shape
}

/// Kinds of complex data, of real data that becomes half a spectrum, mostly along an axis that is
/// whole where the data comes from, or of data that stays real; and whether it is complex.
fn kinds<const D: usize>(input: &Layout, rng: &mut Rng) -> ([Kind; D], bool) {
    let (complex, halves) = [(true, false), (false, true), (false, false)][rng.below(3)];
    let is_whole = |axis: &usize| {
        let n = input.grid().len(*axis);
        input.bricks().iter().all(|brick| brick.is_empty() || brick.len(*axis) == n)
    };
    let whole: Vec<_> = (0..D).filter(is_whole).collect();
    let halved = match rng.below(4) {
        1.. if !whole.is_empty() => whole[rng.below(whole.len())],
        _ => rng.below(D),
    };
    let common = if complex || halves { Kind::C2C } else { Kind::Dct2 };
    let kinds =
        std::array::from_fn(|axis| match Kind::ALL[rng.below(Kind::Tridiagonal as usize)] {
            _ if halves && axis == halved => Kind::R2C,
            _ if rng.below(2) == 0 => common,
            Kind::R2C | Kind::C2C => common,
            kind => kind,
        });
    (kinds, complex)
}

/// Numbers for the hosts of ranks: none, the same for all, one for each, or any.
fn hosts(ranks: usize, rng: &mut Rng) -> Vec<usize> {
    let count = 1 + rng.below(3);
    match rng.below(8) {
        0 => Vec::new(),
        1..=3 => vec![0; ranks],
        4 | 5 => (0..ranks).collect(),
        6 => (0..ranks).map(|rank| rank * count / ranks).collect(),
        _ => (0..ranks).map(|_| rng.below(count)).collect(),
    }
}

/// A problem with any kinds, bricks and orders; one in five has the default options.
fn problem<const D: usize>(rng: &mut Rng) -> Problem {
    let grid = Grid::new(shape::<D>(rng)).unwrap();
    let ranks = 1 + rng.below(RANKS);
    let mut again = rng.clone();
    let input = layout(grid, ranks, rng);
    let (kinds, complex) = kinds::<D>(&input, rng);
    let spectral = Problem::spectral_grid(grid, kinds).typed::<D>();
    let output = layout(spectral, ranks, if rng.below(2) == 0 { &mut again } else { rng });
    let precision = [Precision::F32, Precision::F64][rng.below(2)];
    let mut problem = Problem::new(kinds, complex, precision, input, output).unwrap();
    problem.hosts = vec![0; ranks];
    if rng.below(5) > 0 {
        host_options(&mut problem, rng);
    }
    problem
}

/// Any options of hosts; often with shared memory, without encoding.
fn host_options(problem: &mut Problem, rng: &mut Rng) {
    options(problem, rng);
    problem.options.access = Access::Cached;
    problem.hosts = hosts(problem.input.ranks(), rng);
    if rng.below(2) == 0 {
        problem.options.exchange = Exchange::Shared;
    }
    if rng.below(2) == 0 {
        (problem.options.wire, problem.options.tolerance) = (Wire::Raw, None);
    }
}

/// A recipe of a number of axes. Problems without a transform have none.
fn recipe<const D: usize>(rng: &mut Rng) -> Recipe {
    let choices = [Layouts::Any, Layouts::Any, Layouts::Slabs, Layouts::Pencils];
    let layouts = choices[rng.below(choices.len())];
    let mut tries = (0..100).map(|_| Recipe::with_layouts(problem::<D>(rng), layouts));
    tries.find_map(Result::ok).expect("most problems have a recipe")
}

/// How many operations each rank binds for each direction.
fn bound(recipe: &Recipe) -> Vec<[usize; 2]> {
    let Problem { hosts, options, input, .. } = recipe.problem();
    let hosts = if hosts.is_empty() { vec![0; input.ranks()] } else { hosts.clone() };
    threads_on(&hosts, |comm| {
        let executor = bind_on_host(recipe, Box::new(comm), exchanger_in(options.memory)).unwrap();
        DIRECTIONS.map(|direction| executor.operations(direction))
    })
}

#[test]
fn predicted_passes_are_the_operations_of_every_rank() {
    let mut wrong = Vec::new();
    for number in 0..PROBLEMS {
        let mut rng = Rng(number);
        let recipe = match number % 10 {
            0 => recipe::<1>(&mut rng),
            1..=3 => recipe::<2>(&mut rng),
            4..=7 => recipe::<3>(&mut rng),
            _ => recipe::<4>(&mut rng),
        };
        let problem = recipe.problem();
        let programs =
            DIRECTIONS.map(|direction| recipe.lower(direction, Capabilities::of_threads(problem)));
        let [_, inverse] = programs.each_ref().map(Program::passes_over_memory);
        let (expected, bound) = ([recipe.predict().passes, inverse], bound(&recipe));
        if bound.iter().any(|passes| *passes != expected) {
            let Problem { hosts, options, .. } = problem;
            let [forward, inverse] = programs;
            wrong.push(format!(
                "{number}: forward and inverse {expected:?} passes, {bound:?} operations bound\n\
                 {recipe}\nhosts {hosts:?}, {options:?}\n\
                 forward\n{forward}\ninverse\n{inverse}\n\n"
            ));
        }
    }
    let first = wrong.iter().take(5).map(String::as_str).collect::<String>();
    assert!(wrong.is_empty(), "{} of {PROBLEMS} problems differ, first\n{first}", wrong.len());
}
