//! What the steps of a recipe become on a host: local transforms are joined, done on the way of a reshape, or across ranks.

use super::host::{HostOp, Local, Op};
use super::processor::Processor;
use super::reshape::{Encoding, FusedFft, Reshape};
use super::shared_pass::SharedPass;
use crate::base::{Error, Real};
use crate::codec::Wire;
use crate::execute::error_budget;
use crate::execute::{BindContext, Operations};
use crate::geometry::Placed;
use crate::geometry::exclusive::Exclusive;
use crate::geometry::{DynBrick, Transfer};
use crate::lower::stages::{MemoryPlan, Stage, Walked, stages};
use crate::lower::tiling::{self, Tiling};
use crate::problem::{Algorithm, Link};
use crate::problem::{Direction, Kind, Problem};
use crate::recipe::bound_step::pass;
use crate::recipe::{LocalFft, Node, Pass, Recipe, Step};
use crate::redistribute::Redistribution;
use crate::redistribute::spill::{BufferOffset, BufferSplit};

/// Local transforms that are still to become an operation, and a factor that waits for the next: a recipe scales
/// right beside a transform.
#[derive(Default)]
struct Pending {
    fft: Option<PartFfts>,
    /// Axis by axis, the same transforms.
    axes: Vec<(usize, Pass)>,
    factor: Option<f64>,
    /// All axes that have been transformed since the last reshape.
    since: Vec<usize>,
}

/// A local transform of a brick: of each part that is dense.
#[derive(Clone)]
struct PartFfts {
    ffts: Vec<LocalFft>,
    /// The parts before.
    parts: Vec<DynBrick>,
    /// Where they are, before and after.
    spots: [Vec<BufferOffset>; 2],
    /// Whether they are in two pieces of memory before.
    apart: bool,
}

impl PartFfts {
    fn in_place(&self) -> bool {
        self.ffts[0].in_place()
    }

    fn scale(&mut self, factor: f64) {
        self.ffts.iter_mut().for_each(|fft| fft.scale(factor));
    }

    /// Joins `next`, where that is possible with all parts.
    fn join(&mut self, next: &Self, real_bytes: usize) -> bool {
        let mut ffts = self.ffts.clone();
        let joined = ffts.iter_mut().zip(&next.ffts).all(|(fft, next)| fft.join(next, real_bytes));
        if joined {
            self.ffts = ffts;
        }
        joined
    }
}

/// The operations of one direction on a host.
///
/// # Errors
/// [`Error::Memory`].
pub(crate) fn bind<T: Real, Dev: Processor<T>>(
    recipe: &Recipe,
    site: BindContext<'_>,
    device: &mut Dev,
) -> Result<Operations<HostOp<T, Dev>>, Error> {
    let exposes_all = site.exposes_all(recipe.problem());
    let direction = site.direction;
    let nodes = recipe.nodes();
    let ends = [&nodes[0], &nodes[nodes.len() - 1]];
    let [start, end] = direction.choose(ends, [ends[1], ends[0]]);
    let (stages, MemoryPlan { exclusive, keeps, copies, messages }) = stages(recipe, site);
    let mut binder = Binder {
        problem: recipe.problem(),
        site,
        device,
        ops: Vec::new(),
        sizes: Vec::new(),
        messages,
        keeps: keeps.into_iter(),
        keep: BufferSplit::default(),
        exclusive: exclusive.as_ref(),
        redistribution: None,
        pending: Pending::default(),
    };
    binder.sizes.push(binder.size(start));
    for stage in stages {
        match stage {
            Stage::Scale(factor) => binder.pending.scale(factor),
            Stage::Fft { from, to, axis, kind } => binder.transform(from, to, axis, kind)?,
            Stage::Reshape { from, to, wire, exchange, rest } => {
                binder.reshape([from, to], wire, exchange, &rest)?;
                binder.pending.since.clear();
            }
            Stage::SharedPass { home, first, steps, real } => {
                let before = real.filter(|_| direction == Direction::Forward);
                binder.rest(before.map_or(home, |(real, _)| real))?;
                binder.across(home, first, &steps, real)?;
                binder.pending.since.clear();
            }
        }
    }
    binder.rest(end)?;
    if copies {
        binder.copy(end);
    }
    let Binder { ops, sizes, .. } = binder;
    let ops = ops.into_iter().map(HostOp).collect();
    Ok(Operations { ops, sizes, exposes_all })
}

impl Pending {
    /// Folds a factor into the transform before it, or keeps it for the one after.
    fn scale(&mut self, factor: f64) {
        match &mut self.fft {
            Some(fft) => {
                fft.scale(factor);
                self.axes[0].1.factor *= factor;
            }
            None => self.factor = Some(self.factor.unwrap_or(1.0) * factor),
        }
    }

    /// Takes another transform; returns the ones before it when it cannot be joined to them.
    fn add(&mut self, axis: usize, mut fft: PartFfts, real_bytes: usize) -> Option<PartFfts> {
        if let Some(factor) = self.factor.take() {
            fft.scale(factor);
        }
        self.since.push(axis);
        let pass = (axis, fft.ffts[0].passes[0].clone());
        if self.fft.as_mut().is_some_and(|earlier| earlier.join(&fft, real_bytes)) {
            self.axes.push(pass);
            return None;
        }
        self.axes = vec![pass];
        self.fft.replace(fft)
    }
}

/// Makes operations, one after the other.
struct Binder<'a, T: Real, Dev: Processor<T>> {
    problem: &'a Problem,
    site: BindContext<'a>,
    device: &'a mut Dev,
    ops: Vec<Op<T, Dev>>,
    /// Real numbers before, between and after the operations.
    sizes: Vec<usize>,
    /// Whether ranks send messages where they could read each other's memory.
    messages: bool,
    /// How ranks keep what the reshapes to come bring.
    keeps: std::vec::IntoIter<BufferSplit>,
    /// How they keep what they hold now.
    keep: BufferSplit,
    /// What is in the output from the beginning to the end, if all steps are of data that stays.
    exclusive: Option<&'a Exclusive>,
    /// Those of the last operation, when it is a reshape.
    redistribution: Option<Redistribution>,
    pending: Pending,
}

impl<T: Real, Dev: Processor<T>> Binder<'_, T, Dev> {
    /// Real numbers of this rank where operations are told to read and write.
    fn size(&self, node: &Node) -> usize {
        self.reals(node)[0]
    }

    /// And in spare memory.
    fn reals(&self, node: &Node) -> [usize; 2] {
        let (rank, point) = (self.site.comm.rank(), self.problem.howmany * node.width());
        match self.exclusive {
            Some(exclusive) => [exclusive.public_points(rank) * point, 0],
            None => self.keep.reals(rank, node.layout.brick(rank), point),
        }
    }

    fn push(&mut self, op: Op<T, Dev>, size: usize) {
        self.ops.push(op);
        self.sizes.push(size);
    }

    /// Data redistribution to another layout, before the rest of the steps. Ranks that can see each other's memory do so.
    fn reshape(
        &mut self,
        [from, to]: [&Node; 2],
        wire: Wire,
        exchange: Algorithm,
        rest: &[Step],
    ) -> Result<(), Error> {
        let (pipelined, chunked) = (self.problem.pipelined(), self.problem.chunked());
        let element = from.width() * T::PRECISION.bytes();
        let whole = match pipelined {
            true => {
                let all = element * self.problem.howmany;
                tiling::fusable_suffix(
                    &from.layout,
                    &self.pending.since,
                    all,
                    self.problem.tile_bytes(),
                )
            }
            false => Vec::new(),
        };
        let on_the_way = self.pending.axes.iter().all(|(axis, _)| whole.contains(axis));
        let departs =
            pipelined && on_the_way && self.pending.fft.as_ref().is_some_and(PartFfts::in_place);
        if !departs {
            self.rest(from)?;
        }
        let comm = self.site.comm;
        let shared = exchange == Algorithm::Shared && self.site.node_memory.is_some();
        let visits = shared && !self.messages;
        let link = |peer| match comm.link(peer) {
            Link::Shared if !visits => Link::Remote,
            link => link,
        };
        // Local transforms are not counted: ranks may join them differently.
        let before = self.ops.iter().filter(|op| matches!(op, Op::Reshape { .. })).count();
        let number = 2 * before + self.site.direction as usize;
        let kept = std::mem::replace(&mut self.keep, self.keeps.next().unwrap_or_default());
        self.device.reserve_spare(self.reals(to)[1], comm.rank())?;
        let mut redistribution =
            Redistribution::new(comm.rank(), &link, from, to, self.problem.howmany);
        redistribution = redistribution.kept([&kept, &self.keep], [from, to]);
        if chunked {
            redistribution =
                redistribution.chunked([from, to], &whole, element, self.problem.chunking());
        }
        let gain = error_budget::gain_after(from, rest, self.problem, self.site.direction);
        let bare = |peer| self.problem.is_raw_link(comm.rank(), peer);
        let means = Encoding { wire, bare: &bare, gain, buffers_all: self.problem.buffers_all() };
        let mut reshape = Reshape::new(&redistribution, means, number, visits);
        if departs {
            self.pending.fft = None;
            reshape.depart(&redistribution, &self.pending.axes, self.device)?;
        }
        let reshape = Box::new(reshape);
        self.push(Op::Reshape { reshape, exchange, apart: kept.is_apart() }, self.size(to));
        self.redistribution = Some(redistribution);
        Ok(())
    }

    /// Transforms on other layouts, of data that stays where it is.
    fn across(
        &mut self,
        home: &Node,
        first: &Node,
        steps: &[Walked<'_>],
        mut real: Option<(&Node, usize)>,
    ) -> Result<(), Error> {
        let direction = self.site.direction;
        let forward = direction == Direction::Forward;
        let mut work = first;
        let mut axes: Vec<(usize, Pass)> = Vec::new();
        let half = |(node, axis): (&Node, usize)| {
            let n = self.problem.grid().len(axis);
            let [from, to] = direction.choose([node, home], [home, node]);
            (axis, pass(from, to, Kind::R2C, direction, n))
        };
        let mut halving = real.map(half);
        axes.extend(halving.take_if(|_| forward));
        let mut factor = self.pending.factor.take().unwrap_or(1.0);
        for (number, (from, step, to)) in steps.iter().enumerate() {
            match *step {
                Step::Scale { forward, inverse } => {
                    let next = direction.choose(forward, inverse);
                    match axes.last_mut() {
                        Some((_, pass)) => pass.factor *= next,
                        None => factor *= next,
                    }
                }
                Step::Fft { axis, kind } => {
                    let n = self.problem.grid().len(axis);
                    let mut pass = pass(from, to, kind, direction, n);
                    pass.factor *= std::mem::replace(&mut factor, 1.0);
                    axes.push((axis, pass));
                }
                Step::Reshape { .. } => {
                    let last = number + 1 == steps.len();
                    axes.extend(halving.take_if(|_| last));
                    let real = real.take_if(|_| forward || last).map(|(node, _)| node);
                    self.divided(home, work, std::mem::take(&mut axes), real)?;
                    work = to;
                }
            }
        }
        if factor != 1.0 {
            self.pending.scale(factor);
        }
        if axes.is_empty() { Ok(()) } else { self.divided(home, work, axes, None) }
    }

    /// Transforms along axes that are whole in `work`: together, where tiles with all these axes fit into cache.
    fn divided(
        &mut self,
        home: &Node,
        work: &Node,
        axes: Vec<(usize, Pass)>,
        real: Option<&Node>,
    ) -> Result<(), Error> {
        let direction = self.site.direction;
        let division = Tiling {
            rank: self.site.comm.rank(),
            home: &home.layout,
            work: &work.layout,
            exclusive: self.exclusive,
            first: false,
            howmany: self.problem.howmany,
            width: home.width(),
            axes: &axes,
            real: real.map(|real| (direction, &real.layout)),
        };
        let end = real.filter(|_| direction == Direction::Inverse);
        let size = self.size(end.unwrap_or(home));
        let parts = division.parts(T::PRECISION.bytes());
        debug_assert!(
            real.is_none() || parts.count() == 1,
            "lines of a halved axis fit into cache with others"
        );
        for part in division.parts(T::PRECISION.bytes()) {
            let first = self.exclusive.is_some() && self.ops.is_empty();
            let across = SharedPass::new(&Tiling { axes: part, first, ..division }, self.device)?;
            self.push(Op::SharedPass(Box::new(across)), size);
        }
        self.redistribution = None;
        Ok(())
    }

    /// A transform along one axis: joined to those pending where they fit into cache together.
    fn transform(&mut self, from: &Node, to: &Node, axis: usize, kind: Kind) -> Result<(), Error> {
        let n = self.problem.grid().len(axis);
        let pass = pass(from, to, kind, self.site.direction, n);
        let (rank, howmany) = (self.site.comm.rank(), self.problem.howmany);
        let [before, after] = [from, to].map(|node| node.layout.brick(rank));
        let parts = self.keep.parts(rank, before);
        let spots = |keep: &BufferSplit, brick, node: &Node| -> Vec<BufferOffset> {
            let spot = |part| keep.spot(part, rank, brick, howmany * node.width());
            (0..keep.count()).map(spot).collect()
        };
        let size = self.size(from);
        let (kept, reads) = (self.keep.clone(), self.keep.is_apart());
        if kind == Kind::R2C {
            self.keep = self.keep.clone().transposed();
            self.device.reserve_spare(self.reals(to)[1], rank)?;
        }
        let spots = [spots(&kept, before, from), spots(&self.keep, after, to)];
        let along = |part: &DynBrick| {
            LocalFft::along(axis, part, from.layout.order(), howmany, pass.clone())
        };
        let ffts = parts.iter().map(along).collect();
        let fft = PartFfts { ffts, parts, spots, apart: reads };
        match self.pending.add(axis, fft, T::PRECISION.bytes()) {
            Some(earlier) => self.fft(&earlier, size),
            None => Ok(()),
        }
    }

    /// A local transform: on the way of the reshape before it, where that is possible.
    fn fft(&mut self, local: &PartFfts, size: usize) -> Result<(), Error> {
        let rank = self.site.comm.rank();
        let PartFfts { ffts, parts, spots, apart } = local;
        let in_place = local.in_place();
        let fuses = |reshape: &Reshape<T, Dev>| {
            let whole = self.problem.buffers_all() || reshape.message_plan.recvs.is_empty();
            in_place && whole && reshape.can_fuse()
        };
        let before = match (self.redistribution.take(), self.ops.last_mut()) {
            (Some(redistribution), Some(Op::Reshape { reshape, .. })) if fuses(reshape) => {
                Some((redistribution, reshape))
            }
            _ => None,
        };
        let cached = before.is_some();
        let plan = |fft: &LocalFft| self.device.plan_fft(&LocalFft { cached, ..fft.clone() }, rank);
        let plans = ffts.iter().map(plan).collect::<Result<Vec<_>, Error>>()?;
        let plans = plans.into_iter().zip(ffts.iter().map(|fft| fft.blocks));
        match before {
            Some((redistribution, reshape)) => {
                let fused = |((fft, blocks), spot): (_, &BufferOffset)| FusedFft {
                    fft,
                    blocks,
                    spot: *spot,
                };
                reshape.fuse(&redistribution, parts, plans.zip(&spots[1]).map(fused).collect());
            }
            None => {
                let [before, after] = spots;
                let local = |(((fft, blocks), from), to): (_, &BufferOffset)| {
                    let (from, to): (&BufferOffset, &BufferOffset) = (from, to);
                    Local { fft, blocks, from: *from, to: *to }
                };
                let parts = plans.zip(before).zip(after).map(local).collect();
                self.push(Op::Fft { parts, in_place, apart: *apart && !in_place }, size);
            }
        }
        Ok(())
    }

    /// The result goes to the output.
    fn copy(&mut self, node: &Node) {
        let (rank, howmany, width) = (self.site.comm.rank(), self.problem.howmany, node.width());
        let (brick, order) = (node.layout.brick(rank), node.layout.order());
        let placed = |brick| Placed { brick, order, howmany };
        let copy = |(number, part): (usize, DynBrick)| {
            let BufferOffset { first, .. } = self.keep.spot(number, rank, brick, howmany);
            let copy = Transfer::new(&part, 0..howmany, &placed(part), &placed(brick));
            copy.behind(first, 0)
        };
        let parts = self.keep.parts(rank, brick).into_iter().enumerate();
        let parts = parts.filter(|(_, part)| !part.is_empty()).map(copy).collect();
        self.keep = BufferSplit::default();
        self.push(Op::Copy { parts, width }, self.size(node));
    }

    /// What is pending.
    fn rest(&mut self, node: &Node) -> Result<(), Error> {
        match self.pending.fft.take() {
            Some(fft) => self.fft(&fft, self.size(node)),
            None => Ok(()),
        }
    }
}
