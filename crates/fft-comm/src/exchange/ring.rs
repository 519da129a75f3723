//! RmaWindow into memory of the receivers, other hosts first.

mod places;

use std::cell::Cell;
use std::sync::Arc;

use fft_core::{
    Algorithm, Comm, Epoch, Epochs, Error, Exchange, MessageBuffers, MessageHandler, MessagePlan,
    MessageSpec, PackRequest, Part, Parts, PinnedMemory, Reduce, RmaWindow, SLOT_ALIGN, Slot,
    agree,
};

use super::p2p::P2p;
use places::{HEADER, Round, Stand, place, rounds, taken};

/// Each message is put into its slot of the receiver's window as soon as it is packed, while the next chunk is
/// transformed and packed. Chunks go in a few rounds, an epoch each, into two windows by turns: what one round brought is
/// unpacked while the next one's puts fly into the other window.
///
/// Slots belong to a pair of ranks and not to a reshape: what one rank sends may be equal in two reshapes that are
/// different for its peers, so that it could not know from its own message_plan where they expect it.
///
/// Messages with buffers are put into those of the receiver, through a window of its own, and their slots have no more than
/// headers. Where ranks cannot put into such memory they send to each other instead.
pub(crate) struct Ring {
    comm: Box<dyn Comm>,
    puts: Box<dyn RmaWindow>,
    epochs: Epochs,
    /// Rounds at most.
    most: usize,
    stand: Stand,
    reserved: Vec<Reserved>,
    /// For each rank that sends to this one, where its slots begin here.
    here: Vec<usize>,
    /// For each rank that this one sends to, where this one's slots begin there.
    there: Vec<usize>,
    /// Messages that are being put.
    staging: Slot,
    pins: Option<Arc<dyn PinnedMemory>>,
    /// For messages with buffers, once there were some.
    far: Option<Far>,
    /// Bytes of a window, once there are some.
    window: Option<usize>,
    /// Bytes of headers in the last exchange.
    headers: u64,
    /// Number of the last epoch: a slot that says another has not been put into.
    epoch: u64,
}

/// How messages with buffers travel.
enum Far {
    RmaWindow(Box<dyn RmaWindow>),
    Pairs(P2p),
}

/// What has been reserved for.
struct Reserved {
    message_plan: MessagePlan,
    rounds: Vec<Round>,
    /// Of every message how long it is.
    lens: Vec<Cell<usize>>,
    /// Of every message with a berth where that is in the receiver's memory.
    buffers: Vec<usize>,
}

impl Ring {
    /// In so many rounds at most, each with memory of its own. Collective.
    pub(crate) fn new(
        comm: &dyn Comm,
        puts: Box<dyn RmaWindow>,
        epochs: Epochs,
        most: usize,
    ) -> Result<Self, Error> {
        let (rank, size) = (comm.rank(), comm.size());
        Ok(Self {
            comm: comm.dup()?,
            puts,
            epochs,
            most,
            stand: Stand::new(comm),
            reserved: Vec::new(),
            here: vec![0; size],
            there: vec![0; size],
            staging: Slot::new(0, rank)?,
            pins: None,
            far: None,
            window: None,
            headers: 0,
            epoch: 0,
        })
    }

    /// Adds a message_plan to those that are known, finds places for all slots, and makes room to send from.
    fn prepare(&mut self, message_plan: &MessagePlan) -> Result<usize, Error> {
        let rounds = rounds(message_plan, &self.stand, self.most);
        let staged = |round: &Round| {
            let bytes =
                round.sends.iter().map(|&(n, _)| taken(message_plan, &message_plan.sends[n]));
            bytes.fold(0, usize::saturating_add)
        };
        let staged = rounds.iter().map(staged).max().unwrap_or(0);
        if !self.reserved.iter().any(|known| known.message_plan == *message_plan) {
            let (lens, buffers) = (vec![Cell::new(0); message_plan.sends.len()], Vec::new());
            self.reserved.push(Reserved {
                message_plan: message_plan.clone(),
                rounds,
                lens,
                buffers,
            });
        }
        let specs = |known: &Reserved| -> Vec<Vec<MessageSpec>> {
            let spec = |&(number, _): &(usize, usize)| match known.message_plan.buffers {
                Some(_) => MessageSpec { bytes: 0, ..known.message_plan.recvs[number] },
                None => known.message_plan.recvs[number],
            };
            known.rounds.iter().map(|round| round.recvs.iter().map(spec).collect()).collect()
        };
        let lists: Vec<_> = self.reserved.iter().flat_map(specs).collect();
        let lists: Vec<_> = lists.iter().map(Vec::as_slice).collect();
        let window = place(&lists, &mut self.here);
        if self.staging.capacity() < staged {
            self.staging = Slot::new(0, self.comm.rank())?;
            self.staging = Slot::new_pinned(staged, self.comm.rank(), self.pins.as_deref())?;
        }
        Ok(window)
    }

    /// Tells every rank that sends to this one where its slots are, and learns the same. Collective.
    fn tell(&mut self) -> Result<(), Error> {
        let size = self.comm.size();
        let parts = |peers: &dyn Fn(&MessagePlan) -> &[MessageSpec]| {
            let mut parts: Vec<Part> = (0..size).map(|rank| (rank * SLOT_ALIGN, 0)).collect();
            for spec in self.reserved.iter().flat_map(|known| peers(&known.message_plan)) {
                parts[spec.peer].1 = size_of::<u64>();
            }
            parts
        };
        // Places travel against the direction of messages.
        let (to, from) = (
            parts(&|message_plan| &message_plan.recvs),
            parts(&|message_plan| &message_plan.sends),
        );
        let allocate = || -> Result<[Slot; 2], Error> {
            self.comm.reserve_alltoallv(&to, &from)?;
            let lines = || Slot::new(size * SLOT_ALIGN, self.comm.rank());
            Ok([lines()?, lines()?])
        };
        let [mut mine, mut theirs] = agree(self.comm.as_ref(), allocate())?;
        for (line, at) in mine.bytes_mut().chunks_mut(SLOT_ALIGN).zip(&self.here) {
            line[..8].copy_from_slice(&(*at as u64).to_ne_bytes());
        }
        self.comm.alltoallv(
            Parts { bytes: mine.bytes(), parts: &to },
            Parts { bytes: theirs.bytes_mut(), parts: &from },
        )?;
        for (line, at) in theirs.bytes().chunks(SLOT_ALIGN).zip(&mut self.there) {
            *at = word(line) as usize;
        }
        Ok(())
    }

    /// Tells senders where the buffers of their messages are here, and learns the same. Collective.
    fn tell_berths(&mut self, message_plan: &MessagePlan, here: &[usize]) -> Result<(), Error> {
        let size = self.comm.size();
        let ((to, out), (from, come)) =
            (words(&message_plan.recvs, size), words(&message_plan.sends, size));
        let allocate = || -> Result<[Slot; 2], Error> {
            self.comm.reserve_alltoallv(&to, &from)?;
            let rank = self.comm.rank();
            Ok([Slot::new(out, rank)?, Slot::new(come, rank)?])
        };
        let [mut mine, mut theirs] = agree(self.comm.as_ref(), allocate())?;
        for (spot, at) in spots(&message_plan.recvs, to.clone()).zip(here) {
            mine.bytes_mut()[spot..][..8].copy_from_slice(&(*at as u64).to_ne_bytes());
        }
        self.comm.alltoallv(
            Parts { bytes: mine.bytes(), parts: &to },
            Parts { bytes: theirs.bytes_mut(), parts: &from },
        )?;
        let there = |spot: usize| word(&theirs.bytes()[spot..]) as usize;
        let known = self.reserved.iter_mut().find(|known| known.message_plan == *message_plan);
        let known = known.expect("it has been prepared for");
        known.buffers = spots(&message_plan.sends, from).map(there).collect();
        Ok(())
    }

    /// Finds out how messages with buffers in this memory can travel. Collective.
    fn sync_far(&mut self, buffers: &MessageBuffers) -> Result<(), Error> {
        let comm = self.comm.as_ref();
        let known = self.reserved.iter().find_map(|known| known.message_plan.buffers.as_ref());
        let same = match known {
            Some(known) if known.memory != buffers.memory => {
                let (found, expected) = (&buffers.memory, &known.memory);
                let [found, expected] = [found, expected].map(|memory| format!("{memory:?}"));
                Err(Error::argument("memory of buffers", found, expected))
            }
            _ => Ok(()),
        };
        agree(comm, same)?;
        if self.far.is_none() {
            self.far = Some(match agree(comm, comm.window_on(&buffers.memory))? {
                Some(puts) => Far::RmaWindow(puts),
                None => Far::Pairs(P2p::new(Algorithm::Pipelined, comm)?),
            });
        }
        Ok(())
    }
}

/// Parts of a buffer with a word for each message.
fn words(specs: &[MessageSpec], ranks: usize) -> (Vec<Part>, usize) {
    let (mut parts, mut end) = (vec![(0, 0); ranks], 0);
    specs.iter().for_each(|spec| parts[spec.peer].1 += size_of::<u64>());
    for (first, bytes) in &mut parts {
        *first = end;
        end += bytes.next_multiple_of(SLOT_ALIGN);
    }
    (parts, end)
}

/// For each message the place of its word.
fn spots(specs: &[MessageSpec], mut parts: Vec<Part>) -> impl Iterator<Item = usize> {
    specs.iter().map(move |spec| {
        let first = &mut parts[spec.peer].0;
        std::mem::replace(first, *first + size_of::<u64>())
    })
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes[..8].try_into().expect("8 bytes"))
}

/// What is done in an epoch of the window, and in one of that for buffers; given what the one before brought.
type InBoth<'b, 'env> =
    dyn FnMut(&dyn Epoch<'env>, Option<&dyn Epoch<'env>>, &[u8]) -> Result<(), Error> + 'b;

/// Opens an epoch of the window, and one of that for buffers where there is one. Collective.
fn epochs<'env>(
    how: Epochs,
    near: &mut dyn RmaWindow,
    mut far: Option<&mut dyn RmaWindow>,
    body: &mut InBoth<'_, 'env>,
) -> Result<(), Error> {
    near.epoch(how, &mut |near, before| match &mut far {
        None => body(near, None, before),
        Some(far) => far.epoch(how, &mut |far, _| body(near, Some(far), before)),
    })
}

/// What an epoch brings.
#[derive(Clone, Copy)]
struct Mail<'a> {
    rank: usize,
    epoch: u64,
    message_plan: &'a MessagePlan,
    round: &'a Round,
    here: &'a [usize],
    window: &'a [u8],
}

impl<'a> Mail<'a> {
    /// How long a message is, and what it says unless it has a berth.
    fn message(&self, number: usize, offset: usize) -> Result<(usize, &'a [u8]), Error> {
        let MessageSpec { peer: from, bytes: expected, .. } = self.message_plan.recvs[number];
        let damaged = |found| Error::Message { rank: self.rank, from, found, expected };
        let slot = self.window.get(self.here[from] + offset..).unwrap_or_default();
        let (header, rest) = slot.split_at_checked(HEADER).ok_or_else(|| damaged(0))?;
        let came = word(&header[8..]) == self.epoch;
        let found = if came { word(header) as usize } else { 0 };
        let seen = if self.message_plan.buffers.is_some() { 0 } else { found };
        let seen = rest.get(..seen).filter(|_| came && found <= expected);
        seen.map(|seen| (found, seen)).ok_or_else(|| damaged(found))
    }

    /// Shows all messages. One that did not come is shown as an empty one, which no codec takes for a message.
    fn show(&self, handler: &mut dyn MessageHandler) -> Result<(), Error> {
        let recvs = &self.round.recvs;
        let Some(&(first, _)) = recvs.first() else { return Ok(()) };
        let message = |number: usize| self.message(number, recvs[number - first].1);
        let numbers = first..first + recvs.len();
        match self.message_plan.buffers {
            Some(_) => numbers.clone().for_each(|number| {
                handler.landed(number, message(number).map_or(0, |(bytes, _)| bytes));
            }),
            None => handler.arrived_all(numbers.clone(), &|number| {
                message(number).map_or(&[], |(_, seen)| seen)
            }),
        }
        numbers.map(message).try_for_each(|message| message.map(drop))
    }
}

impl Exchange for Ring {
    fn algorithm(&self) -> Algorithm {
        match self.far {
            Some(Far::Pairs(_)) => Algorithm::Pipelined,
            _ => Algorithm::Ring(self.epochs),
        }
    }

    fn pin(&mut self, pins: Arc<dyn PinnedMemory>) {
        self.puts.pin(pins.clone());
        self.pins = Some(pins);
    }

    fn takes_berths(&self) -> bool {
        true
    }

    fn reserve(&mut self, message_plan: &MessagePlan) -> Result<(), Error> {
        if let Some(buffers) = &message_plan.buffers {
            self.sync_far(buffers)?;
            if let Some(Far::Pairs(pairs)) = &mut self.far {
                return pairs.reserve(message_plan);
            }
        }
        let prepared = self.prepare(message_plan);
        let bytes = agree(self.comm.as_ref(), prepared)?;
        // Whether any rank needs more than it has: then all make theirs anew, as that takes all of them.
        let mut short = [if self.window.is_none_or(|has| bytes > has) { 1.0 } else { 0.0 }];
        self.comm.allreduce(Reduce::Max, &mut short)?;
        if short != [0.0] {
            let bytes = bytes.max(self.window.take().unwrap_or(0));
            agree(self.comm.as_ref(), self.puts.make(bytes))?;
            self.window = Some(bytes);
        }
        self.tell()?;
        match &message_plan.buffers {
            Some(buffers) => self.tell_berths(message_plan, &buffers.places[1]),
            None => Ok(()),
        }
    }

    fn run(
        &mut self,
        message_plan: &MessagePlan,
        handler: &mut dyn MessageHandler,
    ) -> Result<(), Error> {
        let far = match (&mut self.far, &message_plan.buffers) {
            (_, None) | (None, _) => None,
            (Some(Far::RmaWindow(puts)), _) => Some(puts),
            (Some(Far::Pairs(pairs)), _) => return pairs.run(message_plan, handler),
        };
        let (rank, how, mut far) = (self.comm.rank(), self.epochs, far);
        let Some(known) = self.reserved.iter().find(|known| known.message_plan == *message_plan)
        else {
            // The others open epochs, and wait for this rank.
            for _ in rounds(message_plan, &self.stand, self.most) {
                self.epoch += 1;
                let far = far.as_mut().map(|far| far.as_mut() as _);
                epochs(how, self.puts.as_mut(), far, &mut |_, _, _| Ok(()))?;
            }
            let found = format!(
                "{} messages out, {} in",
                message_plan.sends.len(),
                message_plan.recvs.len()
            );
            return Err(Error::argument("message_plan", found, "one that has been reserved for"));
        };
        let (here, there, together) = (&self.here, &self.there, handler.together());
        self.headers = (HEADER * message_plan.sends.len()) as u64;
        let (mut result, mut before) = (Ok(()), None);
        for (number, round) in known.rounds.iter().enumerate() {
            self.epoch += 1;
            let epoch_number = self.epoch;
            let staged = |&(n, _): &(usize, usize)| taken(message_plan, &message_plan.sends[n]);
            self.staging.set_len(round.sends.iter().map(staged).sum());
            let mut free = self.staging.bytes_mut();
            let far = far.as_mut().map(|far| far.as_mut() as _);
            let done = epochs(how, self.puts.as_mut(), far, &mut |epoch, far, window| {
                let mut result = Ok(());
                let seen = |spec: &MessageSpec| match message_plan.buffers {
                    Some(_) => 0,
                    None => spec.bytes,
                };
                let chunk = |&(number, _): &(usize, usize)| message_plan.sends[number].chunk;
                for packed in round.sends.chunk_by(|a, b| together && chunk(a) == chunk(b)) {
                    packed.iter().for_each(|&(number, _)| known.lens[number].set(0));
                    let mut request = &mut *free;
                    handler.pack_all(&mut packed.iter().map(|&(number, _)| {
                        let (spec, bytes) = (&message_plan.sends[number], &known.lens[number]);
                        let room = taken(message_plan, spec);
                        let (part, rest) = std::mem::take(&mut request).split_at_mut(room);
                        request = rest;
                        let message = &mut part[HEADER..][..seen(spec)];
                        PackRequest { number, message, bytes }
                    }));
                    for &(number, offset) in packed {
                        let spec = &message_plan.sends[number];
                        let (peer, room) = (spec.peer, taken(message_plan, spec));
                        let (part, rest) = std::mem::take(&mut free).split_at_mut(room);
                        free = rest;
                        let (header, len) = (&mut part[..HEADER], known.lens[number].get());
                        header[..8].copy_from_slice(&(len as u64).to_ne_bytes());
                        header[8..16].copy_from_slice(&epoch_number.to_ne_bytes());
                        // The others' messages do not suffer from one that cannot be put.
                        let seen = seen(spec).min(len);
                        let put = epoch.put(peer, there[peer] + offset, &part[..HEADER + seen]);
                        result = result.and(put);
                        if let (Some(far), Some(buffers)) = (far, &message_plan.buffers) {
                            let from = buffers.places[0][number];
                            let put = far.put_opaque(peer, known.buffers[number], from..from + len);
                            result = result.and(put);
                        }
                    }
                }
                if number + 1 == known.rounds.len() {
                    handler.own();
                }
                let came = before.map_or(Ok(()), |(round, epoch)| {
                    Mail { rank, epoch, message_plan, round, here, window }.show(handler)
                });
                result.and(came)
            });
            result = result.and(done);
            before = Some((round, epoch_number));
        }
        let (round, epoch) = before.expect("at least one round");
        let last = Mail { rank, epoch, message_plan, round, here, window: self.puts.local() };
        result = result.and(last.show(handler));
        // What earlier rounds brought may have been overwritten.
        handler.finish(&|number| {
            let place = last.round.recvs.iter().find(|(there, _)| *there == number);
            let message = place.and_then(|&(_, at)| last.message(number, at).ok());
            message.unwrap_or_default().1
        });
        result
    }

    fn forwarded(&self) -> u64 {
        self.headers
    }

    fn memory(&self) -> usize {
        self.staging.capacity() + 2 * self.window.unwrap_or(0)
    }
}
