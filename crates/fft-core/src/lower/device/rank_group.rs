//! The transforms of one rank, with the lengths of its arrays.

use super::group::FftGroup;
use crate::lower::lowering::Lowering;
use crate::lower::ops::AxisFft;
use crate::recipe::{Node, Pass};

impl FftGroup {
    /// A rank's transforms.
    pub(crate) fn new(lowering: &Lowering<'_>, ffts: &[AxisFft], rank: usize) -> Self {
        let batch = lowering.problem().batch;
        let lens = |node: &Node| {
            let brick = node.layout.brick(rank);
            let lens = node.layout.order().map(|axis| brick.len(axis));
            [batch].into_iter().chain(lens).collect()
        };
        let [from, _] = lowering.ends(ffts[0].step);
        let [_, to] = lowering.ends(ffts[ffts.len() - 1].step);
        let passes: Vec<_> = ffts.iter().map(|fft| lowering.placed_pass(fft)).collect();
        let factor = passes.iter().map(|(_, pass)| pass.factor).product();
        Self { lens: [lens(from), lens(to)], passes, factor, pitch: None }
    }
}

impl<'a> Lowering<'a> {
    /// The place of a transform's axis in memory, after the batch, and its pass without strides.
    pub(crate) fn placed_pass(&self, fft: &AxisFft) -> (usize, Pass) {
        let [from, _] = self.ends(fft.step);
        let place = from.layout.order().iter().position(|axis| *axis == fft.axis);
        let (_, pass) = self.pass(fft);
        (1 + place.expect("the order has every axis"), pass)
    }
}
