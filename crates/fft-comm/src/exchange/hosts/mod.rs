//! Messages of all ranks of a host to all ranks of another, sent as one.

mod bundles;
mod entry;

use std::sync::Arc;

use fft_core::{
    BUNDLE_BYTES, Comm, Error, Exchange, Exchanger, Flight, Memory, MessageHandler, MessagePlan,
    MessageSlots, MessageSpec, PinnedMemory, SlotParts, SlotSpec, Topology, UsedBytes, agree,
};

use super::messages::{panicked, unreserved};
use crate::idle::Idle;
use bundles::{Bundles, Item, Items, LedBundle, Messages};
use entry::{Label, Wrong};

/// Messages of a host's ranks go in bundles:
///
/// ```text
/// for each bundle that this rank leads: post its receive
/// for each chunk, for each other host: pack this rank's messages into the slot of the bundle
///     after each: send bundles that this rank leads once all ranks have packed;
///         publish those that have arrived
/// copy this rank's own data
/// until all is done: send, publish, and unpack messages of published bundles
/// ```
///
/// Slots are memory that the ranks of a host share, so that messages are packed where they are sent
/// from and unpacked where they are received. The leader of a bundle depends on chunk and host, so
/// that all ranks of a host, and all its network interfaces, take part. Messages within a host take
/// the same path without the network.
///
/// A message is lost if its rank or its leader has left. Slots of all reshapes are held at once.
pub(crate) struct Hosts {
    comm: Box<dyn Comm>,
    topology: Topology,
    /// `run` takes it, so a panic drops it, which notifies the others that this rank has left.
    transport: Option<Transport>,
    /// By the number of the reshape.
    reshapes: Vec<(usize, Reshape)>,
    forwarded: u64,
}

struct Transport {
    flight: Box<dyn Flight>,
    slots: Box<dyn MessageSlots>,
}

struct Reshape {
    /// The number of the list of slots.
    list: usize,
    bundles: Bundles,
    progress: Progress,
}

/// The progress of a run.
struct Progress {
    /// Bundles that this rank leads and has sent, in order.
    sent: usize,
    /// Whether each bundle that this rank receives has arrived.
    came: Vec<bool>,
    /// Whether messages of each slot have been unpacked.
    unpacked: Vec<bool>,
}

/// The exchange; `None` on all ranks if ranks cannot share slots, or have no memory for all
/// messages. Collective.
pub(super) fn make(memory: Memory, comm: &dyn Comm) -> Result<Option<Box<dyn Exchanger>>, Error> {
    let topology = comm.topology();
    if memory == Memory::Least || topology.ranks_per_host() == 1 {
        return Ok(None);
    }
    let Some(slots) = agree(comm, comm.message_slots())? else { return Ok(None) };
    let flight = agree(comm, comm.flight(Some(BUNDLE_BYTES)))?;
    let (comm, transport) = (agree(comm, comm.dup())?, Some(Transport { flight, slots }));
    Ok(Some(Box::new(Hosts { comm, topology, transport, reshapes: Vec::new(), forwarded: 0 })))
}

impl Exchanger for Hosts {
    fn exchange(&self) -> Exchange {
        Exchange::Hosts
    }

    fn pin(&mut self, pins: Arc<dyn PinnedMemory>) {
        self.transport.iter_mut().for_each(|it| it.flight.pin(pins.clone()));
    }

    fn reserve(&mut self, message_plan: &MessagePlan) -> Result<(), Error> {
        let rank = self.comm.rank();
        let Some(Transport { flight, slots }) = &mut self.transport else {
            return Err(panicked(rank));
        };
        let all = slots.allgather(&encoded(message_plan))?;
        let messages: Vec<_> = all.iter().map(|numbers| decoded(numbers)).collect();
        let bundles = Bundles::new(rank, &self.topology, &messages);
        let list = slots.reserve(&bundles.slots)?;
        let bytes = |led: &[LedBundle]| -> Vec<_> {
            led.iter().map(|led| bundles.slots[led.slot].bytes).collect()
        };
        flight.reserve_message_buffers(&bytes(&bundles.sent), &bytes(&bundles.received))?;
        if !flight.receives_into_slots() {
            flight.reserve(&vec![0; bundles.sent.len()], &vec![0; bundles.received.len()])?;
        }
        let (came, unpacked) =
            (vec![false; bundles.received.len()], vec![false; bundles.unpacked.len()]);
        let progress = Progress { sent: 0, came, unpacked };
        self.reshapes.retain(|(reshape, _)| *reshape != message_plan.reshape);
        self.reshapes.push((message_plan.reshape, Reshape { list, bundles, progress }));
        Ok(())
    }

    fn run(
        &mut self,
        message_plan: &MessagePlan,
        handler: &mut dyn MessageHandler,
    ) -> Result<(), Error> {
        let rank = self.comm.rank();
        let found = self.reshapes.iter_mut().find(|(reshape, _)| *reshape == message_plan.reshape);
        let Some((_, Reshape { list, bundles, progress })) = found else {
            return Err(unreserved(message_plan));
        };
        let mut transport = self.transport.take().ok_or_else(|| panicked(rank))?;
        let Transport { flight, slots } = &mut transport;
        if let Err(why) = slots.begin(*list) {
            // Put back even after an error, because the others may wait where this rank drops it.
            self.transport = Some(transport);
            return Err(why);
        }
        progress.sent = 0;
        progress.came.fill(false);
        progress.unpacked.fill(false);
        let mut run = Run {
            rank,
            bundles,
            flight: flight.as_mut(),
            slots: slots.as_mut(),
            handler,
            progress,
            forwarded: 0,
            damage: Ok(()),
        };
        let result = run.run();
        let (damage, forwarded) = (run.damage, run.forwarded);
        // All slots that were lent have been dropped by then.
        let sent = flight.wait_all();
        let finished = slots.finish();
        self.forwarded = forwarded;
        self.transport = Some(transport);
        result.and(sent).and(damage).and(finished)
    }

    fn forwarded(&self) -> u64 {
        self.forwarded
    }

    fn memory(&self) -> usize {
        let lists = self.reshapes.iter().map(|(_, reshape)| reshape.bundles.memory());
        let transport = self.transport.as_ref();
        transport.map_or(0, |it| it.flight.memory() + it.slots.memory()) + lists.sum::<usize>()
    }
}

struct Run<'a> {
    rank: usize,
    bundles: &'a Bundles,
    flight: &'a mut dyn Flight,
    slots: &'a mut dyn MessageSlots,
    handler: &'a mut dyn MessageHandler,
    progress: &'a mut Progress,
    /// Bytes sent in addition to the packed ones.
    forwarded: u64,
    /// The first lost or damaged message.
    damage: Result<(), Error>,
}

impl Run<'_> {
    fn run(&mut self) -> Result<(), Error> {
        let mut idle = Idle::default();
        while !self.slots.is_free() {
            self.slots.progress();
            idle.wait();
        }
        self.post_recvs()?;
        for items in &self.bundles.packed {
            self.pack(items);
            self.send()?;
        }
        self.handler.own();
        let mut idle = Idle::default();
        loop {
            let moved = self.send()? | self.receive()? | self.unpack();
            let Progress { sent, came, unpacked } = &*self.progress;
            let is_done = *sent == self.bundles.sent.len();
            if is_done && !came.contains(&false) && !unpacked.contains(&false) {
                break;
            }
            if moved {
                idle = Idle::default();
            } else {
                self.slots.progress();
                idle.wait();
            }
        }
        let Self { bundles, slots, handler, .. } = self;
        handler.finish(&|number| {
            let message = bundles.by_number.get(number).and_then(|(slot, item)| {
                entry::read(slots.message(*slot)?, item.entry, &item.label).ok()?
            });
            message.unwrap_or(no_message())
        });
        Ok(())
    }

    fn post_recvs(&mut self) -> Result<(), Error> {
        for led in &self.bundles.received {
            let (bytes, peer) = (self.bundles.slots[led.slot].bytes, led.peer.expect("a host"));
            if self.flight.receives_into_slots() {
                self.flight.post_recv_into(peer, self.slots.lend(led.slot, bytes))?
            } else {
                self.flight.post_recv(peer, bytes)?
            }
        }
        Ok(())
    }

    /// Packs this rank's messages of a bundle.
    fn pack(&mut self, Items { slot, items }: &Items) {
        let (handler, forwarded) = (&mut *self.handler, &mut self.forwarded);
        self.slots.write(*slot, &mut |SlotParts { first, second, offset }| {
            let (mut at, mut packed) = (0, 0);
            for item in items {
                let message = &mut second[at..at + item.label.bound];
                let len = handler.pack(item.number, message);
                entry::write(&mut first[item.entry..], &item.label, len, offset + at);
                (at, packed) = (at + entry::room(len), packed + len);
            }
            *forwarded += (first.len() + at - packed) as u64;
            at
        });
    }

    /// Sends bundles that this rank leads, in order, as far as they are written. Returns whether
    /// any was sent.
    fn send(&mut self) -> Result<bool, Error> {
        let mut moved = false;
        while let Some(LedBundle { slot, peer }) =
            self.bundles.sent.get(self.progress.sent).copied()
            && self.slots.is_written(slot)
        {
            let (spec, mut bytes) = (&self.bundles.slots[slot], 0);
            self.slots.edit(slot, &mut |bundle, used| {
                // Readers within the host expect messages where they were packed.
                bytes = match peer {
                    Some(_) => compact(spec, bundle, used),
                    None => lose(spec, bundle, used),
                };
            });
            match peer {
                Some(peer) => {
                    let message = self.slots.lend(slot, bytes);
                    self.flight.send(peer, spec.bytes, message)?;
                }
                None => self.slots.publish(slot, bytes),
            }
            self.progress.sent += 1;
            moved = true;
        }
        Ok(moved)
    }

    /// Publishes bundles that have arrived. Returns whether there were any.
    fn receive(&mut self) -> Result<bool, Error> {
        let mut moved = false;
        while let Some(arrival) = self.flight.test_any()? {
            let (number, bytes) = (arrival.number, arrival.message.len());
            let slot = self.bundles.received[number].slot;
            let copied = if self.flight.receives_into_slots() {
                Ok(())
            } else {
                self.slots.copy(slot, &arrival.message)
            };
            self.flight.recycle(arrival);
            self.slots.publish(slot, if copied.is_ok() { bytes } else { 0 });
            (self.progress.came[number], moved) = (true, true);
        }
        Ok(moved)
    }

    /// Shows messages of published slots to the handler. Returns whether there were any.
    fn unpack(&mut self) -> bool {
        let mut moved = false;
        for (done, Items { slot, items }) in
            self.progress.unpacked.iter_mut().zip(&self.bundles.unpacked)
        {
            let owner = self.bundles.slots[*slot].owner;
            // Tested first, because a leader may publish a slot just before it leaves.
            let gone = self.slots.is_gone(owner).then(|| self.slots.ranks()[owner]);
            let bundle = match self.slots.message(*slot) {
                _ if *done => continue,
                Some(bytes) if !bytes.is_empty() => Bundle::Published { bytes, gone },
                message => match (gone, message) {
                    (Some(gone), _) => Bundle::LeaderGone(gone),
                    (None, Some(_)) => Bundle::Lost,
                    (None, None) => continue,
                },
            };
            for item in items {
                let message = bundle.message(self.rank, item);
                self.handler
                    .arrived(item.number, message.as_ref().copied().unwrap_or(no_message()));
                let damage = message.map(drop);
                if self.damage.is_ok() {
                    self.damage = damage;
                }
            }
            (*done, moved) = (true, true);
        }
        moved
    }
}

/// A bundle that is no longer awaited.
enum Bundle<'b> {
    /// Published by a rank that may have left since.
    Published { bytes: &'b [u8], gone: Option<usize> },
    /// The leader that sends it has left, or it could not be copied.
    Lost,
    /// The rank that should have published it has left.
    LeaderGone(usize),
}

impl<'b> Bundle<'b> {
    /// The message of an item to a rank.
    fn message(&self, rank: usize, item: &Item) -> Result<&'b [u8], Error> {
        let Label { origin: from, bound, .. } = item.label;
        let lost = Error::Message { rank, from, found: 0, expected: bound };
        match *self {
            Self::Published { bytes, gone } => {
                let read = entry::read(bytes, item.entry, &item.label);
                match (read, gone) {
                    (Ok(message), _) => message.ok_or(lost),
                    (Err(_), Some(gone)) => Err(Error::Left { gone }),
                    (Err(Wrong { found, expected }), None) => {
                        Err(Error::Header { rank, from, found, expected })
                    }
                }
            }
            Self::Lost => Err(lost),
            Self::LeaderGone(gone) => Err(Error::Left { gone }),
        }
    }
}

/// Replaces a lost message; aligned like any message.
fn no_message() -> &'static [u8] {
    bytemuck::cast_slice::<u128, u8>(&[])
}

/// Marks messages of ranks that have left as lost. Returns the bytes of the bundle.
fn lose(spec: &SlotSpec, bundle: &mut [u8], used: &UsedBytes<'_>) -> usize {
    for rank in 0..spec.parts.len() {
        let first = spec.offsets(rank)[0];
        if used(rank).is_none() {
            entry::lose(&mut bundle[first..first + spec.parts[rank][0]]);
        }
    }
    spec.bytes
}

/// Closes the gaps after parts that are not full. Returns the bytes of the bundle.
fn compact(spec: &SlotSpec, bundle: &mut [u8], used: &UsedBytes<'_>) -> usize {
    lose(spec, bundle, used);
    let mut end = spec.parts.iter().map(|[first, _]| first).sum::<usize>();
    for rank in 0..spec.parts.len() {
        let ([first, second], used) = (spec.offsets(rank), used(rank).unwrap_or(0));
        if end < second {
            bundle.copy_within(second..second + used, end);
            entry::advance(&mut bundle[first..first + spec.parts[rank][0]], second - end);
        }
        end += used;
    }
    end
}

fn encoded(message_plan: &MessagePlan) -> Vec<u64> {
    let spec = |spec: &MessageSpec| [spec.peer, spec.bytes, spec.chunk];
    let specs = message_plan.sends.iter().chain(&message_plan.recvs).flat_map(spec);
    let numbers = [message_plan.sends.len()].into_iter().chain(specs);
    numbers.map(|number| number as u64).collect()
}

fn decoded(numbers: &[u64]) -> Messages {
    let (sends, specs) = numbers.split_first().expect("the number of messages sent");
    let spec = |spec: &[u64; 3]| {
        let [peer, bytes, chunk] = spec.map(|number| number as usize);
        MessageSpec { peer, bytes, chunk }
    };
    let mut all: Vec<_> = specs.as_chunks().0.iter().map(spec).collect();
    let recvs = all.split_off(*sends as usize);
    Messages { sends: all, recvs }
}
