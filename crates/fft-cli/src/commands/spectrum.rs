//! `fft-cli spectrum`: the energy spectrum of a field.

use std::fmt::Write;
use std::path::PathBuf;

use bytemuck::cast_slice_mut;
use clap::Args;
use thriffty::planning::{self, Direction, DynBrick, DynPlan, Element, PerAxis, Real};
use thriffty::{Comm, Complex, Kind};

use crate::args::kinds;
use crate::args::shape;
use crate::check::exact_sum::ExactSum;
use crate::data::bricks::{for_each_row, order, slab};
use crate::data::files::{self, save};
use crate::data::npy::{Dtype, Header};
use crate::output::plot::Plot;
use crate::ranks::world::{Failure, print, refused, zeros};

/// Show the energy of a real field by wavenumber.
///
/// E(k) = ½ Σ |û|²/N² over k - ½ ≤ |k| < k + ½, in a box 2π wide along each axis.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The 1 to 3 components of the field.
    #[arg(value_name = "U.npy", required = true, num_args = 1..=3)]
    components: Vec<PathBuf>,
    /// The first axis of a file counts components.
    #[arg(long)]
    vector: bool,
    /// Draw the spectrum into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the spectrum into this file as lines `k,E`.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

pub(super) fn run(comm: &dyn Comm, options: &Options) -> Result<(), Failure> {
    let mut headers = Vec::new();
    for path in &options.components {
        let header = files::open(comm, path)?;
        let path = path.display();
        if header.dtype.is_complex() {
            return refused(format!("{path}: found dtype {}, expected real data", header.item));
        }
        let kind = |header: &Header| (header.shape.clone(), header.dtype, header.fortran_order);
        if headers.first().is_some_and(|first| kind(first) != kind(&header)) {
            let first = options.components[0].display();
            return refused(format!("{path}: found another shape, dtype or order than in {first}"));
        }
        if options.vector && header.shape.len() < 2 {
            return refused(format!(
                "{path}: found one axis, expected one for --vector and others"
            ));
        }
        headers.push(header);
    }
    let Energy { physical, shells } = match headers[0].dtype {
        Dtype::F32 | Dtype::C64 => energy::<f32>(comm, options, &headers),
        Dtype::F64 | Dtype::C128 => energy::<f64>(comm, options, &headers),
    }?;

    let spectral: f64 = shells.iter().sum();
    let difference = if physical == spectral { 0.0 } else { (spectral / physical - 1.0).abs() };
    let plot = plot(&shells, spectral);
    if let Some(path) = &options.csv {
        let rows: String =
            shells.iter().enumerate().map(|(k, energy)| format!("{k},{energy:e}\n")).collect();
        save(comm, path, &format!("k,E\n{rows}"))?;
    }
    if let Some(path) = &options.svg {
        save(comm, path, &plot.to_svg())?;
    }
    let mut text = plot.to_terminal(80, 24);
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "energy {spectral:.12e} by the spectrum, {physical:.12e} by the field, \
         relative difference {difference:.1e}"
    );
    print(comm, &text)
}

struct Energy {
    /// `½ ⟨|u|²⟩`
    physical: f64,
    /// `E(k) = ½ Σ |û|²/N²` over `k - ½ ≤ |k| < k + ½`, in a box `2π` wide along each axis.
    shells: Vec<f64>,
}

/// All components are one batch.
fn energy<T: Real + Element<Real = T>>(
    comm: &dyn Comm,
    options: &Options,
    headers: &[Header],
) -> Result<Energy, Failure> {
    let header = &headers[0];
    let (in_file, shape) =
        if options.vector { (header.shape[0], &header.shape[1..]) } else { (1, &header.shape[..]) };
    let grid = shape::grid(shape)?;
    let order = order(grid.axes(), header.fortran_order);
    let mut draft = kinds::draft(comm, grid, Kind::R2C, T::PRECISION);
    draft.options = planning::Options {
        batch: in_file * headers.len(),
        input: Some(slab(comm, &grid, order[0])),
        output: Some(slab(comm, &draft.spectral_grid(), order[0])),
        input_order: Some(order),
        output_order: Some(order),
        ..draft.options
    };
    let mut plan = draft.build()?;
    let (brick, all) = (plan.input_brick(), plan.input_len());
    let mut data = zeros::<Complex<T>>(comm, plan.in_place_len())?;
    let physical: &mut [T] = &mut cast_slice_mut(&mut data)[..all];
    for component in 0..in_file * headers.len() {
        let (file, number) = (component / in_file, component % in_file);
        let values = &mut physical[component * brick.points()..][..brick.points()];
        let (path, header) = (&options.components[file], &headers[file]);
        let part = if options.vector { of_component(&brick, number) } else { brick };
        files::read(comm, path, header, &part, values)?;
    }
    let mut squares = [ExactSum::default()];
    physical.iter().for_each(|u| squares[0].add(u.as_f64().powi(2)));
    ExactSum::over_ranks(comm, &mut squares)?;

    plan.run_in_place(Direction::Forward, cast_slice_mut(&mut data))?;
    let points = grid.points() as f64;
    let mut shells = shells(&plan, &data[..plan.output_len()]);
    ExactSum::over_ranks(comm, &mut shells)?;
    let shells = shells.iter().map(|energy| energy.value() * 0.5 / (points * points)).collect();
    Ok(Energy { physical: 0.5 * squares[0].value() / points, shells })
}

/// A brick of a component in a file whose first axis counts these.
fn of_component(brick: &DynBrick, component: usize) -> DynBrick {
    let with = |first: usize, ends: &PerAxis<usize>| {
        PerAxis::from_fn(ends.len() + 1, |axis| if axis == 0 { first } else { ends[axis - 1] })
    };
    DynBrick::new(with(component, &brick.lo), with(component + 1, &brick.hi))
}

/// This rank's part of `Σ |û|²` in each shell, of all components.
fn shells<T: Real>(plan: &DynPlan, spectrum: &[Complex<T>]) -> Vec<ExactSum> {
    let problem = plan.problem();
    let (brick, order, n) = (plan.output_brick(), problem.output.order(), problem.grid().shape());
    let mut shells = vec![ExactSum::default(); shell(n.iter().map(|n| (n / 2).pow(2)).sum()) + 1];
    let axes = order.len();
    let fast = order[axes - 1];
    for component in 0..problem.batch {
        for_each_row(&brick, order, |mut index, at| {
            for point in &spectrum[component * brick.points() + at..][..brick.len(fast)] {
                let square = (0..axes).map(|axis| wavenumber(n[axis], index[axis]).pow(2)).sum();
                // The last axis holds one of each pair of conjugates.
                let alone = index[axes - 1] == 0 || 2 * index[axes - 1] == n[axes - 1];
                let weight = if alone { 1.0 } else { 2.0 };
                let energy = point.re.as_f64().powi(2) + point.im.as_f64().powi(2);
                shells[shell(square)].add(weight * energy);
                index[fast] += 1;
            }
        });
    }
    shells
}

/// The absolute wavenumber of index `k` of an axis of `n` points.
fn wavenumber(n: usize, k: usize) -> usize {
    k.min(n - k)
}

/// The shell of a wave vector with this squared length.
fn shell(square: usize) -> usize {
    ((square as f64).sqrt() + 0.5).floor() as usize
}

/// The spectrum without rounding errors.
fn plot(shells: &[f64], total: f64) -> Plot {
    let points = shells.iter().enumerate().map(|(k, energy)| (k as f64, *energy));
    let shown = points.filter(|(_, energy)| *energy > total * f64::EPSILON.powi(2)).collect();
    Plot {
        title: "energy spectrum".into(),
        x_label: "wavenumber k".into(),
        y_label: "E(k)".into(),
        series: vec![(String::new(), shown)],
        log_x: true,
        log_y: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_are_one_wide_around_whole_numbers() {
        assert_eq!([0, 1, 2, 3, 6, 7].map(shell), [0, 1, 1, 2, 2, 3]);
        assert_eq!((0..5).map(|k| wavenumber(5, k)).collect::<Vec<_>>(), [0, 1, 2, 2, 1]);
    }
}
