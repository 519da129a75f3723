//! The last reshape fused with the transform before it: cuFFT stores into other ranks' memory.

use std::time::Instant;

use fft_core::{Error, Exchange, Program, RunContext, RunParts, StorePass};

use super::cuda::Cuda;
use super::epoch::exposure_epoch;
use super::fused_fetch::plan;
use crate::base::GpuReal;
use crate::ffi::{DeviceMemory, Gathering, RankMemory};

/// Transforms before the last reshape, which they do, and perhaps also the reshape before them.
pub(super) struct Store {
    plan: Gathering,
    /// Whether they load their input from other ranks.
    fetches: bool,
    exchange: Exchange,
}

impl Store {
    /// Prepares the last exchange with the transforms before it, perhaps with the exchange before
    /// those. `None` if cuFFT has no such plan.
    pub(super) fn new<T: GpuReal>(
        device: &mut Cuda,
        program: &Program<'_>,
        pass: &StorePass<'_>,
    ) -> Result<Option<Self>, Error> {
        let (rank, problem) = (device.rank, program.recipe().problem());
        let ranks = pass.exchange.from.layout.ranks();
        let group = program.group(&pass.ffts, rank);
        let to = device.redistribution::<T>(problem, &pass.way_back()).pieces();
        let to = Some((&to[..], ranks));
        let gpu = &device.gpu;
        let plan = match &pass.loads {
            Some(loads) => {
                let from = device.redistribution::<T>(problem, loads).pieces();
                plan::<T>(gpu, &group, (&from, ranks), to)
            }
            None => plan::<T>(gpu, &group.across_last(), (&[group.across_source()], 1), to),
        };
        let plan = plan.map_err(|why| why.on(rank))?;
        let (fetches, exchange) = (pass.loads.is_some(), pass.exchange.exchange);
        Ok(plan.map(|plan| Self { plan, fetches, exchange }))
    }

    pub(super) fn memory(&self) -> usize {
        self.plan.memory()
    }

    /// Transforms, and moves the data. Collective.
    pub(super) fn run<T: GpuReal>(
        &mut self,
        context: &mut RunContext<Cuda>,
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
            let source =
                |peer: usize| if *fetches { peers.source(peer, src) } else { RankMemory::own(src) };
            plan.store(stream, &source, &|peer| peers.target(peer), (dst, src), area)
        });
        timings.exchange += start.elapsed();
        met
    }
}
