//! tmp
use std::time::Instant;
use thriffty::*;
fn main() -> Result<(), Error> {
    let n: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let p: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let go = |world: &dyn Comm| -> Result<(), Error> {
        let grid = Grid::new([n, n, n])?;
        let mut plan = Plan::<C2c, 3>::c2c(world, grid)
            .exchange(if std::env::args().nth(3).as_deref() == Some("a2a") {
                Algorithm::Alltoallv
            } else {
                Algorithm::P2p
            })
            .build()?;
        if world.rank() == 0 {
            println!("{} mem {}", plan.recipe(), plan.memory());
        }
        let x: Vec<_> = (0..plan.input_len())
            .map(|i| {
                Complex::new(
                    ((i * 7919) % 1000) as f64 / 1000.0,
                    ((i * 104729) % 1000) as f64 / 1000.0,
                )
            })
            .collect();
        let mut y = vec![Complex::default(); plan.output_len()];
        let mut ts = vec![];
        for i in 0..12 {
            if i == 2 {
                plan.clear_clock();
            }
            world.barrier()?;
            let t = Instant::now();
            plan.forward_into(&x, &mut y)?;
            world.barrier()?;
            if i >= 2 {
                ts.push(t.elapsed().as_secs_f64());
            }
        }
        ts.sort_by(f64::total_cmp);
        if world.rank() == 0 {
            println!("median {:.4} min {:.4} {:?}", ts[5], ts[0], plan.clock());
        }
        let mut z = vec![Complex::default(); plan.input_len()];
        plan.inverse_into(&y, &mut z)?;
        let e: f64 = z.iter().zip(&x).map(|(a, b)| (a - b).norm_sqr()).sum();
        let s: f64 = x.iter().map(|b| b.norm_sqr()).sum();
        if world.rank() == 0 {
            println!("err {:e}", (e / s).sqrt());
        }
        Ok(())
    };
    #[cfg(feature = "mpi")]
    if p == 0 {
        let m = mpi::init()?;
        return go(&m.world()?);
    }
    threads(p, |w| go(&w)).map(|_| ())
}
