//! The operations of one direction as data.

use std::fmt;

use crate::codec::Wire;
use crate::geometry::exclusive::Exclusive;
use crate::geometry::layout::axis_names;
use crate::problem::{Algorithm, Chunking, Direction, Kind, TransportPolicy};
use crate::recipe::norm_gain::Gain;
use crate::recipe::{Node, Pass, Recipe};
use crate::redistribute::spill::BufferSplit;

/// The operations of one direction of a recipe, the same on all ranks.
///
/// Each operation is one pass over memory. Predictions, simulations and the CPU device read it.
/// [`Display`](fmt::Display) prints one operation a line.
#[derive(Debug)]
pub struct Program<'a> {
    pub(crate) recipe: &'a Recipe,
    pub(crate) direction: Direction,
    pub(crate) ops: Vec<Op>,
    /// The data each rank keeps in its output from the first operation to the last.
    pub(crate) exclusive: Option<Exclusive>,
    pub(crate) policy: TransportPolicy,
}

#[derive(Debug)]
pub(crate) enum Op {
    LocalFft(LocalPass),
    Exchange(ExchangePass),
    SharedPass(SharedFft),
    /// Copy of the result from the plan's memory to the output.
    CopyOut {
        node: usize,
        split: BufferSplit,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fft {
    pub(crate) step: usize,
    pub(crate) axis: usize,
    pub(crate) kind: Kind,
    pub(crate) factor: f64,
}

/// Local transforms along axes that fit into cache together.
#[derive(Debug)]
pub(crate) struct LocalPass {
    pub(crate) ffts: Vec<Fft>,
    pub(crate) splits: [BufferSplit; 2],
}

/// A redistribution to another layout.
#[derive(Debug)]
pub(crate) struct ExchangePass {
    /// The number of the recipe's step, and of the reshape among the executed ones.
    pub(crate) step: usize,
    pub(crate) number: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) wire: Wire,
    pub(crate) exchange: Algorithm,
    /// Whether ranks of a host read each other's memory.
    pub(crate) direct: bool,
    /// Axes that chunks hold whole.
    pub(crate) whole: Vec<usize>,
    pub(crate) chunking: Option<Chunking>,
    /// Transforms of each chunk before packing.
    pub(crate) fuse_before: Vec<Fft>,
    /// Transforms of each tile after unpacking.
    pub(crate) fuse_after: Vec<Fft>,
    pub(crate) splits: [BufferSplit; 2],
    /// The gain of errors in messages up to the result.
    pub(crate) gain: Gain,
}

/// In-place transforms across the ranks of a host.
#[derive(Debug)]
pub(crate) struct SharedFft {
    /// The nodes with the distribution of data and of work.
    pub(crate) home: usize,
    pub(crate) work: usize,
    pub(crate) ffts: Vec<Fft>,
    /// The node of real data, read forward or written inverse instead of `home`.
    pub(crate) real: Option<usize>,
    /// Whether it is the first operation and reads the input.
    pub(crate) first: bool,
}

impl<'a> Program<'a> {
    pub(crate) fn node(&self, number: usize) -> &'a Node {
        &self.recipe.nodes()[number]
    }

    /// The nodes before and after a step in this direction.
    pub(crate) fn ends(&self, step: usize) -> [&'a Node; 2] {
        let [first, last] = [self.node(step), self.node(step + 1)];
        self.direction.choose([first, last], [last, first])
    }

    /// The axis and the pass of a transform, without strides.
    pub(crate) fn pass(&self, fft: &Fft) -> (usize, Pass) {
        let [from, to] = self.ends(fft.step);
        let n = self.recipe.problem().grid().len(fft.axis);
        let pass = crate::recipe::bound_step::pass(from, to, fft.kind, self.direction, n);
        (fft.axis, Pass { factor: fft.factor, ..pass })
    }

    pub(crate) fn passes(&self, ffts: &[Fft]) -> Vec<(usize, Pass)> {
        ffts.iter().map(|fft| self.pass(fft)).collect()
    }

    /// The exchange that executes a step; `None` inside a shared pass.
    pub(crate) fn exchange(&self, step: usize) -> Option<&ExchangePass> {
        self.ops.iter().find_map(|op| match op {
            Op::Exchange(pass) if pass.step == step => Some(pass),
            _ => None,
        })
    }

    /// The number of passes over memory.
    pub fn passes_over_memory(&self) -> usize {
        self.ops.len()
    }
}

impl Fft {
    /// Whether the length of lines changes.
    pub(crate) fn changes_len(&self) -> bool {
        self.kind == Kind::R2C
    }
}

/// One operation a line.
impl fmt::Display for Program<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes = axis_names(self.recipe.problem().kinds.len());
        let ffts = |ffts: &[Fft]| -> String {
            ffts.iter().map(|fft| format!(" {} {}", fft.kind, axes[fft.axis])).collect()
        };
        let layout = |node: usize| &self.node(node).layout;
        for (number, op) in self.ops.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            match op {
                Op::LocalFft(pass) => write!(f, "local fft:{}", ffts(&pass.ffts))?,
                Op::SharedPass(pass) => {
                    let (home, work) = (layout(pass.home), layout(pass.work));
                    write!(f, "shared pass on {home} as {work}:{}", ffts(&pass.ffts))?;
                }
                Op::Exchange(pass) => {
                    let ExchangePass { exchange, wire, .. } = pass;
                    write!(f, "exchange {} to {}", layout(pass.from), layout(pass.to))?;
                    write!(f, " by {exchange}, wire {wire}")?;
                    if let Some(chunking) = pass.chunking {
                        write!(f, ", chunks of {} bytes", chunking.bytes)?;
                    }
                    if !pass.fuse_before.is_empty() {
                        write!(f, ", packing after{}", ffts(&pass.fuse_before))?;
                    }
                    if !pass.fuse_after.is_empty() {
                        write!(f, ", unpacking with{}", ffts(&pass.fuse_after))?;
                    }
                }
                Op::CopyOut { .. } => write!(f, "copy to the output")?,
            }
        }
        Ok(())
    }
}
