//! Whole arrays through a distributed transform: cut into bricks, transformed by threads, put
//! together.

use thriffty::Comm;

use crate::common::check::{Case, Make};
use crate::common::data::{cut, paste, random};

/// The spectrum of whole arrays, computed by `ranks` ranks.
pub(crate) fn forward<K: Make, const D: usize>(
    ranks: usize,
    case: &Case<D>,
    arrays: &[K::Physical],
) -> Vec<K::Spectral> {
    let [physical, spectral] = case.grids().unwrap();
    let [input, output] = case.bricks(ranks).unwrap();
    let parts = thriffty::threads(ranks, |comm| {
        let mut plan = case.plan::<K>(&comm)?;
        let here = cut(arrays, physical.shape(), input[comm.rank()], case.orders[0]);
        let mut result = random(plan.output_len(), 1);
        plan.forward_into(&here, &mut result).map(|()| result)
    });
    let mut whole = random(spectral.points() * case.batch, 2);
    for (brick, part) in output.iter().zip(parts.unwrap()) {
        paste(&part, &mut whole, spectral.shape(), *brick, case.orders[1]);
    }
    whole
}

/// The data that has this spectrum, computed by `ranks` ranks.
pub(crate) fn inverse<K: Make, const D: usize>(
    ranks: usize,
    case: &Case<D>,
    arrays: &[K::Spectral],
) -> Vec<K::Physical> {
    let [physical, spectral] = case.grids().unwrap();
    let [input, output] = case.bricks(ranks).unwrap();
    let parts = thriffty::threads(ranks, |comm| {
        let mut plan = case.plan::<K>(&comm)?;
        let here = cut(arrays, spectral.shape(), output[comm.rank()], case.orders[1]);
        let mut result = random(plan.input_len(), 1);
        plan.inverse_into(&here, &mut result).map(|()| result)
    });
    let mut whole = random(physical.points() * case.batch, 2);
    for (brick, part) in input.iter().zip(parts.unwrap()) {
        paste(&part, &mut whole, physical.shape(), *brick, case.orders[0]);
    }
    whole
}
