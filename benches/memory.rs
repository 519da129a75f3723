//! What plans take beside input and output with [`Memory::Least`], and in what time, beside the default.
//!
//! `cargo bench --bench memory [-- times]` with 2 and 4 threads; with `--features mpi --no-run`, the program that it names under
//! `mpirun -n 2` or 4. Bytes are the mean of all ranks over what a rank holds on average of the larger side (real data: of half a
//! spectrum), the least and the most of all pairs of cuts of input and output; both directions and both out of place and in place,
//! as one plan has memory for all. With `times` the two take turns, bricks to bricks, forward: the median of the ratios.

use std::time::Instant;

use thriffty::{
    Algorithm, C2c, Comm, Draft, Element, Error, Grid, Memory, ProcGrid, R2c, Reduce, Transform,
};

const N: usize = 256;
const ROUNDS: usize = 9;

/// A cut of the grid.
type Cut = [usize; 3];

fn main() -> Result<(), Error> {
    let times = std::env::args().any(|word| word == "times");
    #[cfg(feature = "mpi")]
    {
        let mpi = thriffty::mpi::init()?;
        let world = mpi.world()?;
        if world.size() > 1 {
            return all(&world, times);
        }
    }
    for ranks in [2, 4] {
        thriffty::threads(ranks, |world| all(&world, times))?;
    }
    Ok(())
}

fn all(comm: &dyn Comm, times: bool) -> Result<(), Error> {
    kind::<C2c>(comm, "c2c", times)?;
    kind::<R2c>(comm, "r2c", times)
}

fn kind<K: Transform<Real = f64>>(comm: &dyn Comm, name: &str, times: bool) -> Result<(), Error> {
    let cuts: &[Cut] = match comm.size() {
        2 => &[[2, 1, 1], [1, 2, 1], [1, 1, 2]],
        _ => &[[2, 2, 1], [1, 2, 2], [2, 1, 2], [1, 1, 4], [4, 1, 1]],
    };
    for exchange in Algorithm::ALL {
        if matches!(exchange, Algorithm::Ring(_)) && comm.name() == "threads" {
            continue;
        }
        let draft = |[from, to]: [Cut; 2], memory| -> Result<_, Error> {
            let physical = Grid::new([N; 3])?;
            let draft = Draft::<K, 3>::new(comm, physical).exchange(exchange).memory(memory);
            let spectral = draft.spectral_grid();
            let brick = |cut, grid| ProcGrid::new(cut).brick(grid, comm.rank());
            Ok(draft.input_brick(brick(from, &physical)).output_brick(brick(to, &spectral)))
        };
        let ways = || cuts.iter().flat_map(|from| cuts.iter().map(move |to| [*from, *to]));
        let mut line = String::new();
        if times {
            let ratio =
                ratio(draft([cuts[0]; 2], Memory::Least)?, draft([cuts[0]; 2], Memory::Ample)?)?;
            let [seconds, share, least, ample] = ratio;
            line = format!(" {seconds:.3} s, {share:.2} of the default's; {least:.2}, {ample:.2}");
        } else {
            let (mut least, mut most) = (f64::INFINITY, 0.0f64);
            for ends in ways() {
                let plan = draft(ends, Memory::Least)?.build()?;
                let side = |reals: usize| (reals * size_of::<f64>()) as f64;
                let sides = [
                    side(plan.input_len() * K::Physical::WIDTH),
                    side(plan.output_len() * K::Spectral::WIDTH),
                ];
                let mut sums = [plan.memory() as f64, sides[0], sides[1]];
                comm.allreduce(Reduce::Sum, &mut sums)?;
                let share = sums[0] / sums[1].max(sums[2]);
                (least, most) = (least.min(share), most.max(share));
            }
            line += &format!(" {least:.3} {most:.3}");
        }
        if comm.rank() == 0 {
            println!("{:8} {} {name} {:10}{line}", comm.name(), comm.size(), exchange.to_string());
        }
    }
    Ok(())
}

/// Seconds of the first, and their median over those of the second, taken in turn; and what both take on this rank, over its output.
fn ratio<K: Transform<Real = f64>>(
    first: Draft<'_, K, 3>,
    second: Draft<'_, K, 3>,
) -> Result<[f64; 4], Error> {
    let mut plans = [first.build()?, second.build()?];
    let comm = plans[0].comm().dup()?;
    let input = vec![K::Physical::default(); plans[0].input_len()];
    let mut output = vec![K::Spectral::default(); plans[0].output_len()];
    let mut seconds = || -> Result<[f64; 2], Error> {
        let mut both = [0.0; 2];
        for (plan, seconds) in plans.iter_mut().zip(&mut both) {
            comm.barrier()?;
            let start = Instant::now();
            plan.forward_into(&input, &mut output)?;
            *seconds = start.elapsed().as_secs_f64();
        }
        comm.allreduce(Reduce::Max, &mut both)?;
        Ok(both)
    };
    seconds()?;
    let mut all = (0..ROUNDS).map(|_| seconds()).collect::<Result<Vec<_>, _>>()?;
    all.sort_by(|a, b| (a[0] / a[1]).total_cmp(&(b[0] / b[1])));
    let [least, ample] = all[ROUNDS / 2];
    let held = |plan: &thriffty::Plan<K, 3>| plan.memory() as f64 / size_of_val(&output[..]) as f64;
    Ok([least, least / ample, held(&plans[0]), held(&plans[1])])
}
