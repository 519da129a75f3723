//! A reshape on a device.
//!
//! ```text
//! pack messages to ranks that are reached, into their windows
//! pack staged messages to other ranks, chunk by chunk
//! in an exposure epoch of the ranks of this host:
//!     copy boxes out of memory that is read in place, in one kernel and by copy engines;
//!         or run the transforms behind the reshape, which load them themselves
//!     unpack the messages in this rank's window
//! exchange staged messages; unpack each chunk as it arrives
//! at the end of the run, on the host: lengths, squared errors, messages that did not decode
//! ```

use std::ops::Range;
use std::time::Instant;

use cudarc::driver::DeviceSlice;
use fft_core::{
    Chunk, Error, Exchange, ExchangePass, LocalRead, Loss, MessagePlan, Problem, Program,
    Redistribution, RunContext, RunParts, Wire,
};

use super::cuda::Cuda;
use super::direct::DirectMessages;
use super::epoch::{EpochPeers, exposure_epoch};
use super::host_staged::{HostStaged, StagedOptions};
use crate::abi::transposed_when_read;
use crate::base::{GpuError, GpuReal};
use crate::ffi::{ChunkEvents, DeviceMemory, Gathering, PeerGets, RankMemory};

/// How boxes in memory that is read in place are moved to this rank.
enum LocalReads {
    /// By one kernel, and by copy engines.
    Copied(Box<PeerGets>),
    /// By the transforms that follow, which load them.
    Fused(Box<Gathering>),
}

impl LocalReads {
    fn memory(&self) -> usize {
        match self {
            Self::Copied(gets) => gets.memory(),
            Self::Fused(fused) => fused.memory(),
        }
    }

    fn run<'v, T: GpuReal>(
        &mut self,
        device: &mut Cuda,
        source: &dyn Fn(usize) -> RankMemory<'v>,
        dst: &mut DeviceMemory<T>,
        chunks: Option<&ChunkEvents<'_>>,
    ) -> Result<(), GpuError> {
        match self {
            Self::Copied(gets) => gets.run(&device.stream, source, dst, chunks),
            Self::Fused(fused) => {
                let (stream, area) = device.stream_and_area();
                fused.run(stream, source, dst, area)
            }
        }
    }
}

/// Copies of local reads: each whole, or in parts of several arrays, which are numbered as chunks.
fn peer_gets<T: GpuReal>(
    device: &Cuda,
    redistribution: &Redistribution,
    ranks: usize,
    parts: impl Fn(&LocalRead) -> Vec<(LocalRead, Range<usize>)>,
) -> Result<PeerGets, GpuError> {
    let (width, all) = (redistribution.width, redistribution.all());
    let far = |peer: usize| !device.connections().peers.same_device(peer);
    let mut boxes = Vec::new();
    for read in &redistribution.local_reads {
        let parts = if far(read.owner) { parts(read) } else { vec![(*read, all.batches.clone())] };
        let taken = parts.into_iter().enumerate().filter_map(|(number, (part, batches))| {
            let wanted = Chunk { batches, ..all.clone() };
            Some((read.owner, number, redistribution.take(&part, &wanted)?))
        });
        boxes.extend(taken);
    }
    // Ranks take turns: at any time each is read by one other.
    boxes.sort_by_key(|(owner, number, _)| (*number, (owner + ranks - device.rank) % ranks));
    let boxes: Vec<_> = boxes.iter().map(|(owner, number, part)| (*owner, *number, part)).collect();
    PeerGets::new::<T>(&device.gpu, &device.stream, width, ranks, &boxes, &far)
}

/// One rank's part of a change of layout.
pub(super) struct Reshape<T> {
    rank: usize,
    exchange: Exchange,
    pub(super) loss: Option<Loss>,
    /// The steps of `tolerance`: the usual one, and a finer one for messages that lose too much.
    pub(super) step: (f64, Option<f64>),
    local_reads: LocalReads,
    /// Whether ranks record events of chunks.
    has_chunks: bool,
    direct: DirectMessages<T>,
    /// Messages to and from ranks that cannot be reached, if any rank has such peers.
    staged: Option<HostStaged<T>>,
}

impl Cuda {
    /// The boxes of a reshape, and which messages their readers transpose.
    pub(super) fn redistribution<T: GpuReal>(
        &self,
        problem: &Problem,
        pass: &ExchangePass<'_>,
    ) -> Redistribution {
        let path = |peer: usize| self.capabilities().path(problem, pass, [self.rank, peer]);
        let all = Redistribution::new(self.rank, &path, pass.from, pass.to, problem.batch);
        match pass.wire {
            Wire::Tolerance => {
                all.transposed_when_read(transposed_when_read(pass.from.width() * size_of::<T>()))
            }
            _ => all,
        }
    }
}

impl<T: GpuReal> Reshape<T> {
    /// Prepares a reshape, or the transforms after it, if they load its data.
    pub(super) fn new(
        device: &mut Cuda,
        program: &Program<'_>,
        pass: &ExchangePass<'_>,
        loads: Option<Gathering>,
    ) -> Result<Self, Error> {
        let (rank, problem) = (device.rank, program.recipe().problem());
        let ExchangePass { wire, exchange, .. } = *pass;
        let (peers, ranks) = (&device.connections().peers, pass.from.layout.ranks());
        let raw = |peer: usize| wire == Wire::Raw || problem.is_raw_link(rank, peer);
        let all = device.redistribution::<T>(problem, pass);
        let failed = |why: GpuError| why.on(rank);
        let local_reads = match loads {
            Some(loads) => LocalReads::Fused(Box::new(loads)),
            None => {
                let layout = &pass.from.layout;
                let parts = |read: &LocalRead| match &pass.chunks {
                    Some(chunks) => chunks.of_read(read, &layout.brick(read.owner), problem.batch),
                    None => vec![(*read, all.all().batches)],
                };
                let gets = peer_gets::<T>(device, &all, ranks, parts).map_err(failed)?;
                LocalReads::Copied(Box::new(gets))
            }
        };
        let reached = |peer: usize| peers.reached(peer);
        let direct = DirectMessages::new(&all, wire, &reached, &raw).map_err(failed)?;
        let staged = (!peers.all).then(|| {
            let far = |peer: usize| !peers.reached(peer);
            let (transport, batch) = (device.taken, problem.batch);
            let number = program.message_number(pass);
            let (far, raw) = (&far, &raw);
            let options = StagedOptions { far, raw, wire, exchange, transport, number, batch };
            HostStaged::new(all, pass, options)
        });
        let coded = direct.coded() + staged.as_ref().map_or(0, HostStaged::coded);
        device.window_bytes = device.window_bytes.max(direct.incoming.window);
        device.chunks = device.chunks.max(pass.chunks.map_or(0, |chunks| chunks.all()));
        if let Some(staged) = &staged {
            let most = device.staging_bytes.iter_mut().zip(staged.bytes);
            most.for_each(|(most, bytes)| *most = bytes.max(*most));
        }
        let (loss, step) = (pass.loss(coded), (0.0, None));
        let has_chunks = pass.chunks.is_some();
        Ok(Self { rank, exchange, loss, step, local_reads, has_chunks, direct, staged })
    }

    pub(super) fn message_plan(&self) -> Option<&MessagePlan> {
        self.staged.as_ref().map(|staged| &staged.message_plan)
    }

    pub(super) fn squared_error(&self) -> f64 {
        self.direct.squared_error() + self.staged.as_ref().map_or(0.0, HostStaged::squared_error)
    }

    /// The first message that did not decode in the last run, which must be finished.
    pub(super) fn damage(&self) -> Result<(), Error> {
        self.direct.damage(self.rank)?;
        self.staged.as_ref().map_or(Ok(()), |staged| staged.damage(self.rank))
    }

    /// Bytes of memory held, without the memory that all reshapes share.
    pub(super) fn memory(&self) -> usize {
        let staged = self.staged.as_ref().map_or(0, HostStaged::memory);
        self.local_reads.memory() + self.direct.memory() + staged
    }

    /// Exchanges the places of messages with the other ranks, and prepares the launches.
    /// Collective.
    pub(super) fn reserve(&mut self, context: &mut RunContext<Cuda>) -> Result<(), Error> {
        let RunParts { device, exchange, .. } = context.split(self.exchange);
        let places = self.direct.gather_places(device.connections().comm.as_ref())?;
        let direct = self.direct.reserve(device, &places).map_err(|why| why.on(self.rank));
        let staged = match &mut self.staged {
            Some(staged) => staged.reserve(device, exchange),
            None => Ok(()),
        };
        direct.and(staged)
    }

    /// Moves the data. Collective.
    pub(super) fn run(
        &mut self,
        context: &mut RunContext<Cuda>,
        src: &DeviceMemory<T>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), Error> {
        let start = Instant::now();
        let Self { local_reads, direct, staged, step, has_chunks, .. } = self;
        let RunParts { device, exchange, node_memory, timings } = context.split(self.exchange);
        if *has_chunks {
            let queued = begin_chunks(device, dst);
            device.record_error(queued);
        }
        let queued = direct.pack(device, src, *step, timings);
        device.record_error(queued);
        if let Some(staged) = staged {
            let queued = staged.pack(device, src, step.0);
            device.record_error(queued);
        }
        let met = match node_memory {
            Some(node_memory) => {
                let (mut lengths, incoming) = direct.sides();
                let memory = (src, &mut *dst);
                let begun = device.begun.clone();
                let work = |device: &mut Cuda, peers: EpochPeers<'_>, dst: &mut _| {
                    let ready = |peer, number| peers.chunk(peer, number);
                    let chunks = ChunkEvents { begun: &begun, ready: &ready };
                    let chunks = has_chunks.then_some(&chunks);
                    let source = |peer| peers.source(peer, src);
                    local_reads.run(device, &source, dst, chunks)?;
                    incoming.unpack(device, peers, dst)
                };
                exposure_epoch(device, node_memory.as_mut(), memory, &mut lengths, work)
            }
            None => {
                let queued = local_reads.run(device, &|_| RankMemory::own(src), dst, None);
                device.record_error(queued);
                Ok(())
            }
        };
        let sent = match staged {
            Some(staged) => staged.exchange(device, exchange, (src, dst), *step, timings),
            None => Ok(()),
        };
        timings.exchange += start.elapsed();
        met.and(sent)
    }
}

/// Records when copies of chunks may begin: with the transforms before, unless these read the
/// destination. Without transforms in chunks also records the events of all chunks.
fn begin_chunks<T: GpuReal>(device: &mut Cuda, dst: &DeviceMemory<T>) -> Result<(), GpuError> {
    let read = device.chunks_of.take();
    if read.is_none() {
        let own = device.connections().own.as_ref().expect("made with the plan's memory");
        own.chunks.iter().try_for_each(|event| event.record(&device.stream))?;
    }
    let end = dst.address() + dst.num_bytes() as u64;
    match read {
        Some(read) if end <= read.start || read.end <= dst.address() => Ok(()),
        _ => device.begun.record(&device.stream),
    }
}
