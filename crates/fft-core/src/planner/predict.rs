//! What a recipe is expected to cost, step by step.
//!
//! The search adds up edges, each by itself. Here a recipe is looked at as it runs: a transform after a reshape shares the
//! pass that unpacks, one before a pipelined reshape the pass that packs, and is done while messages fly.

use super::candidates::{AxisSet, block, side, tiles};
use super::cost::{Model, Order, Spent};
use super::volume::{Distribution, Volume};
use crate::base::cache_sizes::BLOCK_BYTES;
use crate::geometry::{Layout, Topology};
use crate::planner::cost;
use crate::problem::{Machine, Problem};
use crate::recipe::{Node, Recipe, Step};

/// The expected times of a forward transform.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Of each step of the recipe.
    pub steps: Vec<Expected>,
    /// Of all together.
    pub seconds: f64,
}

/// What one step is expected to take on the busiest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected {
    /// Seconds that it adds; of a reshape, with the transforms that are done on its way.
    pub seconds: f64,
    /// Of these, those of memory, outside of messages.
    pub memory: f64,
    /// And those of arithmetic.
    pub arithmetic: f64,
    /// Where the time of a reshape goes by itself.
    pub spent: Spent,
    /// What it moves.
    pub volume: BytesMoved,
}

/// What the busiest rank, and the busiest host, move in a reshape: bytes on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BytesMoved {
    /// That stay with the rank.
    pub own: f64,
    /// To, or from, other ranks of the host.
    pub near: f64,
    /// To, or from, ranks of other hosts.
    pub far: f64,
    /// Out of, or into, a host.
    pub host: f64,
    /// Messages to and from ranks of the host; none where they read each other's memory.
    pub near_messages: f64,
    /// Messages to and from ranks of other hosts.
    pub far_messages: f64,
}

/// A transform, or several that are one pass over memory.
#[derive(Clone, Copy, Debug)]
struct Pass {
    /// The step of the first.
    step: usize,
    axes: AxisSet,
    arithmetic: f64,
    memory: f64,
    /// How much longer memory takes because it is found in short runs.
    scattered: f64,
    /// What it takes besides to bring data from where others have it.
    brought: f64,
}

impl Recipe {
    /// What the forward transform is expected to take on the problem's machine. Deterministic, and without
    /// communication. Cost: O(ranks) per step.
    pub fn predict(&self) -> Prediction {
        self.predict_on(&self.problem().machine)
    }

    /// The same for another machine than the one that the recipe was made for.
    pub fn predict_on(&self, machine: &Machine) -> Prediction {
        let problem = self.problem();
        let hosts = Topology::new(&problem.hosts, problem.input.ranks());
        let model = Model::of(machine, &hosts, problem.input.ranks());
        let all_near = problem.all_near() && problem.input.ranks() > 1;
        let tiles = tiles(problem);
        let mut steps = vec![Expected::default(); self.steps().len()];
        let mut passes: Vec<Pass> = Vec::new();
        let (mut arrived, mut moved) = (None, false);
        for (number, step) in self.steps().iter().enumerate() {
            let [from, to] = [&self.nodes()[number], &self.nodes()[number + 1]];
            match *step {
                Step::Scale { .. } => {}
                Step::Fft { axis, .. } => {
                    let mut pass =
                        Pass { step: number, ..one(&model, problem, from, axis, all_near) };
                    let grids = [from, to].map(|node| node.layout.grid());
                    if all_near && moved && grids[0] != grids[1] {
                        let most = Distribution::Given(to.layout.clone()).most() as f64;
                        pass.brought = model.brought(most * bytes(problem, to));
                    }
                    let together = passes.last().is_some_and(|last| {
                        let (layout, axes) = (&from.layout, last.axes | pass.axes);
                        let element = bytes(problem, from);
                        let bytes = block(&layout.grid(), &layout.order(), axes, element, tiles);
                        bytes <= BLOCK_BYTES as f64
                    });
                    join(&mut passes, pass, together);
                    if let (Some(last), true, Some(_)) = (passes.last_mut(), all_near, tiles) {
                        let work = Distribution::Given(to.layout.clone());
                        let home = at_home(&work, &problem.input);
                        let (order, howmany) = (to.layout.order(), problem.howmany);
                        let element = bytes(problem, to) / howmany as f64;
                        let side = side(home.as_ref(), &work, &order, last.axes, element, howmany);
                        last.scattered = model.scattered(side);
                    }
                }
                Step::Reshape { wire, .. } => {
                    moved = true;
                    let departing =
                        if problem.pipelined() && !all_near { passes.pop() } else { None };
                    spend(&mut steps, &passes, arrived);
                    passes.clear();
                    let share = cost::share(wire, problem.precision, problem.tolerance);
                    let element = bytes(problem, from);
                    let [a, b] = [from, to].map(|node| Distribution::Given(node.layout.clone()));
                    let load = Volume::new(&a, &b, &hosts);
                    let order = Order {
                        load,
                        element,
                        share,
                        wire,
                        exchange: problem.effective_exchange(),
                        chunk: problem.chunked().then(|| problem.chunk_bytes() as f64),
                        rounds: problem.memory.rounds(problem.effective_exchange()) as f64,
                    };
                    let spent = match all_near {
                        true => Spent { unpack: model.meeting(), pieces: 1.0, ..Spent::default() },
                        false => model.reshape(&order),
                    };
                    let arithmetic = departing.map_or(0.0, |pass| pass.arithmetic);
                    let volume = BytesMoved {
                        own: load.own * element,
                        near: load.near * element,
                        far: load.far * element * share,
                        host: load.host * element * share,
                        near_messages: if all_near { 0.0 } else { load.near_messages },
                        far_messages: load.far_messages,
                    };
                    let seconds = spent.with(arithmetic);
                    let memory = spent.pack + spent.unpack;
                    steps[number] = Expected { seconds, memory, arithmetic, spent, volume };
                    arrived = (!all_near && problem.buffers_all()).then_some(number);
                }
            }
        }
        spend(&mut steps, &passes, arrived);
        let seconds = steps.iter().map(|step| step.seconds).sum();
        Prediction { steps, seconds }
    }
}

/// Who has the data that some work on: as the input has it, unless an axis has other points now and was not whole there.
fn at_home(work: &Distribution, input: &Layout) -> Option<Distribution> {
    (0..input.grid().axes()).try_fold(Distribution::Given(input.clone()), |home, axis| {
        let n = work.grid().len(axis);
        match n == home.grid().len(axis) {
            true => Some(home),
            false => home.is_whole(axis).then(|| home.with_len(axis, n)),
        }
    })
}

/// Bytes of a point.
fn bytes(problem: &Problem, node: &Node) -> f64 {
    (node.width() * problem.precision.bytes() * problem.howmany) as f64
}

/// The transform along one axis, as a pass of its own.
fn one(model: &Model<'_>, problem: &Problem, from: &Node, axis: usize, all_near: bool) -> Pass {
    let most = Distribution::Given(from.layout.clone()).most() as f64;
    let gathered = from.layout.order().contiguous() != axis || all_near;
    let (n, elements) = (from.layout.grid().len(axis), most * problem.howmany as f64);
    let [arithmetic, memory] = model.transform(n, elements, most * bytes(problem, from), gathered);
    Pass { step: 0, axes: 1 << axis, arithmetic, memory, scattered: 1.0, brought: 0.0 }
}

fn join(passes: &mut Vec<Pass>, pass: Pass, together: bool) {
    match passes.last_mut().filter(|_| together) {
        Some(last) => {
            last.axes |= pass.axes;
            last.arithmetic += pass.arithmetic;
            last.memory = last.memory.max(pass.memory);
            last.brought += pass.brought;
        }
        None => passes.push(pass),
    }
}

/// Passes between two reshapes, the first of them in the pass of the reshape before.
fn spend(steps: &mut [Expected], passes: &[Pass], arrived: Option<usize>) {
    for (number, pass) in passes.iter().enumerate() {
        let memory = if number == 0 && arrived.is_some() {
            0.0
        } else {
            pass.memory * pass.scattered + pass.brought
        };
        let step = &mut steps[pass.step];
        (step.arithmetic, step.memory) = (pass.arithmetic, memory);
        step.seconds = pass.arithmetic + memory;
    }
}
