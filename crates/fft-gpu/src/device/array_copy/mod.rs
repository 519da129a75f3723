//! Copies between the local arrays of all ranks, on devices.
//!
//! ```text
//! pack all messages into memory that others read; copy what stays on this rank
//! in an exposure epoch of the ranks of this host:
//!     unpack the messages of ranks that are reached out of their memory
//! exchange messages with other ranks through the host; unpack those
//! ```

mod launches;
mod staged;

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bytemuck::Pod;
use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, DeviceSlice};
use fft_core::{
    ArrayRole, Comm, CopyMessage, CopyPlan, Device, Error, Exchanger, NodeMemory, Unwinding,
    WorkReals, agree, agree_by_memory,
};

use super::cuda::Cuda;
use super::direct::gather_places;
use super::epoch::exposure_epoch;
use crate::base::{DeviceQueue, GpuError};
use crate::ffi::{DeviceMemory, Owned, PeerGets, lend, lend_mut};
use crate::kernel::Transfers;
use launches::{Launches, OfArray};
use staged::Staged;

/// The alignment of messages, in bytes.
const ALIGN: usize = 128;

/// A [`CopyPlan`] on devices, whose work is queued on one stream.
pub struct DeviceCopy {
    /// Dropped first, so that waiting ranks are notified.
    comm: Box<dyn Comm>,
    device: Cuda,
    node_memory: Option<Box<dyn NodeMemory>>,
    plan: CopyPlan,
    /// Outgoing messages; the second buffer is empty.
    messages: [Owned<f32>; 2],
    /// Launches with their arrays.
    packs: Vec<OfArray<Transfers>>,
    /// Copies within this rank, with their source and target array.
    kept: Vec<OfArray<Transfers, [usize; 2]>>,
    gets: Vec<OfArray<PeerGets>>,
    /// Where some rank is not reached.
    staged: Option<Staged>,
}

/// Where messages begin, and the end of the last.
fn places<'m>(messages: impl IntoIterator<Item = &'m CopyMessage>) -> (Vec<usize>, usize) {
    let mut end = 0;
    let place = |message: &CopyMessage| {
        let place = end;
        end = (place + message.spec.bytes).next_multiple_of(ALIGN);
        place
    };
    (messages.into_iter().map(place).collect(), end)
}

impl DeviceCopy {
    /// Prepares a copy on this device and stream. Collective. The communicator and the exchange on
    /// it are for this copy alone.
    ///
    /// Ranks of a host reach each other's memory with [`PeerToPeer`]. Other messages go through the
    /// host.
    ///
    /// [`PeerToPeer`]: crate::GpuTransport::PeerToPeer
    ///
    /// # Errors
    /// On every rank: the errors of the exchange; [`Error::OnRank`] when the driver fails, or there
    /// is no memory.
    pub fn new(
        queue: &DeviceQueue,
        comm: Box<dyn Comm>,
        exchange: Box<dyn Exchanger>,
        plan: CopyPlan,
    ) -> Result<Self, Error> {
        let (own, rank) = (comm.as_ref(), comm.rank());
        let mut device = agree(own, Cuda::new(queue).map_err(|why| why.on(rank)))?;
        let node_memory = device.connect_ranks(own, queue.transport)?;
        let reached: Vec<_> =
            (0..own.size()).map(|peer| device.connections().peers.reached(peer)).collect();
        let far = |message: &CopyMessage| !reached[message.spec.peer];
        let (out, end) = places(&plan.sends);
        let coming: Vec<_> = plan.recvs.iter().filter(|message| far(message)).collect();
        let (come, window) = places(coming.iter().copied());
        device.staging_bytes = [0, window];
        let reals = WorkReals { buffers: [end.div_ceil(size_of::<f32>()), 0], spare: 0 };
        let work = device.work(reals, own, None)?;
        let peers = plan.sends.iter().map(|message| message.spec.peer);
        let begins = gather_places(own, peers.zip(out.clone()))?;
        // Where the messages of all ranks to this one begin.
        let begins: Vec<_> = begins.chunks(own.size()).map(|row| row[rank] as usize).collect();
        let launches = Launches { device: &device, plan: &plan };
        let prepare = || {
            let gets = launches.gets(&|peer| reached[peer], &begins)?;
            let (packs, unpacks) = (launches.packs(&out)?, launches.unpacks(&coming, &come)?);
            Ok((packs, launches.own()?, gets, unpacks))
        };
        let prepared = prepare().map_err(|why: GpuError| why.on(rank));
        let (packs, kept, gets, unpacks) = agree(own, prepared)?;
        let messages = work.buffers;
        // If all ranks are reached, there is no memory for messages through the host.
        let mut staged = device.staging[1].clone().map(|incoming| {
            let sent = plan.sends.iter().zip(&out).filter(|it| far(it.0)).map(|it| *it.1);
            Staged {
                exchange,
                message_plan: plan.message_plan(&|peer| !reached[peer]),
                places: [sent.collect(), come],
                outgoing: messages[0].block().clone(),
                incoming: Owned::new(incoming, &queue.stream),
                unpacks,
            }
        });
        if let Some(staged) = &mut staged {
            staged.reserve(&queue.gpu, own)?;
        }
        Ok(Self { comm, device, node_memory, plan, messages, packs, kept, gets, staged })
    }

    /// What it moves.
    pub fn plan(&self) -> &CopyPlan {
        &self.plan
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.comm.rank()
    }

    /// The stream.
    pub fn stream(&self) -> &Arc<CudaStream> {
        &self.device.stream
    }

    /// Bytes of memory held on the device.
    pub fn memory(&self) -> usize {
        let staged = self.staged.as_ref().map_or(0, Staged::memory);
        let launches = self.packs.iter().map(|(_, it)| it.memory());
        let launches = launches.chain(self.kept.iter().map(|(_, it)| it.memory()));
        let launches = launches.chain(self.gets.iter().map(|(_, it)| it.memory()));
        self.messages[0].bytes() + launches.sum::<usize>() + staged
    }

    /// Queues a copy from sources to targets: slices of elements, of their numbers, or of bytes,
    /// which begin at multiples of 16 bytes. Collective.
    ///
    /// # Errors
    /// As [`DeviceCopy::run_after`].
    pub fn run<E: Pod>(
        &mut self,
        sources: &[&impl DevicePtr<E>],
        targets: &mut [&mut impl DevicePtrMut<E>],
    ) -> Result<(), Error> {
        let stream = self.stream().clone();
        let sources: Vec<_> =
            sources.iter().map(|array| lend(*array, &stream).into_bytes()).collect();
        let mut targets: Vec<_> =
            targets.iter_mut().map(|array| lend_mut(&mut **array, &stream).into_bytes()).collect();
        self.run_after(Ok(()), &sources, &mut targets)
    }

    /// As [`DeviceCopy::run`], within arrays that are both sources and targets. In memory, no point
    /// of a target may be a point of a source.
    ///
    /// # Errors
    /// As [`DeviceCopy::run_after`].
    pub fn run_in_place<E: Pod>(
        &mut self,
        arrays: &mut [&mut impl DevicePtrMut<E>],
    ) -> Result<(), Error> {
        let stream = self.stream().clone();
        let mut arrays: Vec<_> =
            arrays.iter_mut().map(|array| lend_mut(&mut **array, &stream).into_bytes()).collect();
        self.run_in_place_after(Ok(()), &mut arrays)
    }

    /// Queues a copy from sources to targets, with an earlier error of this rank. Collective.
    /// Returns when the copy is queued or, if messages go through the host, when they have arrived.
    ///
    /// # Errors
    /// On every rank: the error of the lowest rank that has one; [`Error::OnRank`] for another
    /// number of arrays, for arrays that are too short or not aligned, and when the driver or the
    /// transport fails. Targets are then undefined.
    pub fn run_after(
        &mut self,
        mine: Result<(), Error>,
        sources: &[impl Deref<Target = DeviceMemory<u8>>],
        targets: &mut [impl DerefMut<Target = DeviceMemory<u8>>],
    ) -> Result<(), Error> {
        let fits = mine
            .and(self.check(ArrayRole::Source, sources.iter().map(|array| &**array)))
            .and(self.check(ArrayRole::Target, targets.iter().map(|array| &**array)));
        self.exchange(fits, sources, targets)
    }

    /// As [`DeviceCopy::run_after`], within arrays that are both sources and targets.
    ///
    /// # Errors
    /// As [`DeviceCopy::run_after`].
    pub fn run_in_place_after(
        &mut self,
        mine: Result<(), Error>,
        arrays: &mut [impl DerefMut<Target = DeviceMemory<u8>>],
    ) -> Result<(), Error> {
        let fits = mine.and(self.check(ArrayRole::Both, arrays.iter().map(|array| &**array)));
        // No point of a target is a point of a source.
        let sources: Vec<_> = arrays.iter().map(|array| array.alias()).collect();
        let sources: Vec<_> = sources.iter().collect();
        self.exchange(fits, &sources, arrays)
    }

    fn check<'a>(
        &self,
        role: ArrayRole,
        arrays: impl ExactSizeIterator<Item = &'a DeviceMemory<u8>>,
    ) -> Result<(), Error> {
        let arrays = arrays.map(|array| (array.address() as usize, array.len()));
        // Kernels copy several elements as one.
        self.plan.check(self.rank(), role, arrays, 16)
    }

    fn exchange(
        &mut self,
        fits: Result<(), Error>,
        sources: &[impl Deref<Target = DeviceMemory<u8>>],
        targets: &mut [impl DerefMut<Target = DeviceMemory<u8>>],
    ) -> Result<(), Error> {
        let Self { comm, device, node_memory, messages, packs, kept, gets, staged, .. } = self;
        let _unwinding = Unwinding::watch(comm.as_ref());
        let all_near = staged.is_none();
        agree_by_memory(comm.as_ref(), node_memory.as_deref_mut().filter(|_| all_near), fits)?;
        let stream = device.stream.clone();
        let [out, nothing] = messages;
        let queued = packs.iter().try_for_each(|(array, pack)| {
            pack.run::<u8, f32>(&stream, &*sources[*array], out.memory_mut())
        });
        let copied = kept.iter().try_for_each(|([from, to], copy)| {
            copy.run::<u8, u8>(&stream, &*sources[*from], &mut *targets[*to])
        });
        device.record_error(queued.and(copied));
        let met = match node_memory {
            Some(node_memory) => {
                let memory = (&*out.memory_mut(), nothing.memory_mut());
                let out = memory.0;
                let lengths = &mut std::iter::empty();
                exposure_epoch(device, node_memory.as_mut(), memory, lengths, |device, peers, _| {
                    gets.iter_mut().try_for_each(|(array, gets)| {
                        let source = |peer: usize| peers.source(peer, out);
                        gets.run(&device.stream, &source, &mut *targets[*array], None)
                    })
                })
            }
            None => Ok(()),
        };
        let sent = match staged {
            Some(staged) => staged.run(device, targets),
            None => Ok(()),
        };
        let done = met.and(sent).and(device.take_failure());
        agree_by_memory(comm.as_ref(), node_memory.as_deref_mut().filter(|_| all_near), done)
    }
}

impl fmt::Debug for DeviceCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceCopy")
            .field("rank", &self.rank())
            .field("data", &self.plan.data)
            .field("messages sent", &self.plan.sends.len())
            .field("bytes sent", &self.plan.bytes_sent())
            .finish_non_exhaustive()
    }
}
