//! The last reshape and the transform before it as one: cuFFT's kernels store what they make where ranks want it.

use std::time::Instant;

use fft_core::{
    Algorithm, BoundStep, Error, Link, Node, Recipe, Redistribution, RunContext, RunParts, Wire,
};

use super::Cuda;
use super::epoch::visit;
use super::fused_fetch::{FusedAcross, plan};
use super::local_fft::Group;
use super::reshape::link;
use crate::base::GpuReal;
use crate::ffi::{DeviceMemory, Gathering, Place};

/// Transforms between two reshapes, or behind one that is done.
pub(super) struct Store {
    plan: Gathering,
    /// Whether they fetch what they read from other ranks.
    fetches: bool,
    exchange: Algorithm,
}

impl Store {
    /// Prepares a reshape with the transforms before it, and also with the reshape before those if they are fetched from there. `None` where
    /// a transform and then a reshape are as fast, ranks do not see what others write to, or cuFFT has no such plan.
    ///
    /// # Errors
    /// As [`crate::FftPlan::new`].
    pub(super) fn new<T: GpuReal>(
        device: &Cuda<T>,
        recipe: &Recipe,
        leg: &BoundStep<'_>,
        (wire, exchange): (Wire, Algorithm),
        (group, before): (&Group, Option<&BoundStep<'_>>),
    ) -> Result<Option<Self>, Error> {
        let (rank, problem) = (device.rank, recipe.problem());
        let points = |node: &Node| node.layout.brick(rank).points();
        // In a reshape back to where it comes from what a rank would take is what it brings.
        let pieces = |leg: &BoundStep<'_>, back: bool| {
            let [from, to] = if back { [leg.to, leg.from] } else { [leg.from, leg.to] };
            let link = |peer: usize| link(device, problem, wire, peer);
            let redistribution = Redistribution::new(rank, &link, from, to, problem.howmany);
            redistribution.recvs.is_empty().then(|| redistribution.pieces())
        };
        let near = |peer: usize| link(device, problem, wire, peer) != Link::Remote;
        let ranks = leg.from.layout.ranks();
        // cuFFT asks for an array of this size: the output, or what is read, which across is as much.
        let (all, reads) = (points(leg.from), before.filter(|_| !group.is_across()));
        let room = points(leg.to).max(points(reads.map_or(leg.from, |before| before.from)));
        let fits = problem.fetches()
            && device.meeting().peer_info.is_some()
            && device.sees_all(problem)
            && (0..ranks).all(near)
            && room >= all;
        let Some(to) = pieces(leg, true).filter(|_| fits) else { return Ok(None) };
        let to = Some((&to[..], ranks));
        let (plan, fetches) = match before {
            _ if group.is_across() => {
                let (first, source) = FusedAcross::last(group);
                (plan::<T>(&device.gpu, &first, (&[source], 1), to), false)
            }
            Some(before) => match pieces(before, false) {
                Some(from) => (plan::<T>(&device.gpu, group, (&from, ranks), to), true),
                None => return Ok(None),
            },
            None => return Ok(None),
        };
        let plan = plan.map_err(|why| why.on(rank))?;
        Ok(plan.map(|plan| Self { plan, fetches, exchange }))
    }

    pub(super) fn memory(&self) -> usize {
        self.plan.memory()
    }

    /// Transforms, and redistribution the data. Collective.
    pub(super) fn run<T: GpuReal>(
        &mut self,
        tools: &mut RunContext<Cuda<T>>,
        src: &DeviceMemory<T>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), Error> {
        let start = Instant::now();
        let RunParts { device, node_memory, timings, .. } = tools.split(self.exchange);
        let node_memory = node_memory.as_deref_mut().expect("ranks of a host meet");
        let Self { plan, fetches, .. } = self;
        let met =
            visit(device, node_memory, (src, dst), &mut std::iter::empty(), |device, met, dst| {
                let (stream, area) = device.stream_and_area();
                let source =
                    |peer: usize| if *fetches { met.source(peer, src) } else { Place::own(src) };
                plan.store(stream, &source, &|peer| met.target(peer), (dst, src), area)
            });
        timings.exchange += start.elapsed();
        met
    }
}
