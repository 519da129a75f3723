//! The programs of devices for some large problems are as they were. No device is needed: what
//! devices can do is given as data.
//!
//! A change that means to plan otherwise writes the file anew:
//! `THRIFFTY_BLESS=1 cargo test -p fft-core --test core_tests devices`.

use std::fmt::Write;

use fft_core::{
    Access, Capabilities, DeviceCapabilities, DeviceLink, Direction, Exchange, Grid, Kind, Layout,
    Precision, Problem, ProcGrid, Recipe,
};

use crate::frozen::compare;

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

/// All ranks on one host; access to memory as a device of this kind has it.
fn problem(
    n: usize,
    kind: Kind,
    tiling: (usize, [usize; 3], [usize; 3]),
    access: Access,
) -> Problem {
    let (ranks, input, output) = tiling;
    let grid = Grid::new([n; 3]).unwrap();
    let first = if kind == Kind::R2C { Kind::C2C } else { kind };
    let kinds = [first, first, kind];
    let spectral = Problem::spectral_grid(grid, kinds);
    let input = Layout::even(grid, ProcGrid::new(input), ranks);
    let output = Layout::even(spectral, ProcGrid::new(output), ranks);
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
        ("joined", DeviceCapabilities::joined(ranks)),
        ("one device", one),
        ("apart", DeviceCapabilities::apart(ranks)),
    ]
}

#[test]
fn programs_of_devices_stay_as_they_were() {
    let mut found = String::new();
    for (n, kind, access) in LENGTHS
        .into_iter()
        .flat_map(|n| KINDS.map(|kind| (n, kind)))
        .flat_map(|(n, kind)| [Access::Fetched, Access::Strided].map(|access| (n, kind, access)))
    {
        for tiling in TILINGS {
            let recipe = Recipe::new(problem(n, kind, tiling, access)).unwrap();
            writeln!(found, "{access:?} {recipe}").unwrap();
            let mut last = String::new();
            for (name, device) in devices(tiling.0) {
                let mut text = String::new();
                for direction in [Direction::Forward, Direction::Inverse] {
                    let program = recipe.lower(direction, Capabilities::of_devices(&device));
                    writeln!(text, "    {direction:?}").unwrap();
                    for line in program.placed(0, false, device.exposes_all).lines() {
                        writeln!(text, "      {line}").unwrap();
                    }
                }
                let same = if text == last { ": the same" } else { "" };
                writeln!(found, "  {name}{same}").unwrap();
                if same.is_empty() {
                    found += &text;
                    last = text;
                }
            }
        }
    }
    compare(&found, "tests/golden/devices.txt");
}
