//! `fft-cli transform`: one `.npy` file into another.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use bytemuck::{cast_slice, cast_slice_mut};
use clap::Args;
use serde_json::json;
use thriffty::planning::{self, Direction, DynDraft, DynGrid, PerAxis, Precision, Transform};
use thriffty::{Comm, Kind};

use crate::args::choices::{Choices, Offer};
use crate::args::kinds::{self, dispatch};
use crate::args::options::{Grids, is_resized, lengths};
use crate::args::parse;
use crate::args::shape::{Shape, times};
use crate::data::bricks::{order, slab};
use crate::data::files::{self, Sink, dtype};
use crate::data::npy::{Dtype, Header};
use crate::output::units::time;
use crate::ranks::world::{Failure, mention, refused, zeros};

/// Transform a NumPy file into another.
///
/// The results equal numpy.fft.rfftn (r2c), fftn (c2c), irfftn and ifftn (--inverse); and
/// scipy.fft.dctn, dstn, idctn and idstn. Files hold 1 to 4 axes of booleans, integers, f2, f4, f8,
/// c8 or c16, of either byte order. The result is f4 or c8 for f2, f4 and c8, and f8 or c16 for
/// others, little-endian, in the order (C or Fortran) of the input. Every rank reads and writes its
/// part of the files. After an error the output file is as before.
///
/// --zero-padded is the argument s of NumPy's forward transforms. An inverse takes --zero-padded
/// and --modes of the forward transform; --shape is the shape before the forward transform.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The transform of each axis.
    #[arg(value_parser = parse::kind())]
    kind: Kind,
    /// The file to read.
    #[arg(value_name = "IN.npy")]
    input: PathBuf,
    /// The file to write.
    #[arg(value_name = "OUT.npy")]
    output: PathBuf,
    /// Transform back.
    #[arg(long)]
    inverse: bool,
    #[command(flatten)]
    choices: Choices<OfFiles>,
    /// The shape of the output of an inverse; by default, it follows from the shape of the input.
    #[arg(long, value_name = "SHAPE")]
    #[arg(requires = "inverse", conflicts_with = "last")]
    shape: Option<Shape>,
    /// Length of the axis of kind r2c, the last by default, of the real output of an inverse r2c;
    /// 2(m-1) by default, where m is the length in the input.
    #[arg(long, value_name = "N", value_parser = parse::count)]
    last: Option<NonZeroUsize>,
    #[command(flatten)]
    grids: Grids,
    /// Print one JSON object instead of a line.
    #[arg(long)]
    json: bool,
}

/// The options that files do not determine.
#[derive(Clone, Debug)]
struct OfFiles;

impl Offer for OfFiles {
    fn takes(name: &str) -> bool {
        ["kinds", "zero_padded", "modes", "forward_scale", "inverse_scale"].contains(&name)
    }
}

pub(super) fn run(comm: &dyn Comm, options: &Options) -> Result<(), Failure> {
    let header = files::open(comm, &options.input)?;
    let kind = options.kind;
    let complex = match kind {
        Kind::C2C => header.dtype.is_complex(),
        Kind::R2C => options.inverse,
        _ => false,
    };
    if header.dtype.is_complex() != complex && kind != Kind::C2C {
        let (path, found) = (options.input.display(), header.item);
        let expected = if complex { "complex" } else { "real" };
        let inverse = if options.inverse { " --inverse" } else { "" };
        return refused(format!(
            "{path}: found dtype {found}, {kind}{inverse} takes {expected} data"
        ));
    }
    let precision = match header.dtype {
        Dtype::F32 | Dtype::C64 => Precision::F32,
        Dtype::F64 | Dtype::C128 => Precision::F64,
    };
    let transform = FileTransform { comm, options, header: &header, precision };
    dispatch!(kind, precision, run_as(&transform))
}

struct FileTransform<'a> {
    comm: &'a dyn Comm,
    options: &'a Options,
    header: &'a Header,
    precision: Precision,
}

fn run_as<K: Transform>(transform: &FileTransform<'_>) -> Result<(), Failure> {
    let FileTransform { comm, options: Options { input, output, inverse, .. }, header, .. } =
        *transform;
    let mut lap = laps();
    let mut plan = transform.draft()?.build()?;
    let mut data = zeros::<K::Spectral>(comm, plan.in_place_len())?;
    let (physical, spectral) = (plan.input_len(), plan.output_len());
    let (physical_brick, spectral_brick) = (plan.input_brick(), plan.output_brick());
    let problem = plan.problem();
    if problem.input.is_strided() || problem.output.is_strided() {
        return refused("files have points in order, and not a cyclic or a transposed axis");
    }
    let fortran = header.fortran_order;
    // A full disk is found here, before the computation.
    let made = match inverse {
        false => Header::new(&problem.output.grid().shape(), dtype::<K::Spectral>(), fortran),
        true => Header::new(&problem.grid().shape(), dtype::<K::Physical>(), fortran),
    };
    let sink = Sink::create(comm, output, made.clone())?;
    let planned = lap();

    if *inverse {
        files::read(comm, input, header, &spectral_brick, &mut data[..spectral])?;
    } else {
        let data: &mut [K::Physical] = cast_slice_mut(&mut data);
        files::read(comm, input, header, &physical_brick, &mut data[..physical])?;
    }
    let read = lap();

    let direction = if *inverse { Direction::Inverse } else { Direction::Forward };
    plan.run_in_place(direction, cast_slice_mut(&mut data))?;
    let transformed = lap();

    if *inverse {
        let data: &[K::Physical] = cast_slice(&data);
        sink.write(&physical_brick, &data[..physical])?;
    } else {
        sink.write(&spectral_brick, &data[..spectral])?;
    }
    // The file is the result, so the rest must not fail for lack of memory.
    drop(data);
    sink.commit()?;
    transform.report(&made, [planned, read, transformed, lap()]);
    Ok(())
}

impl FileTransform<'_> {
    /// The draft of the file and the options.
    fn draft(&self) -> Result<DynDraft<'_>, Failure> {
        let Self { comm, options, header, precision } = *self;
        let axes = header.shape.len();
        let chosen = kinds::with_kinds(&options.choices.options, options.kind, axes);
        let grid = DynGrid::new(self.physical_shape(axes, &chosen)?)?;
        chosen.check_axes(grid)?;
        let mut draft = kinds::draft(comm, grid, options.kind, precision);
        draft.options = chosen;
        let spectral_grid = draft.spectral_grid();
        let expected = spectral_grid.shape();
        if options.inverse && *expected != *header.shape {
            let (path, found) = (options.input.display(), times(&header.shape));
            return refused(format!("{path}: found shape {found}, expected {}", times(&expected)));
        }

        let order = order(axes, header.fortran_order);
        let brick = |grid: &DynGrid, name, ranks: &Option<Shape>| -> Result<_, Failure> {
            if let Some(ranks) = ranks {
                let ranks = ranks.proc_grid(name, axes, comm.size())?;
                return Ok(Some(ranks.part(grid, comm.rank())));
            }
            // A single axis is cut as suits its factors.
            Ok((axes > 1).then(|| slab(comm, grid, order[0])))
        };
        let (given, taken) = (
            ("--input-grid", &options.grids.input_grid),
            ("--output-grid", &options.grids.output_grid),
        );
        let (physical, spectral) = if options.inverse { (taken, given) } else { (given, taken) };
        draft.options = planning::Options {
            input: brick(&grid, physical.0, physical.1)?,
            output: brick(&spectral_grid, spectral.0, spectral.1)?,
            // Files may have any length.
            one_rank: true,
            input_order: Some(order),
            output_order: Some(order),
            ..draft.options
        };
        Ok(draft)
    }

    /// The shape of physical data.
    fn physical_shape(
        &self,
        axes: usize,
        chosen: &planning::Options,
    ) -> Result<PerAxis<usize>, Failure> {
        let Self { options, header, .. } = self;
        let mut shape = PerAxis::from_fn(axes, |axis| header.shape[axis]);
        let halved = chosen
            .kinds
            .and_then(|kinds| kinds.iter().take(axes).position(|kind| *kind == Kind::R2C));
        match (options.inverse, &options.shape, halved) {
            (true, Some(shape), _) => return shape.of_axes("--shape", axes),
            (true, None, _) if is_resized(chosen) => {
                return refused("--inverse with --zero-padded or --modes needs --shape");
            }
            (true, None, Some(halved)) => {
                shape[halved] = whole_length(shape[halved], options.last.map(NonZeroUsize::get))?;
            }
            _ if options.last.is_some() => return refused("--last goes with r2c --inverse only"),
            _ => {}
        }
        Ok(shape)
    }

    /// Prints the transform and its times.
    fn report(&self, made: &Header, seconds: [f64; 4]) {
        let Self { comm, options, header, .. } = self;
        let [plan, read, transform, write] = seconds;
        let side = |header: &Header| format!("{} {}", times(&header.shape), header.item);
        let kind = kinds::name(options.kind, &options.choices.options);
        let planning::Options { zero_padded, modes, .. } = &options.choices.options;
        let (ranks, communicator) = (comm.size(), comm.name());
        let inverse = if options.inverse { " inverse" } else { "" };
        let text = if options.json {
            json!({
                "kind": kind,
                "inverse": options.inverse,
                "zero_padded": zero_padded.as_deref(),
                "modes": modes.as_deref(),
                "input": { "shape": header.shape, "dtype": header.item.to_string() },
                "output": { "shape": made.shape, "dtype": made.item.to_string() },
                "fortran_order": made.fortran_order,
                "ranks": ranks,
                "communicator": communicator,
                "seconds": { "plan": plan, "read": read, "transform": transform, "write": write },
                "version": env!("CARGO_PKG_VERSION"),
            })
            .to_string()
        } else {
            format!(
                "{kind}{}{inverse} {} -> {}, {ranks} ranks ({communicator}): \
                 plan {}, read {}, transform {}, write {}",
                lengths(&options.choices.options),
                side(header),
                side(made),
                time(plan),
                time(read),
                time(transform),
                time(write)
            )
        };
        mention(*comm, &(text + "\n"));
    }
}

/// Seconds since the last call. Phases end with an agreement, so the times of any rank will do.
fn laps() -> impl FnMut() -> f64 {
    let mut last = Instant::now();
    move || std::mem::replace(&mut last, Instant::now()).elapsed().as_secs_f64()
}

/// The length of the axis that was halved to `m` points.
fn whole_length(m: usize, wanted: Option<usize>) -> Result<usize, Failure> {
    let n = wanted.unwrap_or(2 * m.saturating_sub(1));
    match n {
        0 => refused(format!(
            "a last axis of {m} points has no default length; --last 1 goes with 1"
        )),
        _ if n / 2 + 1 == m => Ok(n),
        _ => {
            refused(format!("--last {n} needs {} points along the last axis, found {m}", n / 2 + 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_axis_gets_its_length_back() {
        let length = |m, wanted| whole_length(m, wanted).ok();
        assert_eq!(
            [length(5, None), length(5, Some(8)), length(5, Some(9))],
            [Some(8), Some(8), Some(9)]
        );
        assert_eq!(
            [length(0, None), length(1, None), length(5, Some(10)), length(5, Some(7))],
            [None; 4]
        );
        assert_eq!(length(1, Some(1)), Some(1));
    }
}
