//! Operations in the making: a reshape waits for what follows, as the two may be one.

use fft_core::{Algorithm, Error, Leg, Node, Recipe, Wire};

use super::fused::{Next, Rest};
use super::local::Group;
use super::reshape::Reshape;
use super::{Cuda, CudaOp, Op};
use crate::GpuReal;

/// Operations in the making.
pub(super) struct Bound<'r, T, const D: usize> {
    pub(super) recipe: &'r Recipe<D>,
    pub(super) ops: Vec<CudaOp<T>>,
    pub(super) sizes: Vec<usize>,
    /// A reshape that waits for what follows: its leg, wire, exchange and number, and how many real numbers it leaves.
    pub(super) reshape: Option<(&'r Leg<'r, D>, (Wire, Algorithm, usize), usize)>,
    /// Reshapes that are one with what follows.
    pub(super) fetched: usize,
}

impl<'r, T: GpuReal, const D: usize> Bound<'r, T, D> {
    /// Adds the reshape that waits and then a group of transforms, which leaves so many real numbers: as one where that can be.
    pub(super) fn add(
        &mut self,
        device: &mut Cuda<T>,
        group: Option<Group>,
        reals: usize,
    ) -> Result<(), Error> {
        let next = Next::of::<T>(&device.gpu, group).map_err(|why| why.on(device.rank))?;
        let mut fused = false;
        if let Some((leg, how, moved)) = self.reshape.take() {
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

    fn push(&mut self, op: Op<T>, reals: usize) {
        self.ops.push(CudaOp(op));
        self.sizes.push(reals);
    }
}

/// Lengths of an array in memory, batches first.
pub(super) fn lens<const D: usize>(node: &Node<D>, rank: usize, howmany: usize) -> Vec<usize> {
    let brick = node.layout.brick(rank);
    [howmany].into_iter().chain(node.layout.order().map(|axis| brick.len(axis))).collect()
}
