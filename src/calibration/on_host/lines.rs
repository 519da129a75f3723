//! Measurements of lines that are transformed several at once.

use fft_core::{Costs, Error, LineCosts, RADICES, Real};

use super::links::Links;

/// The costs of radices, as the first rank measures them. Collective.
pub(super) fn lines(links: &mut Links<'_>) -> Result<LineCosts, Error> {
    let found = links.while_others_sleep(&[0], |_| {
        let mut found = [0.0; 2 * RADICES.len()];
        let (single, double) = found.split_at_mut(RADICES.len());
        measure::<f32>(single);
        measure::<f64>(double);
        Ok(found)
    })?;
    let (single, double) = found.split_at(RADICES.len());
    Ok(LineCosts { f32: costs(single), f64: costs(double) })
}

/// Costs from the measurements, or the default for what was not measured.
fn costs(found: &[f64]) -> Costs {
    if found[0] == 0.0 {
        return Costs::default();
    }
    let radices = RADICES.into_iter().zip(found.iter().copied()).collect();
    Costs { radices, ..Costs::default() }
}

/// The time of a stage of each radix per number. Zeros on processors that have no such transforms.
fn measure<T: Real>(found: &mut [f64]) {
    for (cost, (_, seconds)) in found.iter_mut().zip(T::time_radices().into_iter().flatten()) {
        *cost = seconds;
    }
}
