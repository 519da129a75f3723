//! One direction of a recipe, as rules see it.

use super::capabilities::Capabilities;
use super::ops::AxisFft;
use crate::problem::{Direction, Gain, Problem, TransportPolicy};
use crate::recipe::norm_gain::gain_after;
use crate::recipe::{Node, Pass, Recipe, Twiddles};

/// One direction of a recipe to be lowered.
#[derive(Clone, Copy)]
pub(crate) struct Lowering<'a> {
    pub(crate) recipe: &'a Recipe,
    pub(crate) direction: Direction,
    pub(crate) capabilities: Capabilities<'a>,
    pub(crate) policy: TransportPolicy,
}

impl<'a> Lowering<'a> {
    pub(crate) fn problem(&self) -> &'a Problem {
        self.recipe.problem()
    }

    /// The nodes before and after a step in this direction.
    pub(crate) fn ends(&self, step: usize) -> [&'a Node; 2] {
        let nodes = self.recipe.nodes();
        let [first, last] = [&nodes[step], &nodes[step + 1]];
        self.direction.choose([first, last], [last, first])
    }

    /// The nodes before the first step and after the last.
    pub(crate) fn start_and_end(&self) -> [&'a Node; 2] {
        let nodes = self.recipe.nodes();
        let [first, last] = [&nodes[0], &nodes[nodes.len() - 1]];
        self.direction.choose([first, last], [last, first])
    }

    /// The gain of an error in the data of `from` by the steps after this one.
    pub(crate) fn gain(&self, from: &Node, step: usize) -> Gain {
        let steps = self.recipe.steps();
        let rest: Vec<_> = match self.direction {
            Direction::Forward => steps[step + 1..].to_vec(),
            Direction::Inverse => steps[..step].iter().rev().copied().collect(),
        };
        gain_after(from, &rest, self.problem(), self.direction)
    }

    /// The axis and the pass of a transform, without strides.
    pub(crate) fn pass(&self, fft: &AxisFft) -> (usize, Pass) {
        let [complex_before, complex_after] = self.ends(fft.step).map(|node| node.complex);
        let (problem, resized) = (self.problem(), fft.resized);
        let one_axis = problem.one_axis.as_ref();
        let pass = Pass {
            kind: fft.kind,
            direction: self.direction,
            n: problem.zero_padded[fft.axis],
            resized: resized.then(|| [problem.grid().len(fft.axis), problem.modes[fft.axis]]),
            complex_before,
            complex_after,
            outer: 1,
            inner: 1,
            factor: fft.factor,
            twiddles: Twiddles::before(fft.axis, problem),
            strides: one_axis.map_or([1; 2], |it| it.strides(fft.axis, problem.kinds.len())),
        };
        (fft.axis, pass)
    }
}
