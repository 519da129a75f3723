//! Lowering: from the steps of a recipe to the passes over memory that execute them.
//!
//! A program begins with one operation for each transform and each reshape of the recipe. Then
//! rules fuse operations, each rule in one pass over the program:
//!
//! ```text
//! share    transforms between reshapes there and back become passes in shared memory   (shared.rs)
//! halve    a real transform next to such a pass joins it
//! divide   passes whose lines do not fit into cache together are divided
//! join     transforms whose blocks fit into cache together become one pass             (rules.rs)
//! pack     an exchange transforms chunks while it packs them
//! unpack   an exchange transforms tiles while it unpacks them
//! ```
//!
//! Candidates (candidate.rs) differ in the rules that are used. The first one that needs the least
//! memory is chosen.

use super::candidate::Candidate;
use super::capabilities::Capabilities;
use super::lowering::Lowering;
use super::ops::{AcrossFft, AxisFft, ExchangePass, Op};
use super::program::{Program, Value};
use crate::geometry::Topology;
use crate::problem::Direction;
use crate::recipe::{Recipe, Step};
use crate::redistribute::spill::BufferSplit;

impl Recipe {
    /// The passes over memory of one direction, the same on all ranks. Cost: O(ranks) for each
    /// step; on devices, O(ranks²) for each exchange that transforms may load or store.
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
    pub fn lower<'a>(
        &'a self,
        direction: Direction,
        capabilities: Capabilities<'a>,
    ) -> Program<'a> {
        let policy = self.problem().policy();
        Lowering { recipe: self, direction, capabilities, policy }.program()
    }
}

impl<'a> Lowering<'a> {
    /// The program of a candidate.
    pub(crate) fn build(&self, candidate: Candidate) -> Program<'a> {
        let mut ops = self.unfused(candidate.reads_peers);
        if candidate.exclusive.is_some() {
            let [start, _] = self.start_and_end();
            ops = self.shared_passes(start, start, &ops);
        } else if candidate.shares {
            ops = self.share(ops, candidate.saves);
        }
        if candidate.halves {
            ops = self.halve(ops);
        }
        if let Some(device) = self.capabilities.device {
            ops = self.for_device(ops, device);
        } else {
            ops = self.divide(ops);
            ops = self.join(ops);
            ops = if self.policy.pipelined { self.pack(ops) } else { ops };
            ops = self.unpack(ops);
        }
        if candidate.copies_out {
            ops.push(Op::CopyOut);
        }
        number_exchanges(&mut ops);
        let Self { recipe, direction, capabilities, policy } = *self;
        let (values, exclusive) = (self.values(&ops), candidate.exclusive);
        Program { recipe, direction, capabilities, ops, values, exclusive, policy }
    }

    /// One operation for each transform and each reshape. A factor belongs to the transform before
    /// it, or else to the one after.
    pub(crate) fn unfused(&self, reads_peers: bool) -> Vec<Op<'a>> {
        let problem = self.problem();
        let topology = Topology::new(&problem.hosts, problem.input.ranks());
        let reads_peers = match self.capabilities.device {
            Some(device) => device.synchronizes,
            None => reads_peers && topology.ranks_per_host() > 1,
        };
        let on_host = self.capabilities.device.is_none();
        let mut ops = Vec::new();
        let mut next_factor = 1.0;
        for step in self.step_numbers() {
            let [from, to] = self.ends(step);
            match self.recipe.steps()[step] {
                Step::Scale { forward, inverse } => {
                    let factor = self.direction.choose(forward, inverse);
                    match ops.last_mut() {
                        Some(Op::LocalFft(ffts)) => ffts[0].factor *= factor,
                        _ => next_factor *= factor,
                    }
                }
                Step::Fft { kind, .. } if !kind.is_transform() => {}
                Step::Fft { axis, kind } => {
                    let factor = std::mem::replace(&mut next_factor, 1.0);
                    let resized = problem.is_resized(axis);
                    ops.push(Op::LocalFft(vec![AxisFft { step, axis, kind, resized, factor }]));
                }
                Step::Reshape { wire, exchange } => ops.push(Op::Exchange(ExchangePass {
                    step,
                    number: 0,
                    from,
                    to,
                    wire,
                    exchange,
                    direct: reads_peers && (exchange.reads_peers() || !on_host),
                    whole: Vec::new(),
                    chunking: self.policy.chunking.filter(|_| self.capabilities.fuses_in_cache()),
                    fuse_before: Vec::new(),
                    fuse_after: Vec::new(),
                    chunks: None,
                    gain: self.gain(from, step),
                })),
            }
        }
        ops
    }

    fn step_numbers(&self) -> Vec<usize> {
        let steps = 0..self.recipe.steps().len();
        match self.direction {
            Direction::Forward => steps.collect(),
            Direction::Inverse => steps.rev().collect(),
        }
    }

    /// The data before, between and after operations, not divided.
    fn values(&self, ops: &[Op<'a>]) -> Vec<Value<'a>> {
        let [start, end] = self.start_and_end();
        let after = ops.iter().map(|op| match op {
            Op::LocalFft(ffts) => self.ends(ffts[ffts.len() - 1].step)[1],
            Op::Exchange(pass) => pass.to,
            Op::SharedPass(pass) => pass.result(self.direction),
            Op::Across(AcrossFft { both, .. }) => self.ends(both[1].step)[1],
            Op::Store(pass) => pass.exchange.to,
            Op::CopyOut => end,
        });
        let nodes = std::iter::once(start).chain(after);
        nodes.map(|node| Value { node, split: BufferSplit::default() }).collect()
    }
}

/// Numbers the exchanges that are left.
fn number_exchanges(ops: &mut [Op<'_>]) {
    let mut number = 0;
    for op in ops {
        let pass = match op {
            Op::Exchange(pass) => pass,
            Op::Store(store) => {
                number += usize::from(store.loads.is_some());
                &mut store.exchange
            }
            _ => continue,
        };
        pass.number = number;
        number += 1;
    }
}
