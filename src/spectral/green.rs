//! Green's functions of Poisson's equation in open space, integrated over cells.
//!
//! ```text
//! the potential of a cell of charge density 1 at a displacement of whole cells:
//!     an antiderivative along all axes of the potential of a point charge,
//!     added up with alternating signs over the cell's corners
//! ```
//!
//! The integral is exact where the density is constant in each cell (R. D. Ryne, "On FFT based
//! convolutions and correlations, with application to solving Poisson's equation in an open
//! rectangular pipe", 2011; J. Qiang et al., Phys. Rev. ST Accel. Beams 9, 044204, 2006).

use std::f64::consts::PI;

use fft_core::Error;

/// Checks the axes and the spacing of a grid in open space.
pub(crate) fn check_spacing(spacing: &[f64]) -> Result<(), Error> {
    if !(2..=3).contains(&spacing.len()) {
        return Err(Error::argument("axes of open space", spacing.len(), "2 or 3"));
    }
    match spacing.iter().position(|h| !(h.is_finite() && *h > 0.0)) {
        Some(axis) => {
            let what = format!("spacing of axis {axis}");
            Err(Error::argument(what, spacing[axis], "a positive number"))
        }
        None => Ok(()),
    }
}

/// The potential at this displacement, in cells, from a cell of density 1, with -∇²φ = ρ.
///
/// # Panics
/// If there are not 2 or 3 axes.
pub(crate) fn integrated(displacement: &[f64], spacing: &[f64]) -> f64 {
    let end = |axis: usize, side: f64| (displacement[axis] + side) * spacing[axis];
    let sides: [f64; 2] = [-0.5, 0.5];
    let mut sum = 0.0;
    match displacement.len() {
        2 => {
            for (x, y) in sides.iter().flat_map(|x| sides.map(|y| (*x, y))) {
                sum += (x * y).signum() * of_plane(end(0, x), end(1, y));
            }
            -sum / (2.0 * PI)
        }
        3 => {
            let plane = sides.iter().flat_map(|x| sides.map(|y| (*x, y)));
            for (x, y, z) in plane.flat_map(|(x, y)| sides.map(|z| (x, y, z))) {
                sum += (x * y * z).signum() * of_space(end(0, x), end(1, y), end(2, z));
            }
            sum / (4.0 * PI)
        }
        axes => panic!("{axes} axes, expected 2 or 3"),
    }
}

/// The antiderivative of ln r in two dimensions; no coordinate is 0.
fn of_plane(x: f64, y: f64) -> f64 {
    let square = x * x + y * y;
    0.5 * (x * y * (square.ln() - 3.0) + x * x * (y / x).atan() + y * y * (x / y).atan())
}

/// The antiderivative of 1/r in three dimensions; no coordinate is 0.
fn of_space(x: f64, y: f64, z: f64) -> f64 {
    let r = (x * x + y * y + z * z).sqrt();
    // ln(x + r) without cancellation, up to a term that is the same for both signs of x.
    let log = |x: f64, others: f64| (x / others.sqrt()).asinh();
    let arc = |x: f64, y: f64, z: f64| x * x / 2.0 * (y * z / (x * r)).atan();
    let [xx, yy, zz] = [x * x, y * y, z * z];
    y * z * log(x, yy + zz) + x * z * log(y, xx + zz) + x * y * log(z, xx + yy)
        - arc(x, y, z)
        - arc(y, z, x)
        - arc(z, x, y)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Integrals by a midpoint rule of many points.
    #[test]
    fn cells_have_the_integral_of_points() {
        const N: usize = 60;
        let midpoints =
            |at: f64, h: f64| (0..N).map(move |i| (at - 0.5 + (i as f64 + 0.5) / N as f64) * h);
        let spacing = [0.5, 0.8, 0.3];
        for at in [[2.0, 0.0, 1.0], [0.0, 1.0, 3.0], [4.0, 2.0, 0.0]] {
            let mut sum = 0.0;
            for x in midpoints(at[0], spacing[0]) {
                for y in midpoints(at[1], spacing[1]) {
                    for z in midpoints(at[2], spacing[2]) {
                        sum += 1.0 / (4.0 * PI * (x * x + y * y + z * z).sqrt());
                    }
                }
            }
            let expected = sum * spacing.iter().product::<f64>() / (N * N * N) as f64;
            let found = integrated(&at, &spacing);
            assert!((found / expected - 1.0).abs() < 1e-4, "{found}, not {expected} at {at:?}");
            let mut sum = 0.0;
            for x in midpoints(at[0], spacing[0]) {
                for z in midpoints(at[2], spacing[2]) {
                    sum -= (x * x + z * z).sqrt().ln() / (2.0 * PI);
                }
            }
            let expected = sum * spacing[0] * spacing[2] / (N * N) as f64;
            let found = integrated(&[at[0], at[2]], &[spacing[0], spacing[2]]);
            assert!((found / expected - 1.0).abs() < 1e-3, "{found}, not {expected} at {at:?}");
        }
    }

    #[test]
    fn far_cells_are_points() {
        let found = integrated(&[30.0, 40.0, 0.0], &[0.1; 3]);
        assert!((found * 4.0 * PI * 5.0 / 1e-3 - 1.0).abs() < 1e-7, "{found}");
        // Long cells, seen along their axis.
        let found = integrated(&[128.0, 0.0, 0.0], &[1.0, 1e-4, 1e-4]);
        assert!((found * 4.0 * PI * 128.0 / 1e-8 - 1.0).abs() < 1e-4, "{found}");
        // Mirrored cells have the same potential.
        let near = |x: f64| integrated(&[x, 1.0, 2.0], &[1.0; 3]);
        assert!((near(3.0) / near(-3.0) - 1.0).abs() < 1e-12);
    }
}
