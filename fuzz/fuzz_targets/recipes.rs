//! Recipes by their texts: whatever is named, the result is a recipe of that name or an error.
#![no_main]

use fft_core::{DynGrid, Kind, Layout, Precision, Problem, ProcGrid, Recipe, Wire};
use libfuzzer_sys::fuzz_target;

fn problem(number: u8) -> Problem {
    let (shape, kinds, ranks): (&[usize], &[Kind], usize) = match number % 5 {
        0 => (&[8, 6, 4], &[Kind::C2C; 3], 4),
        1 => (&[7, 6], &[Kind::C2C, Kind::R2C], 3),
        2 => (&[12], &[Kind::C2C], 2),
        3 => (&[4, 3, 5, 2], &[Kind::Dct2, Kind::None, Kind::Dst1, Kind::Dct1], 6),
        _ => (&[6, 8, 10], &[Kind::C2C, Kind::C2C, Kind::R2C], 1),
    };
    let per_axis = |of: &[usize]| fft_core::PerAxis::from_fn(of.len(), |axis| of[axis]);
    let kinds = fft_core::PerAxis::from_fn(kinds.len(), |axis| kinds[axis]);
    let grid = DynGrid::new(per_axis(shape)).unwrap();
    let spectral = Problem::spectral_grid(grid, kinds);
    let even = |grid: DynGrid| Layout::even(grid, ProcGrid::cubic(grid, ranks), ranks);
    let complex = !kinds.contains(&Kind::R2C) && kinds.contains(&Kind::C2C);
    let mut problem =
        Problem::new(kinds, complex, Precision::F64, even(grid), even(spectral)).unwrap();
    if number & 0x80 != 0 {
        problem.hosts = (0..ranks).map(|rank| rank / 2).collect();
    }
    if number & 0x40 != 0 {
        problem.options.tolerance = Some(fft_core::Tolerance::relative(1e-6).unwrap());
        problem.options.wire = Wire::Tolerance;
    }
    problem
}

// The problem; the text.
fuzz_target!(|data: &[u8]| {
    let [number, text @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match Recipe::exact(problem(*number), text) {
        Ok(recipe) => assert_eq!(recipe.to_string(), text.trim()),
        Err(error) => assert!(error.to_string().len() < 2000),
    }
});
