//! The host as a device: operations are passes through its caches, and ranks of one host share
//! memory.

use std::borrow::BorrowMut;

use super::bind;
use super::op::{Host, HostOp};
use super::processor::Processor;
use crate::base::{Energy, Error, Real};
use crate::comm::{Comm, NodeMemory, Reduce, SLOT_ALIGN, SharedMemory, agree};
use crate::execute::{BindContext, Device, Operations};
use crate::geometry::Transfer;
use crate::problem::Algorithm;
use crate::recipe::Recipe;

impl<T: Real, P: Processor<T>> Device<T> for Host<P> {
    type Memory = P::Memory;
    type Work = HostWork<P::Buffer>;
    type Op = HostOp<T, P>;

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
        context: BindContext<'_>,
    ) -> Result<Operations<HostOp<T, P>>, Error> {
        // Memory is checked before anything is made.
        let rank = context.comm.rank();
        self.0.buffer(recipe.most_reals(rank), rank)?;
        let host = |rank| context.comm.host(rank);
        let peers = (0..context.comm.size()).filter(|&other| host(other) == host(rank));
        let reals: usize = peers.map(|rank| recipe.most_reals(rank)).sum();
        self.0.data_of_host(reals * size_of::<T>());
        bind::bind(recipe, context, &mut self.0)
    }

    fn work(
        &mut self,
        reals: [usize; 2],
        comm: &dyn Comm,
        node_memory: Option<&mut dyn NodeMemory>,
    ) -> Result<HostWork<P::Buffer>, Error> {
        HostWork::new::<T, P>(reals, comm, &self.0, node_memory)
    }

    fn places<'a>(
        work: &'a mut HostWork<P::Buffer>,
        output: &'a mut P::Memory,
    ) -> [&'a mut P::Memory; 3] {
        work.all_buffers::<T, P>(output)
    }

    fn held(&self) -> usize {
        self.0.held()
    }

    fn copy(&mut self, all: &Transfer, src: &P::Memory, dst: &mut P::Memory) {
        self.0.copy_nontemporal(all, 1, src, dst);
    }

    fn energy(&mut self, parts: &[Transfer], width: usize, src: &P::Memory, sums: &mut [Energy]) {
        for (part, sum) in parts.iter().zip(sums) {
            self.0.energy(part, width, src, sum);
        }
    }
}

/// Checks that the ranks of this host are those of the recipe.
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

/// The plan's two buffers on a host.
pub struct HostWork<B> {
    own: [B; 2],
    /// Both buffers in memory shared with other ranks, and the length of the first in real numbers.
    shared: Option<(Box<dyn SharedMemory>, usize)>,
}

impl<B> HostWork<B> {
    fn new<T: Real, P: Processor<T, Buffer = B>>(
        sizes: [usize; 2],
        comm: &dyn Comm,
        device: &P,
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
        let shared = match node_memory {
            Some(node_memory) => {
                node_memory.allocate((first + sizes[1]) * size_of::<T>()).map(Some)
            }
            None => Ok(None),
        };
        let shared = agree(comm, shared)?.map(|memory| (memory, first));
        Ok(Self { own, shared })
    }

    fn all_buffers<'a, T: Real, P: Processor<T, Buffer = B>>(
        &'a mut self,
        output: &'a mut P::Memory,
    ) -> [&'a mut P::Memory; 3]
    where
        B: BorrowMut<P::Memory>,
    {
        match &mut self.shared {
            Some((memory, first)) => {
                let (a, b) = memory.bytes_mut().split_at_mut(*first * size_of::<T>());
                [output, P::memory_mut(a), P::memory_mut(b)]
            }
            None => {
                let [a, b] = &mut self.own;
                [output, a.borrow_mut(), b.borrow_mut()]
            }
        }
    }
}
