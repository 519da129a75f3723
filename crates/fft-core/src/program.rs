//! One direction of a recipe, bound to a rank: operations and where each reads and writes.

use crate::moves::Moves;
use crate::reshape::Reshape;
use crate::transfer::Transfer;
use crate::{
    Algorithm, Brick, Comm, Device, Direction, Error, Kind, LocalFft, Node, Pass, Real, Recipe,
    Step, Traffic, Wire,
};

/// A piece of memory that data passes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The caller's input, which is only read.
    Input,
    /// The caller's output, or the caller's only array.
    Output,
    /// The plan's own.
    Work(usize),
}

/// A bound step, or several that run as one.
pub(crate) enum Op<T: Real, Dev: Device<T>> {
    Fft { plan: Dev::Fft, blocks: usize, in_place: bool },
    Reshape { reshape: Box<Reshape<T, Dev>>, exchange: Algorithm },
}

/// The operations of one direction.
pub(crate) struct Program<T: Real, Dev: Device<T>> {
    ops: Vec<Op<T, Dev>>,
    /// Real numbers on this rank before, between and after the operations.
    sizes: Vec<usize>,
    out_of_place: Route,
    in_place: Route,
}

/// Where the data is before, between and after the operations.
struct Route {
    places: Vec<Place>,
    first: Option<Copy>,
}

/// A plain copy before the first operation.
pub(crate) struct Copy {
    pub(crate) from: Place,
    pub(crate) to: Place,
    pub(crate) all: Transfer,
}

/// Local transforms that are still to become an operation, and a factor that waits for the next: a recipe scales
/// right beside a transform.
#[derive(Default)]
struct Pending {
    fft: Option<LocalFft>,
    factor: Option<f64>,
}

impl<T: Real, Dev: Device<T>> Program<T, Dev> {
    pub(crate) fn new<const D: usize>(
        recipe: &Recipe<D>,
        direction: Direction,
        comm: &dyn Comm,
        device: &mut Dev,
    ) -> Result<Self, Error> {
        let rank = comm.rank();
        let problem = recipe.problem();
        let howmany = problem.howmany;
        let size = |node: &Node<D>| node.layout.brick(rank).points() * howmany * node.width();
        let walk = recipe.walk(direction);
        let start = walk.first().map(|(from, ..)| *from).unwrap_or(&recipe.nodes()[0]);
        let mut binder = Binder {
            device,
            rank,
            direction,
            ops: Vec::new(),
            sizes: vec![size(start)],
            moves: None,
        };
        let mut pending = Pending::default();
        for (from, step, to) in walk {
            match step {
                Step::Scale { forward, inverse } => {
                    let forwards = direction == Direction::Forward;
                    pending.scale(if forwards { forward } else { inverse });
                }
                Step::Fft { axis, kind } => {
                    let pass = pass(from, to, kind, direction, problem.grid().len(axis));
                    let fft = along(&from.layout.brick(rank), from, howmany, axis, pass);
                    if let Some(earlier) = pending.add(fft, T::PRECISION.bytes()) {
                        binder.fft(&earlier, size(from))?;
                    }
                }
                Step::Reshape { wire, exchange } => {
                    binder.rest(&mut pending, size(from))?;
                    binder.reshape(Moves::new(comm, from, to, howmany), wire, exchange, size(to));
                }
            }
        }
        let end = match direction {
            Direction::Forward => recipe.nodes().last(),
            Direction::Inverse => recipe.nodes().first(),
        };
        binder.rest(&mut pending, size(end.expect("a recipe has a node")))?;
        let Binder { ops, sizes, .. } = binder;
        let out_of_place = Route::out_of_place(&ops, &sizes);
        let in_place = Route::in_place(&ops, &sizes);
        Ok(Self { ops, sizes, out_of_place, in_place })
    }

    pub(crate) fn ops(&self) -> &[Op<T, Dev>] {
        &self.ops
    }

    /// Where the operations read and write, with or without an input apart from the output, and the copy
    /// that must come first.
    pub(crate) fn route(&self, has_input: bool) -> (&[Place], Option<&Copy>) {
        let route = if has_input { &self.out_of_place } else { &self.in_place };
        (&route.places, route.first.as_ref())
    }

    /// Real numbers that a work buffer must hold.
    pub(crate) fn work(&self, which: usize) -> usize {
        let in_route = |route: &Route| {
            let at = route.places.iter().zip(&self.sizes);
            at.filter(|(place, _)| **place == Place::Work(which)).map(|(_, size)| *size).max()
        };
        in_route(&self.out_of_place).max(in_route(&self.in_place)).unwrap_or(0)
    }

    /// The messages of every reshape.
    pub(crate) fn traffic(&self) -> impl Iterator<Item = (Algorithm, &Traffic)> {
        self.ops.iter().filter_map(|op| match op {
            Op::Reshape { reshape, exchange } => Some((*exchange, &reshape.traffic)),
            _ => None,
        })
    }
}

impl<T: Real, Dev: Device<T>> Op<T, Dev> {
    /// Whether the result must be elsewhere than the source.
    fn moves(&self) -> bool {
        match self {
            Self::Fft { in_place, .. } => !in_place,
            Self::Reshape { .. } => true,
        }
    }
}

impl Pending {
    /// Folds a factor into the transform before it, or keeps it for the one after.
    fn scale(&mut self, factor: f64) {
        match &mut self.fft {
            Some(fft) => fft.scale(factor),
            None => self.factor = Some(self.factor.unwrap_or(1.0) * factor),
        }
    }

    /// Takes another transform; returns the ones before it when it cannot be joined to them.
    fn add(&mut self, mut fft: LocalFft, real_bytes: usize) -> Option<LocalFft> {
        if let Some(factor) = self.factor.take() {
            fft.scale(factor);
        }
        if self.fft.as_mut().is_some_and(|earlier| earlier.join(&fft, real_bytes)) {
            return None;
        }
        self.fft.replace(fft)
    }
}

/// Makes operations, one after the other.
struct Binder<'a, T: Real, Dev: Device<T>, const D: usize> {
    device: &'a mut Dev,
    rank: usize,
    direction: Direction,
    ops: Vec<Op<T, Dev>>,
    /// Real numbers before, between and after the operations.
    sizes: Vec<usize>,
    /// Those of the last operation, when it is a reshape.
    moves: Option<Moves<D>>,
}

impl<T: Real, Dev: Device<T>, const D: usize> Binder<'_, T, Dev, D> {
    fn push(&mut self, op: Op<T, Dev>, size: usize) {
        self.ops.push(op);
        self.sizes.push(size);
    }

    fn reshape(&mut self, moves: Moves<D>, wire: Wire, exchange: Algorithm, size: usize) {
        // Local transforms are not counted: ranks may join them differently.
        let before = self.ops.iter().filter(|op| matches!(op, Op::Reshape { .. })).count();
        let reshape = Reshape::new(&moves, wire, 2 * before + self.direction as usize);
        self.push(Op::Reshape { reshape: Box::new(reshape), exchange }, size);
        self.moves = Some(moves);
    }

    /// A local transform: on the way of the reshape before it, where that is possible.
    fn fft(&mut self, fft: &LocalFft, size: usize) -> Result<(), Error> {
        let (plan, blocks) = (self.device.plan_fft(fft, self.rank)?, fft.blocks);
        let in_place = fft.in_place();
        match (self.moves.take(), self.ops.last_mut()) {
            (Some(moves), Some(Op::Reshape { reshape, .. })) if in_place && reshape.can_fuse() => {
                reshape.fuse(&moves, blocks, plan);
            }
            _ => self.push(Op::Fft { plan, blocks, in_place }, size),
        }
        Ok(())
    }

    /// What is pending.
    fn rest(&mut self, pending: &mut Pending, size: usize) -> Result<(), Error> {
        match pending.fft.take() {
            Some(fft) => self.fft(&fft, size),
            None => Ok(()),
        }
    }
}

/// One axis' transform between two nodes; where in the array is filled in by [`along`].
fn pass<const D: usize>(
    from: &Node<D>,
    to: &Node<D>,
    kind: Kind,
    direction: Direction,
    n: usize,
) -> Pass {
    let (complex_before, complex_after) = (from.complex, to.complex);
    Pass { kind, direction, n, complex_before, complex_after, outer: 1, inner: 1, factor: 1.0 }
}

/// A transform along one axis of a brick in memory.
fn along<const D: usize>(
    brick: &Brick<D>,
    node: &Node<D>,
    howmany: usize,
    axis: usize,
    pass: Pass,
) -> LocalFft {
    let order = node.layout.order();
    let mut lens = vec![howmany];
    lens.extend(order.map(|axis| brick.len(axis)));
    let place = order.iter().position(|a| *a == axis).expect("the order has every axis");
    LocalFft::new(&lens, place + 1, pass)
}

impl Route {
    /// From the end back: the last result goes to the output; an operation that needs another place for its
    /// source finds it in the output, when that is large enough, or in a work buffer.
    fn backwards<T: Real, Dev: Device<T>>(
        ops: &[Op<T, Dev>],
        sizes: &[usize],
        output: usize,
    ) -> Vec<Place> {
        let mut places = vec![Place::Output; sizes.len()];
        for i in (0..ops.len()).rev() {
            places[i] = match places[i + 1] {
                same if !ops[i].moves() => same,
                Place::Work(_) if sizes[i] <= output => Place::Output,
                Place::Work(k) => Place::Work(1 - k),
                Place::Output | Place::Input => Place::Work(0),
            };
        }
        places
    }

    fn out_of_place<T: Real, Dev: Device<T>>(ops: &[Op<T, Dev>], sizes: &[usize]) -> Self {
        let mut places = Self::backwards(ops, sizes, sizes[ops.len()]);
        let reads_input = matches!(ops.first(), Some(Op::Fft { .. } | Op::Reshape { .. }));
        if reads_input {
            places[0] = Place::Input;
            return Self { places, first: None };
        }
        let first = Some(Copy::new(Place::Input, places[0], sizes[0]));
        Self { places, first }
    }

    fn in_place<T: Real, Dev: Device<T>>(ops: &[Op<T, Dev>], sizes: &[usize]) -> Self {
        let output = sizes[0].max(sizes[ops.len()]);
        let mut places = Self::backwards(ops, sizes, output);
        let mut first = None;
        if places[0] != Place::Output {
            if places[1] != Place::Output && matches!(ops[0], Op::Fft { .. }) {
                places[0] = Place::Output;
            } else {
                first = Some(Copy::new(Place::Output, places[0], sizes[0]));
            }
        }
        Self { places, first }
    }
}

impl Copy {
    fn new(from: Place, to: Place, reals: usize) -> Self {
        Self { from, to, all: Transfer::run_of(reals) }
    }
}
