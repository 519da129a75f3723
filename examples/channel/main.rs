//! Flow between two walls: transforms along the walls, tridiagonal systems between them.
//!
//! Prints how a force starts a laminar flow, beside Poiseuille's formula, and how fast Stokes modes
//! decay, beside theory. `flow.rs` has the time step.
//!
//! `cargo run --release --example channel [PICTURE.svg]`, or with MPI
//! `cargo build --release --example channel --features mpi`
//! `mpirun -n 4 target/release/examples/channel`

mod flow;
mod picture;

use std::f64::consts::PI;

use flow::{Channel, Setting, poiseuille, stokes, stretched};
use thriffty::{Comm, Error};

fn main() -> Result<(), Error> {
    let picture = std::env::args().nth(1);
    thriffty::run(2, |world| {
        let is_first = world.rank() == 0;
        let curves = laminar(world)?;
        if is_first {
            println!("\nStokes modes        rate  in theory       error  divergence");
        }
        for (k, cells) in [(1, 16), (1, 32), (1, 64), (3, 32), (3, 64)] {
            let [rate, expected, divergence] = decay(world, k, cells)?;
            if is_first {
                let error = rate / expected - 1.0;
                let label = format!("k = {k}, {cells} cells");
                println!(
                    "{label:<16} {rate:>8.5}   {expected:>8.5}  {error:>10.1e}  {divergence:>10.1e}"
                );
            }
        }
        // Other ranks wait for nothing any more.
        if let Some(path) = picture.as_ref().filter(|_| is_first) {
            std::fs::write(path, picture::drawing(&curves))
                .map_err(|why| Error::argument("picture", why, "a file that can be written"))?;
        }
        Ok(())
    })
}

/// The profile at a time: heights, velocities, and those of the formula.
pub(crate) struct Curve {
    pub(crate) time: f64,
    pub(crate) points: Vec<[f64; 3]>,
}

/// A force starts a flow from rest.
fn laminar(world: &dyn Comm) -> Result<Vec<Curve>, Error> {
    let setting = Setting {
        cells: [8, 8, 48],
        lengths: [4.0, 2.0],
        faces: stretched(48, 2.0),
        viscosity: 0.5,
        force: 1.0,
        step: 2.5e-3,
    };
    let mut flow = Channel::new(world, setting.clone(), |_, _| 0.0)?;
    if world.rank() == 0 {
        println!("laminar start       u at the middle     formula  largest error  divergence");
    }
    let mut curves = Vec::new();
    for steps in [20, 60, 120, 400, 1200] {
        for _ in 0..steps {
            flow.step()?;
        }
        let time = flow.time();
        let point = |[z, u]: [f64; 2]| [z, u, poiseuille(&setting, z, time)];
        let points: Vec<_> = flow.profile()?.into_iter().map(point).collect();
        let divergence = flow.largest_divergence()?;
        if world.rank() == 0 {
            let error = points.iter().map(|[_, u, v]| (u - v).abs()).fold(0.0, f64::max);
            let [_, u, v] = points[24];
            println!("t = {time:<8.3}  {u:>20.6}  {v:>10.6}  {error:>13.1e}  {divergence:>10.1e}");
        }
        curves.push(Curve { time, points });
    }
    Ok(curves)
}

/// The velocity of Stokes modes, so small that nothing is carried along.
const SIZE: f64 = 1e-6;

/// The rate of decay of a Stokes mode, that of theory, and the divergence over the velocity.
fn decay(world: &dyn Comm, k: usize, cells: usize) -> Result<[f64; 3], Error> {
    let viscosity = 0.1;
    let setting = Setting {
        cells: [2 * cells, 4, cells],
        lengths: [2.0 * PI, 1.0],
        faces: stretched(cells, 2.0),
        viscosity,
        force: 0.0,
        step: 0.05 / (viscosity * (9 + k * k) as f64 * cells as f64),
    };
    let (rate, profile) = stokes(k as f64);
    let faces = setting.faces.clone();
    let width = 2.0 * PI / (2 * cells) as f64;
    // A stream function at edges.
    let stream = |i: f64, face: usize| {
        SIZE * (k as f64 * width * i).sin()
            * if (1..cells).contains(&face) { profile(faces[face]) } else { 0.0 }
    };
    let mut flow = Channel::new(world, setting.clone(), |component, [i, _, j]| {
        let i = i as f64 + 1.0;
        match component {
            0 => (stream(i, j + 1) - stream(i, j)) / (faces[j + 1] - faces[j]),
            2 => (stream(i - 1.0, j + 1) - stream(i, j + 1)) / width,
            _ => 0.0,
        }
    })?;
    let mut turn = || {
        (0..10).try_for_each(|_| flow.step())?;
        Ok::<_, Error>((flow.time(), flow.energy()?, flow.largest_divergence()?))
    };
    let (start, before, _) = turn()?;
    let (mut end, mut after, mut divergence) = turn()?;
    for _ in 0..4 {
        (end, after, divergence) = turn()?;
    }
    Ok([0.5 * (before / after).ln() / (end - start), viscosity * rate, divergence / SIZE])
}
