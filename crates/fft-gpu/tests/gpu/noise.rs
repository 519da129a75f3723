//! Noise by the index in the grid, and distances, against the formulas.

use fft_core::{Brick, Grid, PerAxis, Real};
use fft_gpu::{Gpu, GpuReal, Noise};

use super::gpu;

const GRID: [usize; 3] = [10, 12, 9];
const BRICK: Brick<3> = Brick { lo: [2, 0, 1], hi: [9, 12, 5] };
const ORDER: [usize; 3] = [1, 2, 0];
const BATCH: usize = 2;

/// SplitMix64.
fn uniform(key: u64) -> f64 {
    let key = key.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let key = (key ^ key >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ key >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    2.0 * (((key ^ key >> 31) >> 11) as f64 / (1u64 << 53) as f64 - 0.5)
}

fn expected<T: Real>(width: usize) -> Vec<T> {
    let mut all = Vec::new();
    for batch in 0..BATCH {
        let ranges = ORDER.map(|axis| BRICK.range(axis));
        for a in ranges[0].clone() {
            for b in ranges[1].clone() {
                for c in ranges[2].clone() {
                    let mut index = [0; 3];
                    ORDER.iter().zip([a, b, c]).for_each(|(&axis, i)| index[axis] = i);
                    let point = (0..3).fold(batch, |at, axis| at * GRID[axis] + index[axis]);
                    let number = |part| T::of(uniform((point * width + part) as u64));
                    all.extend((0..width).map(number));
                }
            }
        }
    }
    all
}

fn is_as_defined<T: GpuReal>(gpu: &Gpu, width: usize) {
    let stream = &gpu.stream();
    let grid = Grid::new(GRID).unwrap().into();
    let order = PerAxis::from(ORDER);
    let noise = Noise::<T>::new(gpu, (&grid, &BRICK.into()), order, BATCH, (width, 2.0)).unwrap();
    let expected = expected::<T>(width);
    let mut x = stream.alloc_zeros::<T>(expected.len()).unwrap();
    noise.fill(stream, &mut x).unwrap();
    let mut found = stream.clone_dtoh(&x).unwrap();
    assert_eq!(found, expected);
    let squares: f64 = expected.iter().map(|y| y.as_f64().powi(2)).sum();
    let largest = expected.iter().map(|y| y.as_f64().abs()).fold(0.0, f64::max);
    let same = noise.distance(stream, &x).unwrap();
    assert!(same[0] == 0.0 && same[2] == 0.0 && same[3] == largest, "{same:?}");
    assert!((same[1] - squares).abs() <= 1e-12 * squares, "{same:?} {squares}");
    found[7] = T::of(found[7].as_f64() + 3.0);
    let other = stream.clone_htod(&found).unwrap();
    let off = found[7].as_f64() - expected[7].as_f64();
    let [squared, _, most, _] = noise.distance(stream, &other).unwrap();
    assert!((squared - off * off).abs() <= 1e-12 && most == off.abs(), "{squared} {most}");
    found[8] = T::of(f64::NAN);
    let bad = stream.clone_htod(&found).unwrap();
    let bad = noise.distance(stream, &bad).unwrap();
    assert!(bad[0].is_nan() && bad[2].is_nan() && !bad[1].is_nan(), "{bad:?}");
    let short = stream.alloc_zeros::<T>(3).unwrap();
    assert!(noise.distance(stream, &short).is_err());
}

#[test]
fn noise_is_as_defined() {
    let Some(gpu) = gpu() else { return };
    for width in [1, 2] {
        is_as_defined::<f32>(&gpu, width);
        is_as_defined::<f64>(&gpu, width);
    }
}
