//! Steps of a recipe in one direction.

use super::local_fft::Pass;
use super::norm_gain::{Gain, Loss, gain_after};
use super::recipe::{Node, Recipe, Step};
use crate::codec::Wire;
use crate::problem::{Direction, Kind};

/// A step between two nodes.
pub struct BoundStep<'a> {
    /// The node before the step.
    pub from: &'a Node,
    /// The node after the step.
    pub to: &'a Node,
    /// The operation.
    pub step: Step,
    direction: Direction,
    /// Physical points along the axis of a transform.
    n: usize,
    gain: Gain,
}

impl Recipe {
    /// The steps of a direction, in order.
    pub fn bound_steps(&self, direction: Direction) -> Vec<BoundStep<'_>> {
        let walk = self.walk(direction);
        let steps: Vec<_> = walk.iter().map(|(_, step, _)| *step).collect();
        let bound = walk.into_iter().enumerate().map(|(number, (from, step, to))| {
            let n = match step {
                Step::Fft { axis, .. } => self.problem().grid().len(axis),
                _ => 1,
            };
            let gain = gain_after(from, &steps[number + 1..], self.problem(), direction);
            BoundStep { from, to, step, direction, n, gain }
        });
        bound.collect()
    }
}

impl BoundStep<'_> {
    /// The pass of a transform and its axis, without strides; `None` for another step.
    pub fn pass(&self) -> Option<(usize, Pass)> {
        let Step::Fft { axis, kind } = self.step else { return None };
        Some((axis, pass(self.from, self.to, kind, self.direction, self.n)))
    }

    /// The factor of a scaling step.
    pub fn factor(&self) -> Option<f64> {
        let Step::Scale { forward, inverse } = self.step else { return None };
        Some(self.direction.choose(forward, inverse))
    }

    /// The error of a reshape with a lossy encoding that sends this many real numbers.
    pub fn loss(&self, reals: usize) -> Option<Loss> {
        let Step::Reshape { wire, .. } = self.step else { return None };
        let (gain, common) = (self.gain, wire == Wire::Tolerance);
        wire.is_lossy().then_some(Loss { gain, reals: reals as f64, common })
    }
}

/// The pass along one axis between two nodes, without strides.
pub(crate) fn pass(from: &Node, to: &Node, kind: Kind, direction: Direction, n: usize) -> Pass {
    let (complex_before, complex_after) = (from.complex, to.complex);
    Pass { kind, direction, n, complex_before, complex_after, outer: 1, inner: 1, factor: 1.0 }
}
