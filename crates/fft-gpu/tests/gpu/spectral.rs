//! Scaling and wavenumbers, against the formulas.

use std::f64::consts::TAU;

use fft_core::{Brick, Grid, Real};
use fft_gpu::{Gpu, GpuError, GpuReal, Modes, Scaling};

use super::{data, gpu};

const GRID: [usize; 3] = [10, 12, 9];
const LENGTHS: [f64; 3] = [1.0, TAU, 5.0];
/// A brick of half of the spectrum along the last axis.
const BRICK: Brick<3> = Brick { lo: [2, 0, 1], hi: [9, 12, 5] };
const ORDER: [usize; 3] = [1, 2, 0];

/// Calls `visit` with the wavenumber of each mode in memory, and the axes of which it is the
/// Nyquist mode.
fn modes(mut visit: impl FnMut(usize, [f64; 3], [bool; 3])) {
    let mut at = 0;
    let ranges = ORDER.map(|axis| BRICK.range(axis));
    for a in ranges[0].clone() {
        for b in ranges[1].clone() {
            for c in ranges[2].clone() {
                let mut index = [0; 3];
                ORDER.iter().zip([a, b, c]).for_each(|(&axis, i)| index[axis] = i);
                let signed = |axis: usize| match index[axis] as f64 {
                    i if 2.0 * i > GRID[axis] as f64 => i - GRID[axis] as f64,
                    i => i,
                };
                let k = std::array::from_fn(|axis| signed(axis) * TAU / LENGTHS[axis]);
                visit(at, k, std::array::from_fn(|axis| 2 * index[axis] == GRID[axis]));
                at += 1;
            }
        }
    }
}

fn close<T: Real>(found: &[T], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (i, (x, y)) in found.iter().zip(expected).enumerate() {
        assert!(
            (x.as_f64() - y).abs() <= 8.0 * T::EPSILON * y.abs(),
            "{what} {i}: {x:?}, expected {y}"
        );
    }
}

fn multiplies<T: GpuReal>(gpu: &Gpu) {
    let stream = gpu.stream();
    let grid = Grid::new(GRID).unwrap();
    let modes_on_device =
        Modes::<T>::new(gpu, &grid.into(), &BRICK.into(), ORDER.into(), LENGTHS.into()).unwrap();
    let (_, x) = data::fields::<T>(2 * BRICK.points()).swap_remove(0);
    let mut on_device = stream.clone_htod(&x).unwrap();
    for axis in 0..3 {
        let mut expected = vec![0.0; x.len()];
        modes(|i, k, middle| {
            let by = if middle[axis] { 0.0 } else { 0.5 * k[axis] };
            expected[2 * i] = -x[2 * i + 1].as_f64() * by;
            expected[2 * i + 1] = x[2 * i].as_f64() * by;
        });
        let mut gradient = stream.alloc_zeros::<T>(x.len()).unwrap();
        modes_on_device.gradient(&stream, axis, &on_device, &mut gradient, T::of(0.5)).unwrap();
        close(&stream.clone_dtoh(&gradient).unwrap(), &expected, "gradient");
    }
    let mut expected: Vec<f64> = x.iter().map(|x| x.as_f64()).collect();
    modes(|i, k, _| {
        let square: f64 = k.iter().map(|k| k * k).sum();
        let by = if square == 0.0 { 0.0 } else { 3.0 / square };
        expected[2 * i] *= by;
        expected[2 * i + 1] *= by;
    });
    modes_on_device.poisson(&stream, &mut on_device, T::of(3.0)).unwrap();
    close(&stream.clone_dtoh(&on_device).unwrap(), &expected, "Poisson");

    // Of any length, from any number on.
    let scaling = Scaling::<T>::new(gpu).unwrap();
    let mut on_device = stream.clone_htod(&x).unwrap();
    scaling.run(&stream, &mut on_device.slice_mut(3..600), T::of(-0.25)).unwrap();
    scaling.run(&stream, &mut on_device.slice_mut(4..601), T::of(2.0)).unwrap();
    let factor = |i| {
        [(3..600, -0.25), (4..601, 2.0)]
            .iter()
            .filter(|f| f.0.contains(&i))
            .map(|f| f.1)
            .product::<f64>()
    };
    let expected: Vec<f64> = x.iter().enumerate().map(|(i, x)| x.as_f64() * factor(i)).collect();
    close(&stream.clone_dtoh(&on_device).unwrap(), &expected, "scale");

    let mut short = stream.alloc_zeros::<T>(x.len() - 1).unwrap();
    let error = modes_on_device.poisson(&stream, &mut short, T::of(1.0)).unwrap_err();
    assert!(matches!(error, GpuError::Short { what: "the spectrum", .. }), "{error}");
}

#[test]
fn spectra_are_multiplied_by_what_the_formulas_say() {
    let Some(gpu) = gpu() else { return };
    multiplies::<f64>(&gpu);
    multiplies::<f32>(&gpu);
}
