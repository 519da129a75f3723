//! Binding: the operations of one direction.
//!
//! ```text
//! for each step of the recipe:
//!     a factor: into the group of transforms, or the next one
//!     a pass: into the group, or after binding that into a new one
//!     a reshape: after binding the group, it waits for the transforms behind it
//! bind a waiting reshape and the group behind it: as one where cuFFT can load
//! at the end, if all ranks can: the last transforms and the last reshape as one
//! ```

use fft_core::{
    Algorithm, BoundStep, Comm, Direction, Error, Node, Pass, Recipe, Reduce, Step, Wire,
};

use super::cuda::Cuda;
use super::fused_fetch::{FusedAcross, NextTransforms, Remaining};
use super::fused_store::Store;
use super::group::Group;
use super::local_fft::DeviceFft;
use super::op::{CudaOp, Op};
use super::reshape::Reshape;
use super::trig::Trig;
use crate::base::GpuReal;

/// A reshape that waits for the transforms behind it.
struct WaitingReshape<'r> {
    step: &'r BoundStep<'r>,
    /// Wire, exchange and number.
    how: (Wire, Algorithm, usize),
    /// Real numbers of its result.
    reals: usize,
}

/// The operations of one direction, as they are bound.
pub(super) struct CudaBinder<'r, T> {
    recipe: &'r Recipe,
    rank: usize,
    pub(super) ops: Vec<CudaOp<T>>,
    pub(super) sizes: Vec<usize>,
    reshape: Option<WaitingReshape<'r>>,
    /// Transforms that are not bound, and a factor for the next ones.
    group: Option<Group>,
    factor: f64,
    /// The number of fused reshapes.
    pub(super) fetched: usize,
    /// The last transforms, and the reshape before them.
    last: Option<(Group, Option<&'r BoundStep<'r>>)>,
    /// A replacement of the last two operations, if all ranks have one.
    store: Option<Store>,
}

impl<'r, T: GpuReal> CudaBinder<'r, T> {
    /// Binds the steps of a direction.
    pub(super) fn bind(
        device: &mut Cuda<T>,
        recipe: &'r Recipe,
        steps: &'r [BoundStep<'r>],
        direction: Direction,
    ) -> Result<Self, Error> {
        let start = steps.first().map_or(&recipe.nodes()[0], |step| step.from);
        let mut binder = Self {
            recipe,
            rank: device.rank,
            ops: Vec::new(),
            sizes: Vec::new(),
            reshape: None,
            group: None,
            factor: 1.0,
            fetched: 0,
            last: None,
            store: None,
        };
        binder.sizes.push(binder.reals(start));
        let mut reshapes = 0;
        for step in steps {
            if let Some(factor) = step.factor() {
                match &mut binder.group {
                    Some(group) => group.factor *= factor,
                    None => binder.factor *= factor,
                }
            } else if let Some((axis, pass)) = step.pass() {
                binder.add_pass(device, step, axis, pass)?;
            } else if let Step::Reshape { wire, exchange } = step.step {
                binder.flush(device, step.from)?;
                let how = (wire, exchange, 2 * reshapes + direction as usize);
                let reals = binder.reals(step.to);
                binder.reshape = Some(WaitingReshape { step, how, reals });
                reshapes += 1;
            }
        }
        binder.flush(device, steps.last().map_or(start, |step| step.to))?;
        Ok(binder)
    }

    /// Real numbers of this rank's part of a node.
    fn reals(&self, node: &Node) -> usize {
        node.layout.brick(self.rank).points() * self.recipe.problem().howmany * node.width()
    }

    /// Lengths of this rank's array in memory, batches first.
    fn lens(&self, node: &Node) -> Vec<usize> {
        let brick = node.layout.brick(self.rank);
        let lens = node.layout.order().map(|axis| brick.len(axis));
        [self.recipe.problem().howmany].into_iter().chain(lens).collect()
    }

    /// Adds a pass to the group, or begins a new one.
    fn add_pass(
        &mut self,
        device: &mut Cuda<T>,
        step: &BoundStep<'_>,
        axis: usize,
        pass: Pass,
    ) -> Result<(), Error> {
        let order = step.from.layout.order();
        let place = order.iter().position(|other| *other == axis);
        let place = 1 + place.expect("the order has every axis");
        let joins = |group: &Group| {
            group.joins(place, &pass)
                || self.reshape.is_some() && FusedAcross::takes::<T>(group, place, &pass)
        };
        if !self.group.as_ref().is_some_and(joins) {
            if self.group.is_some() {
                self.flush(device, step.from)?;
            }
            let (lens, passes) = ([self.lens(step.from), Vec::new()], Vec::new());
            let factor = std::mem::replace(&mut self.factor, 1.0);
            self.group = Some(Group { lens, passes, factor });
        }
        let after = self.lens(step.to);
        let group = self.group.as_mut().expect("just made");
        group.lens[1] = after;
        group.passes.push((place, pass));
        Ok(())
    }

    /// Binds the reshape that waits and the group behind it, whose result is at a node.
    fn flush(&mut self, device: &mut Cuda<T>, node: &Node) -> Result<(), Error> {
        let (group, waiting, reals) = (self.group.take(), self.reshape.take(), self.reals(node));
        if group.is_none() && waiting.is_none() {
            return Ok(());
        }
        let before = self.last.take();
        self.store = None;
        self.last = group.clone().map(|group| (group, waiting.as_ref().map(|it| it.step)));
        let next = NextTransforms::of::<T>(&device.gpu, group);
        let next = next.map_err(|why| why.on(self.rank))?;
        let mut fused = false;
        if let Some(WaitingReshape { step, how, reals }) = waiting {
            let (wire, exchange, _) = how;
            if let (Some((group, before)), None) = (&before, &self.last)
                && self.ops.last().is_some_and(CudaOp::gathers)
            {
                // Both variants are planned: whether all ranks can store is known at the end.
                let ways = (wire, exchange);
                self.store = Store::new(device, self.recipe, step, ways, (group, *before))?;
            }
            let reshape = Reshape::new(device, self.recipe, step, how, &next)?;
            fused = reshape.is_fused();
            self.fetched += usize::from(fused);
            self.push(Op::Reshape(Box::new(reshape)), reals);
        }
        match next.remaining::<T>(&device.gpu, fused).map_err(|why| why.on(self.rank))? {
            Remaining::Groups(groups) => {
                for group in groups {
                    let op = transforms(device, &group)?;
                    self.push(op, reals);
                }
            }
            Remaining::Plans(plans) => {
                for plan in plans {
                    device.area_bytes = device.area_bytes.max(plan.work_bytes());
                    self.push(Op::Fetch(Box::new(plan)), reals);
                }
            }
        }
        Ok(())
    }

    /// Fuses the last transforms and the last reshape, if all ranks can. Collective.
    pub(super) fn agree_on_store(&mut self, comm: &dyn Comm) -> Result<bool, Error> {
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

/// A group as an operation.
fn transforms<T: GpuReal>(device: &mut Cuda<T>, group: &Group) -> Result<Op<T>, Error> {
    let made = match group.is_trig() {
        true => Trig::new(&device.gpu, group).map(|(trig, area)| (Op::Trig(Box::new(trig)), area)),
        false => {
            DeviceFft::new(device, group).map(|(local, area)| (Op::Local(Box::new(local)), area))
        }
    };
    let (op, area) = made.map_err(|why| why.on(device.rank))?;
    device.area_bytes = device.area_bytes.max(area);
    Ok(op)
}
