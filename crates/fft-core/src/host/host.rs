//! A host is a device: operations are passes through its caches, and ranks of one host read each other's memory.

use std::borrow::BorrowMut;
use std::mem::take;

use super::processor::Processor;
use super::reshape::{Loss, Reshape, Ways};
use super::shared_pass::SharedPass;
use crate::base::timings::Time;
use crate::base::{Energy, Error, Real};
use crate::comm::{Comm, MessagePlan, NodeMemory, Reduce, SLOT_ALIGN, SharedMemory, agree};
use crate::execute::BufferRequirement;
use crate::execute::{BindContext, Device, OpBuffers, Operation, Operations, RunContext, RunParts};
use crate::geometry::Transfer;
use crate::host::bind;
use crate::problem::Algorithm;
use crate::recipe::Recipe;
use crate::redistribute::spill::{self, BufferOffset, SpillBuffers};

/// A host with this processor, one thread per rank.
#[derive(Default)]
pub struct Host<P>(pub P);

/// A bound step, or several that run as one, on a host.
pub struct HostOp<T: Real, Dev: Processor<T>>(pub(crate) Op<T, Dev>);

pub(crate) enum Op<T: Real, Dev: Processor<T>> {
    /// With the second half of what is there before in spare memory, if it is `apart`.
    Fft {
        parts: Vec<Local<Dev::Fft>>,
        in_place: bool,
        apart: bool,
    },
    Reshape {
        reshape: Box<Reshape<T, Dev>>,
        exchange: Algorithm,
        apart: bool,
    },
    SharedPass(Box<SharedPass<T, Dev>>),
    Copy {
        parts: Vec<Transfer>,
        width: usize,
    },
}

/// A local transform of a part of a brick, and where that is before and after.
pub(crate) struct Local<F> {
    pub(crate) fft: F,
    pub(crate) blocks: usize,
    pub(crate) from: BufferOffset,
    pub(crate) to: BufferOffset,
}

impl<T: Real, Dev: Processor<T>> Device<T> for Host<Dev> {
    type Memory = Dev::Memory;
    type Work = HostWork<Dev::Buffer>;
    type Op = HostOp<T, Dev>;

    fn connect(
        &mut self,
        recipe: &Recipe,
        comm: &dyn Comm,
    ) -> Result<Option<Box<dyn NodeMemory>>, Error> {
        let hosts = &recipe.problem().hosts;
        if !recipe.algorithms().contains(&Algorithm::Shared) || hosts.is_empty() {
            return Ok(None);
        }
        agree(comm, check_hosts(hosts, comm))?;
        agree(comm, comm.node_memory())
    }

    fn bind(
        &mut self,
        recipe: &Recipe,
        site: BindContext<'_>,
    ) -> Result<Operations<HostOp<T, Dev>>, Error> {
        // What cannot be held is refused before anything is made for it.
        let rank = site.comm.rank();
        self.0.buffer(recipe.most_reals(rank), rank)?;
        let host = |rank| site.comm.host(rank);
        let peers = (0..site.comm.size()).filter(|&other| host(other) == host(rank));
        let reals: usize = peers.map(|rank| recipe.most_reals(rank)).sum();
        self.0.data_of_host(reals * size_of::<T>());
        bind::bind(recipe, site, &mut self.0)
    }

    fn work(
        &mut self,
        reals: [usize; 2],
        comm: &dyn Comm,
        node_memory: Option<&mut dyn NodeMemory>,
    ) -> Result<HostWork<Dev::Buffer>, Error> {
        HostWork::new::<T, Dev>(reals, comm, &self.0, node_memory)
    }

    fn places<'a>(
        work: &'a mut HostWork<Dev::Buffer>,
        output: &'a mut Dev::Memory,
    ) -> [&'a mut Dev::Memory; 3] {
        work.beside::<T, Dev>(output)
    }

    fn held(&self) -> usize {
        self.0.held()
    }

    fn copy(&mut self, all: &Transfer, src: &Dev::Memory, dst: &mut Dev::Memory) {
        self.0.copy_nontemporal(all, 1, src, dst);
    }

    fn energy(&mut self, parts: &[Transfer], width: usize, src: &Dev::Memory, sums: &mut [Energy]) {
        for (part, sum) in parts.iter().zip(sums) {
            self.0.energy(part, width, src, sum);
        }
    }
}

impl<T: Real, Dev: Processor<T>> Operation<T, Host<Dev>> for HostOp<T, Dev> {
    fn buffer_requirement(&self) -> BufferRequirement {
        match &self.0 {
            Op::Fft { in_place: true, .. } => BufferRequirement::Either,
            Op::Fft { in_place: false, .. } => BufferRequirement::OutOfPlace,
            Op::Reshape { reshape, .. } if reshape.opens_epoch() => {
                BufferRequirement::OutOfPlaceExposed
            }
            Op::Reshape { .. } | Op::Copy { .. } => BufferRequirement::OutOfPlace,
            Op::SharedPass(across) if across.is_out_of_place() => BufferRequirement::OutOfPlace,
            Op::SharedPass(across) if across.in_both() => BufferRequirement::InBoth,
            Op::SharedPass(_) => BufferRequirement::EitherExposed,
        }
    }

    fn loss(&self) -> Option<Loss> {
        match &self.0 {
            Op::Reshape { reshape, .. } => reshape.loss(),
            _ => None,
        }
    }

    fn set_step(&mut self, step: f64, finer: Option<f64>) {
        if let Op::Reshape { reshape, .. } = &mut self.0 {
            reshape.set_step(step, finer);
        }
    }

    fn squared_error(&self) -> f64 {
        match &self.0 {
            Op::Reshape { reshape, .. } => reshape.squared_error(),
            _ => 0.0,
        }
    }

    fn message_plan(&self) -> Option<&MessagePlan> {
        match &self.0 {
            Op::Reshape { reshape, .. } => Some(&reshape.message_plan),
            _ => None,
        }
    }

    fn reserve(&mut self, context: &mut RunContext<Host<Dev>>) -> Result<(), Error> {
        match (&mut self.0, &mut context.node_memory) {
            (Op::SharedPass(across), Some(node_memory)) => across.register(node_memory.as_mut()),
            (Op::Reshape { reshape, exchange, .. }, _) => {
                context.split(*exchange).exchange.reserve(&reshape.message_plan)
            }
            _ => Ok(()),
        }
    }

    fn run(
        &mut self,
        context: &mut RunContext<Host<Dev>>,
        buffers: OpBuffers<'_, Dev::Memory>,
    ) -> Result<(), Error> {
        let OpBuffers { src, dst, caller } = buffers;
        match &mut self.0 {
            Op::Fft { parts, apart, .. } => {
                let RunContext { device: Host(device), timings, .. } = context;
                let mut beside = SpillBuffers::new(take(device.spare()), *apart);
                let (read, written) = beside.split();
                let (src, dst) = (src.map(|src| [src, read]), [dst, written]);
                for Local { fft, blocks, from, to } in parts {
                    let src = src.map(|src| spill::rest::<T, Dev>(src[from.piece], from.first));
                    let dst = spill::rest_mut::<T, Dev>(dst[to.piece], to.first);
                    timings.fft.time(|| device.fft(fft, 0..*blocks, src, dst));
                }
                *device.spare() = beside.end();
                Ok(())
            }
            Op::Copy { parts, width } => {
                let RunContext { device: Host(device), timings, .. } = context;
                let src = src.expect("a copy has a source and a destination");
                timings.own.time(|| {
                    parts.iter().for_each(|part| device.copy_nontemporal(part, *width, src, dst))
                });
                Ok(())
            }
            Op::SharedPass(across) => {
                let RunContext { device, node_memory, timings, .. } = context;
                let node_memory =
                    node_memory.as_deref_mut().expect("planned where there is a node_memory");
                across.run(node_memory, &mut device.0, OpBuffers { src, dst, caller }, timings)
            }
            Op::Reshape { reshape, exchange, apart } => {
                let RunParts { device: Host(device), exchange, node_memory, timings } =
                    context.split(*exchange);
                let src = src.expect("a reshape has a source and a destination");
                let mut beside = SpillBuffers::new(take(device.spare()), *apart);
                let (read, written) = beside.split();
                let (src, dst) = ([src, read], [dst, written]);
                let done = reshape.run(Ways { exchange, node_memory }, device, src, dst, timings);
                *device.spare() = beside.end();
                done
            }
        }
    }

    fn memory(&self) -> usize {
        match &self.0 {
            Op::SharedPass(across) => across.memory(),
            Op::Reshape { reshape, .. } => reshape.memory(),
            Op::Fft { .. } | Op::Copy { .. } => 0,
        }
    }
}

/// Whether the ranks on this one's host are those that the recipe was made for.
fn check_hosts(hosts: &[usize], comm: &dyn Comm) -> Result<(), Error> {
    let (rank, size) = (comm.rank(), comm.size());
    let planned = |other: usize| hosts.get(other).is_some_and(|host| Some(host) == hosts.get(rank));
    let differs = |other: &usize| planned(*other) != (comm.host(*other) == comm.host(rank));
    match (0..size).find(differs) {
        None if hosts.len() == size => Ok(()),
        other => {
            let (found, there) = (hosts.len(), other.unwrap_or(rank));
            let found = format!("{found} of which rank {there}'s is not as here");
            Err(Error::argument(
                "hosts of the recipe",
                found,
                format!("those of these {size} ranks"),
            ))
        }
    }
}

/// A plan's own two buffers on a host.
pub struct HostWork<B> {
    own: [B; 2],
    /// Where other ranks must see them: both, one after the other, and the first one's real numbers.
    shown: Option<(Box<dyn SharedMemory>, usize)>,
}

impl<B> HostWork<B> {
    /// Collective.
    fn new<T: Real, Dev: Processor<T, Buffer = B>>(
        sizes: [usize; 2],
        comm: &dyn Comm,
        device: &Dev,
        node_memory: Option<&mut dyn NodeMemory>,
    ) -> Result<Self, Error> {
        let mut most = [sizes[0].max(sizes[1]) as f64];
        comm.allreduce(Reduce::Max, &mut most)?;
        let node_memory =
            node_memory.filter(|node_memory| !node_memory.exposes_all() && most[0] > 0.0);
        let [a, b] = if node_memory.is_some() { [0, 0] } else { sizes };
        let buffer = |reals| device.buffer(reals, comm.rank());
        let own = buffer(a).and_then(|a| Ok([a, buffer(b)?]));
        let own = agree(comm, own)?;
        // Numbers of any type begin at a multiple of a cache line.
        let first = sizes[0].next_multiple_of(SLOT_ALIGN);
        let shown = match node_memory {
            Some(node_memory) => {
                node_memory.allocate((first + sizes[1]) * size_of::<T>()).map(Some)
            }
            None => Ok(None),
        };
        let shown = agree(comm, shown)?.map(|memory| (memory, first));
        Ok(Self { own, shown })
    }

    /// All memory that can be written.
    fn beside<'a, T: Real, Dev: Processor<T, Buffer = B>>(
        &'a mut self,
        output: &'a mut Dev::Memory,
    ) -> [&'a mut Dev::Memory; 3]
    where
        B: BorrowMut<Dev::Memory>,
    {
        match &mut self.shown {
            Some((memory, first)) => {
                let (a, b) = memory.bytes_mut().split_at_mut(*first * size_of::<T>());
                [output, Dev::memory_mut(a), Dev::memory_mut(b)]
            }
            None => {
                let [a, b] = &mut self.own;
                [output, a.borrow_mut(), b.borrow_mut()]
            }
        }
    }
}
