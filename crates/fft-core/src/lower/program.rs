//! The operations of one direction as data.

use std::fmt;

use super::allocate::{Action, Allocation, MemoryNeeds, MemoryUse, PlacedStep};
use super::capabilities::Capabilities;
use super::device::{Chunks, FftGroup};
use super::lowering::Lowering;
use super::ops::{AcrossFft, AxisFft, ExchangePass, Op, StorePass};
use crate::geometry::exclusive::Exclusive;
use crate::geometry::layout::axis_names;
use crate::problem::{Direction, Kind, TransportPolicy};
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
    pub(crate) capabilities: Capabilities<'a>,
    /// Operation `i` reads value `i` and writes value `i + 1`.
    pub(crate) ops: Vec<Op<'a>>,
    pub(crate) values: Vec<Value<'a>>,
    /// The data each rank keeps in its output from the first operation to the last.
    pub(crate) exclusive: Option<Exclusive>,
    pub(crate) policy: TransportPolicy,
}

/// The data before, between or after operations.
#[derive(Debug)]
pub(crate) struct Value<'a> {
    pub(crate) node: &'a Node,
    /// How each rank's brick is divided between two buffers.
    pub(crate) split: BufferSplit,
}

/// An operation of a program for devices ([`Capabilities::of_devices`]).
#[derive(Debug)]
pub enum DeviceOp<'p, 'a> {
    /// Local transforms: along one axis, or along two that are one operation. If an exchange in
    /// chunks follows, they are divided like it.
    LocalFft(&'p [AxisFft], Option<Chunks>),
    /// One of two transforms across.
    Across(&'p AcrossFft),
    /// A redistribution, perhaps by the transforms after it.
    Exchange(&'p ExchangePass<'a>),
    /// Transforms that do the redistribution after them, perhaps also the one before.
    Store(&'p StorePass<'a>),
}

impl DeviceOp<'_, '_> {
    /// Whether it does an exchange by the transforms after it.
    pub fn is_loaded(&self) -> bool {
        match self {
            Self::Exchange(pass) => !pass.fuse_after.is_empty(),
            Self::Store(pass) => pass.loads.is_some(),
            Self::LocalFft(..) | Self::Across(_) => false,
        }
    }

    /// Whether it is transforms that do the exchange after them.
    pub fn is_stored(&self) -> bool {
        matches!(self, Self::Store(_))
    }
}

impl<'a> Program<'a> {
    /// The recipe.
    pub fn recipe(&self) -> &'a Recipe {
        self.recipe
    }

    /// The operations of a device.
    ///
    /// # Panics
    /// If the program was lowered for hosts.
    pub fn device_ops(&self) -> impl Iterator<Item = DeviceOp<'_, 'a>> {
        self.ops.iter().enumerate().map(|(number, op)| match op {
            Op::LocalFft(ffts) => match self.ops.get(number + 1) {
                Some(Op::Exchange(next)) => DeviceOp::LocalFft(ffts, next.chunks),
                _ => DeviceOp::LocalFft(ffts, None),
            },
            Op::Across(across) => DeviceOp::Across(across),
            Op::Exchange(pass) => DeviceOp::Exchange(pass),
            Op::Store(pass) => DeviceOp::Store(pass),
            Op::SharedPass(_) | Op::CopyOut => unreachable!("lowered for a host"),
        })
    }

    /// A rank's transforms of one operation of a device.
    pub fn group(&self, ffts: &[AxisFft], rank: usize) -> FftGroup {
        FftGroup::new(&self.lowering(), ffts, rank)
    }

    /// The node of this rank's data before the first operation, and after the last.
    pub fn start_and_end(&self) -> [&'a Node; 2] {
        [self.values[0].node, self.values[self.ops.len()].node]
    }

    /// The number of an exchange among the exchanges of both directions.
    pub fn message_number(&self, pass: &ExchangePass<'_>) -> usize {
        2 * pass.number + self.direction as usize
    }

    /// The nodes before and after a step in this direction.
    pub(crate) fn ends(&self, step: usize) -> [&'a Node; 2] {
        self.lowering().ends(step)
    }

    /// The nodes before and after a transform.
    pub fn fft_ends(&self, fft: &AxisFft) -> [&'a Node; 2] {
        self.ends(fft.step)
    }

    fn lowering(&self) -> Lowering<'a> {
        let Self { recipe, direction, capabilities, policy, .. } = *self;
        Lowering { recipe, direction, capabilities, policy }
    }

    /// The axis and the pass of a transform, without strides.
    pub fn pass(&self, fft: &AxisFft) -> (usize, Pass) {
        self.lowering().pass(fft)
    }

    pub(crate) fn passes(&self, ffts: &[AxisFft]) -> Vec<(usize, Pass)> {
        ffts.iter().map(|fft| self.pass(fft)).collect()
    }

    /// Real numbers of a value on a rank: the part that other ranks can access.
    ///
    /// All of it, or without data that stays in the output, or the first of two parts.
    pub(crate) fn reals(&self, value: usize, rank: usize) -> usize {
        self.parts(value, rank)[0]
    }

    /// Real numbers of a value on a rank, and of its second part if that is in a buffer of its own.
    pub(crate) fn parts(&self, value: usize, rank: usize) -> [usize; 2] {
        let Value { node, split } = &self.values[value];
        let point = self.recipe.problem().batch * node.width();
        match &self.exclusive {
            Some(exclusive) => [exclusive.public_points(rank) * point, 0],
            None => split.reals(rank, node.layout.brick(rank), point),
        }
    }

    /// The use of memory by each operation.
    pub(crate) fn uses(&self) -> Vec<MemoryUse> {
        let of = |op: &Op<'_>| match op {
            Op::LocalFft(ffts) if self.capabilities.device.is_some() => self.use_on_device(ffts),
            Op::LocalFft(ffts) => {
                MemoryUse { in_place: !ffts[0].changes_len(), ..MemoryUse::default() }
            }
            Op::Exchange(pass) => MemoryUse { peers_read: pass.direct, ..MemoryUse::default() },
            Op::SharedPass(pass) => MemoryUse {
                in_place: pass.real.is_none(),
                peers_read: true,
                peers_write: true,
                ..MemoryUse::default()
            },
            // Other ranks also write the destination, so all of them access the output.
            Op::Store(_) => MemoryUse { peers_read: true, ..MemoryUse::default() },
            Op::Across(_) | Op::CopyOut => MemoryUse::default(),
        };
        self.ops.iter().map(of).collect()
    }

    /// The library transforms complex data in place, and may overwrite the half spectra that it
    /// reads.
    fn use_on_device(&self, ffts: &[AxisFft]) -> MemoryUse {
        let resized = ffts[0].resized;
        let halves = ffts.iter().any(|fft| fft.kind == Kind::R2C);
        let reads_halves = halves && self.direction == Direction::Inverse;
        // If lines are padded, a copy of them is transformed.
        let copies = resized && !self.pass(&ffts[0]).1.line_sides()[0].is_whole();
        MemoryUse {
            in_place: !resized && !halves,
            destroys_source: reads_halves && !copies,
            ..MemoryUse::default()
        }
    }

    /// The memory that the operations need on a rank. `exposes_all` is as in [`Capabilities`].
    ///
    /// [`Capabilities`]: super::Capabilities
    pub fn memory_needs(&self, rank: usize, exposes_all: bool) -> MemoryNeeds {
        let parts: Vec<_> = (0..self.values.len()).map(|value| self.parts(value, rank)).collect();
        MemoryNeeds {
            uses: self.uses(),
            reals: parts.iter().map(|[first, _]| *first).collect(),
            spare: parts.iter().map(|[_, second]| *second).max().unwrap_or(0),
            exposes_all,
            has_exclusive: self.exclusive.is_some(),
        }
    }

    /// The operations of a rank with the places that they read and write, one per line, for a run
    /// from the input to the output or in place.
    pub fn placed(&self, rank: usize, in_place: bool, exposes_all: bool) -> String {
        let allocation = Allocation::new(&self.memory_needs(rank, exposes_all), in_place);
        let part = |value: usize| if self.parts(value, rank)[1] > 0 { " and spare" } else { "" };
        let line = |step: &PlacedStep| {
            let PlacedStep { action, from, to, window } = step;
            let mut text = match *action {
                Action::Copy(_) => format!("copy from {from} to {to}"),
                Action::Run(op) => {
                    let (before, after) = (part(op), part(op + 1));
                    let op = self.text(&self.ops[op]);
                    format!("{op}, from {from}{before} to {to}{after}")
                }
            };
            if let Some(window) = window {
                text += &format!(" through {window}");
            }
            text
        };
        allocation.steps.iter().map(line).collect::<Vec<_>>().join("\n")
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

/// One operation per line.
impl fmt::Display for Program<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.texts().join("\n"))
    }
}

impl Program<'_> {
    /// The text of each operation.
    pub fn texts(&self) -> Vec<String> {
        self.ops.iter().map(|op| self.text(op)).collect()
    }

    fn fft_text(&self, ffts: &[AxisFft]) -> String {
        let axes = axis_names(self.recipe.problem().kinds.len());
        ffts.iter().map(|fft| format!(" {} {}", fft.kind, axes[fft.axis])).collect()
    }

    fn exchange_text(&self, pass: &ExchangePass<'_>) -> String {
        let ExchangePass { exchange, wire, .. } = pass;
        let [from, to] = [&pass.from.layout, &pass.to.layout];
        let mut text = format!("exchange {from} to {to} by {exchange}, wire {wire}");
        if let Some(chunking) = pass.chunking {
            text += &format!(", chunks of {} bytes", chunking.bytes);
        }
        if !pass.fuse_before.is_empty() {
            text += &format!(", fused by pack:{}", self.fft_text(&pass.fuse_before));
        }
        if !pass.fuse_after.is_empty() {
            let rule = if self.capabilities.device.is_some() { "load" } else { "unpack" };
            text += &format!(", fused by {rule}:{}", self.fft_text(&pass.fuse_after));
        }
        if let Some(chunks) = &pass.chunks {
            text += &format!(", with the transforms before it in {} by chunk", chunks.all());
        }
        text
    }

    fn text(&self, op: &Op<'_>) -> String {
        match op {
            Op::LocalFft(group) => {
                let rule = match (group.len(), self.capabilities.device) {
                    (1, _) => "",
                    (_, Some(_)) => ", fused by planes",
                    (_, None) => ", fused by join",
                };
                format!("local fft:{}{rule}", self.fft_text(group))
            }
            Op::Across(AcrossFft { both, last }) => {
                let which = if *last { "last" } else { "first" };
                format!("local fft, the {which} of{}, divided by across", self.fft_text(both))
            }
            Op::Store(store) => {
                let StorePass { ffts: stored, loads, exchange } = &**store;
                let mut text = self.exchange_text(exchange);
                text += &format!(", fused by store:{}", self.fft_text(stored));
                if let Some(loads) = loads {
                    text += &format!("; {}", self.exchange_text(loads));
                }
                text
            }
            Op::SharedPass(pass) => {
                let [home, work] = [&pass.home.layout, &pass.work.layout];
                let rules = if pass.real.is_some() { "share, halve" } else { "share" };
                format!(
                    "shared pass on {home} as {work}:{}, fused by {rules}",
                    self.fft_text(&pass.ffts)
                )
            }
            Op::Exchange(pass) => self.exchange_text(pass),
            Op::CopyOut => "copy to the output".into(),
        }
    }
}
