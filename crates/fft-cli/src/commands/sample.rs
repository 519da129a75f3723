//! `fft-cli sample`: flow fields as files.

use std::f64::consts::TAU;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use thriffty::Comm;
use thriffty::planning::{DynGrid, Element, PerAxis, Precision, Real};

use crate::args::parse::{choice, count};
use crate::check::exact_sum::ExactSum;
use crate::data::bricks::{for_each_row, slab};
use crate::data::files::{Sink, dtype};
use crate::data::npy::Header;
use crate::ranks::world::{Failure, mention, on_first, zeros};

/// The energy is printed in multiples of one over this.
const DIGITS: f64 = 1e6;

/// Write a flow field as u.npy, v.npy and w.npy.
///
/// taylor-green: u = sin x cos y cos z, v = -cos x sin y cos z, w = 0 on [0, 2π)³; its energy is
/// 1/8 from three points along each axis on.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The field.
    #[arg(value_name = "FIELD", value_parser = ["taylor-green"])]
    field: String,
    /// Points along each of the three axes.
    #[arg(long, value_parser = count)]
    n: NonZeroUsize,
    /// The folder to write to, created if missing.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[arg(long, default_value = "f64", value_parser = choice(Precision::ALL.map(|it| (it.name(), it))))]
    precision: Precision,
}

pub(super) fn run(comm: &dyn Comm, options: &Options) -> Result<(), Failure> {
    match options.precision {
        Precision::F32 => write::<f32>(comm, options),
        Precision::F64 => write::<f64>(comm, options),
    }
}

fn write<T: Real + Element<Real = T>>(comm: &dyn Comm, options: &Options) -> Result<(), Failure> {
    let n = options.n.get();
    let grid = DynGrid::new([n; 3])?;
    let brick = slab(comm, &grid, 0);
    let folder = &options.out;
    on_first(comm, || {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
    })?;
    let header = Header::new(&grid.shape(), dtype::<T>(), false);
    let sinks = ["u.npy", "v.npy", "w.npy"]
        .map(|name| Sink::create(comm, &folder.join(name), header.clone()));
    let mut values: Vec<T> = zeros(comm, brick.points())?;
    // All are created before any is written, so that a full disk is found first.
    let sinks = sinks.into_iter().collect::<Result<Vec<_>, _>>()?;
    let turns: Vec<_> = (0..n).map(|i| (TAU * i as f64 / n as f64).sin_cos()).collect();
    let mut squares = [ExactSum::default()];
    for (component, sink) in sinks.iter().enumerate() {
        for_each_row(&brick, PerAxis::row_major(3), |index, at| {
            let [i, j, first] = index.array();
            for (value, z) in values[at..].iter_mut().zip(&turns[first..brick.hi[2]]) {
                *value = T::of(taylor_green(turns[i], turns[j], *z)[component]);
                squares[0].add(value.as_f64().powi(2));
            }
        });
        sink.write(&brick, &values)?;
    }
    sinks.into_iter().try_for_each(Sink::commit)?;
    ExactSum::over_ranks(comm, &mut squares)?;
    // Without digits that are only rounding.
    let energy = (0.5 * squares[0].value() / grid.points() as f64 * DIGITS).round() / DIGITS;
    let (folder, precision) = (folder.display(), options.precision);
    let files = format!("{folder}: u.npy, v.npy, w.npy, {grid} {precision}");
    mention(comm, &format!("{files}, energy {energy}\n"));
    Ok(())
}

/// The velocity of the Taylor-Green vortex, by the sine and cosine of each coordinate.
fn taylor_green(x: (f64, f64), y: (f64, f64), z: (f64, f64)) -> [f64; 3] {
    [x.0 * y.1 * z.1, -x.1 * y.0 * z.1, 0.0]
}
