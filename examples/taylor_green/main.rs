//! The Taylor-Green vortex: turbulence from a simple flow, by a pseudo-spectral method.
//!
//! Prints energy, dissipation and enstrophy over time, next to published values for a Reynolds
//! number of 1600. `flow.rs` has the time step.
//!
//! `cargo run --release --example taylor_green -- --size 64 --time 2 --ranks 2`, or with MPI
//! `cargo build --release --example taylor_green --features mpi`
//! `mpirun -n 4 target/release/examples/taylor_green --size 128 --time 10 --out vortex`
//! On CUDA devices: feature `cuda` and `--device`.

mod checkpoint;
#[cfg(feature = "cuda")]
mod device;
mod files;
mod flow;
#[cfg(feature = "cuda")]
#[path = "../common/gpu.rs"]
mod gpu;
mod options;
mod picture;
mod place;
mod plot;
#[path = "../common/replace.rs"]
mod replace;
mod run;
mod table;

use std::process::ExitCode;

use flow::Flow;
use options::Options;
use place::OnHost;
use thriffty::planning::ProcGrid;
use thriffty::{Comm, Draft, Error, Grid, Plan, R2c, Tolerance};

fn main() -> ExitCode {
    let options = Options::parse(std::env::args().skip(1));
    let ranks = options.as_ref().map_or(1, |options| options.ranks);
    match thriffty::run(ranks, |world| compute(world, &options)) {
        Ok(()) => ExitCode::from(if options.is_ok() { 0 } else { 2 }),
        Err(error) => {
            eprintln!("taylor_green: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compute(world: &dyn Comm, options: &Result<Options, String>) -> Result<(), Error> {
    match options {
        Ok(options) if options.device => on_device(world, options),
        Ok(options) => {
            let plan = draft(world, options)?.build()?;
            let flow = Flow::new(plan, OnHost, options.viscosity(), options.shared_arrays)?;
            run::run(flow, world, options)
        }
        Err(text) => {
            if world.rank() == 0 {
                eprintln!("{text}");
            }
            Ok(())
        }
    }
}

/// Slabs of planes, or columns if there are more ranks than planes. Lines along z are whole, so
/// that a transform exchanges once or twice.
fn process_grid(n: usize, ranks: usize) -> ProcGrid {
    let divides = |planes: &usize| ranks.is_multiple_of(*planes);
    let planes = (1..=ranks.min(n)).rev().find(divides).unwrap_or(1);
    ProcGrid::new([planes, ranks / planes, 1])
}

/// A transform of three components. Their spectra may stay in the layout in which the transform
/// leaves them.
fn draft<'a>(world: &'a dyn Comm, options: &Options) -> Result<Draft<'a, R2c, 3>, Error> {
    let grid = Grid::new([options.size; 3])?;
    let brick = process_grid(options.size, world.size()).brick(&grid, world.rank());
    let vector = Plan::<R2c, 3>::r2c(world, grid).batch(3);
    let mut draft = vector.input_brick(brick).transposed_output(true);
    if let Some(tolerance) = options.tolerance {
        draft = draft.tolerance(Tolerance::relative(tolerance)?);
    }
    if options.ignore_shared_memory {
        draft = draft.ignore_shared_memory(true);
    }
    // Lossy messages need whole spectra: the flow sets their modes to 0. On devices truncation
    // takes passes more.
    if options.tolerance.is_none() && !options.device {
        draft = draft.modes([flow::modes(options.size); 3]);
    }
    Ok(if options.shared_arrays { draft.shared_arrays(true) } else { draft })
}

#[cfg(feature = "cuda")]
fn on_device(world: &dyn Comm, options: &Options) -> Result<(), Error> {
    let gpu = gpu::gpu(world)?;
    let mut plan = draft(world, options)?.on(&gpu).build()?;
    let place = device::OnDevice::new(&plan);
    let place = plan.agree(place)?;
    let flow = Flow::new(plan, place, options.viscosity(), options.shared_arrays)?;
    run::run(flow, world, options)
}

#[cfg(not(feature = "cuda"))]
fn on_device(world: &dyn Comm, _: &Options) -> Result<(), Error> {
    Err(Error::NoDevice { rank: world.rank(), why: "built without the feature cuda".into() })
}
