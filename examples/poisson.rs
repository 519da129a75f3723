//! Solves -∇²φ = ρ on a periodic cube, on the processes of an MPI job or on four threads.
//!
//! `cargo run --release --example poisson`, or with MPI
//! `cargo build --release --example poisson --features mpi && mpirun -n 4 target/release/examples/poisson`

use std::f64::consts::TAU;

use thriffty::{Comm, Error, Field, Grid, Physical, Plan, Reduce};

const N: usize = 64;

fn main() -> Result<(), Error> {
    #[cfg(feature = "mpi")]
    {
        let mpi = thriffty::mpi::init()?;
        let world = mpi.world()?;
        if world.size() > 1 {
            return solve(&world);
        }
    }
    thriffty::threads(4, |world| solve(&world)).map(|_| ())
}

fn solve(world: &dyn Comm) -> Result<(), Error> {
    let mut plan = Plan::r2c(world, Grid::new([N, N, N])?).build()?;
    let exact = |[i, j, k]: [usize; 3]| {
        let [x, y, z] = [i, j, k].map(|i| TAU * i as f64 / N as f64);
        x.sin() * (2.0 * y).cos() * (3.0 * z).sin()
    };
    let mut rho: Field<Physical> = plan.input();
    rho.fill(|index| 14.0 * exact(index)); // 1² + 2² + 3²
    let phi_hat = plan.forward(rho)?.map_modes(|[a, b, c], v| match a * a + b * b + c * c {
        0 => v * 0.0,
        k2 => v / k2 as f64,
    });
    let phi = plan.inverse(phi_hat)?;
    let mut worst = [0.0f64];
    phi.for_each(|index, v| worst[0] = worst[0].max((v - exact(index)).abs()));
    world.allreduce(Reduce::Max, &mut worst)?;
    if world.rank() == 0 {
        println!("{}", plan.recipe());
        println!("{} ranks ({}): largest error {:.1e}", world.size(), world.name(), worst[0]);
    }
    Ok(())
}
