//! Many plans, on any communicator: none leaks anything, and none receives another's messages.

use super::check::{Case, check};
use super::data::{C64, bound, random};
use super::injected::MEMORY;
use thriffty::planning::{Exchange, Memory, Reduce};
use thriffty::{C2c, Comm, Error, Grid, Kind, Plan, R2c};

type Done = Result<(), Error>;

/// Plans that are made and dropped before memory must have levelled off, because allocators and MPI
/// keep memory.
const WARM_UP: usize = 300;
const PLANS: usize = 1000;
/// The memory that the later plans may add to this process: less than 3 KiB for each. Buffers and
/// slots of a plan here have 20 KiB and more, and a communicator of Open MPI several, so that any
/// leak of every plan shows. (If communicators are few, such as MPICH's 2048, 1000 plans would run
/// out of them.)
const GROWTH: usize = 2 << 20;

/// Bytes of memory that this process uses; `None` if the system does not report them.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? << 10)
}

/// All exchanges, with messages in one round and in several.
pub(crate) fn everything() -> impl Iterator<Item = (Exchange, Memory)> {
    Exchange::ALL.into_iter().flat_map(|exchange| MEMORY.map(|memory| (exchange, memory)))
}

/// 1000 plans, one after the other, of the exchanges given in turn, each used once.
pub(crate) fn come_and_go(comm: &dyn Comm, exchanges: &[Exchange]) -> Done {
    let grid = Grid::new([12, 10, 8])?;
    let mut before = None;
    for number in 0..PLANS {
        let exchange = exchanges[number % exchanges.len()];
        let mut plan = Plan::<C2c, 3>::c2c(comm, grid).exchange(exchange).build()?;
        let mut data = vec![C64::default(); plan.in_place_len()];
        plan.forward_in_place(&mut data)?;
        drop(plan);
        if number == WARM_UP {
            // Ranks may be threads of one process: none is ahead of the others when they look.
            comm.barrier()?;
            before = resident();
        }
    }
    comm.barrier()?;
    let (Some(before), Some(after)) = (before, resident()) else {
        println!("skipped: the system does not tell how much memory is in use");
        return Ok(());
    };
    let mut growth = [after.saturating_sub(before) as f64];
    comm.allreduce(Reduce::Max, &mut growth)?;
    assert!(growth[0] < GROWTH as f64, "{} bytes more after {PLANS} plans", growth[0]);
    Ok(())
}

/// Plans on all ranks and on `part`, every other rank, used in turn, each with numbers of its own.
pub(crate) fn overlapping(world: &dyn Comm, part: &dyn Comm, exchanges: &[Exchange]) -> Done {
    for &exchange in exchanges {
        let [large, small] = [Grid::new([12, 10, 8])?, Grid::new([6, 7, 9])?];
        let mut of_all = Plan::<C2c, 3>::c2c(world, large).exchange(exchange).build()?;
        let mut of_part = Plan::<C2c, 3>::c2c(part, small).exchange(exchange).build()?;
        let x: Vec<C64> = random(of_all.input_len(), 1 + world.rank() as u64);
        let y: Vec<C64> = random(of_part.input_len(), 100 + world.rank() as u64);
        let mut spectra =
            [of_all.output_len(), of_part.output_len()].map(|n| vec![C64::default(); n]);
        let mut back = [x.clone(), y.clone()];
        for _ in 0..5 {
            of_all.forward_into(&x, &mut spectra[0])?;
            of_part.forward_into(&y, &mut spectra[1])?;
            of_all.inverse_into(&spectra[0], &mut back[0])?;
            of_part.inverse_into(&spectra[1], &mut back[1])?;
            for (found, expected) in back.iter().zip([&x, &y]) {
                let far = found.iter().zip(expected).map(|(a, b)| (a - b).norm());
                let worst = far.fold(0.0, f64::max);
                // There and back, of numbers below √2 in size; 960 points are the larger grid.
                assert!(worst <= 4.0 * bound(f64::EPSILON, 960), "{exchange}: off by {worst:.2e}");
            }
        }
        let case = Case::new([8, 9], [Kind::C2C, Kind::R2C]).exchange(exchange);
        check::<R2c, 2>(part, &case)?;
        check::<R2c, 2>(world, &case)?;
    }
    Ok(())
}
