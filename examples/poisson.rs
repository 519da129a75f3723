//! Solves -∇²φ = ρ on a periodic cube, on the processes of an MPI job or on four threads.
//!
//! `cargo run --release --example poisson`, or with MPI
//! `cargo build --release --example poisson --features mpi`
//! `mpirun -n 4 target/release/examples/poisson`

use std::f64::consts::TAU;

use thriffty::planning::Reduce;
use thriffty::{Comm, Error};

const N: usize = 64;

fn main() -> Result<(), Error> {
    thriffty::run(4, solve)
}

fn solve(world: &dyn Comm) -> Result<(), Error> {
    let mut plan = thriffty::r2c(world, [N, N, N]).build()?;
    let exact = |[i, j, k]: [usize; 3]| {
        let [x, y, z] = [i, j, k].map(|i| TAU * i as f64 / N as f64);
        x.sin() * (2.0 * y).cos() * (3.0 * z).sin()
    };
    let mut rho = plan.input();
    rho.fill(|index| 14.0 * exact(index)); // 1² + 2² + 3²
    let phi_hat = plan.forward(rho)?.poisson([TAU; 3]);
    let phi = plan.inverse(phi_hat)?;
    let errors = phi.iter().map(|(index, v)| (v - exact(index)).abs());
    let mut worst = [errors.fold(0.0, f64::max)];
    world.allreduce(Reduce::Max, &mut worst)?;
    if world.rank() == 0 {
        println!("{}", plan.recipe());
        println!("{} ranks ({}): largest error {:.1e}", world.size(), world.name(), worst[0]);
    }
    Ok(())
}
