//! The programs of devices for some large problems are as they were. No device is needed: what
//! devices can do is given as data.
//!
//! A change that means to plan otherwise writes the file anew:
//! `THRIFFTY_BLESS=1 cargo test -p fft-core --test core_tests devices`.

use std::fmt::Write;

use fft_core::{
    Access, Capabilities, DeviceCapabilities, DeviceLink, Direction, DynBrick, DynGrid, Exchange,
    Grid, Kind, Layout, Precision, Problem, ProcGrid, Recipe,
};

use crate::frozen::compare;
use crate::recipes::lowered_for_a_device;

/// Lengths along each axis.
const LENGTHS: [usize; 3] = [64, 512, 1000];
const KINDS: [Kind; 3] = [Kind::C2C, Kind::R2C, Kind::Dct2];
/// Ranks, and the parts of input and output along each axis.
const TILINGS: [(usize, [usize; 3], [usize; 3]); 5] = [
    (1, [1, 1, 1], [1, 1, 1]),
    (2, [2, 1, 1], [1, 2, 1]),
    (2, [2, 1, 1], [2, 1, 1]),
    (4, [2, 2, 1], [2, 2, 1]),
    (4, [4, 1, 1], [1, 4, 1]),
];

/// Whether input and output have other orders of axes in memory than C arrays.
const TURNED: [bool; 2] = [false, true];

/// All ranks on one host; access to memory as a device of this kind has it.
fn problem(
    n: usize,
    kind: Kind,
    tiling: (usize, [usize; 3], [usize; 3]),
    access: Access,
    turned: bool,
) -> Problem {
    let (ranks, input, output) = tiling;
    let grid = Grid::new([n; 3]).unwrap();
    let first = if kind == Kind::R2C { Kind::C2C } else { kind };
    let kinds = [first, first, kind];
    let spectral = Problem::spectral_grid(grid, kinds);
    let orders = if turned { [[2, 1, 0], [1, 2, 0]] } else { [[0, 1, 2]; 2] };
    let input = Layout::even(grid, ProcGrid::new(input), ranks).ordered(orders[0]).unwrap();
    let output = Layout::even(spectral, ProcGrid::new(output), ranks).ordered(orders[1]).unwrap();
    let is_complex = kind == Kind::C2C;
    let mut problem = Problem::new(kinds, is_complex, Precision::F64, input, output).unwrap();
    problem.hosts = vec![0; ranks];
    problem.options.access = access;
    problem.options.exchange = Exchange::Shared;
    problem
}

/// Ranks on devices of their own that are joined, on one device, and on devices that messages go
/// between.
fn devices(ranks: usize) -> [(&'static str, DeviceCapabilities); 3] {
    let mut one = DeviceCapabilities::new(ranks, vec![DeviceLink::SameDevice; ranks * ranks]);
    (one.loads, one.stores, one.synchronizes) = (true, true, ranks > 1);
    [
        ("joined", DeviceCapabilities::on_hosts(&vec![0; ranks])),
        ("one device", one),
        ("apart", DeviceCapabilities::apart(ranks)),
    ]
}

#[test]
fn programs_of_devices_stay_as_they_were() {
    let mut found = String::new();
    for (n, kind) in LENGTHS.into_iter().flat_map(|n| KINDS.map(|kind| (n, kind))) {
        for access in [Access::Fetched, Access::Strided] {
            for (tiling, turned) in
                TILINGS.into_iter().flat_map(|it| TURNED.map(|turned| (it, turned)))
            {
                let recipe = Recipe::new(problem(n, kind, tiling, access, turned)).unwrap();
                writeln!(found, "{access:?} {recipe}").unwrap();
                found += &programs(&recipe);
            }
        }
    }
    compare(&found, "tests/golden/devices.txt");
}

fn programs(recipe: &Recipe) -> String {
    let (mut text, mut last) = (String::new(), String::new());
    for (name, device) in devices(recipe.problem().input.ranks()) {
        let mut program = String::new();
        for direction in [Direction::Forward, Direction::Inverse] {
            lowered_for_a_device(recipe, direction, &device).unwrap();
            let lowered = recipe.lower(direction, Capabilities::of_devices(&device));
            writeln!(program, "    {direction:?}").unwrap();
            for line in lowered.placed(0, false, device.exposes_all).lines() {
                writeln!(program, "      {line}").unwrap();
            }
        }
        let same = if program == last { ": the same" } else { "" };
        writeln!(text, "  {name}{same}").unwrap();
        if same.is_empty() {
            text += &program;
            last = program;
        }
    }
    text
}

/// Ranks with more data than others have no more chunks, whichever of them is first.
#[test]
fn the_rank_with_the_fewest_chunks_decides() {
    for border in [48, 16] {
        let grid = DynGrid::new([64, 512, 512]).unwrap();
        let slab = |lo, hi| DynBrick { lo: [lo, 0, 0].into(), hi: [hi, 512, 512].into() };
        let input = Layout::new(grid, vec![slab(0, border), slab(border, 64)], 2).unwrap();
        let output = Layout::even(grid, ProcGrid::new([1, 2, 1]), 2);
        let mut problem =
            Problem::new([Kind::C2C; 3], true, Precision::F64, input, output).unwrap();
        problem.hosts = vec![0; 2];
        (problem.options.access, problem.options.exchange) = (Access::Strided, Exchange::Shared);
        let (recipe, devices) =
            (Recipe::new(problem).unwrap(), DeviceCapabilities::on_hosts(&[0; 2]));
        let program = recipe.lower(Direction::Forward, Capabilities::of_devices(&devices));
        assert!(program.to_string().contains("in 2 by chunk"), "{program}");
    }
}
