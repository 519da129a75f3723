//! Published rates, shown next to simulated ones.

use thriffty::Kind;
use thriffty::planning::Precision;

use super::ask::Ask;
use crate::args::options::{TransformArgs, is_resized};

pub(super) struct Point {
    machine: &'static str,
    n: usize,
    pub(super) ranks: usize,
    pub(super) gflops: f64,
    /// Bits of each real number in messages.
    pub(super) bits: u32,
    pub(super) source: &'static str,
}

/// Complex transforms of n³ points in double precision, from bricks to bricks.
const POINTS: [Point; 2] = [
    Point {
        machine: "summit",
        n: 1024,
        ranks: 48,
        gflops: 400.0,
        bits: 64,
        source: "FFT-ECP: about 400 GFlop/s on 8 nodes",
    },
    Point {
        machine: "summit",
        n: 1024,
        ranks: 1536,
        gflops: 14_000.0,
        bits: 16,
        source: "ICL, compressed one-sided all-to-all: 14 Tflop/s with messages of FP16",
    },
];

pub(super) fn of(ask: &Ask) -> Vec<&'static Point> {
    let TransformArgs { kind, shape, .. } = &ask.transform;
    let known = *kind == Kind::C2C && ask.precision() == Precision::F64;
    let known = known && ask.options().batch == 1 && !is_resized(ask.options());
    let is = |point: &&Point| {
        known && point.machine == ask.machine.name && shape.lengths() == [point.n; 3]
    };
    POINTS.iter().filter(is).collect()
}
