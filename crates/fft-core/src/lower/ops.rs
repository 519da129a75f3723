//! The operations of a program: transforms and exchanges, alone or fused.

use super::device::Chunks;
use crate::codec::Wire;
use crate::problem::{Chunking, Direction, Exchange, Gain, Kind};
use crate::recipe::Node;
use crate::recipe::norm_gain::Loss;

/// An operation: one pass over memory.
#[derive(Clone, Debug)]
pub(crate) enum Op<'a> {
    /// Local transforms: on hosts, along axes that fit into cache together.
    LocalFft(Vec<AxisFft>),
    Exchange(ExchangePass<'a>),
    SharedPass(SharedFft<'a>),
    /// One of two transforms across, on a device.
    Across(AcrossFft),
    /// Transforms that do the last exchange, on a device.
    Store(Box<StorePass<'a>>),
    /// Copy of the result from the plan's memory to the output.
    CopyOut,
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

/// A redistribution to another layout.
#[derive(Clone, Debug)]
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
    /// Transforms of each tile after unpacking; on a device, transforms that load the data it
    /// moves.
    pub fuse_after: Vec<AxisFft>,
    /// The chunks that copy engines move, on a device.
    pub chunks: Option<Chunks>,
    /// The gain of errors in messages up to the result.
    pub(crate) gain: Gain,
}

/// In-place transforms across the ranks of a host.
#[derive(Clone, Debug)]
pub(crate) struct SharedFft<'a> {
    /// The nodes with the distribution of data and of work.
    pub(crate) home: &'a Node,
    pub(crate) work: &'a Node,
    pub(crate) ffts: Vec<AxisFft>,
    /// The node of real data, read forward or written inverse instead of `home`.
    pub(crate) real: Option<&'a Node>,
}

impl<'a> SharedFft<'a> {
    /// The node of the result.
    pub(crate) fn result(&self, direction: Direction) -> &'a Node {
        match direction {
            Direction::Forward => self.home,
            Direction::Inverse => self.real.unwrap_or(self.home),
        }
    }
}

/// One of two transforms along the first two of three axes, `[a][b][c]` in memory.
///
/// The library transforms all lines of the first axis by one plan, but runs once for each plane for
/// the second axis. So the second is transformed first, from `[a][b][c]` to `[b][a][c]`, and then
/// the first, which loads the result and stores `[a][b][c]`.
#[derive(Clone, Debug)]
pub struct AcrossFft {
    /// Both transforms, in the order of the recipe.
    pub both: Vec<AxisFft>,
    /// Whether it is the last one.
    pub last: bool,
}

/// Transforms that store their results where the last exchange moves them.
#[derive(Clone, Debug)]
pub struct StorePass<'a> {
    /// The transforms: one, or both of [`AcrossFft`]; the last one stores.
    pub ffts: Vec<AxisFft>,
    /// The exchange before them, if they load what it moves.
    pub loads: Option<ExchangePass<'a>>,
    /// The exchange after them.
    pub exchange: ExchangePass<'a>,
}

impl<'a> StorePass<'a> {
    /// The last exchange in reverse: a rank writes the elements that it would read.
    pub fn way_back(&self) -> ExchangePass<'a> {
        let ExchangePass { from, to, .. } = self.exchange;
        ExchangePass { from: to, to: from, ..self.exchange.clone() }
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
