//! The last reshape fused with the transform before it: cuFFT stores into other ranks' memory.

use std::time::Instant;

use fft_core::{
    Error, Exchange, ExchangePass, Link, LocalReadBox, Node, Problem, Program, Redistribution,
    RunContext, RunParts,
};

use super::cuda::Cuda;
use super::epoch::exposure_epoch;
use super::fused_fetch::{FusedAcross, plan};
use super::group::Group;
use super::reshape::link;
use crate::base::GpuReal;
use crate::ffi::{DeviceMemory, Gathering, RankMemory};

/// Transforms before the last reshape, which they do, and perhaps also the reshape before them.
pub(super) struct Store {
    plan: Gathering,
    /// Whether they load what they read from other ranks.
    fetches: bool,
    exchange: Exchange,
}

/// The pieces of an exchange's result, or `back` of its source; `None` where some are in messages.
fn pieces<T: GpuReal>(
    device: &Cuda<T>,
    problem: &Problem,
    pass: &ExchangePass<'_>,
    back: bool,
) -> Option<Vec<LocalReadBox>> {
    let [from, to] = if back { [pass.to, pass.from] } else { [pass.from, pass.to] };
    let link = |peer: usize| link(device, problem, pass, peer);
    let redistribution = Redistribution::new(device.rank, &link, from, to, problem.batch);
    redistribution.recvs.is_empty().then(|| redistribution.pieces())
}

impl Store {
    /// Prepares a reshape with the transforms before it, and with the reshape before those. `None`
    /// where separate steps are as fast, ranks do not see what others write to, or cuFFT has no
    /// such plan.
    pub(super) fn new<T: GpuReal>(
        device: &Cuda<T>,
        program: &Program<'_>,
        pass: &ExchangePass<'_>,
        (group, before): (&Group, Option<&ExchangePass<'_>>),
    ) -> Result<Option<Self>, Error> {
        let (rank, problem) = (device.rank, program.recipe().problem());
        let points = |node: &Node| node.layout.brick(rank).points();
        let near = |peer: usize| link(device, problem, pass, peer) != Link::Remote;
        let ranks = pass.from.layout.ranks();
        // cuFFT takes an array of this size: the output, or the source, which across is as large.
        let (all, reads) = (points(pass.from), before.filter(|_| !group.is_across()));
        let room = points(pass.to).max(points(reads.map_or(pass.from, |before| before.from)));
        let fits = problem.fetches()
            && device.connections().peer_info.is_some()
            && device.sees_all(problem)
            && (0..ranks).all(near)
            && room >= all;
        let to = pieces(device, problem, pass, true);
        let Some(to) = to.filter(|_| fits) else { return Ok(None) };
        let to = Some((&to[..], ranks));
        let (plan, fetches) = match before {
            _ if group.is_across() => {
                let (first, source) = FusedAcross::last(group);
                (plan::<T>(&device.gpu, &first, (&[source], 1), to), false)
            }
            Some(before) => match pieces(device, problem, before, false) {
                Some(from) => (plan::<T>(&device.gpu, group, (&from, ranks), to), true),
                None => return Ok(None),
            },
            None => return Ok(None),
        };
        let plan = plan.map_err(|why| why.on(rank))?;
        Ok(plan.map(|plan| Self { plan, fetches, exchange: pass.exchange }))
    }

    pub(super) fn memory(&self) -> usize {
        self.plan.memory()
    }

    /// Transforms, and moves the data. Collective.
    pub(super) fn run<T: GpuReal>(
        &mut self,
        context: &mut RunContext<Cuda<T>>,
        src: &DeviceMemory<T>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), Error> {
        let start = Instant::now();
        let RunParts { device, node_memory, timings, .. } = context.split(self.exchange);
        let node_memory = node_memory.as_deref_mut().expect("ranks of a host synchronize");
        let Self { plan, fetches, .. } = self;
        let lengths = &mut std::iter::empty();
        let met = exposure_epoch(device, node_memory, (src, dst), lengths, |device, peers, dst| {
            let (stream, area) = device.stream_and_area();
            let source = |peer: usize| match *fetches {
                true => peers.source(peer, src),
                false => RankMemory::own(src),
            };
            plan.store(stream, &source, &|peer| peers.target(peer), (dst, src), area)
        });
        timings.exchange += start.elapsed();
        met
    }
}
