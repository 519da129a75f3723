//! That executing a plan allocates nothing, after the first time, on any communicator.

use crate::common::check::{Case, Make};
use thriffty::planning::{Exchange, Memory};
use thriffty::{C2c, Comm, Error, Kind, Plan, R2c, R2r, Tolerance, Wire};

#[path = "counting.rs"]
mod counting;

/// Calls of the allocator that this thread makes meanwhile.
pub(crate) fn calls(run: impl FnOnce() -> Result<(), Error>) -> Result<usize, Error> {
    let before = counting::calls();
    run()?;
    Ok(counting::calls() - before)
}

/// Runs every way of execution once, and then several times without a single call of the allocator:
/// several, because messages arrive in random order.
pub(crate) fn check<K: Make, const D: usize>(comm: &dyn Comm, case: &Case<D>) -> Result<(), Error> {
    runs(comm, case.plan::<K>(comm)?, &format!("{case:?}"))
}

fn runs<K: Make, const D: usize>(
    comm: &dyn Comm,
    mut plan: Plan<K, D>,
    case: &str,
) -> Result<(), Error> {
    let mut x = vec![Default::default(); plan.input_len()];
    let mut y = vec![Default::default(); plan.output_len()];
    let mut z = vec![Default::default(); plan.in_place_len()];
    // On a busy machine, processes wait for each other longer than threads do.
    for round in 0..if comm.name() == "mpi" { 4 } else { 20 } {
        let found = [
            ("forward_into", calls(|| plan.forward_into(&x, &mut y))?),
            ("inverse_into", calls(|| plan.inverse_into(&y, &mut x))?),
            ("forward_in_place", calls(|| plan.forward_in_place(&mut z))?),
            ("inverse_in_place", calls(|| plan.inverse_in_place(&mut z))?),
        ];
        let (rank, ranks) = (comm.rank(), comm.size());
        for (what, calls) in found {
            let kind = std::any::type_name::<K>();
            assert!(
                calls == 0,
                "{what} allocated {calls} times in round {round} on rank {rank} of {ranks}: \
                 {kind}, {case}"
            );
        }
    }
    Ok(())
}

/// Transforms of every sort with this exchange.
pub(crate) fn plain(comm: &dyn Comm, exchange: Exchange) -> Result<(), Error> {
    use Kind::*;
    let case = Case::new([8, 12, 10], [C2C; 3]).exchange(exchange);
    check::<C2c<f64>, 3>(comm, &case)?;
    check::<C2c<f32>, 3>(comm, &case.clone().tiling(3).batch(2))?;
    let case = Case::new([9, 7, 5], [C2C, Dct2, R2C]).exchange(exchange).tiling(1);
    check::<R2c<f64>, 3>(comm, &case)?;
    let case = Case::new([60, 31, 7], [Dst1, Dct1, Dct4]).exchange(exchange);
    check::<R2r<f64>, 3>(comm, &case.orders([2, 1, 0], [1, 0, 2]))?;
    let case = Case::new([101, 30], [C2C, R2C]).exchange(exchange);
    check::<R2c<f32>, 2>(comm, &case.tiling(2))
}

/// In memory that ranks share.
pub(crate) fn shared(comm: &dyn Comm) -> Result<(), Error> {
    use Kind::*;
    let case = Case::new([8, 12, 10], [C2C, C2C, R2C]).exchange(Exchange::Shared);
    let mut plan = case.draft::<R2c<f64>>(comm)?.shared_arrays(true).build()?;
    let mut fields = (plan.shared_input()?, plan.shared_output()?);
    for round in 0..4 {
        let (x, y) = (&mut fields.0, &mut fields.1);
        let forward = calls(|| plan.forward_into(x.as_slice(), y.as_mut_slice()))?;
        let inverse = calls(|| plan.inverse_into(y.as_slice(), x.as_mut_slice()))?;
        assert_eq!((forward, inverse), (0, 0), "round {round} on rank {}", comm.rank());
    }
    Ok(())
}

/// Little memory, in chunks.
pub(crate) fn little(comm: &dyn Comm, exchange: Exchange) -> Result<(), Error> {
    use Kind::*;
    let least = |case: Case<3>| case.exchange(exchange).memory(Memory::Least);
    check::<C2c<f64>, 3>(comm, &least(Case::new([24, 32, 20], [C2C; 3]).batch(3)))?;
    check::<R2c<f64>, 3>(comm, &least(Case::new([32, 27, 25], [C2C, C2C, R2C]).tiling(1)))
}

/// Wires of every sort with this exchange.
pub(crate) fn encoded(comm: &dyn Comm, exchange: Exchange) -> Result<(), Error> {
    let case = Case::new([9, 12, 10], [Kind::C2C, Kind::C2C, Kind::R2C]);
    let case = case.exchange(exchange).tiling(4);
    for wire in [Wire::F16, Wire::Mantissa(7), Wire::Bits(12), Wire::Tolerance, Wire::Lossless] {
        let draft = case.draft::<R2c>(comm)?.ignore_shared_memory(true).wire(wire);
        let mut plan = draft.tolerance(Tolerance::relative(1e-3)?).build()?;
        // The compressor makes its tables when it is first used.
        let x = vec![1.0; plan.input_len()];
        let mut y = vec![Default::default(); plan.output_len()];
        plan.forward_into(&x, &mut y)?;
        plan.inverse_into(&y.clone(), &mut x.clone())?;
        runs(comm, plan, &format!("{wire} {case:?}"))?;
    }
    Ok(())
}
