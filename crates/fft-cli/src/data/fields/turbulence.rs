//! A field with the energy spectrum of turbulence.

use bytemuck::{cast_slice, cast_slice_mut};
use thriffty::planning::{Direction, DynDraft, DynTransform, Options, PerAxis, Precision};
use thriffty::{Comm, Complex, Error};

use super::domain::Domain;
use crate::data::bricks::for_each_row;
use crate::data::noise::value;

/// This rank's points of a field with the isotropic energy spectrum k^-5/3 and phases by the index.
/// Collective.
pub(super) fn make(domain: &Domain, comm: &dyn Comm) -> Result<Vec<f64>, Error> {
    let Domain { brick, order, grid, batch, .. } = domain;
    let mut draft = DynDraft::new(comm, *grid, DynTransform::R2c, Precision::F64);
    draft.options =
        Options { batch: *batch, input: Some(*brick), input_order: Some(*order), ..draft.options };
    let mut plan = draft.build()?;
    let last = grid.axes() - 1;
    let mut modes = vec![Complex::<f64>::default(); plan.output_len()];
    let (held, shape) = (plan.output_brick(), grid.shape());
    for item in 0..*batch {
        for_each_row(&held, PerAxis::row_major(grid.axes()), |mut index, at| {
            for i in 0..held.len(last) {
                modes[item * held.points() + at + i] = mode(shape, item, index);
                index[last] += 1;
            }
        });
    }
    let mut points = vec![0f64; plan.input_len()];
    plan.run(Direction::Inverse, cast_slice(&modes), cast_slice_mut(&mut points))?;
    Ok(points)
}

/// The amplitude of a mode. A mode and its mirror image are conjugates.
fn mode(shape: PerAxis<usize>, item: usize, index: PerAxis<usize>) -> Complex<f64> {
    let axes = shape.len();
    let mirror = PerAxis::from_fn(axes, |axis| (shape[axis] - index[axis]) % shape[axis]);
    let square: usize = (0..axes).map(|axis| index[axis].min(mirror[axis]).pow(2)).sum();
    if square == 0 {
        return Complex::default();
    }
    let points: usize = shape.iter().product();
    // A shell of |k| has about |k|^(axes-1) modes, each with this squared.
    let amplitude = points as f64 * (square as f64).powf(-0.25 * (5.0 / 3.0 + (axes - 1) as f64));
    let key =
        |index: PerAxis<usize>| (0..axes).fold(item, |key, axis| key * shape[axis] + index[axis]);
    let turns = |index| value(key(index) as u64);
    let twice = index[axes - 1] == mirror[axes - 1];
    let angle = match twice && mirror < index {
        _ if mirror == index => 0.5 * f64::from(turns(index) > 0.0),
        true => -turns(mirror),
        false => turns(index),
    };
    Complex::from_polar(amplitude, std::f64::consts::TAU * angle)
}
