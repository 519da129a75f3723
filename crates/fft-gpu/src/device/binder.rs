//! Binding: the operations of one direction.
//!
//! ```text
//! for each operation of the program:
//!     a transform: into the group, or after binding that into a new one
//!     an exchange: after binding the group, it waits for the transforms behind it
//! bind a waiting reshape and the group behind it: as one where cuFFT can load
//! at the end, if all ranks can: the last transforms and the last reshape as one;
//!     transforms before other reshapes in chunks
//! ```

use fft_core::{AxisFft, Comm, DeviceOp, Error, ExchangePass, Node, Program, Reduce};

use super::chunked_fft::{ChunkedFft, Chunks};
use super::cuda::Cuda;
use super::fused_fetch::{FusedAcross, NextTransforms, Remaining};
use super::fused_store::Store;
use super::group::Group;
use super::local_fft::DeviceFft;
use super::op::{CudaOp, Op};
use super::reshape::Reshape;
use super::resized::Resized;
use crate::base::{GpuError, GpuReal};

/// A reshape that waits for the transforms behind it.
struct WaitingReshape<'r> {
    pass: &'r ExchangePass<'r>,
    /// Real numbers of its result.
    reals: usize,
}

/// A bound reshape, and the transforms before it.
struct BoundReshape<'r> {
    /// The number of its operation.
    op: usize,
    pass: &'r ExchangePass<'r>,
    /// The transforms, if they are the operation before it.
    group: Option<Group>,
}

/// The operations of one direction, as they are bound.
pub(super) struct CudaBinder<'r, T> {
    program: &'r Program<'r>,
    rank: usize,
    pub(super) ops: Vec<CudaOp<T>>,
    pub(super) sizes: Vec<usize>,
    /// Bytes of work area of each operation.
    areas: Vec<usize>,
    /// The most chunks of an exchange.
    pub(super) chunks: usize,
    reshape: Option<WaitingReshape<'r>>,
    /// Transforms that are not bound.
    group: Option<Group>,
    reshapes: Vec<BoundReshape<'r>>,
    /// The number of fused reshapes.
    pub(super) fetched: usize,
    /// The last transforms, and the reshape before them.
    last: Option<(Group, Option<&'r ExchangePass<'r>>)>,
    /// A replacement of the last two operations, if all ranks have one.
    store: Option<Store>,
}

impl<'r, T: GpuReal> CudaBinder<'r, T> {
    /// Binds the operations of a direction.
    pub(super) fn bind(device: &mut Cuda<T>, program: &'r Program<'r>) -> Result<Self, Error> {
        let [start, end] = program.start_and_end();
        let mut binder = Self {
            program,
            rank: device.rank,
            ops: Vec::new(),
            sizes: Vec::new(),
            areas: Vec::new(),
            chunks: 0,
            reshape: None,
            group: None,
            reshapes: Vec::new(),
            fetched: 0,
            last: None,
            store: None,
        };
        binder.sizes.push(binder.reals(start));
        for op in program.device_ops() {
            match op {
                DeviceOp::LocalFft(ffts) => {
                    ffts.iter().try_for_each(|fft| binder.add(device, fft))?;
                }
                DeviceOp::Exchange(pass) => {
                    binder.flush(device, pass.from)?;
                    let reals = binder.reals(pass.to);
                    binder.reshape = Some(WaitingReshape { pass, reals });
                }
            }
        }
        binder.flush(device, end)?;
        Ok(binder)
    }

    /// Real numbers of this rank's part of a node.
    fn reals(&self, node: &Node) -> usize {
        node.layout.brick(self.rank).points() * self.program.recipe().problem().batch * node.width()
    }

    /// Lengths of this rank's array in memory, batches first.
    fn lens(&self, node: &Node) -> Vec<usize> {
        let brick = node.layout.brick(self.rank);
        let lens = node.layout.order().map(|axis| brick.len(axis));
        [self.program.recipe().problem().batch].into_iter().chain(lens).collect()
    }

    /// Adds a transform to the group, or begins a new one.
    fn add(&mut self, device: &mut Cuda<T>, fft: &AxisFft) -> Result<(), Error> {
        let [from, to] = self.program.fft_ends(fft);
        let (axis, pass) = self.program.pass(fft);
        let order = from.layout.order();
        let place = order.iter().position(|other| *other == axis);
        let place = 1 + place.expect("the order has every axis");
        let joins = |group: &Group| {
            group.joins(place, &pass)
                || self.reshape.is_some() && FusedAcross::takes::<T>(group, place, &pass)
        };
        if !self.group.as_ref().is_some_and(joins) {
            if self.group.is_some() {
                self.flush(device, from)?;
            }
            let (lens, passes) = ([self.lens(from), Vec::new()], Vec::new());
            self.group = Some(Group { lens, passes, factor: 1.0, pitch: None });
        }
        let after = self.lens(to);
        let group = self.group.as_mut().expect("just made");
        group.lens[1] = after;
        group.factor *= pass.factor;
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
        self.last = group.clone().map(|group| (group, waiting.as_ref().map(|it| it.pass)));
        let next = NextTransforms::of::<T>(&device.gpu, group);
        let next = next.map_err(|why| why.on(self.rank))?;
        let mut fused = false;
        if let Some(WaitingReshape { pass, reals }) = waiting {
            if let (Some((group, before)), None) = (&before, &self.last)
                && self.ops.last().is_some_and(CudaOp::gathers)
            {
                // Both variants are planned: whether all ranks can store is known at the end.
                self.store = Store::new(device, self.program, pass, (group, *before))?;
            }
            let reshape = Reshape::new(device, self.program, pass, &next)?;
            fused = reshape.is_fused();
            let is_local = matches!(self.ops.last(), Some(CudaOp(Op::Local(_))));
            let before = before.filter(|_| is_local).map(|(group, _)| group);
            self.reshapes.push(BoundReshape { op: self.ops.len(), pass, group: before });
            self.fetched += usize::from(fused);
            self.push(Op::Reshape(Box::new(reshape)), reals);
        }
        match next.remaining::<T>(&device.gpu, fused).map_err(|why| why.on(self.rank))? {
            Remaining::Groups(groups) => {
                for group in groups {
                    let (op, area) = transforms(device, &group)?;
                    self.push(op, reals);
                    *self.areas.last_mut().expect("just pushed") = area;
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

    /// Divides transforms before reshapes into chunks, where all ranks can. Collective.
    pub(super) fn agree_on_chunks(
        &mut self,
        device: &mut Cuda<T>,
        comm: &dyn Comm,
    ) -> Result<(), Error> {
        let offers: Vec<_> = self.reshapes.iter().map(|reshape| self.offer(reshape)).collect();
        let mut numbers: Vec<_> = offers.iter().flat_map(|offer| offer.numbers()).collect();
        comm.allreduce(Reduce::Min, &mut numbers)?;
        let (agreed, _) = numbers.as_chunks();
        let reshapes = std::mem::take(&mut self.reshapes);
        for (reshape, agreed) in reshapes.into_iter().zip(agreed) {
            if let Some(chunks) = Offer::agreed(agreed) {
                self.chunks = self.chunks.max(chunks.all());
                self.divide(device, reshape, chunks).map_err(|why| why.on(self.rank))?;
            }
        }
        Ok(())
    }

    fn offer(&self, BoundReshape { op, pass, group }: &BoundReshape<'_>) -> Offer {
        let layout = &pass.from.layout;
        let chunks = group
            .as_ref()
            .and_then(|group| Chunks::of::<T>(group, &layout.order(), layout.ranks()));
        match chunks {
            _ if layout.brick(self.rank).is_empty() => Offer::Any,
            None => Offer::None,
            Some(chunks) if self.ops[*op].reshape().is_some_and(Reshape::has_engines) => {
                Offer::Some(chunks)
            }
            Some(_) => Offer::Any,
        }
    }

    /// Divides a reshape, and the transforms before it if they can be.
    fn divide(
        &mut self,
        device: &mut Cuda<T>,
        BoundReshape { op, pass, group }: BoundReshape<'r>,
        chunks: Chunks,
    ) -> Result<(), GpuError> {
        if let Op::Reshape(reshape) = &mut self.ops[op].0 {
            reshape.divide(device, self.program, pass, chunks)?;
        }
        let Some(group) = group else { return Ok(()) };
        let order = pass.from.layout.order();
        if let Some((chunked, area)) = ChunkedFft::new(device, &group, &order, chunks)? {
            self.areas[op - 1] = area;
            self.ops[op - 1] = CudaOp(Op::Chunked(Box::new(chunked)));
        }
        Ok(())
    }

    fn push(&mut self, op: Op<T>, reals: usize) {
        self.ops.push(CudaOp(op));
        self.sizes.push(reals);
        self.areas.push(0);
    }

    /// The bytes of work area that all operations need.
    pub(super) fn area_bytes(&self) -> usize {
        self.areas.iter().copied().max().unwrap_or(0)
    }
}

/// The chunks that a rank would divide its data into.
enum Offer {
    /// It cannot, or it has too little.
    None,
    /// It has nothing to divide, or nothing to copy by engines.
    Any,
    Some(Chunks),
}

impl Offer {
    /// Numbers whose least ones, of all ranks, tell what is agreed.
    fn numbers(&self) -> [f64; 4] {
        match *self {
            Self::None => [-1.0; 4],
            Self::Any => [f64::INFINITY; 4],
            Self::Some(Chunks { parts, axis, count }) => {
                [axis as f64, -(axis as f64), parts as f64, count as f64]
            }
        }
    }

    /// The chunks that all ranks can have, if some offer any. A rank that divides arrays has a part
    /// for each, and others divide none.
    fn agreed([least, negative, parts, count]: &[f64; 4]) -> Option<Chunks> {
        let is_one_axis = *least >= 0.0 && *least == -negative;
        let [axis, parts, count] = [least, parts, count].map(|number| *number as usize);
        let chunks = Chunks { parts, axis, count };
        (is_one_axis && chunks.all() > 1).then_some(chunks)
    }
}

/// A group as an operation, and the bytes of work area that it needs.
fn transforms<T: GpuReal>(device: &Cuda<T>, group: &Group) -> Result<(Op<T>, usize), Error> {
    let made = if group.is_resized() {
        Resized::new(device, group).map(|(op, area)| (Op::Resized(Box::new(op)), area))
    } else {
        DeviceFft::new(device, group).map(|(op, area)| (Op::Local(Box::new(op)), area))
    };
    made.map_err(|why| why.on(device.rank))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed<const N: usize>(offers: [Offer; N]) -> Option<Chunks> {
        let least = |a: [f64; 4], b: [f64; 4]| [0, 1, 2, 3].map(|i| a[i].min(b[i]));
        let numbers = offers.iter().map(Offer::numbers).reduce(least).expect("some ranks");
        Offer::agreed(&numbers)
    }

    #[test]
    fn all_ranks_divide_one_axis_or_none_does() {
        let some = |axis, count| Offer::Some(Chunks { parts: 1, axis, count });
        let chunks = |axis, count| Some(Chunks { parts: 1, axis, count });
        assert_eq!(agreed([some(0, 8), Offer::Any, some(0, 4)]), chunks(0, 4));
        assert_eq!(agreed([some(2, 16)]), chunks(2, 16));
        assert_eq!(agreed([Offer::Any, Offer::Any]), None);
        assert_eq!(agreed([some(0, 8), Offer::None]), None);
        assert_eq!(agreed([some(0, 8), some(1, 8)]), None);
        // Of a batch of four one rank has too little to divide arrays.
        let of_batch = |parts, count| Chunks { parts, axis: 0, count };
        let offers = [of_batch(4, 4), of_batch(3, 1), of_batch(4, 2)].map(Offer::Some);
        assert_eq!(agreed(offers), Some(of_batch(3, 1)));
    }
}
