//! Operations in the making: a reshape waits for what follows, as the two may be one.

use fft_core::{Algorithm, BoundStep, Comm, Direction, Error, Node, Recipe, Reduce, Step, Wire};

use super::fused_fetch::{FusedAcross, Next, Rest};
use super::fused_store::Store;
use super::local_fft::Group;
use super::reshape::Reshape;
use super::{Cuda, CudaOp, Op};
use crate::base::GpuReal;

/// Operations in the making.
pub(super) struct Bound<'r, T> {
    recipe: &'r Recipe,
    pub(super) ops: Vec<CudaOp<T>>,
    pub(super) sizes: Vec<usize>,
    /// A reshape that waits for what follows: its leg, wire, exchange and number, and how many real numbers it leaves.
    reshape: Option<(&'r BoundStep<'r>, (Wire, Algorithm, usize), usize)>,
    /// Reshapes that are one with what follows.
    pub(super) fetched: usize,
    /// The last transforms, and the reshape before them.
    last: Option<(Group, Option<&'r BoundStep<'r>>)>,
    /// What the last two operations can be instead, if all ranks have such.
    store: Option<Store>,
}

impl<'r, T: GpuReal> Bound<'r, T> {
    /// The operations of one direction.
    ///
    /// # Errors
    /// As [`Reshape::new`].
    pub(super) fn of(
        device: &mut Cuda<T>,
        recipe: &'r Recipe,
        legs: &'r [BoundStep<'r>],
        direction: Direction,
    ) -> Result<Self, Error> {
        let (rank, problem) = (device.rank, recipe.problem());
        let size = |node: &Node| node.layout.brick(rank).points() * problem.howmany * node.width();
        let start = legs.first().map_or(&recipe.nodes()[0], |leg| leg.from);
        let (ops, sizes) = (Vec::new(), vec![size(start)]);
        let (last, store) = (None, None);
        let mut bound = Self { recipe, ops, sizes, reshape: None, fetched: 0, last, store };
        let (mut group, mut waiting, mut reshapes) = (None::<Group>, 1.0, 0);
        for leg in legs {
            if let Some(factor) = leg.factor() {
                match &mut group {
                    Some(group) => group.factor *= factor,
                    None => waiting *= factor,
                }
            } else if let Some((axis, pass)) = leg.pass() {
                let order = leg.from.layout.order();
                let place = order.iter().position(|other| *other == axis);
                let place = 1 + place.expect("the order has every axis");
                let joins = |group: &Group| {
                    group.joins(place, &pass)
                        || bound.reshape.is_some() && FusedAcross::takes::<T>(group, place, &pass)
                };
                if !group.as_ref().is_some_and(joins) {
                    if group.is_some() {
                        bound.add(device, group.take(), size(leg.from))?;
                    }
                    let before = lens(leg.from, rank, problem.howmany);
                    let factor = std::mem::replace(&mut waiting, 1.0);
                    group = Some(Group { lens: [before, Vec::new()], passes: Vec::new(), factor });
                }
                let group = group.as_mut().expect("just made");
                group.lens[1] = lens(leg.to, rank, problem.howmany);
                group.passes.push((place, pass));
            } else if let Step::Reshape { wire, exchange } = leg.step {
                bound.add(device, group.take(), size(leg.from))?;
                let number = 2 * reshapes + direction as usize;
                reshapes += 1;
                bound.reshape = Some((leg, (wire, exchange, number), size(leg.to)));
            }
        }
        let end = size(legs.last().map_or(start, |leg| leg.to));
        bound.add(device, group, end)?;
        Ok(bound)
    }

    /// Adds the reshape that waits and then a group of transforms, which leaves so many real numbers: as one where that can be.
    fn add(
        &mut self,
        device: &mut Cuda<T>,
        group: Option<Group>,
        reals: usize,
    ) -> Result<(), Error> {
        if group.is_none() && self.reshape.is_none() {
            return Ok(());
        }
        // What comes now is the last.
        let before = self.last.take();
        self.store = None;
        self.last = group.clone().map(|group| (group, self.reshape.as_ref().map(|(leg, ..)| *leg)));
        let next = Next::of::<T>(&device.gpu, group).map_err(|why| why.on(device.rank))?;
        let mut fused = false;
        if let Some((leg, how, moved)) = self.reshape.take() {
            let (wire, exchange, _) = how;
            if let (Some((group, before)), None) = (&before, &self.last)
                && self.ops.last().is_some_and(CudaOp::gathers)
            {
                // Both ways are planned: only when all ranks have their plans is it known whether all can.
                let ways = (wire, exchange);
                self.store = Store::new(device, self.recipe, leg, ways, (group, *before))?;
            }
            let reshape = Reshape::new(device, self.recipe, leg, how, &next)?;
            fused = reshape.is_fused();
            self.fetched += usize::from(fused);
            self.push(Op::Reshape(Box::new(reshape)), moved);
        }
        match next.rest::<T>(&device.gpu, fused).map_err(|why| why.on(device.rank))? {
            Rest::Groups(groups) => {
                for group in groups {
                    let op = device.local(&group)?;
                    self.push(op, reals);
                }
            }
            Rest::Plans(plans) => {
                for plan in plans {
                    device.area_bytes = device.area_bytes.max(plan.work_bytes());
                    self.push(Op::Fetch(Box::new(plan)), reals);
                }
            }
        }
        Ok(())
    }

    /// Lets the last transforms store what they make where ranks want it, if all ranks' can. Collective.
    ///
    /// # Errors
    /// Those of the communicator.
    pub(super) fn synchronize(&mut self, comm: &dyn Comm) -> Result<bool, Error> {
        let mut all = [f64::from(self.store.is_some())];
        comm.allreduce(Reduce::Min, &mut all)?;
        let Some(store) = self.store.take().filter(|_| all[0] > 0.0) else { return Ok(false) };
        let (kept, end) = (self.ops.len() - 2, self.sizes[self.sizes.len() - 1]);
        self.ops.truncate(kept);
        self.sizes.truncate(kept + 1);
        self.push(Op::Store(Box::new(store)), end);
        Ok(true)
    }

    fn push(&mut self, op: Op<T>, reals: usize) {
        self.ops.push(CudaOp(op));
        self.sizes.push(reals);
    }
}

/// Lengths of an array in memory, batches first.
fn lens(node: &Node, rank: usize, howmany: usize) -> Vec<usize> {
    let brick = node.layout.brick(rank);
    [howmany].into_iter().chain(node.layout.order().map(|axis| brick.len(axis))).collect()
}
