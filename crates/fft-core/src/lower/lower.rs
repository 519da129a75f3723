//! Lowering: from the steps of a recipe to the passes over memory that execute them.
//!
//! ```text
//! for each stage of a candidate (stages.rs, candidate.rs):
//!     a factor is multiplied into the transform before it, or else the one after
//!     a transform joins the pending ones if blocks with all their lines fit into cache
//!     an exchange transforms the pending axes while it packs, if its chunks hold their lines
//!     a shared stage is one pass per group of axes whose lines fit into one tile
//!     before any other stage the pending transforms become a pass,
//!         or are fused into the exchange before them, if it unpacks all messages at once
//! ```

use super::candidate::Candidate;
use super::capabilities::Capabilities;
use super::fusion::{fit_in_block, fit_in_cache, fusable_suffix};
use super::program::{AxisFft, ExchangePass, Op, Program, SharedFft, Value};
use super::stages::{Lowering, Stage, Walked};
use crate::codec::Wire;
use crate::geometry::Topology;
use crate::problem::Direction;
use crate::recipe::norm_gain::gain_after;
use crate::recipe::{Recipe, Step};
use crate::redistribute::spill::BufferSplit;

impl Recipe {
    /// The passes over memory of one direction, the same on all ranks. Cost: O(ranks) for each
    /// step.
    ///
    /// ```
    /// use fft_core::*;
    /// let grid = DynGrid::new([32, 32, 32])?;
    /// let slabs = Layout::even(grid, ProcGrid::new([4, 1, 1]), 4);
    /// let mut problem = Problem::new([Kind::C2C; 3], true, Precision::F64, slabs.clone(), slabs)?;
    /// problem.options.exchange = Exchange::P2p;
    /// let recipe = Recipe::new(problem)?;
    /// let capabilities = Capabilities::of_threads(recipe.problem());
    /// let program = recipe.lower(Direction::Forward, capabilities);
    /// assert_eq!(program.passes_over_memory(), 3);
    /// assert!(program.to_string().starts_with("local fft: c2c z c2c y"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn lower(&self, direction: Direction, capabilities: Capabilities) -> Program<'_> {
        let policy = self.problem().policy();
        Lowering { recipe: self, direction, capabilities, policy }.program()
    }
}

impl<'a> Lowering<'a> {
    /// The program of these stages.
    pub(crate) fn build(&self, stages: Vec<Stage>, candidate: Candidate) -> Program<'a> {
        let last = self.recipe.nodes().len() - 1;
        let topology = Topology::new(&self.problem().hosts, self.problem().input.ranks());
        let mut builder = Builder {
            lowering: *self,
            reads_peers: candidate.reads_peers && topology.ranks_per_host() > 1,
            has_exclusive: candidate.exclusive.is_some(),
            ops: Vec::new(),
            values: Vec::new(),
            pending: Vec::new(),
            since: Vec::new(),
            factor: 1.0,
            exchanges: 0,
        };
        builder.store(self.direction.choose(0, last));
        for stage in stages {
            match stage {
                Stage::Scale(factor) => builder.scale(factor),
                Stage::Fft(walked) => builder.transform(&walked),
                Stage::Reshape { reshape, rest } => builder.exchange(&reshape, &rest),
                Stage::Shared { home, work, steps, real } => {
                    builder.shared(home, work, &steps, real);
                }
            }
        }
        builder.flush();
        if candidate.copies_out {
            builder.push(Op::CopyOut, self.direction.choose(last, 0));
        }
        let Self { recipe, direction, policy, .. } = *self;
        let Builder { ops, values, .. } = builder;
        Program { recipe, direction, ops, values, exclusive: candidate.exclusive, policy }
    }
}

struct Builder<'a> {
    lowering: Lowering<'a>,
    /// Whether exchanges may read the memory of other ranks of the host.
    reads_peers: bool,
    has_exclusive: bool,
    ops: Vec<Op<'a>>,
    values: Vec<Value<'a>>,
    /// Transforms that are not yet in an operation.
    pending: Vec<AxisFft>,
    /// The axes transformed since the last exchange.
    since: Vec<usize>,
    /// A factor that the next transform includes.
    factor: f64,
    exchanges: usize,
}

impl<'a> Builder<'a> {
    /// Adds an operation, whose result is at a node.
    fn push(&mut self, op: Op<'a>, node: usize) {
        self.ops.push(op);
        self.store(node);
    }

    fn store(&mut self, node: usize) {
        let node = self.lowering.node(node);
        self.values.push(Value { node, split: BufferSplit::default() });
    }

    fn scale(&mut self, factor: f64) {
        match self.pending.last_mut() {
            Some(fft) => fft.factor *= factor,
            None => self.factor *= factor,
        }
    }

    fn fft(&mut self, walked: &Walked) -> Option<AxisFft> {
        let Step::Fft { axis, kind } = walked.step else { return None };
        let factor = std::mem::replace(&mut self.factor, 1.0);
        let resized = self.lowering.problem().is_resized(axis);
        Some(AxisFft { step: walked.number, axis, kind, resized, factor })
    }

    /// Adds a local transform to the pending ones, or begins a new group.
    fn transform(&mut self, walked: &Walked) {
        let Some(fft) = self.fft(walked) else { return };
        self.since.push(fft.axis);
        if !self.joins(&fft, walked) {
            self.flush();
        }
        self.pending.push(fft);
    }

    /// Whether a transform fits into one pass with the pending ones.
    fn joins(&self, fft: &AxisFft, walked: &Walked) -> bool {
        let problem = self.lowering.problem();
        let Some(first) = self.pending.first() else { return true };
        if !self.lowering.capabilities.fuses_in_cache {
            return true;
        }
        if fft.changes_len() {
            return false;
        }
        let direction = self.lowering.direction;
        let from = direction.choose(first.step, first.step + 1);
        let ends = [from, walked.to].map(|node| self.lowering.node(node));
        let axes: Vec<_> = self.pending.iter().chain([fft]).map(|fft| fft.axis).collect();
        fit_in_block(ends, &axes, problem.precision.bytes())
    }

    /// Emits the pending transforms as a pass, or fuses them into the exchange before.
    fn flush(&mut self) {
        let ffts = std::mem::take(&mut self.pending);
        let (Some(first), Some(last)) = (ffts.first(), ffts.last()) else { return };
        let (in_place, end) = (!first.changes_len(), self.lowering.end(last.step));
        match self.ops.last_mut() {
            Some(Op::Exchange(exchange))
                if in_place
                    && exchange.fuse_after.is_empty()
                    && self.lowering.unpacks_at_once(exchange) =>
            {
                exchange.fuse_after = ffts;
            }
            _ => self.push(Op::LocalFft(ffts), end),
        }
    }

    /// Emits an exchange. `rest` are the steps after it.
    fn exchange(&mut self, walked: &Walked, rest: &[Step]) {
        let Step::Reshape { wire, exchange } = walked.step else { return };
        let (lowering, problem) = (self.lowering, self.lowering.problem());
        let from = lowering.node(walked.from);
        let policy = &lowering.policy;
        let pipelined = policy.pipelined && lowering.capabilities.fuses_in_cache;
        let whole = match pipelined {
            true => {
                let element = from.width() * problem.precision.bytes() * problem.batch;
                fusable_suffix(&from.layout, &self.since, element, policy.tile_bytes)
            }
            false => Vec::new(),
        };
        let packs = |fft: &AxisFft| whole.contains(&fft.axis) && !fft.changes_len();
        let fuse_before = match pipelined && self.pending.iter().all(packs) {
            true => std::mem::take(&mut self.pending),
            false => Vec::new(),
        };
        self.flush();
        let pass = ExchangePass {
            step: walked.number,
            number: self.exchanges,
            from,
            to: lowering.node(walked.to),
            wire,
            exchange,
            direct: exchange.reads_peers() && self.reads_peers,
            whole,
            chunking: policy.chunking.filter(|_| lowering.capabilities.fuses_in_cache),
            fuse_before,
            fuse_after: Vec::new(),
            gain: gain_after(from, rest, problem, lowering.direction),
        };
        self.push(Op::Exchange(pass), walked.to);
        self.exchanges += 1;
        self.since.clear();
    }

    /// Emits shared passes: one for each layout and group of axes whose lines fit into one tile.
    fn shared(&mut self, home: usize, work: usize, steps: &[Walked], real: Option<Walked>) {
        self.flush();
        let forward = self.lowering.direction == Direction::Forward;
        let (mut work, mut ffts) = (work, Vec::new());
        let mut real = real;
        // The real transform belongs to the first pass forward, and to the last inverse.
        if let Some(walked) = real.filter(|_| forward) {
            ffts.extend(self.fft(&walked));
        }
        for (number, walked) in steps.iter().enumerate() {
            match walked.step {
                Step::Scale { forward, inverse } => {
                    let factor = self.lowering.direction.choose(forward, inverse);
                    match ffts.last_mut() {
                        Some(fft) => fft.factor *= factor,
                        None => self.factor *= factor,
                    }
                }
                Step::Fft { .. } => ffts.extend(self.fft(walked)),
                Step::Reshape { .. } => {
                    let last = number + 1 == steps.len();
                    let taken = real.take_if(|_| forward || last);
                    if let Some(walked) = taken.filter(|_| !forward) {
                        ffts.extend(self.fft(&walked));
                    }
                    let node = taken.map(|walked| if forward { walked.from } else { walked.to });
                    self.shared_passes([home, work], std::mem::take(&mut ffts), node);
                    work = walked.to;
                }
            }
        }
        self.shared_passes([home, work], ffts, None);
        self.since.clear();
    }

    fn shared_passes(&mut self, [home, work]: [usize; 2], ffts: Vec<AxisFft>, real: Option<usize>) {
        if ffts.is_empty() {
            return;
        }
        let problem = self.lowering.problem();
        let node = self.lowering.node(home);
        let axes: Vec<_> = ffts.iter().map(|fft| fft.axis).collect();
        let element = node.width() * problem.precision.bytes() * problem.batch;
        let together = fit_in_cache(&node.layout, &axes, element);
        debug_assert!(real.is_none() || together, "a real transform is fused where lines fit");
        for part in ffts.chunks(if together { ffts.len() } else { 1 }) {
            let first = self.has_exclusive && self.ops.is_empty();
            let pass = SharedFft { home, work, ffts: part.to_vec(), real, first };
            let is_forward = self.lowering.direction == Direction::Forward;
            let end = if is_forward { home } else { real.unwrap_or(home) };
            self.push(Op::SharedPass(pass), end);
        }
    }
}

impl Lowering<'_> {
    /// Whether all messages arrive before unpacking, and can be read in any order.
    fn unpacks_at_once(&self, pass: &ExchangePass<'_>) -> bool {
        if !self.capabilities.fuses_in_cache {
            return false;
        }
        let problem = self.problem();
        let [from, to] = [&pass.from.layout, &pass.to.layout];
        let silent = from.has_bricks_of(to)
            || problem.input.ranks() == 1
            || pass.direct && self.capabilities.shares_memory;
        // Encoded messages are decoded sequentially.
        silent || self.policy.buffers_all && pass.wire == Wire::Raw
    }
}
