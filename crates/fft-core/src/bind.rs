//! What the steps of a recipe become on a host: local transforms are joined, done on the way of a reshape, or across ranks.

use crate::across::{self, Across, Division};
use crate::budget;
use crate::device::{Operations, Site};
use crate::host::{HostOp, Op};
use crate::leg::pass;
use crate::moves::Moves;
use crate::reshape::{Means, Reshape};
use crate::{
    Algorithm, Commons, Error, Kind, Link, LocalFft, Node, Pass, Problem, Processor, Real, Recipe,
    Step, Wire,
};

/// Local transforms that are still to become an operation, and a factor that waits for the next: a recipe scales
/// right beside a transform.
#[derive(Default)]
struct Pending {
    fft: Option<LocalFft>,
    /// Axis by axis, the same transforms.
    axes: Vec<(usize, Pass)>,
    factor: Option<f64>,
    /// All axes that have been transformed since the last reshape.
    since: Vec<usize>,
}

/// The operations of one direction on a host.
///
/// # Errors
/// [`Error::Memory`].
pub(crate) fn bind<T: Real, Dev: Processor<T>, const D: usize>(
    recipe: &Recipe<D>,
    site: Site<'_>,
    device: &mut Dev,
) -> Result<Operations<HostOp<T, Dev>>, Error> {
    let shows_all = site.commons.is_none_or(Commons::shows_all);
    let direction = site.direction;
    let walk = recipe.walk(direction);
    let start = walk.first().map(|(from, ..)| *from).unwrap_or(&recipe.nodes()[0]);
    let mut binder = Binder {
        problem: recipe.problem(),
        site,
        device,
        ops: Vec::new(),
        sizes: Vec::new(),
        moves: None,
        pending: Pending::default(),
    };
    binder.sizes.push(binder.size(start));
    let mut rest = &walk[..];
    while let [(from, step, to), tail @ ..] = rest {
        rest = tail;
        match *step {
            Step::Scale { forward, inverse } => {
                binder.pending.scale(direction.choose(forward, inverse));
            }
            Step::Fft { axis, kind } => binder.transform(from, to, axis, kind)?,
            Step::Reshape { wire, exchange } => {
                match binder.returning(from, step, tail) {
                    Some(steps) => {
                        binder.rest(from)?;
                        binder.across(from, to, &tail[..steps])?;
                        rest = &tail[steps..];
                    }
                    None => {
                        let steps: Vec<_> = tail.iter().map(|(_, step, _)| *step).collect();
                        binder.reshape([from, to], wire, exchange, &steps)?;
                    }
                }
                binder.pending.since.clear();
            }
        }
    }
    let end = direction.choose(recipe.nodes().last(), recipe.nodes().first());
    binder.rest(end.expect("a recipe has a node"))?;
    let Binder { ops, sizes, .. } = binder;
    let ops = ops.into_iter().map(HostOp).collect();
    Ok(Operations { ops, sizes, shows_all })
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
    fn add(&mut self, axis: usize, mut fft: LocalFft, real_bytes: usize) -> Option<LocalFft> {
        if let Some(factor) = self.factor.take() {
            fft.scale(factor);
        }
        self.since.push(axis);
        let pass = (axis, fft.passes[0].clone());
        if self.fft.as_mut().is_some_and(|earlier| earlier.join(&fft, real_bytes)) {
            self.axes.push(pass);
            return None;
        }
        self.axes = vec![pass];
        self.fft.replace(fft)
    }
}

/// A step and the nodes it leads from and to.
type Walked<'a, const D: usize> = (&'a Node<D>, Step, &'a Node<D>);

/// Makes operations, one after the other.
struct Binder<'a, T: Real, Dev: Processor<T>, const D: usize> {
    problem: &'a Problem<D>,
    site: Site<'a>,
    device: &'a mut Dev,
    ops: Vec<Op<T, Dev>>,
    /// Real numbers before, between and after the operations.
    sizes: Vec<usize>,
    /// Those of the last operation, when it is a reshape.
    moves: Option<Moves<D>>,
    pending: Pending,
}

impl<T: Real, Dev: Processor<T>, const D: usize> Binder<'_, T, Dev, D> {
    fn size(&self, node: &Node<D>) -> usize {
        let points = node.layout.brick(self.site.comm.rank()).points();
        points * self.problem.howmany * node.width()
    }

    fn push(&mut self, op: Op<T, Dev>, size: usize) {
        self.ops.push(op);
        self.sizes.push(size);
    }

    /// Data moves to another layout, before the rest of the steps. Ranks that can see each other's memory do so.
    fn reshape(
        &mut self,
        [from, to]: [&Node<D>; 2],
        wire: Wire,
        exchange: Algorithm,
        rest: &[Step],
    ) -> Result<(), Error> {
        let (pipelined, chunked) = (self.problem.pipelined(), self.problem.chunked());
        let element = from.width() * T::PRECISION.bytes();
        let whole = match pipelined {
            true => {
                let all = element * self.problem.howmany;
                across::tiled(&from.layout, &self.pending.since, all, self.problem.tile_bytes())
            }
            false => Vec::new(),
        };
        let on_the_way = self.pending.axes.iter().all(|(axis, _)| whole.contains(axis));
        let departs =
            pipelined && on_the_way && self.pending.fft.as_ref().is_some_and(LocalFft::in_place);
        if !departs {
            self.rest(from)?;
        }
        let comm = self.site.comm;
        let visits = exchange == Algorithm::Shared && self.site.commons.is_some();
        let link = |peer| match comm.link(peer) {
            Link::Shared if !visits => Link::Remote,
            link => link,
        };
        // Local transforms are not counted: ranks may join them differently.
        let before = self.ops.iter().filter(|op| matches!(op, Op::Reshape { .. })).count();
        let number = 2 * before + self.site.direction as usize;
        let mut moves = Moves::new(comm.rank(), &link, from, to, self.problem.howmany);
        if chunked {
            moves = moves.chunked([from, to], &whole, element, self.problem.chunk_bytes());
        }
        let gain = budget::gain_after(from, rest, self.problem, self.site.direction);
        let bare = |peer| self.problem.bare(comm.rank(), peer);
        let means = Means { wire, bare: &bare, gain };
        let mut reshape = Reshape::new(&moves, means, number, visits);
        if departs {
            self.pending.fft = None;
            reshape.depart(&moves, &self.pending.axes, self.device)?;
        }
        self.push(Op::Reshape { reshape: Box::new(reshape), exchange }, self.size(to));
        self.moves = Some(moves);
        Ok(())
    }

    /// How many steps after a reshape lead back to where it began, with nothing but transforms and reshapes between
    /// ranks that all share memory: then data may as well stay.
    fn returning(&self, from: &Node<D>, step: &Step, rest: &[Walked<'_, D>]) -> Option<usize> {
        let stays = |(_, step, to): &Walked<'_, D>| match step {
            Step::Reshape { exchange: Algorithm::Shared, .. } | Step::Scale { .. } => true,
            Step::Reshape { .. } => false,
            Step::Fft { kind, .. } => *kind != Kind::R2C && to.complex == from.complex,
        };
        let shared = matches!(step, Step::Reshape { exchange: Algorithm::Shared, .. });
        if !shared || self.site.commons.is_none() || !self.problem.all_near() {
            return None;
        }
        let before = rest.iter().take_while(|walked| stays(walked));
        let home = |(_, step, to): &Walked<'_, D>| {
            matches!(step, Step::Reshape { .. }) && to.layout == from.layout
        };
        before.into_iter().position(home).map(|last| last + 1)
    }

    /// Transforms on other layouts, of data that stays where it is.
    fn across(
        &mut self,
        home: &Node<D>,
        first: &Node<D>,
        steps: &[Walked<'_, D>],
    ) -> Result<(), Error> {
        let direction = self.site.direction;
        let mut work = first;
        let mut axes: Vec<(usize, Pass)> = Vec::new();
        let mut factor = self.pending.factor.take().unwrap_or(1.0);
        for (from, step, to) in steps {
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
                    self.divided(home, work, std::mem::take(&mut axes))?;
                    work = to;
                }
            }
        }
        if factor != 1.0 {
            self.pending.scale(factor);
        }
        Ok(())
    }

    /// Transforms along axes that are whole in `work`: together, where tiles with all these axes fit into cache.
    fn divided(
        &mut self,
        home: &Node<D>,
        work: &Node<D>,
        axes: Vec<(usize, Pass)>,
    ) -> Result<(), Error> {
        let division = Division {
            rank: self.site.comm.rank(),
            home: &home.layout,
            work: &work.layout,
            howmany: self.problem.howmany,
            width: home.width(),
            axes: &axes,
        };
        let size = self.size(home);
        for part in division.parts(T::PRECISION.bytes()) {
            let across = Across::new(&Division { axes: part, ..division }, self.device)?;
            self.push(Op::Across(Box::new(across)), size);
        }
        self.moves = None;
        Ok(())
    }

    /// A transform along one axis: joined to those pending where they fit into cache together.
    fn transform(
        &mut self,
        from: &Node<D>,
        to: &Node<D>,
        axis: usize,
        kind: Kind,
    ) -> Result<(), Error> {
        let n = self.problem.grid().len(axis);
        let pass = pass(from, to, kind, self.site.direction, n);
        let brick = from.layout.brick(self.site.comm.rank());
        let order = from.layout.order();
        let fft = LocalFft::along(axis, &brick, order, self.problem.howmany, pass);
        match self.pending.add(axis, fft, T::PRECISION.bytes()) {
            Some(earlier) => self.fft(&earlier, self.size(from)),
            None => Ok(()),
        }
    }

    /// A local transform: on the way of the reshape before it, where that is possible.
    fn fft(&mut self, fft: &LocalFft, size: usize) -> Result<(), Error> {
        let rank = self.site.comm.rank();
        let (plan, blocks) = (self.device.plan_fft(fft, rank)?, fft.blocks);
        let in_place = fft.in_place();
        match (self.moves.take(), self.ops.last_mut()) {
            (Some(moves), Some(Op::Reshape { reshape, .. }))
                if in_place
                    && (self.problem.keeps() || reshape.traffic.recvs.is_empty())
                    && reshape.can_fuse() =>
            {
                reshape.fuse(&moves, blocks, plan);
            }
            _ => self.push(Op::Fft { plan, blocks, in_place }, size),
        }
        Ok(())
    }

    /// What is pending.
    fn rest(&mut self, node: &Node<D>) -> Result<(), Error> {
        match self.pending.fft.take() {
            Some(fft) => self.fft(&fft, self.size(node)),
            None => Ok(()),
        }
    }
}
