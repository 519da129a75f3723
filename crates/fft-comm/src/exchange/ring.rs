//! Puts into memory of the receivers, other hosts first.

mod places;

use std::cell::Cell;
use std::sync::Arc;

use fft_core::{
    Algorithm, Berths, Blank, Comm, Epoch, Epochs, Error, Exchange, Parcel, Part, Parts, Pins,
    Port, Puts, Reduce, SLOT_ALIGN, Slot, Traffic, agree,
};

use super::p2p::P2p;
use places::{HEADER, Round, Stand, place, rounds, taken};

/// Each message is put into its slot of the receiver's window as soon as it is packed, while the next chunk is
/// transformed and packed. Chunks go in a few rounds, an epoch each, into two windows by turns: what one round brought is
/// unpacked while the next one's puts fly into the other window.
///
/// Slots belong to a pair of ranks and not to a reshape: what one rank sends may be equal in two reshapes that are
/// different for its peers, so that it could not know from its own traffic where they expect it.
///
/// Messages with berths are put into those of the receiver, through a window of its own, and their slots have no more than
/// headers. Where ranks cannot put into such memory they send to each other instead.
pub(crate) struct Ring {
    comm: Box<dyn Comm>,
    puts: Box<dyn Puts>,
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
    pins: Option<Arc<dyn Pins>>,
    /// For messages with berths, once there were some.
    far: Option<Far>,
    /// Bytes of a window, once there are some.
    window: Option<usize>,
    /// Bytes of headers in the last exchange.
    headers: u64,
    /// Number of the last epoch: a slot that says another has not been put into.
    epoch: u64,
}

/// How messages with berths travel.
enum Far {
    Puts(Box<dyn Puts>),
    Pairs(P2p),
}

/// What has been reserved for.
struct Reserved {
    traffic: Traffic,
    rounds: Vec<Round>,
    /// Of every message how long it is.
    lens: Vec<Cell<usize>>,
    /// Of every message with a berth where that is in the receiver's memory.
    berths: Vec<usize>,
}

impl Ring {
    /// In so many rounds at most, each with memory of its own. Collective.
    pub(crate) fn new(
        comm: &dyn Comm,
        puts: Box<dyn Puts>,
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

    /// Adds a traffic to those that are known, finds places for all slots, and makes room to send from.
    fn prepare(&mut self, traffic: &Traffic) -> Result<usize, Error> {
        let rounds = rounds(traffic, &self.stand, self.most);
        let staged = |round: &Round| {
            let bytes = round.sends.iter().map(|&(n, _)| taken(traffic, &traffic.sends[n]));
            bytes.fold(0, usize::saturating_add)
        };
        let staged = rounds.iter().map(staged).max().unwrap_or(0);
        if !self.reserved.iter().any(|known| known.traffic == *traffic) {
            let (lens, berths) = (vec![Cell::new(0); traffic.sends.len()], Vec::new());
            self.reserved.push(Reserved { traffic: traffic.clone(), rounds, lens, berths });
        }
        let parcels = |known: &Reserved| -> Vec<Vec<Parcel>> {
            let parcel = |&(number, _): &(usize, usize)| match known.traffic.berths {
                Some(_) => Parcel { bytes: 0, ..known.traffic.recvs[number] },
                None => known.traffic.recvs[number],
            };
            known.rounds.iter().map(|round| round.recvs.iter().map(parcel).collect()).collect()
        };
        let lists: Vec<_> = self.reserved.iter().flat_map(parcels).collect();
        let lists: Vec<_> = lists.iter().map(Vec::as_slice).collect();
        let window = place(&lists, &mut self.here);
        if self.staging.capacity() < staged {
            self.staging = Slot::new(0, self.comm.rank())?;
            let staging = Slot::new(staged, self.comm.rank())?;
            self.staging = match &self.pins {
                Some(pins) => staging.pinned(pins.as_ref()),
                None => staging,
            };
        }
        Ok(window)
    }

    /// Tells every rank that sends to this one where its slots are, and learns the same. Collective.
    fn tell(&mut self) -> Result<(), Error> {
        let size = self.comm.size();
        let parts = |peers: &dyn Fn(&Traffic) -> &[Parcel]| {
            let mut parts: Vec<Part> = (0..size).map(|rank| (rank * SLOT_ALIGN, 0)).collect();
            for parcel in self.reserved.iter().flat_map(|known| peers(&known.traffic)) {
                parts[parcel.peer].1 = size_of::<u64>();
            }
            parts
        };
        // Places travel against the direction of messages.
        let (to, from) = (parts(&|traffic| &traffic.recvs), parts(&|traffic| &traffic.sends));
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

    /// Tells senders where the berths of their messages are here, and learns the same. Collective.
    fn tell_berths(&mut self, traffic: &Traffic, here: &[usize]) -> Result<(), Error> {
        let size = self.comm.size();
        let ((to, out), (from, come)) = (words(&traffic.recvs, size), words(&traffic.sends, size));
        let allocate = || -> Result<[Slot; 2], Error> {
            self.comm.reserve_alltoallv(&to, &from)?;
            let rank = self.comm.rank();
            Ok([Slot::new(out, rank)?, Slot::new(come, rank)?])
        };
        let [mut mine, mut theirs] = agree(self.comm.as_ref(), allocate())?;
        for (spot, at) in spots(&traffic.recvs, to.clone()).zip(here) {
            mine.bytes_mut()[spot..][..8].copy_from_slice(&(*at as u64).to_ne_bytes());
        }
        self.comm.alltoallv(
            Parts { bytes: mine.bytes(), parts: &to },
            Parts { bytes: theirs.bytes_mut(), parts: &from },
        )?;
        let there = |spot: usize| word(&theirs.bytes()[spot..]) as usize;
        let known = self.reserved.iter_mut().find(|known| known.traffic == *traffic);
        let known = known.expect("it has been prepared for");
        known.berths = spots(&traffic.sends, from).map(there).collect();
        Ok(())
    }

    /// Finds out how messages with berths in this memory can travel. Collective.
    fn sync_far(&mut self, berths: &Berths) -> Result<(), Error> {
        let comm = self.comm.as_ref();
        let known = self.reserved.iter().find_map(|known| known.traffic.berths.as_ref());
        let same = match known {
            Some(known) if known.memory != berths.memory => {
                let (found, expected) = (&berths.memory, &known.memory);
                let [found, expected] = [found, expected].map(|memory| format!("{memory:?}"));
                Err(Error::argument("memory of berths", found, expected))
            }
            _ => Ok(()),
        };
        agree(comm, same)?;
        if self.far.is_none() {
            self.far = Some(match agree(comm, comm.window_on(&berths.memory))? {
                Some(puts) => Far::Puts(puts),
                None => Far::Pairs(P2p::new(Algorithm::Pipelined, comm)?),
            });
        }
        Ok(())
    }
}

/// Parts of a buffer with a word for each message.
fn words(parcels: &[Parcel], ranks: usize) -> (Vec<Part>, usize) {
    let (mut parts, mut end) = (vec![(0, 0); ranks], 0);
    parcels.iter().for_each(|parcel| parts[parcel.peer].1 += size_of::<u64>());
    for (first, bytes) in &mut parts {
        *first = end;
        end += bytes.next_multiple_of(SLOT_ALIGN);
    }
    (parts, end)
}

/// For each message the place of its word.
fn spots(parcels: &[Parcel], mut parts: Vec<Part>) -> impl Iterator<Item = usize> {
    parcels.iter().map(move |parcel| {
        let first = &mut parts[parcel.peer].0;
        std::mem::replace(first, *first + size_of::<u64>())
    })
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes[..8].try_into().expect("8 bytes"))
}

/// What is done in an epoch of the window, and in one of that for berths; given what the one before brought.
type InBoth<'b, 'env> =
    dyn FnMut(&dyn Epoch<'env>, Option<&dyn Epoch<'env>>, &[u8]) -> Result<(), Error> + 'b;

/// Opens an epoch of the window, and one of that for berths where there is one. Collective.
fn epochs<'env>(
    how: Epochs,
    near: &mut dyn Puts,
    mut far: Option<&mut dyn Puts>,
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
    traffic: &'a Traffic,
    round: &'a Round,
    here: &'a [usize],
    window: &'a [u8],
}

impl<'a> Mail<'a> {
    /// How long a message is, and what it says unless it has a berth.
    fn message(&self, number: usize, offset: usize) -> Result<(usize, &'a [u8]), Error> {
        let Parcel { peer: from, bytes: expected, .. } = self.traffic.recvs[number];
        let damaged = |found| Error::Message { rank: self.rank, from, found, expected };
        let slot = self.window.get(self.here[from] + offset..).unwrap_or_default();
        let (header, rest) = slot.split_at_checked(HEADER).ok_or_else(|| damaged(0))?;
        let came = word(&header[8..]) == self.epoch;
        let found = if came { word(header) as usize } else { 0 };
        let seen = if self.traffic.berths.is_some() { 0 } else { found };
        let seen = rest.get(..seen).filter(|_| came && found <= expected);
        seen.map(|seen| (found, seen)).ok_or_else(|| damaged(found))
    }

    /// Shows all messages. One that did not come is shown as an empty one, which no codec takes for a message.
    fn show(&self, port: &mut dyn Port) -> Result<(), Error> {
        let recvs = &self.round.recvs;
        let Some(&(first, _)) = recvs.first() else { return Ok(()) };
        let message = |number: usize| self.message(number, recvs[number - first].1);
        let numbers = first..first + recvs.len();
        match self.traffic.berths {
            Some(_) => numbers.clone().for_each(|number| {
                port.landed(number, message(number).map_or(0, |(bytes, _)| bytes));
            }),
            None => port.arrived_all(numbers.clone(), &|number| {
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

    fn pin(&mut self, pins: Arc<dyn Pins>) {
        self.puts.pin(pins.clone());
        self.pins = Some(pins);
    }

    fn takes_berths(&self) -> bool {
        true
    }

    fn reserve(&mut self, traffic: &Traffic) -> Result<(), Error> {
        if let Some(berths) = &traffic.berths {
            self.sync_far(berths)?;
            if let Some(Far::Pairs(pairs)) = &mut self.far {
                return pairs.reserve(traffic);
            }
        }
        let prepared = self.prepare(traffic);
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
        match &traffic.berths {
            Some(berths) => self.tell_berths(traffic, &berths.places[1]),
            None => Ok(()),
        }
    }

    fn run(&mut self, traffic: &Traffic, port: &mut dyn Port) -> Result<(), Error> {
        let far = match (&mut self.far, &traffic.berths) {
            (_, None) | (None, _) => None,
            (Some(Far::Puts(puts)), _) => Some(puts),
            (Some(Far::Pairs(pairs)), _) => return pairs.run(traffic, port),
        };
        let (rank, how, mut far) = (self.comm.rank(), self.epochs, far);
        let Some(known) = self.reserved.iter().find(|known| known.traffic == *traffic) else {
            // The others open epochs, and wait for this rank.
            for _ in rounds(traffic, &self.stand, self.most) {
                self.epoch += 1;
                let far = far.as_mut().map(|far| far.as_mut() as _);
                epochs(how, self.puts.as_mut(), far, &mut |_, _, _| Ok(()))?;
            }
            let found = format!("{} messages out, {} in", traffic.sends.len(), traffic.recvs.len());
            return Err(Error::argument("traffic", found, "one that has been reserved for"));
        };
        let (here, there, together) = (&self.here, &self.there, port.together());
        self.headers = (HEADER * traffic.sends.len()) as u64;
        let (mut result, mut before) = (Ok(()), None);
        for (number, round) in known.rounds.iter().enumerate() {
            self.epoch += 1;
            let epoch_number = self.epoch;
            let staged = |&(n, _): &(usize, usize)| taken(traffic, &traffic.sends[n]);
            self.staging.set_len(round.sends.iter().map(staged).sum());
            let mut free = self.staging.bytes_mut();
            let far = far.as_mut().map(|far| far.as_mut() as _);
            let done = epochs(how, self.puts.as_mut(), far, &mut |epoch, far, window| {
                let mut result = Ok(());
                let seen = |parcel: &Parcel| match traffic.berths {
                    Some(_) => 0,
                    None => parcel.bytes,
                };
                let chunk = |&(number, _): &(usize, usize)| traffic.sends[number].chunk;
                for packed in round.sends.chunk_by(|a, b| together && chunk(a) == chunk(b)) {
                    packed.iter().for_each(|&(number, _)| known.lens[number].set(0));
                    let mut blank = &mut *free;
                    port.pack_all(&mut packed.iter().map(|&(number, _)| {
                        let (parcel, bytes) = (&traffic.sends[number], &known.lens[number]);
                        let room = taken(traffic, parcel);
                        let (part, rest) = std::mem::take(&mut blank).split_at_mut(room);
                        blank = rest;
                        let message = &mut part[HEADER..][..seen(parcel)];
                        Blank { number, message, bytes }
                    }));
                    for &(number, offset) in packed {
                        let parcel = &traffic.sends[number];
                        let (peer, room) = (parcel.peer, taken(traffic, parcel));
                        let (part, rest) = std::mem::take(&mut free).split_at_mut(room);
                        free = rest;
                        let (header, len) = (&mut part[..HEADER], known.lens[number].get());
                        header[..8].copy_from_slice(&(len as u64).to_ne_bytes());
                        header[8..16].copy_from_slice(&epoch_number.to_ne_bytes());
                        // The others' messages do not suffer from one that cannot be put.
                        let seen = seen(parcel).min(len);
                        let put = epoch.put(peer, there[peer] + offset, &part[..HEADER + seen]);
                        result = result.and(put);
                        if let (Some(far), Some(berths)) = (far, &traffic.berths) {
                            let from = berths.places[0][number];
                            let put = far.put_opaque(peer, known.berths[number], from..from + len);
                            result = result.and(put);
                        }
                    }
                }
                if number + 1 == known.rounds.len() {
                    port.own();
                }
                let came = before.map_or(Ok(()), |(round, epoch)| {
                    Mail { rank, epoch, traffic, round, here, window }.show(port)
                });
                result.and(came)
            });
            result = result.and(done);
            before = Some((round, epoch_number));
        }
        let (round, epoch) = before.expect("at least one round");
        let last = Mail { rank, epoch, traffic, round, here, window: self.puts.local() };
        result = result.and(last.show(port));
        // What earlier rounds brought may have been overwritten.
        port.finish(&|number| {
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
