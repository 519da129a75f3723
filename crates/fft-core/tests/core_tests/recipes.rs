//! Properties of every recipe, for random problems.

use std::sync::Arc;

use crate::tiling::{Rng, tiling};
use Kind::{C2C, R2C};
use fft_core::{
    Access, AxisFft, Capabilities, DeviceCapabilities, DeviceOp, Direction, DynBrick, Exchange,
    ExchangePass, Grid, Kind, Layout, Machine, Precision, Problem, ProcGrid, Program, Recipe,
    Scale, Step, Wire,
};
use proptest::prelude::*;

/// A problem with random kinds, bricks, orders and options.
fn random<const D: usize>(longest: usize) -> impl Strategy<Value = Problem> {
    let shape: [_; D] = std::array::from_fn(|_| 2..=longest);
    (shape, 1..=9usize, any::<u64>().no_shrink()).prop_map(|(shape, ranks, seed)| {
        let mut rng = Rng(seed);
        let halved = rng.below(D + 1);
        let kinds: [Kind; D] =
            std::array::from_fn(|axis| match Kind::ALL[rng.below(Kind::Tridiagonal as usize)] {
                _ if axis == halved => R2C,
                R2C => C2C,
                kind => kind,
            });
        let grid = Grid::new(shape).unwrap();
        let mut layout = |grid: Grid<D>| {
            let cuts = ProcGrid::all(D, 1 + rng.below(ranks));
            let even = Layout::even(grid, cuts[rng.below(cuts.len())], ranks);
            let bricks: Vec<DynBrick> = match rng.below(4) {
                0 => return even.ordered(rng.order::<D>()).unwrap(),
                1 => {
                    let mut bricks = even.bricks().to_vec();
                    rng.shuffle(&mut bricks);
                    bricks
                }
                _ => tiling(grid, ranks, &mut rng).into_iter().map(DynBrick::from).collect(),
            };
            Layout::new(grid, bricks, ranks).unwrap().ordered(rng.order::<D>()).unwrap()
        };
        let spectral = Problem::spectral_grid(grid, kinds).typed::<D>();
        let (input, mut output) = (layout(grid), layout(spectral));
        if grid == spectral && rng.below(4) == 0 {
            output = input.clone().ordered(rng.order::<D>()).unwrap();
        }
        let complex = halved == D;
        let mut problem = Problem::new(kinds, complex, Precision::F32, input, output).unwrap();
        problem.batch = 1 + rng.below(3);
        problem.forward_scale = [Scale::None, Scale::Full, Scale::Symmetric][rng.below(3)];
        problem.options.exchange = Exchange::ALL[rng.below(Exchange::ALL.len())];
        let hosts = 1 + rng.below(3);
        problem.hosts = (0..ranks).map(|_| rng.below(hosts)).collect();
        problem.options.wire = [Wire::Raw, Wire::F16, Wire::Lossless][rng.below(3)];
        problem.options.access =
            [Access::Cached, Access::Contiguous, Access::Fetched][rng.below(3)];
        problem.options.shared_arrays = rng.below(2) == 0;
        let mut machine = Machine::default();
        for quantity in machine.quantities_mut() {
            quantity.value *= 10f64.powf(rng.signed());
        }
        problem.machine = Arc::new(machine);
        problem
    })
}

/// What must hold of every recipe.
fn sound(problem: &Problem) -> Result<(), TestCaseError> {
    let recipe = Recipe::new(problem.clone()).unwrap();
    let again = Recipe::new(problem.clone()).unwrap();
    prop_assert_eq!(&recipe, &again, "the same problem, another recipe");
    let (nodes, steps) = (recipe.nodes(), recipe.steps());
    prop_assert_eq!(nodes.len(), steps.len() + 1);
    let (first, last) = (&nodes[0], &nodes[steps.len()]);
    prop_assert_eq!((&first.layout, first.complex), (&problem.input, problem.complex));
    prop_assert_eq!((&last.layout, last.complex), (&problem.output, problem.complex_spectrum()));

    let axes = problem.kinds.len();
    let mut done = vec![false; axes];
    let mut scales = 0;
    for (at, step) in steps.iter().enumerate() {
        let (from, to) = (&nodes[at], &nodes[at + 1]);
        match *step {
            Step::Fft { axis, kind } => {
                prop_assert_eq!(kind, problem.kinds[axis]);
                prop_assert!(!done[axis], "axis {} is transformed twice: {}", axis, recipe);
                done[axis] = true;
                prop_assert!(from.layout.is_whole(axis) && to.layout.is_whole(axis));
                let n = from.layout.grid().len(axis);
                prop_assert_eq!(to.layout.grid().len(axis), kind.spectral_len(n));
                prop_assert_eq!(from.layout.order(), to.layout.order(), "memory order is kept");
                prop_assert!(kind != C2C || from.complex, "real data cannot be c2c: {}", recipe);
                prop_assert_eq!(to.complex, from.complex || kind == R2C);
            }
            Step::Reshape { wire, exchange } => {
                let one_host = problem.hosts.iter().all(|host| *host == problem.hosts[0]);
                let encoding = if one_host { Wire::Raw } else { problem.options.wire };
                prop_assert_eq!((wire, exchange), (encoding, problem.options.exchange));
                prop_assert_eq!(from.layout.grid(), to.layout.grid());
                prop_assert_eq!(from.complex, to.complex);
                let pointless = from.layout == to.layout;
                prop_assert!(!pointless, "a reshape that moves nothing: {}", recipe);
            }
            Step::Scale { forward, inverse } => {
                scales += 1;
                prop_assert_eq!(from, to);
                prop_assert_eq!(forward, problem.factor(Direction::Forward));
                prop_assert_eq!(inverse, problem.factor(Direction::Inverse));
            }
        }
    }
    for axis in 0..axes {
        prop_assert_eq!(done[axis], problem.kinds[axis] != Kind::None, "axis {}: {}", axis, recipe);
    }
    let factors = [Direction::Forward, Direction::Inverse].map(|way| problem.factor(way));
    prop_assert_eq!(scales, usize::from(factors != [1.0, 1.0]));

    let forward: Vec<_> = recipe.walk(Direction::Forward);
    let mut back: Vec<_> = recipe.walk(Direction::Inverse);
    back.reverse();
    let turned: Vec<_> = back.into_iter().map(|(from, step, to)| (to, step, from)).collect();
    prop_assert_eq!(forward, turned, "the inverse is not the forward reversed");

    let ranks = problem.input.ranks();
    for device in [DeviceCapabilities::apart(ranks), DeviceCapabilities::on_hosts(&vec![0; ranks])]
    {
        for direction in [Direction::Forward, Direction::Inverse] {
            lowered_for_a_device(&recipe, direction, &device)?;
        }
    }
    prop_assert_eq!(Recipe::exact(problem.clone(), &recipe.to_string()), Ok(recipe));
    Ok(())
}

/// The program of a device has the recipe's transforms and reshapes, and the factor once.
pub(crate) fn lowered_for_a_device(
    recipe: &Recipe,
    direction: Direction,
    device: &DeviceCapabilities,
) -> Result<(), TestCaseError> {
    let program = recipe.lower(direction, Capabilities::of_devices(device));
    let mut walk = recipe.walk(direction);
    walk.retain(|(_, step, _)| !matches!(step, Step::Scale { .. }));
    let (steps, factor) = steps_of(&program);
    let expected: Vec<_> = walk.iter().map(|(_, step, _)| *step).collect();
    prop_assert_eq!(steps, expected, "{}", recipe);
    let transforms = recipe.steps().iter().any(|step| matches!(step, Step::Fft { .. }));
    prop_assert!(!transforms || factor == recipe.problem().factor(direction));
    Ok(())
}

/// The steps that a program does, in the order of the recipe, and the product of their factors.
fn steps_of(program: &Program<'_>) -> (Vec<Step>, f64) {
    let (mut steps, mut factor) = (Vec::new(), 1.0);
    let mut add_ffts = |steps: &mut Vec<Step>, ffts: &[AxisFft]| {
        for fft in ffts {
            let (axis, pass) = program.pass(fft);
            steps.push(Step::Fft { axis, kind: pass.kind });
            factor *= pass.factor;
        }
    };
    let exchange = |pass: &ExchangePass<'_>| {
        let (wire, exchange) = (pass.wire, pass.exchange);
        Step::Reshape { wire, exchange }
    };
    let mut ops = program.device_ops().peekable();
    while let Some(op) = ops.next() {
        match op {
            DeviceOp::LocalFft(ffts, _) => add_ffts(&mut steps, ffts),
            DeviceOp::Across(across) if across.last => add_ffts(&mut steps, &across.both),
            DeviceOp::Across(_) => {}
            DeviceOp::Exchange(pass) => {
                steps.push(exchange(pass));
                // If there are two transforms across, the last one has both.
                let is_first_of_two = match ops.peek() {
                    Some(DeviceOp::Across(_)) => true,
                    Some(DeviceOp::Store(store)) => store.loads.is_none(),
                    _ => false,
                };
                if !is_first_of_two {
                    add_ffts(&mut steps, &pass.fuse_after);
                }
            }
            DeviceOp::Store(pass) => {
                steps.extend(pass.loads.as_ref().map(exchange));
                add_ffts(&mut steps, &pass.ffts);
                steps.push(exchange(&pass.exchange));
            }
        }
    }
    (steps, factor)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(60)
    })]

    #[test]
    fn recipes_are_sound_in_1d(problem in random::<1>(40)) {
        sound(&problem)?;
    }
    #[test]
    fn recipes_are_sound_in_2d(problem in random::<2>(20)) {
        sound(&problem)?;
    }
    #[test]
    fn recipes_are_sound_in_3d(problem in random::<3>(12)) {
        sound(&problem)?;
    }
    #[test]
    fn recipes_are_sound_in_4d(problem in random::<4>(6)) {
        sound(&problem)?;
    }
}

/// The axes that a recipe transforms, in order.
fn axes_of(problem: &Problem) -> Vec<usize> {
    let recipe = Recipe::new(problem.clone()).unwrap();
    let axis = |step: &Step| match step {
        Step::Fft { axis, .. } => Some(*axis),
        _ => None,
    };
    recipe.steps().iter().filter_map(axis).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn reproducible_recipes_have_one_order_of_axes(mut problem in random::<3>(12)) {
        problem.options.access = Access::Cached;
        problem.options.wire = Wire::Raw;
        problem.options.reproducible = true;
        let mut alone = problem.clone();
        let whole = |layout: &Layout| Layout::even(layout.grid(), ProcGrid::new([1; 3]), 1);
        (alone.input, alone.output) = (whole(&problem.input), whole(&problem.output));
        alone.hosts = Vec::new();
        prop_assert_eq!(axes_of(&problem), axes_of(&alone));
    }
}

#[test]
fn reproducible_transforms_are_of_hosts() {
    let grid = Grid::new([4, 6]).unwrap();
    let layout = Layout::even(grid, ProcGrid::new([2, 1]), 2);
    let kinds = [C2C; 2];
    let mut problem = Problem::new(kinds, true, Precision::F64, layout.clone(), layout).unwrap();
    problem.options.reproducible = true;
    assert!(Recipe::new(problem.clone()).is_ok());
    for access in [Access::Contiguous, Access::Strided, Access::Fetched] {
        problem.options.access = access;
        let error = Recipe::new(problem.clone()).unwrap_err().to_string();
        assert!(error.starts_with("memory of a reproducible transform"), "{error}");
    }
}
