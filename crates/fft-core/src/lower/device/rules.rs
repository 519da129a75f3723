//! Rules for devices whose library transforms: which transforms and exchanges become one operation.
//!
//! ```text
//! planes   transforms along the last two axes of memory are one operation of the library
//! across   transforms along the first two of three axes are two, each of contiguous lines: the
//!          second axis comes first, into an array with both axes swapped
//! load     transforms after an exchange load what they read from the ranks' memory themselves
//! store    transforms before the last exchange store what they write to the ranks' memory
//! chunk    transforms before an exchange are divided, so that engines copy one chunk while later
//!          ones are transformed
//! ```
//!
//! Loads and stores by transforms save a pass over memory, but the library supports them only for
//! some lengths, and only if a rank's data is in pieces that form a grid. All ranks must do the
//! same, so each decides for all, and if one rank has little data, none loads.

use super::capabilities::{DeviceCapabilities, DeviceLink};
use super::chunks::Chunks;
use super::engine_copy::EngineCopy;
use super::group::FftGroup;
use super::pieces::PieceGrid;
use crate::base::Precision;
use crate::geometry::{DIMS, View};
use crate::lower::lowering::Lowering;
use crate::lower::ops::{AcrossFft, AxisFft, ExchangePass, Op, StorePass};
use crate::problem::{Kind, Link};
use crate::recipe::Node;
use crate::redistribute::{LocalReadBox, Redistribution};

/// The longest lines for which loading is faster than one more pass; only powers of two are.
const LONGEST_LOADED: usize = 512;

/// Whether complex lines of this length are better loaded from other ranks' memory than copied
/// first. Found by measurement.
pub fn loads_lines(precision: Precision, n: usize) -> bool {
    precision == Precision::F64 && n > 1 && n.is_power_of_two() && n <= LONGEST_LOADED
}

/// The chunks that a rank can offer before an exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Offer {
    /// It cannot divide its data, or has too little.
    None,
    /// It has nothing to divide, or nothing that engines copy.
    Any,
    Some(Chunks),
}

impl<'a> Lowering<'a> {
    /// The operations of a device.
    pub(crate) fn for_device(&self, ops: Vec<Op<'a>>, device: &DeviceCapabilities) -> Vec<Op<'a>> {
        let rules = DeviceRules { lowering: *self, device };
        let ops = rules.join(ops);
        let ops = rules.load(ops);
        let mut ops = rules.store(ops);
        rules.chunk(&mut ops);
        ops
    }
}

struct DeviceRules<'a, 'd> {
    lowering: Lowering<'a>,
    device: &'d DeviceCapabilities,
}

impl<'a> DeviceRules<'a, '_> {
    fn ranks(&self) -> std::ops::Range<usize> {
        0..self.lowering.problem().input.ranks()
    }

    fn precision(&self) -> Precision {
        self.lowering.problem().precision
    }

    fn group(&self, ffts: &[AxisFft], rank: usize) -> FftGroup {
        FftGroup::new(&self.lowering, ffts, rank)
    }

    /// Rules **planes** and **across**: transforms one after the other become one operation.
    fn join(&self, ops: Vec<Op<'a>>) -> Vec<Op<'a>> {
        let mut joined: Vec<Op<'a>> = Vec::with_capacity(ops.len());
        for op in ops {
            if let Op::LocalFft(ffts) = &op
                && let [.., Op::LocalFft(group)] = &joined[..]
            {
                let comes_after_exchange = matches!(joined[..], [.., Op::Exchange(_), _]);
                let is_joined = self.joins(group, &ffts[0])
                    || comes_after_exchange && self.are_across(group, &ffts[0]);
                if is_joined && let Some(Op::LocalFft(group)) = joined.last_mut() {
                    group.extend_from_slice(ffts);
                    continue;
                }
            }
            joined.push(op);
        }
        joined
    }

    fn joins(&self, group: &[AxisFft], fft: &AxisFft) -> bool {
        let (place, pass) = self.lowering.placed_pass(fft);
        self.group(group, 0).joins(place, &pass)
    }

    /// Whether two transforms are along the first two of three axes, and better done one after the
    /// other on contiguous lines.
    fn are_across(&self, group: &[AxisFft], fft: &AxisFft) -> bool {
        let [first] = group else { return false };
        let problem = self.lowering.problem();
        let are_loaded = [first, fft].into_iter().all(|fft| {
            let n = problem.zero_padded[fft.axis];
            fft.kind == Kind::C2C && !fft.resized && loads_lines(self.precision(), n)
        });
        let places = [first, fft].map(|fft| self.lowering.placed_pass(fft).0);
        let is_large = |rank| self.group(group, rank).is_large(self.precision());
        self.device.loads
            && (places == [1, 2] || places == [2, 1])
            && problem.kinds.len() == 3
            && problem.batch == 1
            && are_loaded
            && self.ranks().all(is_large)
    }

    /// Rule **load**.
    fn load(&self, ops: Vec<Op<'a>>) -> Vec<Op<'a>> {
        let mut loaded: Vec<Op<'a>> = Vec::with_capacity(ops.len());
        for op in ops {
            let Op::LocalFft(ffts) = op else {
                loaded.push(op);
                continue;
            };
            let is_across = self.group(&ffts, 0).is_across();
            let both = ffts.clone();
            match loaded.last_mut() {
                Some(Op::Exchange(pass)) if self.are_loaded(pass, &ffts) => pass.fuse_after = ffts,
                _ if is_across => loaded.push(Op::Across(AcrossFft { both: ffts, last: false })),
                _ => loaded.push(Op::LocalFft(ffts)),
            }
            if is_across {
                loaded.push(Op::Across(AcrossFft { both, last: true }));
            }
        }
        loaded
    }

    /// Whether transforms load the data that an exchange before them moves, on all ranks. If there
    /// are two across, the first one does.
    fn are_loaded(&self, pass: &ExchangePass<'_>, ffts: &[AxisFft]) -> bool {
        let (problem, device) = (self.lowering.problem(), self.device);
        let is_free = pass.fuse_after.is_empty();
        let can_load = is_free && device.loads && problem.fetches() && device.reach_all();
        can_load
            && self.ranks().all(|rank| {
                let Some(pieces) = self.pieces(pass, rank) else {
                    return false;
                };
                let group = self.group(ffts, rank);
                if group.is_across() {
                    group.across_first().loads(&swapped(&pieces), self.precision())
                } else {
                    group.loads(&pieces, self.precision())
                }
            })
    }

    /// The pieces that a rank reads in an exchange. `None` if some are in messages.
    fn pieces(&self, pass: &ExchangePass<'_>, rank: usize) -> Option<Vec<LocalReadBox>> {
        let redistribution = self.redistribution(pass, rank);
        redistribution.recvs.is_empty().then(|| redistribution.pieces())
    }

    fn redistribution(&self, pass: &ExchangePass<'_>, rank: usize) -> Redistribution {
        let problem = self.lowering.problem();
        let path = |peer: usize| self.device.path(problem, pass, [rank, peer]);
        Redistribution::new(rank, &path, pass.from, pass.to, problem.batch)
    }

    /// Rule **store**: the last exchange, and the transforms before it if these load.
    fn store(&self, mut ops: Vec<Op<'a>>) -> Vec<Op<'a>> {
        let found = match &ops[..] {
            [.., Op::Across(AcrossFft { both, last: true }), Op::Exchange(exchange)] => {
                StorePass { ffts: both.clone(), loads: None, exchange: exchange.clone() }
            }
            [.., Op::Exchange(loads), Op::Exchange(exchange)] if !loads.fuse_after.is_empty() => {
                let (ffts, loads) = (loads.fuse_after.clone(), Some(loads.clone()));
                StorePass { ffts, loads, exchange: exchange.clone() }
            }
            _ => return ops,
        };
        if self.are_stored(&found) {
            ops.truncate(ops.len() - 2);
            ops.push(Op::Store(Box::new(found)));
        }
        ops
    }

    fn are_stored(&self, pass: &StorePass<'_>) -> bool {
        let (problem, device) = (self.lowering.problem(), self.device);
        let exchange = &pass.exchange;
        let sees_all = device.exposes_all || problem.options.shared_arrays;
        let can_store = device.stores && device.synchronizes && problem.fetches() && sees_all;
        can_store
            && exchange.fuse_after.is_empty()
            && self.ranks().all(|rank| {
                let is_near = |peer| device.path(problem, exchange, [rank, peer]) != Link::Remote;
                let points = |node: &Node| node.layout.brick(rank).points();
                // The library takes an array of this size: the output, or the source, which is as
                // large if it is not loaded from elsewhere.
                let source = pass.loads.as_ref().map_or(exchange.from, |loads| loads.from);
                let room = points(exchange.to).max(points(source));
                let group = self.group(&pass.ffts, rank);
                let from = match &pass.loads {
                    Some(loads) => self.pieces(loads, rank),
                    None => Some(vec![group.across_source()]),
                };
                let group = if pass.loads.is_none() { group.across_last() } else { group };
                let to = self.pieces(&pass.way_back(), rank);
                let (Some(from), Some(to)) = (from, to) else { return false };
                self.ranks().all(is_near)
                    && room >= points(exchange.from)
                    && group.passes.len() == 1
                    && group.loads(&from, self.precision())
                    && PieceGrid::new(&to).is_some_and(|to| to.straight)
            })
    }

    /// Rule **chunk**.
    fn chunk(&self, ops: &mut [Op<'a>]) {
        for number in 0..ops.len() {
            let (before, rest) = ops.split_at_mut(number);
            let Some(Op::Exchange(pass)) = rest.first_mut() else { continue };
            let ffts = match before.last() {
                Some(Op::LocalFft(ffts)) if !ffts[0].resized => Some(&ffts[..]),
                _ => None,
            };
            let offers: Vec<_> = self.ranks().map(|rank| self.offer(pass, ffts, rank)).collect();
            pass.chunks = agreed(&offers);
        }
    }

    fn offer(&self, pass: &ExchangePass<'_>, ffts: Option<&[AxisFft]>, rank: usize) -> Offer {
        let layout = &pass.from.layout;
        if layout.brick(rank).is_empty() {
            return Offer::Any;
        }
        let Some(ffts) = ffts else { return Offer::None };
        let group = self.group(ffts, rank);
        match Chunks::of(&group, self.precision(), &layout.order(), layout.ranks()) {
            None => Offer::None,
            Some(chunks) if self.has_engines(pass, rank) => Offer::Some(chunks),
            Some(_) => Offer::Any,
        }
    }

    /// Whether copy engines move any data to a rank.
    fn has_engines(&self, pass: &ExchangePass<'_>, rank: usize) -> bool {
        if !pass.fuse_after.is_empty() {
            return false;
        }
        let all = self.redistribution(pass, rank);
        let element = all.width * self.precision().bytes();
        all.local_reads.iter().any(|read| {
            self.device.link(rank, read.owner) != DeviceLink::SameDevice
                && all
                    .take(read, &all.all())
                    .is_some_and(|transfer| EngineCopy::new(&transfer, element).is_some())
        })
    }
}

/// The chunks that all ranks can have, if some offer any. A rank that divides arrays has a part for
/// each array, and a rank that does not has one part along the axis, so the minimum of each number
/// suits both.
fn agreed(offers: &[Offer]) -> Option<Chunks> {
    let mut agreed: Option<Chunks> = None;
    for offer in offers {
        match (*offer, agreed) {
            (Offer::None, _) => return None,
            (Offer::Any, _) => {}
            (Offer::Some(chunks), None) => agreed = Some(chunks),
            (Offer::Some(chunks), Some(others)) if chunks.axis == others.axis => {
                let parts = chunks.parts.min(others.parts);
                agreed = Some(Chunks { parts, count: chunks.count.min(others.count), ..chunks });
            }
            (Offer::Some(_), Some(_)) => return None,
        }
    }
    agreed.filter(|chunks| chunks.all() > 1)
}

impl FftGroup {
    /// Whether it can load an array in these pieces, which saves the pass of a copy.
    fn loads(&self, pieces: &[LocalReadBox], precision: Precision) -> bool {
        let last = self.lens[0].len() - 1;
        let fits = self.passes.len() <= 2
            && self.passes.iter().all(|(_, pass)| loads_lines(precision, pass.n))
            && !self.halved()
            && !self.is_trig()
            && !self.is_resized()
            && self.is_large(precision);
        let Some(grid) = PieceGrid::new(pieces).filter(|_| fits) else { return false };
        if grid.elements != self.lens[0].iter().product() {
            return false;
        }
        match self.passes[..] {
            [(place, _)] => self.line_runs().runs == 1 && (place != last || grid.straight),
            _ => grid.straight,
        }
    }

    /// The first of two transforms across, on an array that has its axis in front.
    pub fn across_first(&self) -> Self {
        let [a, b, c] = self.across_lens();
        self.across_alone(2, [1, b, a, c], 1.0)
    }

    /// The last of two transforms across, with the factor of both.
    pub fn across_last(&self) -> Self {
        let [a, b, c] = self.across_lens();
        self.across_alone(1, [1, a, b, c], self.factor)
    }

    /// The array that the last of two across loads.
    pub fn across_source(&self) -> LocalReadBox {
        with_swapped_axes(self.across_lens())
    }

    /// The array that the first of two across loads if it is in one piece.
    pub fn across_whole(&self) -> LocalReadBox {
        let [a, b, c] = self.across_lens();
        with_swapped_axes([b, a, c])
    }

    fn across_lens(&self) -> [usize; 3] {
        [1, 2, 3].map(|axis| self.lens[0][axis])
    }

    /// The pass along an axis, on an array that has it in front.
    fn across_alone(&self, place: usize, lens: [usize; 4], factor: f64) -> Self {
        let passes = self.passes.iter().filter(|(at, _)| *at == place);
        Self {
            lens: [lens.to_vec(), lens.to_vec()],
            passes: passes.map(|(_, pass)| (1, pass.clone())).collect(),
            factor,
            pitch: None,
        }
    }
}

/// An array of these lengths whose first two axes are swapped in memory.
fn with_swapped_axes([a, b, c]: [usize; 3]) -> LocalReadBox {
    let (mut ranges, mut stride) = (std::array::from_fn(|_| 0..1), [0; DIMS]);
    for (i, (len, step)) in [(a, c), (b, a * c), (c, 1)].into_iter().enumerate() {
        ranges[DIMS - 3 + i] = 0..len;
        stride[DIMS - 3 + i] = step;
    }
    LocalReadBox { owner: 0, ranges, source: View { offset: 0, stride } }
}

/// Pieces of `[a][b][c]` as pieces of `[b][a][c]`, for the first of two transforms across.
pub fn swapped(pieces: &[LocalReadBox]) -> Vec<LocalReadBox> {
    let swap = |piece: &LocalReadBox| {
        let (mut ranges, mut source) = (piece.ranges.clone(), piece.source);
        ranges.swap(DIMS - 3, DIMS - 2);
        source.stride.swap(DIMS - 3, DIMS - 2);
        LocalReadBox { ranges, source, ..*piece }
    };
    pieces.iter().map(swap).collect()
}
