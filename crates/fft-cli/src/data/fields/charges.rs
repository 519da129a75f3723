//! Point charges on a grid, as in particle-mesh Ewald.

use thriffty::planning::PerAxis;

use super::domain::Domain;
use crate::data::bricks::{holds, place};
use crate::data::noise::{gaussian, value};

/// Charges per point, as in molecular dynamics with a fine grid.
const DENSITY: f64 = 0.003;

/// The charges of each array, spread over 4 points along each axis, as far as they reach this
/// rank's brick. Their sum is 0.
pub(super) fn make(domain: &Domain) -> Vec<f64> {
    let Domain { brick, order, grid, batch, .. } = domain;
    let shape = grid.shape();
    let axes = shape.len();
    let count = (DENSITY * grid.points() as f64).ceil().max(2.0) as usize;
    let mut points = vec![0.0; brick.points() * batch];
    for (item, points) in points.chunks_exact_mut(brick.points().max(1)).enumerate() {
        let key = |n: usize| ((item * count + n) * (axes + 1)) as u64;
        let mean = (0..count).map(|n| gaussian(key(n))).sum::<f64>() / count as f64;
        for n in 0..count {
            let charge = gaussian(key(n)) - mean;
            let mut first = PerAxis::splat(axes, 0);
            let mut weights = shape.map(|_| [0.0; 4]);
            for axis in 0..axes {
                let position = (value(key(n) + 1 + axis as u64) + 0.5) * shape[axis] as f64;
                first[axis] = position as usize;
                weights[axis] = spline(position.fract());
            }
            for corner in 0..1usize << (2 * axes) {
                let offset = PerAxis::from_fn(axes, |axis| corner >> (2 * axis) & 3);
                let index =
                    PerAxis::from_fn(axes, |axis| (first[axis] + offset[axis]) % shape[axis]);
                if holds(brick, index) {
                    let weight: f64 = (0..axes).map(|axis| weights[axis][offset[axis]]).product();
                    points[place(brick, *order, index)] += charge * weight;
                }
            }
        }
    }
    points
}

/// The weights of four points by the cubic B-spline, for a fraction `u` of a step.
fn spline(u: f64) -> [f64; 4] {
    let (v, u2, u3) = (1.0 - u, u * u, u * u * u);
    [
        v * v * v / 6.0,
        (3.0 * u3 - 6.0 * u2 + 4.0) / 6.0,
        (-3.0 * u3 + 3.0 * u2 + 3.0 * u + 1.0) / 6.0,
        u3 / 6.0,
    ]
}
