//! Messages between ranks of a host that reach each other: encoded into the receiver's window.

use fft_core::{Comm, Error, Loss, Redistribution, Timings, Transfer, Wire};

use super::cuda::Cuda;
use super::epoch::EpochPeers;
use super::host_staged::undecoded;
use crate::abi::form::{Form, on_device};
use crate::base::{GpuError, GpuReal};
use crate::ffi::DeviceMemory;
use crate::kernel::{Inbox, Outbox};

/// The alignment of raw messages in a window.
const ALIGN: usize = 128;
/// No place in a window.
const NOWHERE: u64 = u64::MAX;

/// The messages of a reshape to and from ranks that are reached.
pub(super) struct DirectMessages<T> {
    wire: Wire,
    width: usize,
    /// Ranks and boxes.
    sends: Vec<(usize, Transfer)>,
    /// The bytes of outgoing messages, of this run if lengths vary.
    bytes: Vec<usize>,
    varies: bool,
    outbox: Option<Outbox<T>>,
    pub(super) incoming: IncomingMessages<T>,
}

/// The messages in this rank's window.
pub(super) struct IncomingMessages<T> {
    wire: Wire,
    /// Ranks and boxes.
    recvs: Vec<(usize, Transfer)>,
    /// The places of messages in the window, and its bytes.
    places: Vec<usize>,
    pub(super) window: usize,
    /// The bytes of messages of this run; of the longest before it.
    bytes: Vec<usize>,
    inbox: Option<Inbox<T>>,
}

/// The places of all ranks' messages; each row has the places that one rank can compute.
/// Collective.
pub(super) fn gather_places(
    comm: &dyn Comm,
    known: impl Iterator<Item = (usize, usize)>,
) -> Result<Vec<u64>, Error> {
    let ranks = comm.size();
    let mut mine = vec![NOWHERE; ranks];
    known.for_each(|(peer, place)| mine[peer] = place as u64);
    let mut all = vec![NOWHERE; ranks * ranks];
    comm.allgather(bytemuck::cast_slice(&mine), bytemuck::cast_slice_mut(&mut all))?;
    Ok(all)
}

impl<T: GpuReal> DirectMessages<T> {
    /// The messages to ranks that are `reached`; `raw` says which ranks' messages are raw.
    pub(super) fn new(
        redistribution: &Redistribution,
        wire: Wire,
        reached: &dyn Fn(usize) -> bool,
        raw: &dyn Fn(usize) -> bool,
    ) -> Result<Self, GpuError> {
        let (width, all) = (redistribution.width, redistribution.all());
        let sends: Vec<_> = (redistribution.sends.iter().filter(|part| reached(part.0)))
            .map(|(peer, part)| (*peer, redistribution.gather(part)))
            .collect();
        let recvs: Vec<_> = (redistribution.recvs.iter().filter(|part| reached(part.0)))
            .map(|(peer, part)| (*peer, redistribution.scatter(part, &all).expect("not empty")))
            .collect();
        // Ranks that are reached are on one host, and their messages are all raw, or none is.
        // Messages that the host codes are for other ranks.
        let any_raw = sends.iter().chain(&recvs).any(|(peer, _)| raw(*peer));
        let wire = if any_raw { Wire::Raw } else { on_device::<T>(wire) };
        let form = match wire {
            Wire::Raw => None,
            _ => Some(Form::new::<T>(wire, width)?),
        };
        let most = |part: &Transfer| match &form {
            None => part.elements() * width * size_of::<T>(),
            Some(form) => form.bound(part.elements()),
        };
        let (mut places, mut window) = (Vec::new(), 0usize);
        for (_, part) in &recvs {
            let place = form.map_or(window, |form| form.place(part.elements(), window));
            places.push(place);
            let end = place + most(part);
            window = if form.is_some() { end } else { end.next_multiple_of(ALIGN) };
        }
        let bytes = sends.iter().map(|(_, part)| most(part)).collect();
        let varies = form.is_some_and(|form| form.varies());
        let lengths = recvs.iter().map(|(_, part)| most(part)).collect();
        let incoming =
            IncomingMessages { wire, recvs, places, window, bytes: lengths, inbox: None };
        Ok(Self { wire, width, sends, bytes, varies, outbox: None, incoming })
    }

    /// Real numbers of outgoing messages that are coded.
    pub(super) fn coded(&self) -> usize {
        if self.wire == Wire::Raw { 0 } else { self.reals() }
    }

    fn reals(&self) -> usize {
        self.sends.iter().map(|(_, part)| part.elements() * self.width).sum()
    }

    /// Bytes of memory held in addition to the window.
    pub(super) fn memory(&self) -> usize {
        let out = self.outbox.as_ref().map_or(0, Outbox::memory);
        out + self.incoming.inbox.as_ref().map_or(0, Inbox::memory)
    }

    /// The squared error of the last run's outgoing messages, which are done.
    pub(super) fn squared_error(&self) -> f64 {
        self.outbox.as_ref().map_or(0.0, Outbox::squared_error)
    }

    /// The first message that did not decode in the last run, which must be finished.
    pub(super) fn damage(&self, rank: usize) -> Result<(), Error> {
        let IncomingMessages { wire, recvs, inbox, .. } = &self.incoming;
        match inbox.as_ref().and_then(Inbox::bad) {
            Some(number) => Err(undecoded(rank, recvs[number].0, *wire)),
            None => Ok(()),
        }
    }

    /// The places of all ranks' messages in windows, a row for each receiver. Collective.
    pub(super) fn gather_places(&self, comm: &dyn Comm) -> Result<Vec<u64>, Error> {
        let peers = self.incoming.recvs.iter().map(|(peer, _)| *peer);
        gather_places(comm, peers.zip(self.incoming.places.iter().copied()))
    }

    /// Prepares the launches, with the places of all ranks' messages.
    pub(super) fn reserve(&mut self, device: &Cuda, all: &[u64]) -> Result<(), GpuError> {
        let Self { wire, width, sends, bytes, .. } = self;
        let (gpu, stream, own) = (&device.gpu, &device.stream, device.rank);
        let exports = &device.connections().exports;
        let slot = |rank: usize, place: usize, bytes: usize| {
            exports[rank].as_ref().expect("a rank that is reached").slot(place, bytes)
        };
        if !sends.is_empty() {
            let mut parts = Vec::with_capacity(sends.len());
            for ((peer, part), bytes) in sends.iter().zip(&*bytes) {
                let place = all[peer * exports.len() + own] as usize;
                parts.push((part, slot(*peer, place, *bytes)?));
            }
            self.outbox = Some(Outbox::new(gpu, stream, *wire, *width, &parts)?);
        }
        let IncomingMessages { wire, recvs, places, bytes, inbox, .. } = &mut self.incoming;
        if !recvs.is_empty() {
            let mut parts = Vec::with_capacity(recvs.len());
            for (((_, part), place), bytes) in recvs.iter().zip(&*places).zip(&*bytes) {
                parts.push((part, slot(own, *place, *bytes)?));
            }
            *inbox = Some(Inbox::new(gpu, stream, *wire, *width, &parts)?);
        }
        Ok(())
    }

    /// Queues the packing of messages; if lengths vary, the host waits for them.
    pub(super) fn pack(
        &mut self,
        device: &mut Cuda,
        src: &DeviceMemory<T>,
        (step, finer): (f64, Option<f64>),
        timings: &mut Timings,
    ) -> Result<(), GpuError> {
        let reals = self.reals();
        let Some(outbox) = &mut self.outbox else { return Ok(()) };
        device.needs_sync |= self.wire != Wire::Raw;
        outbox.pack(&device.stream, src, step)?;
        timings.reals += reals as u64;
        if self.varies {
            device.done.record(&device.stream)?;
            device.done.wait()?;
            // Errors of equal numbers are equal, and add up.
            let room = Loss::room(reals as f64, step);
            if let Some(finer) = finer.filter(|_| outbox.squared_error() > room) {
                outbox.pack(&device.stream, src, finer)?;
                device.done.record(&device.stream)?;
                device.done.wait()?;
            }
            for (bytes, packed) in self.bytes.iter_mut().zip(outbox.packed()) {
                *bytes = packed.bytes;
            }
        }
        timings.sent += self.bytes.iter().sum::<usize>() as u64;
        Ok(())
    }

    /// The ranks and lengths of outgoing messages; and the incoming messages.
    pub(super) fn sides(
        &mut self,
    ) -> (impl Iterator<Item = (usize, usize)>, &mut IncomingMessages<T>) {
        let peers = self.sends.iter().map(|(peer, _)| *peer);
        (peers.zip(self.bytes.iter().copied()), &mut self.incoming)
    }
}

impl<T: GpuReal> IncomingMessages<T> {
    /// Queues the reading of messages.
    pub(super) fn unpack(
        &mut self,
        device: &mut Cuda,
        peers: EpochPeers<'_>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), GpuError> {
        let Some(inbox) = &mut self.inbox else { return Ok(()) };
        device.needs_sync |= self.wire != Wire::Raw;
        for ((peer, _), bytes) in self.recvs.iter().zip(&mut self.bytes) {
            *bytes = peers.length(*peer);
        }
        inbox.unpack(&device.stream, &self.bytes, dst)
    }
}
