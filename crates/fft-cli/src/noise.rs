//! Pseudo-random input that depends on global indices only: the same data for any number of ranks.

use bytemuck::{cast_slice, cast_slice_mut};
use thriffty::{Brick, Element, Grid, Real};

use crate::bricks::for_each_row;

/// A number from -½ to ½ for each key: the finaliser of SplitMix64, by which close keys give unrelated numbers.
pub(crate) fn value(key: u64) -> f64 {
    (scramble(key) >> 11) as f64 / (1u64 << 53) as f64 - 0.5
}

/// 64 bits for each key.
pub(crate) fn scramble(key: u64) -> u64 {
    let key = key.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let key = (key ^ key >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ key >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ key >> 31
}

/// Calls `visit(place, number)` for every real number of `howmany` arrays: its place in this rank's memory, counted in
/// real numbers, and what belongs there.
fn for_each<E: Element, const D: usize>(
    grid: &Grid<D>,
    brick: &Brick<D>,
    order: [usize; D],
    howmany: usize,
    mut visit: impl FnMut(usize, f64),
) {
    let (shape, fast) = (grid.shape(), order[D - 1]);
    let stride: usize = shape[fast + 1..].iter().product();
    for batch in 0..howmany {
        for_each_row(brick, order, |first, at| {
            let linear = (0..D).fold(batch, |linear, axis| linear * shape[axis] + first[axis]);
            for i in 0..brick.len(fast) {
                for part in 0..E::WIDTH {
                    let key = (linear + i * stride) * E::WIDTH + part;
                    let place = (batch * brick.points() + at + i) * E::WIDTH + part;
                    visit(place, value(key as u64));
                }
            }
        });
    }
}

/// Fills this rank's part of `howmany` arrays, one after the other in memory.
pub(crate) fn fill<E: Element, const D: usize>(
    grid: &Grid<D>,
    brick: &Brick<D>,
    order: [usize; D],
    howmany: usize,
    data: &mut [E],
) {
    let reals: &mut [E::Real] = cast_slice_mut(data);
    for_each::<E, D>(grid, brick, order, howmany, |place, value| reals[place] = Real::of(value));
}

/// How far `data` is from what [`fill`] puts there.
pub(crate) fn distance<E: Element, const D: usize>(
    grid: &Grid<D>,
    brick: &Brick<D>,
    order: [usize; D],
    howmany: usize,
    data: &[E],
) -> Distance {
    let reals: &[E::Real] = cast_slice(data);
    let mut distance = Distance::default();
    for_each::<E, D>(grid, brick, order, howmany, |place, value| {
        distance.add(reals[place].as_f64(), E::Real::of(value).as_f64());
    });
    distance
}

/// How far numbers are from what they should be: sums of squares, and the largest of each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Distance {
    /// `[Σ (x - x')², Σ x²]`
    pub(crate) squares: [f64; 2],
    /// `[max |x - x'|, max |x|]`
    pub(crate) largest: [f64; 2],
}

impl Distance {
    fn add(&mut self, found: f64, expected: f64) {
        for (i, x) in [found - expected, expected].into_iter().enumerate() {
            let largest = self.largest[i];
            self.squares[i] += x * x;
            // Unlike `f64::max`, this keeps a NaN.
            self.largest[i] = if largest.is_nan() || largest > x.abs() { largest } else { x.abs() };
        }
    }
}

#[cfg(test)]
mod tests {
    use thriffty::Complex;

    use super::*;

    #[test]
    fn a_brick_in_any_order_is_part_of_the_whole() {
        let grid = Grid::new([3, 4, 5]).unwrap();
        let (whole, brick) = (grid.whole(), Brick { lo: [1, 0, 2], hi: [3, 3, 4] });
        let mut all = vec![Complex::<f64>::default(); 2 * whole.points()];
        fill(&grid, &whole, [0, 1, 2], 2, &mut all);
        let mut mine = vec![Complex::<f64>::default(); 2 * brick.points()];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            fill(&grid, &brick, order, 2, &mut mine);
            let last = crate::bricks::place(&brick, order, [2, 1, 3]) + brick.points();
            assert_eq!(mine[last], all[60 + 2 * 20 + 5 + 3]);
            assert_eq!(distance(&grid, &brick, order, 2, &mine).squares[0], 0.0);
        }
    }

    #[test]
    fn numbers_are_spread_evenly_around_zero() {
        let values: Vec<f64> = (0..10_000).map(value).collect();
        let mean = |power: i32| values.iter().map(|v| v.powi(power)).sum::<f64>() / 10_000.0;
        assert!(mean(1).abs() < 0.01 && (mean(2) - 1.0 / 12.0).abs() < 0.002);
        assert!(values.iter().all(|v| (-0.5..0.5).contains(v)));
    }

    #[test]
    fn distance_keeps_a_nan() {
        let mut distance = Distance::default();
        [f64::NAN, 1.0].into_iter().for_each(|found| distance.add(found, 0.5));
        assert!(distance.largest[0].is_nan() && distance.squares[0].is_nan());
    }
}
