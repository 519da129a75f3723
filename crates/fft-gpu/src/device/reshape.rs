//! A reshape on a device.

use std::time::Instant;

use fft_core::{
    Algorithm, BoundStep, BufferRequirement, Error, Link, Loss, MessagePlan, NodeMemory, Problem,
    Recipe, Redistribution, RunContext, RunParts, Timings, Transfer, Wire,
};

use super::Cuda;
use super::epoch::visit;
use super::fused_fetch::Next;
use super::host_staged::{Ends, Staged};
use crate::abi::{message::Form, transposed_when_read};
use crate::base::{GpuError, GpuReal};
use crate::ffi::{DeviceMemory, Gathering, Inbox, Outbox, PeerGets, Place};

/// Raw messages begin at multiples of this many bytes in a window.
const ALIGN: usize = 128;
/// No place.
const NOWHERE: u64 = u64::MAX;

/// How boxes in memory that is reached get to where they belong.
enum Near {
    /// By one kernel.
    Pulled(Box<PeerGets>),
    /// While the transforms that follow read them.
    Fused(Box<Gathering>),
}

/// Everything one rank needs to move its data from one layout to another.
pub(super) struct Reshape<T> {
    rank: usize,
    ranks: usize,
    width: usize,
    wire: Wire,
    exchange: Algorithm,
    loss: Option<Loss>,
    /// Between neighbouring values on a wire, and for messages that would lose too much with that.
    step: f64,
    finer: Option<f64>,
    /// Whether others read what is shown where it is.
    buffer_requirement: BufferRequirement,
    near: Near,
    /// Messages to and from ranks that are reached, coded or on another device; places in this rank's window.
    sends: Vec<(usize, Transfer)>,
    recvs: Vec<(usize, Transfer)>,
    places: Vec<usize>,
    /// Bytes of each message, where they do not depend on the data; of those to come, of this run.
    bounds: [Vec<usize>; 2],
    varies: bool,
    outbox: Option<Outbox<T>>,
    inbox: Option<Inbox<T>>,
    /// Messages to and from ranks that are not, where there are such ranks anywhere.
    staged: Option<Staged<T>>,
}

impl Near {
    fn run<'v, T: GpuReal>(
        &mut self,
        device: &mut Cuda<T>,
        source: &dyn Fn(usize) -> Place<'v>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), GpuError> {
        match self {
            Self::Pulled(pulls) => pulls.run(&device.stream, source, dst),
            Self::Fused(fused) => {
                let (stream, area) = device.stream_and_area();
                fused.run(stream, source, dst, area)
            }
        }
    }
}

/// How data on a wire gets to a rank, or from there.
pub(super) fn link<T: GpuReal>(
    device: &Cuda<T>,
    problem: &Problem,
    wire: Wire,
    peer: usize,
) -> Link {
    let (rank, peers) = (device.rank, &device.meeting().peers);
    match peer {
        own if own == rank => Link::Own,
        peer if !peers.beside(peer, problem.fetches()) => Link::Remote,
        peer if wire == Wire::Raw || problem.is_raw_link(rank, peer) => Link::Shared,
        _ => Link::Remote,
    }
}

impl<T: GpuReal> Reshape<T> {
    /// Prepares a reshape; with the transforms that follow, if they can fetch what they read.
    pub(super) fn new(
        device: &mut Cuda<T>,
        recipe: &Recipe,
        leg: &BoundStep<'_>,
        (wire, exchange, number): (Wire, Algorithm, usize),
        next: &Next,
    ) -> Result<Self, Error> {
        let (rank, problem) = (device.rank, recipe.problem());
        let (peers, ranks) = (&device.meeting().peers, leg.from.layout.ranks());
        let bare = |peer: usize| wire == Wire::Raw || problem.is_raw_link(rank, peer);
        let link = |peer: usize| link(device, problem, wire, peer);
        let redistribution = Redistribution::new(rank, &link, leg.from, leg.to, problem.howmany);
        // Who reads them knows where all codes begin, which whoever makes them does not.
        let redistribution = match wire {
            Wire::Tolerance => redistribution
                .transposed_when_read(transposed_when_read(leg.from.width() * size_of::<T>())),
            _ => redistribution,
        };
        let (width, all) = (redistribution.width, redistribution.all());
        // All that is to be transformed comes from there, and the group is of what comes.
        let fused = match peers.all && redistribution.recvs.is_empty() {
            true => next.plan::<T>(&device.gpu, &redistribution.pieces(), ranks),
            false => Ok(None),
        };
        let near = match fused.map_err(|why| why.on(rank))? {
            Some(fused) => Near::Fused(Box::new(fused)),
            None => {
                let boxes: Vec<_> = (redistribution.local_reads.iter())
                    .filter_map(|near| Some((near.owner, redistribution.take(near, &all)?)))
                    .collect();
                let parts: Vec<_> = boxes.iter().map(|(owner, part)| (*owner, part)).collect();
                let pulls = PeerGets::new::<T>(&device.gpu, &device.stream, width, ranks, &parts);
                Near::Pulled(Box::new(pulls.map_err(|why| why.on(rank))?))
            }
        };
        let reached = |ends: &(usize, _)| peers.reached(ends.0);
        let sends: Vec<_> = (redistribution.sends.iter().filter(|ends| reached(ends)))
            .map(|(peer, part)| (*peer, redistribution.gather(part)))
            .collect();
        let recvs: Vec<_> = (redistribution.recvs.iter().filter(|ends| reached(ends)))
            .map(|(peer, part)| (*peer, redistribution.scatter(part, &all).expect("not empty")))
            .collect();
        let (mut places, mut end) = (Vec::new(), 0);
        // Ranks that are reached are of one host, and all raw or none; `lossless` is for ranks that are not reached.
        let direct = sends.iter().chain(&recvs).any(|(peer, _)| bare(*peer));
        let direct = if direct || wire == Wire::Lossless { Wire::Raw } else { wire };
        let (bounds, varies) = match direct {
            Wire::Raw => {
                let bytes = |part: &Transfer| part.elements() * width * size_of::<T>();
                for (_, part) in &recvs {
                    places.push(end);
                    end = (end + bytes(part)).next_multiple_of(ALIGN);
                }
                let sides = [&sends, &recvs];
                (sides.map(|ends| ends.iter().map(|(_, part)| bytes(part)).collect()), false)
            }
            _ => {
                let form = Form::new::<T>(direct, width).map_err(|why| why.on(rank))?;
                let bytes = |part: &Transfer| form.bound(part.elements());
                for (_, part) in &recvs {
                    places.push(form.place(part.elements(), end));
                    end = places[places.len() - 1] + bytes(part);
                }
                let sides = [&sends, &recvs];
                let bounds = sides.map(|ends| ends.iter().map(|(_, part)| bytes(part)).collect());
                (bounds, form.varies())
            }
        };
        let staged = match peers.all {
            true => None,
            false => {
                let far = |peer: usize| !peers.reached(peer);
                let element = width * size_of::<T>();
                let transport = device.taken;
                let ends = Ends { far: &far, bare: &bare, wire, exchange, transport, number };
                Some(Staged::new(redistribution, leg, (element, problem.howmany), ends))
            }
        };
        let coded = sends.iter().filter(|_| direct != Wire::Raw);
        let coded = coded.map(|(_, part)| part.elements() * width).sum::<usize>();
        let coded = coded + staged.as_ref().map_or(0, |staged| staged.coded(width));
        let near_others = device.meeting().peer_info.is_some();
        device.window = device.window.max(end);
        if let Near::Fused(fused) = &near {
            device.area_bytes = device.area_bytes.max(fused.work_bytes());
        }
        if let Some(staged) = &staged {
            let most = device.staged.iter_mut().zip(staged.bytes());
            most.for_each(|(most, bytes)| *most = bytes.max(*most));
        }
        Ok(Self {
            rank,
            ranks,
            width,
            wire: direct,
            exchange,
            loss: leg.loss(coded),
            step: 0.0,
            finer: None,
            buffer_requirement: if near_others {
                BufferRequirement::OutOfPlaceExposed
            } else {
                BufferRequirement::OutOfPlace
            },
            near,
            sends,
            recvs,
            places,
            bounds,
            varies,
            outbox: None,
            inbox: None,
            staged,
        })
    }

    /// Whether the transforms that follow are done with it.
    pub(super) fn is_fused(&self) -> bool {
        matches!(self.near, Near::Fused(_))
    }

    pub(super) fn buffer_requirement(&self) -> BufferRequirement {
        self.buffer_requirement
    }

    pub(super) fn loss(&self) -> Option<Loss> {
        self.loss
    }

    pub(super) fn set_step(&mut self, step: f64, finer: Option<f64>) {
        (self.step, self.finer) = (step, finer);
    }

    pub(super) fn message_plan(&self) -> Option<&MessagePlan> {
        self.staged.as_ref().map(Staged::message_plan)
    }

    pub(super) fn squared_error(&self) -> f64 {
        let direct = self.outbox.as_ref().map_or(0.0, squared_error);
        direct + self.staged.as_ref().map_or(0.0, Staged::squared_error)
    }

    /// The first message of the last run that did not decode, when the device has come to its end.
    pub(super) fn damage(&self) -> Result<(), Error> {
        if let Some(number) = self.inbox.as_ref().and_then(Inbox::bad) {
            return Err(undecoded(self.rank, self.recvs[number].0, self.wire));
        }
        self.staged.as_ref().map_or(Ok(()), |staged| staged.damage(self.rank))
    }

    /// Bytes of memory held, but for what all reshapes share.
    pub(super) fn memory(&self) -> usize {
        let near = match &self.near {
            Near::Pulled(pulls) => pulls.memory(),
            Near::Fused(fused) => fused.memory(),
        };
        let out = self.outbox.as_ref().map_or(0, Outbox::memory);
        let come = self.inbox.as_ref().map_or(0, Inbox::memory);
        near + out + come + self.staged.as_ref().map_or(0, Staged::memory)
    }

    /// Tells others where their messages go, and prepares the launches.
    pub(super) fn reserve(&mut self, tools: &mut RunContext<Cuda<T>>) -> Result<(), Error> {
        let RunParts { device, exchange, .. } = tools.split(self.exchange);
        let mut mine = vec![NOWHERE; self.ranks];
        for ((peer, _), place) in self.recvs.iter().zip(&self.places) {
            mine[*peer] = *place as u64;
        }
        let mut all = vec![NOWHERE; self.ranks * self.ranks];
        let comm = &device.meeting().comm;
        comm.allgather(bytemuck::cast_slice(&mine), bytemuck::cast_slice_mut(&mut all))?;
        let boxes = self.boxes(device, &all).map_err(|why| why.on(self.rank));
        let staged = match &mut self.staged {
            Some(staged) => staged.reserve(device, exchange, self.width),
            None => Ok(()),
        };
        boxes.and(staged)
    }

    fn boxes(&mut self, device: &Cuda<T>, all: &[u64]) -> Result<(), GpuError> {
        let (gpu, stream, near) = (&device.gpu, &device.stream, &device.meeting().near);
        let slots =
            |ends: &[(usize, Transfer)], bounds: &[usize], at: &dyn Fn(usize, usize) -> _| {
                let slot = |(i, (peer, _)): (usize, &(usize, Transfer))| {
                    let (whose, place): (usize, usize) = at(i, *peer);
                    let whose = near[whose].as_ref().expect("a rank that is reached");
                    whose.slot(place, bounds[i])
                };
                ends.iter().enumerate().map(slot).collect::<Result<Vec<_>, GpuError>>()
            };
        if !self.sends.is_empty() {
            let there = |_: usize, peer: usize| (peer, all[peer * self.ranks + self.rank] as usize);
            let slots = slots(&self.sends, &self.bounds[0], &there)?;
            let parts: Vec<_> = self.sends.iter().map(|(_, part)| part).zip(slots).collect();
            self.outbox = Some(Outbox::new(gpu, stream, self.wire, self.width, &parts)?);
        }
        if !self.recvs.is_empty() {
            let here = |i: usize, _: usize| (self.rank, self.places[i]);
            let slots = slots(&self.recvs, &self.bounds[1], &here)?;
            let parts: Vec<_> = self.recvs.iter().map(|(_, part)| part).zip(slots).collect();
            self.inbox = Some(Inbox::new(gpu, stream, self.wire, self.width, &parts)?);
        }
        Ok(())
    }

    /// Redistribution the data. Collective.
    pub(super) fn run(
        &mut self,
        tools: &mut RunContext<Cuda<T>>,
        src: &DeviceMemory<T>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), Error> {
        let start = Instant::now();
        let RunParts { device, exchange, node_memory, timings } = tools.split(self.exchange);
        let queued = self.send(device, src, timings);
        device.record_error(queued);
        if let Some(staged) = &mut self.staged {
            let queued = staged.launch(device, src, self.step);
            device.record_error(queued);
        }
        let met = match node_memory {
            Some(node_memory) => self.exposure_epoch(device, node_memory.as_mut(), src, dst),
            None => {
                let own = |_: usize| Place::own(src);
                let queued = self.near.run(device, &own, dst);
                device.record_error(queued);
                Ok(())
            }
        };
        let sent = match &mut self.staged {
            Some(staged) => {
                let how = (self.step, self.finer);
                staged.exchange(device, exchange, (src, dst), how, timings)
            }
            None => Ok(()),
        };
        timings.exchange += start.elapsed();
        met.and(sent)
    }

    /// Makes coded messages in the windows of ranks that are reached. Where their lengths depend on the data, the host waits
    /// for them.
    fn send(
        &mut self,
        device: &mut Cuda<T>,
        src: &DeviceMemory<T>,
        timings: &mut Timings,
    ) -> Result<(), GpuError> {
        let Some(outbox) = &mut self.outbox else { return Ok(()) };
        device.needs_sync |= self.wire != Wire::Raw;
        outbox.make(&device.stream, src, self.step)?;
        let reals: usize = self.sends.iter().map(|(_, part)| part.elements() * self.width).sum();
        timings.reals += reals as u64;
        if self.varies {
            device.done.record(&device.stream)?;
            device.done.wait()?;
            // Numbers that are all alike are all wrong by the same.
            let room = Loss::room(reals as f64, self.step);
            if let Some(finer) = self.finer.filter(|_| squared_error(outbox) > room) {
                outbox.make(&device.stream, src, finer)?;
                device.done.record(&device.stream)?;
                device.done.wait()?;
            }
            for (bytes, packed) in self.bounds[0].iter_mut().zip(outbox.packed()) {
                *bytes = packed.bytes;
            }
        }
        timings.sent += self.bounds[0].iter().sum::<usize>() as u64;
        Ok(())
    }

    /// Meets the ranks of the host: takes what they show, reads the messages in this rank's window, of which the end of the run
    /// tells whether they could be read.
    fn exposure_epoch(
        &mut self,
        device: &mut Cuda<T>,
        node_memory: &mut dyn NodeMemory,
        src: &DeviceMemory<T>,
        dst: &mut DeviceMemory<T>,
    ) -> Result<(), Error> {
        let Self { near, sends, recvs, bounds: [out, come], inbox, wire, .. } = self;
        let mut sends = sends.iter().zip(&*out).map(|((peer, _), bytes)| (*peer, *bytes));
        visit(device, node_memory, (src, dst), &mut sends, |device, met, dst| {
            near.run(device, &|peer| met.source(peer, src), dst)?;
            let Some(inbox) = &mut *inbox else { return Ok(()) };
            device.needs_sync |= *wire != Wire::Raw;
            for ((peer, _), bytes) in recvs.iter().zip(&mut *come) {
                *bytes = met.sends(*peer);
            }
            inbox.read(&device.stream, come, dst)
        })
    }
}

/// What is said of a message that the device could not read.
pub(super) fn undecoded(rank: usize, from: usize, wire: Wire) -> Error {
    let found = "a message that does not decode".into();
    Error::Header { rank, from, found, expected: format!("one of wire {wire}") }
}

/// What messages lost, when the device has come so far.
pub(super) fn squared_error<T: GpuReal>(outbox: &Outbox<T>) -> f64 {
    outbox.packed().map(|packed| packed.squared_error).sum()
}
