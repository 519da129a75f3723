//! Programs of devices, run by an emulator, give what programs of hosts give, for random problems;
//! and their passes are those that the model of a machine of GPUs counts.

use std::sync::Arc;

use fft_comm::{exchanger_in, threads_on};
use fft_core::{
    Access, Capabilities, Comm, DeviceCapabilities, DeviceOp, Direction, Exchange, Executor, Grid,
    Kind, Layout, Machine, Precision, Problem, ProcGrid, Recipe, bind_on_host,
};

use crate::emulator::{Board, Emulator, board};
use crate::tiling::{Rng, layout};

const PROBLEMS: u64 = 100;
const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Inverse];
const RANKS: usize = 4;
/// Points of small arrays along an axis at most.
const SHORT: usize = 20;
/// Shapes whose transforms load and store, if few ranks have a part each.
const LOADED: [[usize; 3]; 4] = [[64, 64, 32], [32, 128, 32], [32, 32, 128], [256, 16, 32]];

/// Arrays large enough for loads and stores, between slabs.
fn large_problem(rng: &mut Rng) -> Problem {
    let shape = LOADED[rng.below(LOADED.len())];
    let grid = Grid::new(shape).unwrap();
    let ranks = if rng.below(8) == 0 { 1 } else { 2 };
    let mut slabs = || {
        let mut cut = [1; 3];
        cut[[0, 0, 2, rng.below(3)][rng.below(4)]] = ranks;
        let order = if rng.below(4) > 0 { [0, 1, 2] } else { rng.order::<3>() };
        Layout::even(grid, ProcGrid::new(cut), ranks).ordered(order).unwrap()
    };
    let (input, other) = (slabs(), slabs());
    let output = if rng.below(2) == 0 { input.clone() } else { other };
    Problem::new([Kind::C2C; 3], true, Precision::F64, input, output).unwrap()
}

/// Arrays with any bricks, orders and kinds.
fn small_problem(rng: &mut Rng) -> Problem {
    let grid = Grid::new(std::array::from_fn(|_| 1 + rng.below(SHORT))).unwrap();
    let ranks = 1 + rng.below(RANKS);
    let input = layout::<3>(grid, ranks, rng);
    let (complex, common) =
        [(true, Kind::C2C), (false, Kind::C2C), (false, Kind::Dct2)][rng.below(3)];
    let mut kinds = [common; 3];
    let other = rng.below(3);
    kinds[other] = match rng.below(2) {
        0 => Kind::None,
        _ => Kind::Dst3,
    };
    if !complex && common == Kind::C2C {
        kinds[(other + 1) % 3] = Kind::R2C;
    }
    let spectral = Problem::spectral_grid(grid, kinds).typed::<3>();
    let output = layout(spectral, ranks, rng);
    let mut problem = Problem::new(kinds, complex, Precision::F64, input, output).unwrap();
    problem.batch = 1 + rng.below(3);
    problem
}

fn recipe(rng: &mut Rng) -> Recipe {
    let found = (0..100).find_map(|_| {
        let is_large = rng.below(3) > 0;
        let mut problem = if is_large { large_problem(rng) } else { small_problem(rng) };
        let ranks = problem.input.ranks();
        problem.options.access = match rng.below(8) {
            0 => Access::Strided,
            1 => Access::Contiguous,
            _ => Access::Fetched,
        };
        problem.options.exchange = Exchange::P2p;
        problem.options.shared_arrays = rng.below(4) > 0;
        problem.hosts = match rng.below(6) {
            0 => (0..ranks).map(|_| rng.below(2)).collect(),
            _ => vec![0; ranks],
        };
        let machine = Machine { gpu: Some("a GPU".into()), ..Machine::default() };
        problem.machine = Arc::new(machine);
        Recipe::new(problem).ok()
    });
    found.expect("most problems have a recipe")
}

/// Devices that can do everything, or not all of it.
fn devices(problem: &Problem, rng: &mut Rng) -> DeviceCapabilities {
    let mut devices = DeviceCapabilities::of_ranks(problem);
    if rng.below(3) == 0 {
        devices.loads = rng.below(3) > 0;
        devices.stores = devices.loads && rng.below(2) == 0;
        devices.exposes_all = rng.below(2) == 0;
    }
    devices
}

/// A rank's results: of each direction, out of place and in place.
struct Results {
    arrays: Vec<Vec<f64>>,
    operations: [usize; 2],
}

fn noise(len: usize, rank: usize, direction: Direction) -> Vec<f64> {
    let mut rng = Rng(2 * rank as u64 + direction as u64);
    (0..len).map(|_| rng.signed()).collect()
}

/// Real numbers of a rank's physical and spectral arrays.
fn reals(recipe: &Recipe, rank: usize) -> [usize; 2] {
    let nodes = recipe.nodes();
    [&nodes[0], &nodes[nodes.len() - 1]]
        .map(|node| node.layout.brick(rank).points() * node.width() * recipe.problem().batch)
}

fn on_host(recipe: &Recipe, comm: impl Comm + 'static) -> Vec<Vec<f64>> {
    let rank = comm.rank();
    let memory = recipe.problem().options.memory;
    let mut executor = bind_on_host(recipe, Box::new(comm), exchanger_in(memory)).unwrap();
    let run = |direction: Direction| {
        let [physical, spectral] = reals(recipe, rank);
        let [from, to] = direction.choose([physical, spectral], [spectral, physical]);
        let src = noise(from, rank, direction);
        let mut dst = vec![0.0; to];
        let (src, bytes) = (bytemuck::cast_slice(&src), bytemuck::cast_slice_mut(&mut dst));
        executor.run(direction, Some(src), bytes).unwrap();
        dst
    };
    DIRECTIONS.map(run).into()
}

fn on_device(
    recipe: &Recipe,
    devices: &DeviceCapabilities,
    comm: impl Comm + 'static,
    board: Board,
) -> Results {
    let rank = comm.rank();
    let emulator = Emulator::new(devices.clone(), &comm, board);
    let exchanger = exchanger_in(recipe.problem().options.memory);
    let mut executor = Executor::bind(recipe, Box::new(comm), emulator, exchanger).unwrap();
    let mut arrays = Vec::new();
    for direction in DIRECTIONS {
        let [physical, spectral] = reals(recipe, rank);
        let [from, to] = direction.choose([physical, spectral], [spectral, physical]);
        let src = noise(from, rank, direction);
        let mut dst = vec![f64::NAN; to];
        executor.run(direction, Some(&src), &mut dst).unwrap();
        arrays.push(dst);
        let mut both = src;
        both.resize(from.max(to), f64::NAN);
        executor.run(direction, None, &mut both).unwrap();
        both.truncate(to);
        arrays.push(both);
    }
    Results { arrays, operations: DIRECTIONS.map(|direction| executor.operations(direction)) }
}

/// The largest difference, relative to the largest number.
fn difference(found: &[f64], expected: &[f64]) -> f64 {
    let largest = expected.iter().fold(f64::MIN_POSITIVE, |most, x| x.abs().max(most));
    let differences = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    // A number that is NaN differs most.
    differences.fold(0.0, |most: f64, it| if it <= most { most } else { it }) / largest
}

#[test]
fn programs_of_devices_do_what_programs_of_hosts_do() {
    let (mut loads, mut stores, mut across) = (0, 0, 0);
    for number in 0..PROBLEMS {
        let mut rng = Rng(number);
        let recipe = recipe(&mut rng);
        let problem = recipe.problem();
        let devices = devices(problem, &mut rng);
        let programs =
            DIRECTIONS.map(|direction| recipe.lower(direction, Capabilities::of_devices(&devices)));
        for op in programs.iter().flat_map(|program| program.device_ops()) {
            loads += usize::from(op.is_loaded());
            stores += usize::from(op.is_stored());
            across += usize::from(matches!(op, DeviceOp::Across(_)));
        }
        let passes = programs.each_ref().map(|program| program.passes_over_memory());
        let board = board(problem.input.ranks());
        let of_hosts = threads_on(&problem.hosts, |comm| on_host(&recipe, comm));
        let of_devices =
            threads_on(&problem.hosts, |comm| on_device(&recipe, &devices, comm, board.clone()));
        let about = || {
            let [forward, inverse] = &programs;
            format!("{number}: {recipe}\n{devices:?}\nforward\n{forward}\ninverse\n{inverse}")
        };
        for (rank, (expected, found)) in of_hosts.iter().zip(&of_devices).enumerate() {
            assert_eq!(found.operations, passes, "rank {rank}, {}", about());
            for (run, array) in found.arrays.iter().enumerate() {
                let error = difference(array, &expected[run / 2]);
                assert!(error < 1e-13, "rank {rank}, run {run}: {error:e}, {}", about());
            }
        }
        if devices == DeviceCapabilities::of_ranks(problem) {
            assert_eq!(recipe.predict().passes, passes[0], "{}", about());
        }
    }
    let counts = [loads, stores, across];
    let enough = counts.iter().zip([30, 4, 2]).all(|(count, least)| *count >= least);
    assert!(enough, "{counts:?} loads, stores, across");
}
