//! The host as a device: operations are passes through its caches, and ranks of one host share
//! memory.

use super::bind;
use super::cpu::{Cpu, cpu::zeroed};
use super::op::HostOp;
use crate::base::{Energy, Error, Real};
use crate::comm::{Comm, NodeMemory, Reduce, SLOT_ALIGN, SharedMemory, agree};
use crate::execute::{BindContext, Device, Operations, Places, WorkReals};
use crate::geometry::Transfer;
use crate::recipe::{Recipe, Step};

impl<T: Real> Device<T> for Cpu<T> {
    type Memory = [T];
    type Work = HostWork<T>;
    type Op = HostOp<T>;

    fn connect(
        &mut self,
        recipe: &Recipe,
        comm: &dyn Comm,
    ) -> Result<Option<Box<dyn NodeMemory>>, Error> {
        let hosts = &recipe.problem().hosts;
        if !recipe.steps().iter().any(Step::reads_peers) || hosts.is_empty() {
            return Ok(None);
        }
        agree(comm, check_hosts(hosts, comm))?;
        agree(comm, comm.node_memory())
    }

    fn bind(
        &mut self,
        recipe: &Recipe,
        context: BindContext<'_>,
    ) -> Result<Operations<HostOp<T>>, Error> {
        // Memory is checked before anything is made.
        let rank = context.comm.rank();
        self.buffer(recipe.most_reals(rank), rank)?;
        let host = |rank| context.comm.host(rank);
        let peers = (0..context.comm.size()).filter(|&other| host(other) == host(rank));
        let reals: usize = peers.map(|rank| recipe.most_reals(rank)).sum();
        self.data_of_host(reals * size_of::<T>());
        bind::bind(recipe, context, self)
    }

    fn work(
        &mut self,
        WorkReals { buffers: reals, spare }: WorkReals,
        comm: &dyn Comm,
        node_memory: Option<&mut dyn NodeMemory>,
    ) -> Result<HostWork<T>, Error> {
        let mut most = [reals[0].max(reals[1]) as f64];
        comm.allreduce(Reduce::Max, &mut most)?;
        let node_memory =
            node_memory.filter(|node_memory| !node_memory.exposes_all() && most[0] > 0.0);
        let [a, b] = if node_memory.is_some() { [0, 0] } else { reals };
        let buffer = |reals| self.buffer(reals, comm.rank());
        let own = buffer(a).and_then(|a| Ok(([a, buffer(b)?], zeroed(spare, comm.rank())?)));
        let (own, spare) = agree(comm, own)?;
        // Numbers of any type begin at a multiple of a cache line.
        let first = reals[0].next_multiple_of(SLOT_ALIGN);
        let shared = match node_memory {
            Some(node_memory) => {
                node_memory.allocate((first + reals[1]) * size_of::<T>()).map(Some)
            }
            None => Ok(None),
        };
        let shared = agree(comm, shared)?.map(|memory| (memory, first));
        Ok(HostWork { own, shared, spare })
    }

    fn places<'a>(work: &'a mut HostWork<T>, output: &'a mut [T]) -> Places<'a, [T]> {
        let work_buffers = match &mut work.shared {
            Some((memory, first)) => {
                let (a, b) = memory.bytes_mut().split_at_mut(*first * size_of::<T>());
                [bytemuck::cast_slice_mut(a), bytemuck::cast_slice_mut(b)]
            }
            None => work.own.each_mut().map(|own| &mut own[..]),
        };
        Places { output, work: work_buffers, spare: Some(&mut work.spare) }
    }

    fn held(&self) -> usize {
        self.bytes_held()
    }

    fn copy(&mut self, reals: usize, src: &[T], dst: &mut [T]) {
        self.copy_nontemporal(&Transfer::run_of(reals), 1, src, dst);
    }

    fn energy(&mut self, parts: &[Transfer], width: usize, src: &[T], sums: &mut [Energy]) {
        for (part, sum) in parts.iter().zip(sums) {
            part.runs(|first, _, len| sum.add(&src[width * first..][..width * len]));
        }
    }
}

/// Checks that the ranks of this host are the ones in the recipe.
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
pub struct HostWork<T> {
    own: [Vec<T>; 2],
    /// Both buffers in memory shared with other ranks, and the length of the first in real numbers.
    shared: Option<(Box<dyn SharedMemory>, usize)>,
    /// Second parts of data that does not fit into the output.
    spare: Vec<T>,
}
