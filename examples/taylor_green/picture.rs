//! The vorticity in a plane of the flow as a PNG picture.

use std::io;
use std::path::Path;

use png::{BitDepth, ColorType, Encoder};
use thriffty::planning::Reduce;
use thriffty::{Comm, Complex, Error, local};

use super::files::on_first;
use super::flow::Flow;
use super::place::Place;
use super::replace::replace;

/// Pixels along each axis, at least.
const SIDE: usize = 720;
/// Red, green and blue of magnitudes from 0 to the largest, evenly spaced.
const COLOURS: [[f64; 3]; 6] = [
    [0.02, 0.02, 0.10],
    [0.16, 0.10, 0.42],
    [0.55, 0.13, 0.47],
    [0.90, 0.33, 0.28],
    [0.99, 0.70, 0.30],
    [1.00, 1.00, 0.88],
];

/// Draws `|ω|` in the plane z = 3π/8: x to the right, y upwards. Collective.
///
/// # Errors
/// On every rank, when a transform or the file fails.
pub(crate) fn save<P: Place>(
    flow: &mut Flow<P>,
    world: &dyn Comm,
    path: &Path,
) -> Result<(), Error> {
    let n = flow.size();
    let mut plane = vec![0.0; 3 * n * n];
    let height = 3 * n / 16;
    flow.read_vorticity(|omega| {
        let brick = omega.brick();
        let points = brick.points();
        for (at, ([x, y, z], value)) in omega.iter().enumerate() {
            if z == height {
                let component = at / points;
                plane[(component * n + y) * n + x] = *value;
            }
        }
        Ok(())
    })?;
    world.allreduce(Reduce::Sum, &mut plane)?;
    on_first(world, path, || {
        let magnitudes =
            interpolated(&plane, n).map_err(|why| io::Error::other(why.to_string()))?;
        replace(path, &encoded(&magnitudes)?)
    })
}

/// The magnitudes of a vector field on more points of the same plane. Each of its three components
/// of n² points is a sum of waves, which gives the values in between.
fn interpolated(plane: &[f64], n: usize) -> Result<Vec<f64>, Error> {
    let side = SIDE.max(n);
    let mut analysis = local::r2c([n; 2]).build()?;
    let mut synthesis = local::r2c([side; 2]).modes([n; 2]).build()?;
    let mut waves = vec![Complex::default(); analysis.output_len()];
    let mut values = vec![0.0; side * side];
    let mut squares = vec![0.0; side * side];
    // The inverse divides by its own points.
    let scale = (side as f64 / n as f64).powi(2);
    for component in plane.chunks_exact(n * n) {
        analysis.forward_into(component, &mut waves)?;
        synthesis.inverse_into(&waves, &mut values)?;
        for (square, value) in squares.iter_mut().zip(&values) {
            *square += (scale * value).powi(2);
        }
    }
    Ok(squares.into_iter().map(f64::sqrt).collect())
}

/// The file of a square of magnitudes, whose lowest row comes first.
fn encoded(magnitudes: &[f64]) -> io::Result<Vec<u8>> {
    let side = magnitudes.len().isqrt();
    let largest = magnitudes.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let rows = magnitudes.chunks_exact(side).rev();
    let samples: Vec<u8> = rows.flatten().flat_map(|value| colour(value / largest)).collect();
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, side as u32, side as u32);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    encoder.write_header()?.write_image_data(&samples)?;
    Ok(file)
}

/// The colour of a magnitude between 0 and 1.
fn colour(magnitude: f64) -> [u8; 3] {
    let place = magnitude.clamp(0.0, 1.0) * (COLOURS.len() - 1) as f64;
    let below = (place as usize).min(COLOURS.len() - 2);
    let share = place - below as f64;
    std::array::from_fn(|channel| {
        let [low, high] = [COLOURS[below][channel], COLOURS[below + 1][channel]];
        (255.0 * (low + share * (high - low))).round() as u8
    })
}
