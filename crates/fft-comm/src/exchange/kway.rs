//! Messages forwarded in a few rounds, several to a bundle.

mod bundle;
mod routes;

use std::sync::Arc;

use fft_core::{
    Arrival, Comm, Error, Exchange, Exchanger, Flight, MessageHandler, MessagePlan, MessageSpec,
    PinnedMemory, agree, gather_lists,
};

use super::messages::{slot_or_empty, unreserved};
use bundle::{Label, Span, Writer, Wrong};
use routes::{Bundle, Routes, Source};

/// The k-way exchange of AccFFT (Gholami, Hill, Malhotra and Biros, arXiv:1506.07933) on the routes
/// of Bruck et al.
///
/// In each of ⌈log_k P⌉ rounds a rank sends at most `k - 1` bundles, about k·log_k P in all. A
/// direct exchange has P messages. A message is sent once for each nonzero digit of its distance in
/// base k, so a rank sends up to `(k - 1)/k · log_k P` times the bytes of a direct exchange. This
/// pays if messages are small. With `k >= P` it is a direct exchange with 16 more bytes per
/// message. Slots for all rounds are held at once.
///
/// Messages are packed into the bundle they leave in, and decoded in the bundle they arrive in. All
/// receives are posted first. A bundle leaves when the bundles of earlier rounds have arrived.
///
/// A lost message (because a rank has left, or a header is wrong) is forwarded as lost, so that no
/// rank waits for it.
pub(crate) struct KWay {
    k: usize,
    comm: Box<dyn Comm>,
    flight: Box<dyn Flight>,
    /// By the number of the reshape.
    routes: Vec<(usize, Routes)>,
    /// Bundles that have arrived, by number.
    come: Vec<Option<Arrival>>,
    /// The ranges of their messages, by place in `Routes::incoming`.
    spans: Vec<Span>,
    forwarded: u64,
}

impl KWay {
    pub(crate) fn new(k: u8, comm: &dyn Comm) -> Result<Self, Error> {
        if k < 2 {
            return Err(Error::argument("exchange", format!("kway{k}"), "kway2 to kway255"));
        }
        let (comm, flight) = (agree(comm, comm.dup())?, comm.flight(None)?);
        let (routes, come, spans) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { k: k.into(), comm, flight, routes, come, spans, forwarded: 0 })
    }

    /// The messages of all ranks, in order of origin. Takes memory for P times the messages of the
    /// rank that sends most. Collective.
    fn gather(&self, message_plan: &MessagePlan) -> Result<Vec<Label>, Error> {
        let spec = |spec: &MessageSpec| [spec.peer, spec.bytes].map(|number| number as u64);
        let mine: Vec<_> = message_plan.sends.iter().map(spec).collect();
        let mut messages = Vec::new();
        for (origin, sends) in gather_lists(self.comm.as_ref(), &mine)?.into_iter().enumerate() {
            let sends = sends.into_iter().map(|send| send.map(|number| number as usize));
            messages.extend(sends.map(|[destination, bound]| Label { origin, destination, bound }));
        }
        Ok(messages)
    }
}

impl Exchanger for KWay {
    fn exchange(&self) -> Exchange {
        Exchange::KWay(self.k as u8)
    }

    fn pin(&mut self, pins: Arc<dyn PinnedMemory>) {
        self.flight.pin(pins);
    }

    fn reserve(&mut self, message_plan: &MessagePlan) -> Result<(), Error> {
        let messages = self.gather(message_plan)?;
        let (rank, ranks) = (self.comm.rank(), self.comm.size());
        let routes = Routes::new(rank, ranks, self.k, message_plan, &messages)?;
        let sizes = |bundles: &[Bundle]| bundles.iter().map(|b| b.bytes).collect::<Vec<_>>();
        self.flight.reserve(&sizes(&routes.sends), &sizes(&routes.recvs))?;
        if self.come.len() < routes.recvs.len() {
            self.come.resize_with(routes.recvs.len(), || None);
        }
        self.spans.resize(self.spans.len().max(routes.incoming.len()), None);
        self.routes.retain(|(reshape, _)| *reshape != message_plan.reshape);
        self.routes.push((message_plan.reshape, routes));
        Ok(())
    }

    fn run(
        &mut self,
        message_plan: &MessagePlan,
        handler: &mut dyn MessageHandler,
    ) -> Result<(), Error> {
        let Self { flight, come, spans, .. } = self;
        let found = self.routes.iter().find(|(reshape, _)| *reshape == message_plan.reshape);
        let Some((_, routes)) = found else {
            return Err(unreserved(message_plan));
        };
        // A run that failed may have left some.
        come.fill_with(|| None);
        spans.fill(None);
        for bundle in &routes.recvs {
            flight.post_recv(bundle.peer, bundle.bytes)?;
        }
        let rank = self.comm.rank();
        let mut run =
            Run { rank, routes, flight: flight.as_mut(), handler, come, spans, damage: Ok(()) };
        let (mut round, mut forwarded, mut result) = (0, 0, Ok(()));
        for bundle in &routes.sends {
            if bundle.round > round && result.is_ok() {
                round = bundle.round;
                result = run.receive(round);
            }
            // Also after an error, because others wait for this rank, and must learn which messages
            // are lost.
            match run.send(bundle) {
                Ok(bytes) => forwarded += bytes,
                Err(error) => result = result.and(Err(error)),
            }
        }
        run.handler.own();
        let result = result.and_then(|()| run.receive(usize::MAX));
        if result.is_ok() {
            let (come, spans) = (&*run.come, &*run.spans);
            run.handler.finish(&|number| message(routes, come, spans, routes.arrivals[number]).1);
        }
        let damage = run.damage;
        come.iter_mut().filter_map(Option::take).for_each(|arrival| flight.recycle(arrival));
        self.forwarded = forwarded;
        let finished = flight.wait_all();
        result.and(damage).and(finished)
    }

    fn forwarded(&self) -> u64 {
        self.forwarded
    }

    fn memory(&self) -> usize {
        let routes = self.routes.iter().map(|(_, routes)| routes.memory());
        self.flight.memory() + routes.sum::<usize>()
    }
}

struct Run<'a> {
    rank: usize,
    routes: &'a Routes,
    flight: &'a mut dyn Flight,
    handler: &'a mut dyn MessageHandler,
    come: &'a mut [Option<Arrival>],
    spans: &'a mut [Span],
    /// The first error: a damaged bundle, one that could not be made, or a lost message.
    damage: Result<(), Error>,
}

impl Run<'_> {
    /// Takes bundles until all of the rounds before this one have arrived.
    fn receive(&mut self, round: usize) -> Result<(), Error> {
        let Self { routes, .. } = *self;
        let missing = |come: &[Option<Arrival>]| {
            let mut both = routes.recvs.iter().zip(come);
            both.any(|(bundle, come)| bundle.round < round && come.is_none())
        };
        while missing(self.come) {
            match self.flight.wait_any()? {
                Some(arrival) => self.open(arrival),
                None => break,
            }
        }
        Ok(())
    }

    fn open(&mut self, arrival: Arrival) {
        let Self { rank, routes, .. } = *self;
        let (number, bundle) = (arrival.number, &routes.recvs[arrival.number]);
        let labels = routes.incoming[bundle.items.clone()].iter().map(|item| item.label);
        let opened =
            bundle::open(arrival.message.bytes(), labels, &mut self.spans[bundle.items.clone()]);
        if let (Err(wrong), Ok(())) = (opened, &self.damage) {
            let Wrong { found, expected } = wrong;
            self.damage = Err(Error::Header { rank, from: bundle.peer, found, expected });
        }
        self.come[number] = Some(arrival);
        for at in bundle.items.clone() {
            let item = &routes.incoming[at];
            let Some(number) = item.number else { continue };
            let (there, bytes) = message(routes, self.come, self.spans, at);
            self.handler.arrived(number, bytes);
            if !there && self.damage.is_ok() {
                let Label { origin, bound, .. } = item.label;
                self.damage = Err(Error::Message { rank, from: origin, found: 0, expected: bound });
            }
        }
    }

    /// Fills a bundle with this rank's own and with forwarded messages and sends it. Returns the
    /// bytes that were not packed here.
    fn send(&mut self, bundle: &Bundle) -> Result<u64, Error> {
        let Self { routes, .. } = *self;
        let slot = slot_or_empty(self.flight, bundle.bytes, &mut self.damage)?;
        let items = if slot.len() == bundle.bytes { bundle.items.clone() } else { 0..0 };
        let (mut writer, mut packed) = (Writer::new(slot), 0);
        for item in &routes.outgoing[items] {
            writer.push(&item.label, |bytes| match item.source {
                Source::Own(number) => {
                    let len = self.handler.pack(number, bytes);
                    packed += len;
                    Some(len)
                }
                Source::Held(at) => {
                    let (there, held) = message(routes, self.come, self.spans, at);
                    bytes[..held.len()].copy_from_slice(held);
                    there.then_some(held.len())
                }
            });
        }
        let slot = writer.finish();
        let forwarded = (slot.len() - packed) as u64;
        self.flight.send(bundle.peer, bundle.bytes, slot)?;
        Ok(forwarded)
    }
}

/// A message that has arrived, by its place in [`Routes::incoming`], and whether it has; a lost one
/// has no bytes.
fn message<'m>(
    routes: &Routes,
    come: &'m [Option<Arrival>],
    spans: &[Span],
    at: usize,
) -> (bool, &'m [u8]) {
    let Some(arrival) = &come[routes.incoming[at].bundle] else { return (false, &[]) };
    // Empty at the beginning of the slot, which is aligned for numbers.
    let (first, len) = spans[at].unwrap_or((0, 0));
    (spans[at].is_some(), &arrival.message.bytes()[first..first + len])
}
