//! Selection of shared passes: in-place transforms across the ranks of a host.
//!
//! ```text
//! walk the steps of one direction:
//!     a transform or a factor is a stage of its own
//!     at a reshape, if all ranks read each other's memory:
//!         take the steps that work in place, up to one that leads back to this layout
//!         (if none does, and one buffer is to be saved: up to the last reshape)
//!         if there are any: one shared stage, then a reshape only if it did not lead back
//!     any other reshape is a stage of its own
//! if other ranks see the caller's arrays:
//!     merge a real transform next to a shared stage into it, if its lines fit into the tile
//! ```

use super::Capabilities;
use super::fusion::fit_in_cache;
use crate::geometry::DynBrick;
use crate::geometry::exclusive::Exclusive;
use crate::problem::{Direction, Kind, Problem, TransportPolicy};
use crate::recipe::{Node, Recipe, Step};

/// One direction of a recipe to be lowered.
#[derive(Clone, Copy)]
pub(crate) struct Lowering<'a> {
    pub(crate) recipe: &'a Recipe,
    pub(crate) direction: Direction,
    pub(crate) capabilities: Capabilities,
    pub(crate) policy: TransportPolicy,
}

/// A step in the order of the direction, with the nodes before and after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walked {
    pub(crate) number: usize,
    pub(crate) step: Step,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// One step, or several that run as one.
#[derive(Debug)]
pub(crate) enum Stage {
    Scale(f64),
    Fft(Walked),
    Reshape {
        /// The step. After in-place transforms, `to` is the node behind them.
        reshape: Walked,
        rest: Vec<Step>,
    },
    Shared {
        /// The node with the distribution of data.
        home: usize,
        /// The node of the first transforms.
        work: usize,
        steps: Vec<Walked>,
        /// A real transform fused with the first transforms forward, or the last ones inverse.
        real: Option<Walked>,
    },
}

impl Walked {
    pub(crate) fn is_reshape(&self) -> bool {
        matches!(self.step, Step::Reshape { .. })
    }

    fn axis(&self) -> Option<usize> {
        match self.step {
            Step::Fft { axis, .. } => Some(axis),
            _ => None,
        }
    }

    /// Whether it is a real transform that may join a shared pass.
    fn is_halving(&self, problem: &Problem) -> bool {
        match self.step {
            Step::Fft { axis, kind: Kind::R2C } => !problem.is_resized(axis),
            _ => false,
        }
    }
}

fn axes_of(steps: &[Walked]) -> Vec<usize> {
    steps.iter().filter_map(Walked::axis).collect()
}

impl<'a> Lowering<'a> {
    pub(crate) fn problem(&self) -> &'a Problem {
        self.recipe.problem()
    }

    pub(crate) fn node(&self, number: usize) -> &'a Node {
        &self.recipe.nodes()[number]
    }

    /// The number of the node after a step.
    pub(crate) fn end(&self, step: usize) -> usize {
        self.direction.choose(step + 1, step)
    }

    pub(crate) fn walk(&self) -> Vec<Walked> {
        let steps = self.recipe.steps().iter().enumerate();
        let walked = |(number, step): (usize, &Step)| {
            let (first, last) = (number, number + 1);
            let [from, to] = self.direction.choose([first, last], [last, first]);
            Walked { number, step: *step, from, to }
        };
        match self.direction {
            Direction::Forward => steps.map(walked).collect(),
            Direction::Inverse => steps.rev().map(walked).collect(),
        }
    }

    /// All steps as one shared stage in place, if ranks have data that no other rank transforms.
    pub(crate) fn single_stage(&self) -> Option<(Stage, Exclusive)> {
        let Capabilities { shares_memory, exposes_all, .. } = self.capabilities;
        if !shares_memory || exposes_all {
            return None;
        }
        let steps = self.walk();
        let (home, end) = (steps.first()?.from, steps.last()?.to);
        let layout = &self.node(home).layout;
        if *layout != self.node(end).layout || !steps.iter().all(|step| self.stays(step, home)) {
            return None;
        }
        let works = steps.iter().filter(|step| step.axis().is_some());
        let works: Vec<_> = works.map(|step| &self.node(step.to).layout).collect();
        let exclusive = Exclusive::of(layout, &works);
        let some = !works.is_empty() && exclusive.is_any();
        some.then_some((Stage::Shared { home, work: home, steps, real: None }, exclusive))
    }

    /// Whether a step works in place on data at `home`.
    fn stays(&self, walked: &Walked, home: usize) -> bool {
        match walked.step {
            Step::Reshape { exchange, .. } => exchange.reads_peers(),
            Step::Scale { .. } => true,
            Step::Fft { axis, kind } => {
                kind != Kind::R2C
                    && !self.problem().is_resized(axis)
                    && self.node(walked.to).complex == self.node(home).complex
            }
        }
    }

    /// The stages, with shared passes if `across`. `saves` prefers one intermediate buffer to two.
    pub(crate) fn stages(&self, across: bool, saves: bool) -> Vec<Stage> {
        let walk = self.walk();
        let (mut stages, mut rest) = (Vec::new(), &walk[..]);
        while let [walked, tail @ ..] = rest {
            rest = tail;
            match walked.step {
                Step::Scale { forward, inverse } => {
                    stages.push(Stage::Scale(self.direction.choose(forward, inverse)));
                }
                Step::Fft { .. } => stages.push(Stage::Fft(*walked)),
                Step::Reshape { .. } => {
                    let mut reshape = *walked;
                    let staying = || self.staying(walked, tail, saves);
                    if let Some(count) = across.then(staying).flatten() {
                        let (steps, tail) = tail.split_at(count);
                        let (home, work, steps) = (walked.from, walked.to, steps.to_vec());
                        (rest, reshape.to) = (tail, steps[count - 1].to);
                        stages.push(Stage::Shared { home, work, steps, real: None });
                    }
                    let moves = || {
                        let [from, to] = [reshape.from, reshape.to].map(|node| self.node(node));
                        from.layout != to.layout
                    };
                    if rest.len() == tail.len() || moves() {
                        let rest = rest.iter().map(|walked| walked.step).collect();
                        stages.push(Stage::Reshape { reshape, rest });
                    }
                }
            }
        }
        stages
    }

    /// The number of in-place steps after a reshape, up to one that leads back or, if `saves`, the
    /// last reshape.
    fn staying(&self, reshape: &Walked, rest: &[Walked], saves: bool) -> Option<usize> {
        if !self.capabilities.shares_memory || !reshape.step.reads_peers() {
            return None;
        }
        let steps = rest.iter().take_while(|step| self.stays(step, reshape.from)).count();
        let layout = |node: usize| &self.node(node).layout;
        let leads_home =
            |step: &Walked| step.is_reshape() && layout(step.to) == layout(reshape.from);
        let elsewhere = || rest[..steps].iter().rposition(Walked::is_reshape).filter(|_| saves);
        rest[..steps].iter().position(leads_home).or_else(elsewhere).map(|last| last + 1)
    }

    /// Merges real transforms into adjacent shared stages if their lines fit into the tile.
    pub(crate) fn halved(&self, stages: Vec<Stage>) -> Vec<Stage> {
        let forward = self.direction == Direction::Forward;
        let mut done: Vec<Stage> = Vec::with_capacity(stages.len());
        let mut rest = stages.into_iter().peekable();
        while let Some(mut stage) = rest.next() {
            match (done.last_mut(), &mut stage) {
                (Some(&mut Stage::Fft(fft)), Stage::Shared { work, steps, real, .. })
                    if forward && fft.is_halving(self.problem()) =>
                {
                    let until = steps.iter().position(Walked::is_reshape).unwrap_or(0);
                    if self.fits([fft.from, fft.to, *work], &fft, axes_of(&steps[..until])) {
                        *real = Some(fft);
                        done.pop();
                    }
                }
                // A factor that follows is left to a later transform.
                (Some(Stage::Shared { steps, real, .. }), &mut Stage::Fft(fft))
                    if !forward
                        && fft.is_halving(self.problem())
                        && !matches!(rest.peek(), Some(Stage::Scale(_))) =>
                {
                    let (last, before) = steps.split_last().expect("it leads somewhere");
                    let since = before.iter().rposition(Walked::is_reshape).map_or(0, |at| at + 1);
                    if self.fits([fft.to, fft.from, last.from], &fft, axes_of(&before[since..])) {
                        *real = Some(fft);
                        continue;
                    }
                }
                _ => {}
            }
            done.push(stage);
        }
        done
    }

    /// Whether lines along these axes and the real transform's fit into cache together.
    fn fits(&self, nodes: [usize; 3], real: &Walked, mut axes: Vec<usize>) -> bool {
        let [real_node, home, work] = nodes.map(|node| self.node(node));
        let axis = real.axis().expect("a transform has an axis");
        let len = home.layout.grid().len(axis);
        let whole = |brick: &DynBrick| brick.is_empty() || brick.len(axis) == len;
        let some = !axes.is_empty() && !axes.contains(&axis);
        axes.push(axis);
        let problem = self.problem();
        let element = problem.batch * home.width() * problem.precision.bytes();
        some && work.layout.bricks().iter().all(whole)
            && real_node.layout.order() == home.layout.order()
            && fit_in_cache(&home.layout, &axes, element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Precision;
    use crate::geometry::{DynGrid, Layout, ProcGrid};

    /// A recipe of a real transform, from pencils to pencils on four ranks.
    fn pencils(shape: [usize; 3]) -> Recipe {
        let (grid, kinds) = (DynGrid::new(shape).unwrap(), [Kind::C2C, Kind::C2C, Kind::R2C]);
        let even = |grid| Layout::even(grid, ProcGrid::new([2, 2, 1]), 4);
        let (input, output) = (even(grid), even(Problem::spectral_grid(grid, kinds)));
        let problem = Problem::new(kinds, false, Precision::F64, input, output).unwrap();
        let steps = "(r2c z) (exchange [4x1x1] shared raw) (fft y) (exchange [1x4x1] shared raw) (fft x) \
                     (scale inverse) (exchange [2x2x1] shared raw)";
        let [x, y, z] = shape;
        let text = format!("(r2c {x}x{y}x{z} f64 ranks=4 [2x2x1] {steps})");
        Recipe::exact(problem, &text).unwrap()
    }

    #[test]
    fn real_transforms_join_shared_passes_where_their_lines_fit() {
        // Complex planes of the last shape exceed the cache.
        for (shape, fits) in [([8, 6, 10], true), ([4, 256, 256], true), ([4, 256, 512], false)] {
            let recipe = pencils(shape);
            let capabilities =
                Capabilities { shares_memory: true, exposes_all: true, fuses_in_cache: true };
            let lowering = |direction| Lowering {
                recipe: &recipe,
                direction,
                capabilities,
                policy: recipe.problem().policy(),
            };
            for direction in [Direction::Forward, Direction::Inverse] {
                let lowering = lowering(direction);
                let mut stages = lowering.halved(lowering.stages(true, false));
                stages.retain(|stage| !matches!(stage, Stage::Scale(_)));
                let real = stages.iter().filter_map(|stage| match stage {
                    Stage::Shared { real, .. } => real.map(|walked| walked.axis()),
                    _ => None,
                });
                let expected = if fits { vec![Some(2)] } else { vec![] };
                assert_eq!(real.collect::<Vec<_>>(), expected, "{shape:?} {direction:?}");
                assert_eq!(stages.len(), if fits { 1 } else { 2 }, "{shape:?} {direction:?}");
            }
            // A factor at the end has no other transform to join.
            let mut stages = lowering(Direction::Inverse).stages(true, false);
            stages.push(Stage::Scale(0.5));
            assert_eq!(lowering(Direction::Inverse).halved(stages).len(), 3);
        }
    }
}
