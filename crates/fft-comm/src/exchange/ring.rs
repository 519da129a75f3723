//! Puts into windows of the receivers (`MPI_Put`), other hosts first.

mod places;

use fft_core::{
    Comm, Epoch, Epochs, Error, Exchange, Exchanger, MessageHandler, MessagePlan, MessageSpec,
    Part, Parts, RmaWindow, SLOT_ALIGN, Slot, agree, on_any_rank,
};

use places::{HEADER, RankPlace, Round, assign_places, rounds, slot};

/// Each message is put into its slot of the receiver's window as soon as it is packed. A round of
/// chunks is an epoch. Two windows alternate: the messages of one round are unpacked while the
/// messages of the next are put.
///
/// Slots belong to a pair of ranks, not to a reshape. Two reshapes may look the same to a sender
/// and differ for its peers, so its own plan does not determine where they expect a message.
pub(crate) struct Ring {
    comm: Box<dyn Comm>,
    window: Box<dyn RmaWindow>,
    epochs: Epochs,
    /// Rounds at most.
    most: usize,
    place: RankPlace,
    reserved: Vec<Reserved>,
    /// By sender, where its slots begin in this rank's window.
    here: Vec<usize>,
    /// By receiver, where this rank's slots begin in its window.
    there: Vec<usize>,
    staging: Slot,
    /// Bytes of a window, once it has been made.
    bytes: Option<usize>,
    /// Bytes of headers in the last exchange.
    headers: u64,
    /// Number of the last epoch. A slot with another number was not written in it.
    epoch: u64,
}

struct Reserved {
    message_plan: MessagePlan,
    rounds: Vec<Round>,
}

impl Reserved {
    /// Bytes of the lists.
    fn memory(&self) -> usize {
        let places = |round: &Round| size_of_val(&*round.sends) + size_of_val(&*round.recvs);
        let rounds = size_of_val(&*self.rounds);
        self.message_plan.list_bytes() + rounds + self.rounds.iter().map(places).sum::<usize>()
    }
}

/// The exchange in at most `most` rounds; `None` if ranks cannot put into each other's memory.
/// Collective.
pub(super) fn make(
    comm: &dyn Comm,
    epochs: Epochs,
    most: usize,
) -> Result<Option<Box<dyn Exchanger>>, Error> {
    let window = comm.one_sided().map_or(Ok(None), |one_sided| one_sided.window());
    let Some(window) = agree(comm, window)? else { return Ok(None) };
    Ok(Some(Box::new(Ring::new(comm, window, epochs, most)?)))
}

impl Ring {
    fn new(
        comm: &dyn Comm,
        window: Box<dyn RmaWindow>,
        epochs: Epochs,
        most: usize,
    ) -> Result<Self, Error> {
        let (rank, size) = (comm.rank(), comm.size());
        Ok(Self {
            comm: comm.dup()?,
            window,
            epochs,
            most,
            place: RankPlace::new(comm),
            reserved: Vec::new(),
            here: vec![0; size],
            there: vec![0; size],
            staging: Slot::new(0, rank)?,
            bytes: None,
            headers: 0,
            epoch: 0,
        })
    }

    /// Adds a plan to those reserved for, assigns places to all slots, and allocates memory to send
    /// from. Returns the bytes of a window.
    fn prepare(&mut self, message_plan: &MessagePlan) -> Result<usize, Error> {
        let rounds = rounds(message_plan, &self.place, self.most);
        let staged = |round: &Round| {
            let bytes = round.sends.iter().map(|&(n, _)| slot(message_plan.sends[n].bytes));
            bytes.fold(0, usize::saturating_add)
        };
        let staged = rounds.iter().map(staged).max().unwrap_or(0);
        if !self.reserved.iter().any(|known| known.message_plan == *message_plan) {
            self.reserved.push(Reserved { message_plan: message_plan.clone(), rounds });
        }
        let specs = |known: &Reserved| -> Vec<Vec<MessageSpec>> {
            let spec = |&(number, _): &(usize, usize)| known.message_plan.recvs[number];
            known.rounds.iter().map(|round| round.recvs.iter().map(spec).collect()).collect()
        };
        let lists: Vec<_> = self.reserved.iter().flat_map(specs).collect();
        let lists: Vec<_> = lists.iter().map(Vec::as_slice).collect();
        let window = assign_places(&lists, &mut self.here);
        if self.staging.capacity() < staged {
            self.staging = Slot::new(0, self.comm.rank())?;
            self.staging = Slot::new(staged, self.comm.rank())?;
        }
        Ok(window)
    }

    /// Sends every sender the places of its slots in this rank's window, and receives the same from
    /// its receivers. Collective.
    fn exchange_places(&mut self) -> Result<(), Error> {
        let size = self.comm.size();
        let parts = |peers: fn(&MessagePlan) -> &[MessageSpec]| {
            let mut parts: Vec<Part> = (0..size).map(|rank| (rank * SLOT_ALIGN, 0)).collect();
            for spec in self.reserved.iter().flat_map(|known| peers(&known.message_plan)) {
                parts[spec.peer].1 = size_of::<u64>();
            }
            parts
        };
        // Places travel against the direction of messages.
        let (to, from) = (parts(|plan| &plan.recvs), parts(|plan| &plan.sends));
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

    /// Takes part in the epochs of a plan that was not reserved, because the others wait for this
    /// rank.
    fn refuse(&mut self, message_plan: &MessagePlan) -> Result<(), Error> {
        for _ in rounds(message_plan, &self.place, self.most) {
            self.epoch += 1;
            self.window.epoch(self.epochs, &mut |_, _| Ok(()))?;
        }
        let (out, come) = (message_plan.sends.len(), message_plan.recvs.len());
        let found = format!("{out} messages out, {come} in");
        Err(Error::argument("message_plan", found, "one that has been reserved for"))
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes[..8].try_into().expect("8 bytes"))
}

struct Outgoing<'a, 'env> {
    message_plan: &'a MessagePlan,
    round: &'a Round,
    there: &'a [usize],
    epoch: u64,
    /// The part of the staging memory that is not in use.
    free: &'env mut [u8],
}

impl<'env> Outgoing<'_, 'env> {
    fn put(
        &mut self,
        epoch: &dyn Epoch<'env>,
        handler: &mut dyn MessageHandler,
    ) -> Result<(), Error> {
        let mut result = Ok(());
        for &(number, offset) in &self.round.sends {
            let MessageSpec { peer, bytes, .. } = self.message_plan.sends[number];
            let (part, rest) = std::mem::take(&mut self.free).split_at_mut(slot(bytes));
            self.free = rest;
            let len = handler.pack(number, &mut part[HEADER..][..bytes]);
            part[..8].copy_from_slice(&(len as u64).to_ne_bytes());
            part[8..16].copy_from_slice(&self.epoch.to_ne_bytes());
            let at = self.there[peer] + offset;
            // A message that cannot be put does not keep the others from it.
            result = result.and(epoch.put(peer, at, &part[..HEADER + len.min(bytes)]));
        }
        result
    }
}

#[derive(Clone, Copy)]
struct Incoming<'a> {
    rank: usize,
    epoch: u64,
    message_plan: &'a MessagePlan,
    round: &'a Round,
    here: &'a [usize],
    window: &'a [u8],
}

impl<'a> Incoming<'a> {
    fn message(&self, number: usize, offset: usize) -> Result<&'a [u8], Error> {
        let MessageSpec { peer: from, bytes: expected, .. } = self.message_plan.recvs[number];
        let damaged = |found| Error::Message { rank: self.rank, from, found, expected };
        let slot = self.window.get(self.here[from] + offset..).unwrap_or_default();
        let (header, message) = slot.split_at_checked(HEADER).ok_or_else(|| damaged(0))?;
        let came = word(&header[8..]) == self.epoch;
        let found = if came { word(header) as usize } else { 0 };
        let message = message.get(..found).filter(|_| came && found <= expected);
        message.ok_or_else(|| damaged(found))
    }

    /// Shows all messages. A missing one is shown as empty, which no codec accepts.
    fn show(&self, handler: &mut dyn MessageHandler) -> Result<(), Error> {
        let recvs = &self.round.recvs;
        let Some(&(first, _)) = recvs.first() else { return Ok(()) };
        let message = |number: usize| self.message(number, recvs[number - first].1);
        let numbers = first..first + recvs.len();
        handler.arrived_all(numbers.clone(), &|number| message(number).unwrap_or_default());
        numbers.map(message).try_for_each(|message| message.map(drop))
    }
}

impl Exchanger for Ring {
    fn exchange(&self) -> Exchange {
        Exchange::Ring(self.epochs)
    }

    fn reserve(&mut self, message_plan: &MessagePlan) -> Result<(), Error> {
        let prepared = self.prepare(message_plan);
        let bytes = agree(self.comm.as_ref(), prepared)?;
        // If one rank needs a larger window, all ranks make new ones, because that is collective.
        let is_short = self.bytes.is_none_or(|has| bytes > has);
        if on_any_rank(self.comm.as_ref(), [is_short])? == [true] {
            let bytes = bytes.max(self.bytes.take().unwrap_or(0));
            agree(self.comm.as_ref(), self.window.make(bytes))?;
            self.bytes = Some(bytes);
        }
        self.exchange_places()
    }

    fn run(
        &mut self,
        message_plan: &MessagePlan,
        handler: &mut dyn MessageHandler,
    ) -> Result<(), Error> {
        let known = self.reserved.iter().position(|known| known.message_plan == *message_plan);
        let Some(known) = known else { return self.refuse(message_plan) };
        self.headers = (HEADER * message_plan.sends.len()) as u64;
        let Self { comm, window, staging, here, there, .. } = self;
        let rank = comm.rank();
        let known = &self.reserved[known];
        let mut result = Ok(());
        let mut before: Option<(&Round, u64)> = None;
        for (number, round) in known.rounds.iter().enumerate() {
            self.epoch += 1;
            let staged = |&(n, _): &(usize, usize)| slot(message_plan.sends[n].bytes);
            staging.set_len(round.sends.iter().map(staged).sum());
            let free = staging.bytes_mut();
            let mut outgoing = Outgoing { message_plan, round, there, epoch: self.epoch, free };
            let done = window.epoch(self.epochs, &mut |epoch, window| {
                let put = outgoing.put(epoch, handler);
                if number + 1 == known.rounds.len() {
                    handler.own();
                }
                let shown = before.map_or(Ok(()), |(round, epoch)| {
                    Incoming { rank, epoch, message_plan, round, here, window }.show(handler)
                });
                put.and(shown)
            });
            result = result.and(done);
            before = Some((round, self.epoch));
        }
        let (round, epoch) = before.expect("at least one round");
        let last = Incoming { rank, epoch, message_plan, round, here, window: window.local() };
        result = result.and(last.show(handler));
        // Earlier rounds may have been overwritten.
        handler.finish(&|number| {
            let place = last.round.recvs.iter().find(|(there, _)| *there == number);
            place.and_then(|&(_, at)| last.message(number, at).ok()).unwrap_or_default()
        });
        result
    }

    fn forwarded(&self) -> u64 {
        self.headers
    }

    fn memory(&self) -> usize {
        let lists: usize = self.reserved.iter().map(Reserved::memory).sum();
        self.staging.capacity() + 2 * self.bytes.unwrap_or(0) + lists
    }
}
