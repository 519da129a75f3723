//! Random options of problems. Tests of several crates share them.

use std::sync::Arc;

use fft_core::{
    Access, Exchange, Machine, Memory, Problem, Scale, Tolerance, TransportOptions, Wire,
};

use crate::tiling::Rng;

/// Any number of arrays, scales, exchange, hosts, wire, access, memory and machine.
pub(crate) fn options(problem: &mut Problem, rng: &mut Rng) {
    problem.batch = 1 + rng.below(3);
    problem.forward_scale = [Scale::None, Scale::Full, Scale::Symmetric][rng.below(3)];
    problem.options.exchange = Exchange::ALL[rng.below(Exchange::ALL.len())];
    let (ranks, hosts) = (problem.input.ranks(), 1 + rng.below(4));
    problem.hosts = match rng.below(4) {
        0 => Vec::new(),
        1 => (0..ranks).map(|_| rng.below(hosts)).collect(),
        _ => (0..ranks).map(|rank| rank * hosts / ranks).collect(),
    };
    let wires = [Wire::Raw, Wire::F16, Wire::Lossless, Wire::Bits(16), Wire::Tolerance];
    problem.options.wire = wires[rng.below(wires.len())];
    if problem.options.wire == Wire::Tolerance {
        problem.options.tolerance = Some(Tolerance::relative([1e-2, 1e-4][rng.below(2)]).unwrap());
    }
    problem.options.access = match rng.below(4) {
        0 => Access::Contiguous,
        1 => Access::Fetched,
        _ => Access::Cached,
    };
    problem.options.shared_arrays = rng.below(3) == 0;
    problem.options.memory = [Memory::Ample, Memory::Least][rng.below(2)];
    problem.options.chunk = [1 << 13, 1 << 16, TransportOptions::CHUNK][rng.below(3)];
    if rng.below(2) == 0 {
        let mut machine = Machine::default();
        for quantity in machine.quantities_mut() {
            quantity.value *= 10f64.powf(rng.signed());
        }
        problem.machine = Arc::new(machine);
    }
}
