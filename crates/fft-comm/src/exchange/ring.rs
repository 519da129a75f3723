//! Puts into memory of the receivers, other hosts first.

use fft_core::{
    Algorithm, Comm, Epochs, Error, Exchange, Parcel, Part, Parts, Port, Puts, Reduce, SLOT_ALIGN,
    Slot, Traffic, agree, by_host,
};

/// Each message is put into its slot of the receiver's window as soon as it is packed, while the next chunk is
/// transformed and packed. Chunks go in a few rounds, an epoch each, into two windows by turns: what one round brought is
/// unpacked while the next one's puts fly into the other window. No rank opens an epoch in which slots are overwritten
/// before it has read them.
///
/// Slots belong to a pair of ranks and not to a reshape: what one rank sends may be equal in two reshapes that are
/// different for its peers, so that it could not know from its own traffic where they expect it.
pub(crate) struct Ring {
    comm: Box<dyn Comm>,
    puts: [Box<dyn Puts>; 2],
    epochs: Epochs,
    /// The host of each rank, and how many ranks of this one's come before it.
    hosts: Vec<usize>,
    place: usize,
    reserved: Vec<Reserved>,
    /// For each rank that sends to this one, where its slots begin here.
    here: Vec<usize>,
    /// For each rank that this one sends to, where this one's slots begin there.
    there: Vec<usize>,
    /// Messages that are being put.
    staging: Slot,
    /// Bytes of a window, once there are some.
    window: Option<usize>,
    /// Bytes of headers in the last exchange.
    headers: u64,
    /// Number of the last epoch: a slot that says another has not been put into.
    epoch: u64,
}

/// What has been reserved for.
struct Reserved {
    traffic: Traffic,
    rounds: Vec<Round>,
}

/// The messages of one epoch: their numbers, and where the slot of each begins among those of the same pair of ranks.
#[derive(Clone, Default)]
struct Round {
    sends: Vec<(usize, usize)>,
    recvs: Vec<(usize, usize)>,
}

/// Rounds of one exchange, where there are chunks enough: what is unpacked after the last of them delays the end.
const ROUNDS: usize = 4;

/// Before each message: how long it is, and in which epoch it was put.
const HEADER: usize = SLOT_ALIGN;

/// Bytes that a message of at most so many takes with its header.
fn slot(bytes: usize) -> usize {
    bytes.saturating_add(HEADER + SLOT_ALIGN - 1) / SLOT_ALIGN * SLOT_ALIGN
}

/// The messages of a traffic between so many ranks in rounds: the same rounds on all ranks.
fn rounds(traffic: &Traffic, ranks: usize) -> Vec<Round> {
    let chunks = traffic.chunks.max(1);
    let mut rounds = vec![Round::default(); chunks.min(ROUNDS)];
    let of = |parcel: &Parcel| parcel.chunk.min(chunks - 1) * ROUNDS.min(chunks) / chunks;
    let mut place = |parcels: &[Parcel], side: fn(&mut Round) -> &mut Vec<(usize, usize)>| {
        let mut ends = vec![vec![0usize; ranks]; rounds.len()];
        for (number, parcel) in parcels.iter().enumerate() {
            let end = &mut ends[of(parcel)][parcel.peer];
            side(&mut rounds[of(parcel)]).push((number, *end));
            *end = end.saturating_add(slot(parcel.bytes));
        }
    };
    place(&traffic.sends, |round| &mut round.sends);
    place(&traffic.recvs, |round| &mut round.recvs);
    rounds
}

impl Ring {
    /// Collective.
    pub(crate) fn new(
        comm: &dyn Comm,
        puts: [Box<dyn Puts>; 2],
        epochs: Epochs,
    ) -> Result<Self, Error> {
        let (rank, size) = (comm.rank(), comm.size());
        let hosts: Vec<_> = (0..size).map(|rank| comm.host(rank)).collect();
        let place = hosts[..rank].iter().filter(|host| **host == hosts[rank]).count();
        Ok(Self {
            comm: comm.dup()?,
            puts,
            epochs,
            hosts,
            place,
            reserved: Vec::new(),
            here: vec![0; size],
            there: vec![0; size],
            staging: Slot::new(0, rank)?,
            window: None,
            headers: 0,
            epoch: 0,
        })
    }

    /// Puts the messages of each chunk into the order in which they leave.
    fn turn(&self, traffic: &Traffic, round: &mut Round) {
        let stand = [self.hosts[self.comm.rank()], self.place];
        let chunk = |&(number, _): &(usize, usize)| traffic.sends[number].chunk;
        let peer = |&(number, _): &(usize, usize)| traffic.sends[number].peer;
        let of_chunk = |sends: &[_]| by_host(sends.to_vec(), peer, |rank| self.hosts[rank], stand);
        let chunks = round.sends.chunk_by(|a, b| chunk(a) == chunk(b));
        round.sends = chunks.flat_map(of_chunk).collect();
    }

    /// Adds a traffic to those that are known, finds places for all slots, and makes room to send from.
    fn prepare(&mut self, traffic: &Traffic) -> Result<usize, Error> {
        let mut rounds = rounds(traffic, self.hosts.len());
        for round in &mut rounds {
            self.turn(traffic, round);
        }
        let staged = |round: &Round| {
            let bytes = round.sends.iter().map(|&(number, _)| slot(traffic.sends[number].bytes));
            bytes.fold(0, usize::saturating_add)
        };
        let staged = rounds.iter().map(staged).max().unwrap_or(0);
        if !self.reserved.iter().any(|known| known.traffic == *traffic) {
            self.reserved.push(Reserved { traffic: traffic.clone(), rounds });
        }
        let parcels = |known: &Reserved| -> Vec<Vec<Parcel>> {
            let parcel = |&(number, _): &(usize, usize)| known.traffic.recvs[number];
            known.rounds.iter().map(|round| round.recvs.iter().map(parcel).collect()).collect()
        };
        let lists: Vec<_> = self.reserved.iter().flat_map(parcels).collect();
        let lists: Vec<_> = lists.iter().map(Vec::as_slice).collect();
        let window = place(&lists, &mut self.here);
        if self.staging.capacity() < staged {
            self.staging = Slot::new(0, self.comm.rank())?;
            self.staging = Slot::new(staged, self.comm.rank())?;
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
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes[..8].try_into().expect("8 bytes"))
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
    fn message(&self, number: usize, offset: usize) -> Result<&'a [u8], Error> {
        let Parcel { peer: from, bytes: expected, .. } = self.traffic.recvs[number];
        let damaged = |found| Error::Message { rank: self.rank, from, found, expected };
        let slot = self.window.get(self.here[from] + offset..).unwrap_or_default();
        let (header, rest) = slot.split_at_checked(HEADER).ok_or_else(|| damaged(0))?;
        let came = word(&header[8..]) == self.epoch;
        let found = if came { word(header) as usize } else { 0 };
        rest.get(..found).filter(|_| came && found <= expected).ok_or_else(|| damaged(found))
    }

    /// Shows all messages. One that did not come is shown as an empty one, which no codec takes for a message.
    fn show(&self, port: &mut dyn Port) -> Result<(), Error> {
        let mut came = Ok(());
        for &(number, offset) in &self.round.recvs {
            let arrived = self.message(number, offset);
            port.arrived(number, arrived.as_ref().copied().unwrap_or_default());
            came = came.and(arrived.map(drop));
        }
        came
    }
}

impl Exchange for Ring {
    fn algorithm(&self) -> Algorithm {
        Algorithm::Ring(self.epochs)
    }

    fn reserve(&mut self, traffic: &Traffic) -> Result<(), Error> {
        let prepared = self.prepare(traffic);
        let bytes = agree(self.comm.as_ref(), prepared)?;
        // Whether any rank needs more than it has: then all make theirs anew, as that takes all of them.
        let mut short = [if self.window.is_none_or(|has| bytes > has) { 1.0 } else { 0.0 }];
        self.comm.allreduce(Reduce::Max, &mut short)?;
        if short != [0.0] {
            let bytes = bytes.max(self.window.take().unwrap_or(0));
            for puts in &mut self.puts {
                agree(self.comm.as_ref(), puts.make(bytes))?;
            }
            self.window = Some(bytes);
        }
        self.tell()
    }

    fn run(&mut self, traffic: &Traffic, port: &mut dyn Port) -> Result<(), Error> {
        let rank = self.comm.rank();
        let [into, read] = &mut self.puts;
        let (mut into, mut read) = (into, read);
        let Some(known) = self.reserved.iter().find(|known| known.traffic == *traffic) else {
            // The others open epochs, and wait for this rank.
            for _ in rounds(traffic, self.hosts.len()) {
                self.epoch += 1;
                into.epoch(self.epochs, &mut |_| Ok(()))?;
                std::mem::swap(&mut into, &mut read);
            }
            let found = format!("{} messages out, {} in", traffic.sends.len(), traffic.recvs.len());
            return Err(Error::argument("traffic", found, "one that has been reserved for"));
        };
        let (here, there) = (&self.here, &self.there);
        self.headers = (HEADER * traffic.sends.len()) as u64;
        let (mut result, mut before) = (Ok(()), None);
        for (number, round) in known.rounds.iter().enumerate() {
            self.epoch += 1;
            let epoch_number = self.epoch;
            let staged = |&(number, _): &(usize, usize)| slot(traffic.sends[number].bytes);
            self.staging.set_len(round.sends.iter().map(staged).sum());
            let mut free = self.staging.bytes_mut();
            let done = into.epoch(self.epochs, &mut |epoch| {
                let mut result = Ok(());
                for &(number, offset) in &round.sends {
                    let Parcel { peer, bytes, .. } = traffic.sends[number];
                    let (part, rest) = std::mem::take(&mut free).split_at_mut(slot(bytes));
                    free = rest;
                    let (header, message) = part.split_at_mut(HEADER);
                    let len = port.pack(number, &mut message[..bytes]);
                    header[..8].copy_from_slice(&(len as u64).to_ne_bytes());
                    header[8..16].copy_from_slice(&epoch_number.to_ne_bytes());
                    // The others' messages do not suffer from one that cannot be put.
                    let put = epoch.put(peer, there[peer] + offset, &part[..HEADER + len]);
                    result = result.and(put);
                }
                if number + 1 == known.rounds.len() {
                    port.own();
                }
                let came = before.map_or(Ok(()), |(round, epoch)| {
                    Mail { rank, epoch, traffic, round, here, window: read.local() }.show(port)
                });
                result.and(came)
            });
            result = result.and(done);
            before = Some((round, epoch_number));
            std::mem::swap(&mut into, &mut read);
        }
        let (round, epoch) = before.expect("at least one round");
        let last = Mail { rank, epoch, traffic, round, here, window: read.local() };
        result = result.and(last.show(port));
        // What earlier rounds brought may have been overwritten.
        port.finish(&|number| {
            let place = last.round.recvs.iter().find(|(there, _)| *there == number);
            place.and_then(|&(_, at)| last.message(number, at).ok()).unwrap_or_default()
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

/// Finds a place for the slots of each peer, such that no two that meet in any of these lists of messages overlap: one
/// peer's after the other's in every list, those in most lists first. Returns the bytes that they take.
fn place(lists: &[&[Parcel]], places: &mut [usize]) -> usize {
    // (lists it is in, peer, bytes)
    let mut peers = vec![(0usize, usize::MAX, 0); places.len()];
    let mut lists_of = vec![Vec::new(); places.len()];
    for (list, parcels) in lists.iter().enumerate() {
        let mut sums = vec![0usize; places.len()];
        for parcel in *parcels {
            let peer = parcel.peer;
            sums[peer] = sums[peer].saturating_add(slot(parcel.bytes));
            if lists_of[peer].last() != Some(&list) {
                lists_of[peer].push(list);
                (peers[peer].0, peers[peer].1) = (peers[peer].0 + 1, peer);
            }
            peers[peer].2 = sums[peer].max(peers[peer].2);
        }
    }
    peers.retain(|(times, ..)| *times > 0);
    peers.sort_unstable_by_key(|&(times, peer, _)| (std::cmp::Reverse(times), peer));
    let mut ends = vec![0usize; lists.len()];
    for (_, peer, bytes) in peers {
        let lists = &lists_of[peer];
        places[peer] = lists.iter().map(|&list| ends[list]).max().unwrap_or(0);
        lists.iter().for_each(|&list| ends[list] = places[peer].saturating_add(bytes));
    }
    ends.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parcels(of: &[(usize, usize)]) -> Vec<Parcel> {
        of.iter().map(|&(peer, bytes)| Parcel { peer, bytes, chunk: 0 }).collect()
    }

    #[test]
    fn slots_that_meet_do_not_overlap_and_others_share_memory() {
        let lists = [
            parcels(&[(1, 100), (2, 64), (3, 0)]),
            parcels(&[(3, 65), (4, 1)]),
            parcels(&[]),
            parcels(&[(5, 300), (1, 10), (5, 336)]),
        ];
        let lists: Vec<_> = lists.iter().map(|list| &list[..]).collect();
        let mut places = [usize::MAX; 7];
        let total = place(&lists, &mut places);
        for list in &lists {
            let traffic = Traffic { recvs: list.to_vec(), ..Traffic::default() };
            let at = |(p, (_, offset)): (&Parcel, &(usize, usize))| {
                (places[p.peer] + offset, places[p.peer] + offset + slot(p.bytes))
            };
            let round = &rounds(&traffic, 7)[0];
            let mut taken: Vec<_> = list.iter().zip(&round.recvs).map(at).collect();
            taken.sort_unstable();
            assert!(taken.is_sorted_by(|a, b| a.1 <= b.0), "{taken:?}");
            assert!(taken.iter().all(|(at, end)| at % SLOT_ALIGN == 0 && *end <= total));
        }
        // The longest list, [5, 1, 5], determines the size: 64 + 320, 64 + 128 and 64 + 384 bytes.
        assert_eq!(total, 1024);
        assert_eq!((places[0], places[6]), (usize::MAX, usize::MAX));
        let sum: usize = [100, 64, 65, 1, 300, 336].map(slot).iter().sum();
        assert!(total < sum, "{total} of {sum}");
    }

    #[test]
    fn too_much_is_too_much_and_not_a_small_number() {
        let list = parcels(&[(0, usize::MAX), (1, usize::MAX)]);
        assert!(place(&[&list], &mut [0; 2]) > usize::MAX / 2);
    }
}
