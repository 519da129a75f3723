//! The operations of one direction as data.

use std::fmt;

use crate::codec::Wire;
use crate::geometry::exclusive::Exclusive;
use crate::geometry::layout::axis_names;
use crate::problem::Gain;
use crate::problem::{Chunking, Direction, Exchange, Kind, TransportPolicy};
use crate::recipe::norm_gain::Loss;
use crate::recipe::{Node, Pass, Recipe};
use crate::redistribute::spill::BufferSplit;

/// The operations of one direction of a recipe, the same on all ranks.
///
/// Each operation is one pass over memory. Predictions, simulations and devices read it.
/// [`Display`](fmt::Display) prints one operation a line.
#[derive(Debug)]
pub struct Program<'a> {
    pub(crate) recipe: &'a Recipe,
    pub(crate) direction: Direction,
    pub(crate) ops: Vec<Op<'a>>,
    /// The data each rank keeps in its output from the first operation to the last.
    pub(crate) exclusive: Option<Exclusive>,
    pub(crate) policy: TransportPolicy,
}

#[derive(Debug)]
pub(crate) enum Op<'a> {
    LocalFft(LocalPass),
    Exchange(ExchangePass<'a>),
    SharedPass(SharedFft),
    /// Copy of the result from the plan's memory to the output.
    CopyOut {
        node: usize,
        split: BufferSplit,
    },
}

/// An operation of a program without shared passes ([`Program::device_ops`]).
#[derive(Debug)]
pub enum DeviceOp<'p, 'a> {
    /// Local transforms, in order.
    LocalFft(&'p [AxisFft]),
    /// A redistribution.
    Exchange(&'p ExchangePass<'a>),
}

/// The transform along one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisFft {
    pub(crate) step: usize,
    pub(crate) axis: usize,
    pub(crate) kind: Kind,
    /// Whether data is padded or truncated along the axis.
    pub(crate) resized: bool,
    pub(crate) factor: f64,
}

/// Local transforms along axes that fit into cache together.
#[derive(Debug)]
pub(crate) struct LocalPass {
    pub(crate) ffts: Vec<AxisFft>,
    pub(crate) splits: [BufferSplit; 2],
}

/// A redistribution to another layout.
#[derive(Debug)]
pub struct ExchangePass<'a> {
    /// The number of the recipe's step.
    pub(crate) step: usize,
    /// The number of the exchange in its direction.
    pub(crate) number: usize,
    /// The node before it.
    pub from: &'a Node,
    /// The node after it.
    pub to: &'a Node,
    /// The encoding of messages.
    pub wire: Wire,
    /// The exchange.
    pub exchange: Exchange,
    /// Whether ranks of a host read each other's memory.
    pub(crate) direct: bool,
    /// Axes that chunks hold whole.
    pub(crate) whole: Vec<usize>,
    pub(crate) chunking: Option<Chunking>,
    /// Transforms of each chunk before packing.
    pub(crate) fuse_before: Vec<AxisFft>,
    /// Transforms of each tile after unpacking.
    pub(crate) fuse_after: Vec<AxisFft>,
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
    pub(crate) ffts: Vec<AxisFft>,
    /// The node of real data, read forward or written inverse instead of `home`.
    pub(crate) real: Option<usize>,
    /// Whether it is the first operation and reads the input.
    pub(crate) first: bool,
}

impl<'a> Program<'a> {
    /// The recipe.
    pub fn recipe(&self) -> &'a Recipe {
        self.recipe
    }

    /// The operations of a device without shared passes ([`Capabilities::of_library`]).
    ///
    /// # Panics
    /// If the program was lowered for another device.
    ///
    /// [`Capabilities::of_library`]: super::Capabilities::of_library
    pub fn device_ops(&self) -> impl Iterator<Item = DeviceOp<'_, 'a>> {
        self.ops.iter().map(|op| match op {
            Op::LocalFft(pass) => DeviceOp::LocalFft(&pass.ffts),
            Op::Exchange(pass) => DeviceOp::Exchange(pass),
            Op::SharedPass(_) | Op::CopyOut { .. } => unreachable!("lowered for a CPU"),
        })
    }

    /// The node of this rank's data before the first operation, and after the last.
    pub fn start_and_end(&self) -> [&'a Node; 2] {
        let [first, last] = [0, self.recipe.nodes().len() - 1].map(|number| self.node(number));
        self.direction.choose([first, last], [last, first])
    }

    /// The number of an exchange among those of both directions.
    pub fn message_number(&self, pass: &ExchangePass<'_>) -> usize {
        2 * pass.number + self.direction as usize
    }

    pub(crate) fn node(&self, number: usize) -> &'a Node {
        &self.recipe.nodes()[number]
    }

    /// The nodes before and after a step in this direction.
    pub(crate) fn ends(&self, step: usize) -> [&'a Node; 2] {
        let [first, last] = [self.node(step), self.node(step + 1)];
        self.direction.choose([first, last], [last, first])
    }

    /// The nodes before and after a transform.
    pub fn fft_ends(&self, fft: &AxisFft) -> [&'a Node; 2] {
        self.ends(fft.step)
    }

    /// The axis and the pass of a transform, without strides.
    pub fn pass(&self, fft: &AxisFft) -> (usize, Pass) {
        let [complex_before, complex_after] = self.ends(fft.step).map(|node| node.complex);
        let (problem, resized) = (self.recipe.problem(), fft.resized);
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
        };
        (fft.axis, pass)
    }

    pub(crate) fn passes(&self, ffts: &[AxisFft]) -> Vec<(usize, Pass)> {
        ffts.iter().map(|fft| self.pass(fft)).collect()
    }

    /// The exchange that executes a step; `None` inside a shared pass.
    pub(crate) fn exchange(&self, step: usize) -> Option<&ExchangePass<'a>> {
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

impl ExchangePass<'_> {
    /// The error of a lossy encoding that sends this many real numbers.
    pub fn loss(&self, reals: usize) -> Option<Loss> {
        let Self { wire, gain, .. } = *self;
        let common = wire == Wire::Tolerance;
        wire.is_lossy().then_some(Loss { gain, reals: reals as f64, common })
    }
}

impl AxisFft {
    /// Whether the length of lines changes.
    pub(crate) fn changes_len(&self) -> bool {
        self.kind == Kind::R2C || self.resized
    }
}

/// One operation a line.
impl fmt::Display for Program<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes = axis_names(self.recipe.problem().kinds.len());
        let ffts = |ffts: &[AxisFft]| -> String {
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
                    write!(f, "exchange {} to {}", pass.from.layout, pass.to.layout)?;
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
