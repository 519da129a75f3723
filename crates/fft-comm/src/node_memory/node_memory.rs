//! Ranks of one host at work in each other's memory.
//!
//! Each rank has a [`Station`] where all can see it: there it posts what it shows, and counts how far it has come.
//! Nobody starts before all have posted, and nobody returns before all are done, so that a pointer is only followed
//! while its owner lends what it points to. A share that is alone has only its rank's own elements, which between visits are lent to
//! nobody: there nobody waits. Waiting costs no messages; the same few lines serve threads and
//! processes.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use fft_core::{Comm, Commons, Ends, Error, Share, SharedMemory, Show, Slot, Work};

use super::epoch::{AtEnds, Shown, Visit};
use crate::idle::Idle;

/// What a rank lets the others of its host know. Lines of memory apart from its neighbours'.
#[repr(C, align(128))]
#[derive(Default)]
pub(crate) struct Station {
    /// `2v - 1` since this rank came to visit `v`, `2v` since it was done there.
    came: AtomicU64,
    /// Set when it will not come again.
    pub(crate) gone: AtomicBool,
    read: Posted,
    write: Posted,
    share: AtomicUsize,
}

/// Memory that is shown.
#[derive(Default)]
struct Posted {
    /// In which piece of shared memory, and where.
    ground: AtomicUsize,
    at: AtomicUsize,
    bytes: AtomicUsize,
}

/// Posted by who shows nothing, to be written or at all.
const NOTHING: usize = usize::MAX;
/// Posted by who tries to show what others cannot see.
const HIDDEN: usize = usize::MAX - 1;
/// Posted for a share by who drops its commons: with no memory of it in use, and with some.
const LEAVES: usize = usize::MAX - 1;
const LEAVES_MEMORY: usize = usize::MAX - 2;
/// Posted for a share by who only meets the others.
const WELL: usize = usize::MAX - 3;
const UNWELL: usize = usize::MAX - 4;

/// Where stations are, and how memory is reached.
///
/// # Safety
/// Stations are the same memory for all ranks of the host, and there as long as `self` is `ready`. For what a rank `locate`d,
/// `reach` gives on every rank of the host a pointer to the same memory, valid as long as that is.
pub(crate) unsafe trait Ground: Send {
    /// Whether all memory can be located.
    const EVERYWHERE: bool;

    /// The station of the `i`th rank of the host.
    fn station(&self, i: usize) -> &Station;

    /// Whether there are stations, and this thread may wait at them.
    ///
    /// # Errors
    /// [`Error::Transport`] where not.
    fn ready(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Called while waiting: lets what is under way between hosts go on.
    fn progress(&self) {}

    /// The piece of shared memory that holds these bytes, and where.
    fn locate(&self, bytes: *const [u8]) -> Option<(usize, usize)>;

    /// What the `i`th rank located.
    fn reach(&self, i: usize, ground: usize, at: usize) -> *mut u8;

    /// How what was allocated here is freed now.
    fn freed(&self) -> Freed {
        Freed::Alone
    }

    /// Never frees it, nor the stations: they live as long as the process.
    fn keep(&mut self) {}

    /// Memory that can be located. Collective.
    ///
    /// # Errors
    /// When the system does not give it.
    fn allocate(&mut self, bytes: usize) -> Result<Box<dyn SharedMemory>, Error>;
}

/// An error that some ranks have agreed on, by its rank's number in another communicator: `ranks` has that of each of them.
pub(crate) fn numbered(error: Error, ranks: &[usize]) -> Error {
    match error {
        Error::OnRank { rank, kind, message } => {
            Error::OnRank { rank: ranks.get(rank).copied().unwrap_or(rank), kind, message }
        }
        error => error,
    }
}

/// The memory of one process, with who keeps its stations: all of it can be seen.
pub(crate) struct Process<S>(pub(crate) S);

// SAFETY: stations are in one place, which `S` keeps. Addresses are the same for all threads.
unsafe impl<S: AsRef<[Station]> + Send> Ground for Process<S> {
    const EVERYWHERE: bool = true;

    fn station(&self, i: usize) -> &Station {
        &self.0.as_ref()[i]
    }

    fn locate(&self, bytes: *const [u8]) -> Option<(usize, usize)> {
        Some((0, bytes.cast::<u8>().expose_provenance()))
    }

    fn reach(&self, _i: usize, _ground: usize, at: usize) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(at)
    }

    fn allocate(&mut self, bytes: usize) -> Result<Box<dyn SharedMemory>, Error> {
        Ok(Box::new(Owned(Slot::new(bytes, 0)?)))
    }
}

/// Memory like any other.
struct Owned(Slot);

impl SharedMemory for Owned {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}

/// [`Commons`] on any ground.
pub(crate) struct HostCommons<G: Ground> {
    ground: G,
    /// The ranks of the host, which compare shares.
    comm: Box<dyn Comm>,
    /// Their numbers in the communicator that this was made from, ascending.
    ranks: Vec<usize>,
    shares: Vec<Share>,
    visits: u64,
    /// What everybody shows in the present visit.
    shown: Vec<Shown>,
}

// SAFETY: the pointers in `shown` are followed only during a visit, on the thread that visits.
unsafe impl<G: Ground> Send for HostCommons<G> {}

/// How memory is freed that ranks have allocated together.
#[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "threads free each for itself"))]
pub(crate) enum Freed {
    /// By each rank for itself.
    Alone,
    /// By all ranks together, unless one still uses some of it.
    Together { in_use: bool },
    /// Not by this rank as it is now: it unwinds, or may not call MPI where it is.
    Not,
    /// Not any more: there is nothing left, not even stations.
    Gone,
}

/// What takes all ranks together to be freed is freed when all leave, and none uses any of it.
impl<G: Ground> Drop for HostCommons<G> {
    fn drop(&mut self) {
        let together = match self.ground.freed() {
            Freed::Alone => return,
            Freed::Gone => return self.ground.keep(),
            Freed::Not => false,
            Freed::Together { in_use } => {
                self.visits += 1;
                let leaves = if in_use { LEAVES_MEMORY } else { LEAVES };
                self.own().share.store(leaves, Ordering::Relaxed);
                self.arrive().is_ok() && {
                    let leaving = Leaving(self);
                    let posted = |i| leaving.0.ground.station(i).share.load(Ordering::Relaxed);
                    (0..leaving.0.ranks.len()).all(|i| posted(i) == LEAVES)
                }
            }
        };
        if !together {
            self.own().gone.store(true, Ordering::Release);
            self.ground.keep();
        }
    }
}

impl<G: Ground> HostCommons<G> {
    /// The ranks of `comm`, all on one host; `ranks` are their numbers for those who call.
    pub(crate) fn new(ground: G, comm: Box<dyn Comm>, ranks: Vec<usize>) -> Self {
        debug_assert!(ranks.is_sorted() && ranks.len() == comm.size());
        let shown = Vec::with_capacity(ranks.len());
        Self { ground, comm, ranks, shares: Vec::new(), visits: 0, shown }
    }

    fn own(&self) -> &Station {
        self.ground.station(self.comm.rank())
    }

    pub(crate) fn place(&self, rank: usize) -> usize {
        self.ranks.binary_search(&rank).expect("only ranks of one host are neighbours")
    }

    fn shared(&self, share: Option<usize>) -> Option<&Share> {
        share.map(|share| &self.shares[share])
    }

    fn post(&self, posted: &Posted, bytes: Option<*const [u8]>) {
        let (ground, at) = match bytes {
            None => (NOTHING, 0),
            Some(bytes) if bytes.is_empty() => (0, 0),
            Some(bytes) => self.ground.locate(bytes).unwrap_or((HIDDEN, 0)),
        };
        posted.ground.store(ground, Ordering::Relaxed);
        posted.at.store(at, Ordering::Relaxed);
        posted.bytes.store(bytes.map_or(0, |bytes| bytes.len()), Ordering::Relaxed);
    }

    /// Waits until all have come. Either all ranks return `Ok`, or none does.
    fn arrive(&self) -> Result<(), Error> {
        let come = 2 * self.visits - 1;
        // What was posted, and all that this rank has written before, is seen by who sees that it has come.
        self.own().came.store(come, Ordering::Release);
        for (i, &rank) in self.ranks.iter().enumerate() {
            let station = self.ground.station(i);
            let mut idle = Idle::default();
            loop {
                let gone = station.gone.load(Ordering::Acquire);
                if station.came.load(Ordering::Acquire) >= come {
                    break;
                }
                if gone {
                    return Err(Error::Left { gone: rank });
                }
                self.ground.progress();
                idle.wait();
            }
        }
        Ok(())
    }

    /// Whether a rank came for the same share, or to meet as this one.
    fn same(&self, rank: usize, mine: usize, station: &Station) -> Result<(), Error> {
        let theirs = station.share.load(Ordering::Relaxed);
        let kind = |share| if share == UNWELL { WELL } else { share };
        if theirs == LEAVES || theirs == LEAVES_MEMORY {
            return Err(Error::Left { gone: rank });
        }
        if kind(theirs) == kind(mine) {
            return Ok(());
        }
        let text = |share| match kind(share) {
            NOTHING => "none".into(),
            WELL => "a meeting".into(),
            share => format!("{share}"),
        };
        let own = self.ranks[self.comm.rank()];
        let (a, b) = ((own, text(mine)), (rank, text(theirs)));
        let ((rank_a, a), (rank_b, b)) = if own < rank { (a, b) } else { (b, a) };
        Err(Error::Disagreement { what: "share that is visited".into(), rank_a, a, rank_b, b })
    }

    /// Reads what all have posted. The same error on every rank.
    fn look(&self, share: Option<usize>, own: Shown, shown: &mut Vec<Shown>) -> Result<(), Error> {
        shown.clear();
        for (i, &rank) in self.ranks.iter().enumerate() {
            let station = self.ground.station(i);
            self.same(rank, share.unwrap_or(NOTHING), station)?;
            let share = self.shared(share);
            let least = share.map_or(0, |share| share.bytes(rank));
            let least_read = share.and_then(|share| share.read_bytes(rank));
            let wrong = |found: String, least: usize| {
                let what = format!("memory that rank {rank} shows");
                Error::argument(what, found, format!("{least} bytes that others can see"))
            };
            let there = |posted: &Posted, least: usize| -> Result<(*mut u8, usize), Error> {
                let ground = posted.ground.load(Ordering::Relaxed);
                let bytes = posted.bytes.load(Ordering::Relaxed);
                match ground {
                    HIDDEN => Err(wrong("what they cannot".into(), least)),
                    _ if ground != NOTHING && bytes < least => {
                        Err(wrong(format!("{bytes} bytes"), least))
                    }
                    NOTHING => Ok((std::ptr::null_mut(), 0)),
                    _ if bytes == 0 => Ok((std::ptr::dangling_mut(), 0)),
                    ground => {
                        Ok((self.ground.reach(i, ground, posted.at.load(Ordering::Relaxed)), bytes))
                    }
                }
            };
            let write = there(&station.write, least)?;
            // What is read as a whole is nothing that anybody writes.
            let read = match (station.read.ground.load(Ordering::Relaxed), least_read) {
                (NOTHING, None) => write,
                (NOTHING, Some(least)) => return Err(wrong("none to be read".into(), least)),
                (_, apart) => there(&station.read, apart.unwrap_or(least))?,
            };
            // This rank's own memory is reached as its caller reaches it.
            shown.push(if i == self.comm.rank() { own } else { Shown { read, write } });
        }
        Ok(())
    }
}

/// Ends a visit when dropped, also by a panic: says that this rank is done and waits for all others.
struct Leaving<'a, G: Ground>(&'a HostCommons<G>);

impl<G: Ground> Drop for Leaving<'_, G> {
    fn drop(&mut self) {
        let commons = self.0;
        let done = 2 * commons.visits;
        // What this rank has written is seen by who sees that it is done.
        commons.own().came.store(done, Ordering::Release);
        for i in 0..commons.ranks.len() {
            let mut idle = Idle::default();
            while commons.ground.station(i).came.load(Ordering::Acquire) < done {
                commons.ground.progress();
                idle.wait();
            }
        }
    }
}

impl<G: Ground> Commons for HostCommons<G> {
    fn shows_all(&self) -> bool {
        G::EVERYWHERE
    }

    fn sees(&self, memory: &[u8]) -> bool {
        memory.is_empty() || self.ground.locate(memory).is_some()
    }

    fn allocate(&mut self, bytes: usize) -> Result<Box<dyn SharedMemory>, Error> {
        self.ground.allocate(bytes).map_err(|error| numbered(error, &self.ranks))
    }

    fn admit(&mut self, share: Share) -> Result<usize, Error> {
        let word =
            |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        let (mine, ranks) = (word(share.division()), self.ranks.len());
        let mut lens = vec![0; 8 * ranks];
        self.comm.allgather(&word(&[mine.len() as u64]), &mut lens)?;
        let differs = |all: &[u8]| {
            let n = all.len() / ranks;
            all.chunks_exact(n.max(1)).position(|other| other != &all[..n])
        };
        let mut other = differs(&lens);
        if other.is_none() {
            let mut all = vec![0; mine.len() * ranks];
            self.comm.allgather(&mine, &mut all)?;
            other = differs(&all);
        }
        if let Some(other) = other {
            let (rank_a, rank_b) = (self.ranks[0], self.ranks[other]);
            let (what, a, b) = ("division of memory".into(), "one".into(), "another".into());
            return Err(Error::Disagreement { what, rank_a, a, rank_b, b });
        }
        let own = self.ranks[self.comm.rank()];
        if share.rank() != own {
            return Err(Error::argument("rank of a share", share.rank(), own));
        }
        self.shares.push(share);
        Ok(self.shares.len() - 1)
    }

    fn meet(&mut self, well: bool) -> Result<bool, Error> {
        self.ground.ready()?;
        self.visits += 1;
        let mine = if well { WELL } else { UNWELL };
        self.own().share.store(mine, Ordering::Relaxed);
        self.arrive()?;
        let leaving = Leaving(self);
        let commons = leaving.0;
        let mut all = true;
        for (i, &rank) in commons.ranks.iter().enumerate() {
            let station = commons.ground.station(i);
            commons.same(rank, mine, station)?;
            all &= station.share.load(Ordering::Relaxed) == WELL;
        }
        Ok(all)
    }

    fn visit(&mut self, show: Show<'_>, work: Work<'_>) -> Result<(), Error> {
        self.ground.ready()?;
        let (read, write, share, ends) = match show {
            Show::Read(read) => (Some(std::ptr::from_ref(read)), None, None, Ends::default()),
            Show::Write { read, write, share, ends } => {
                (read.map(std::ptr::from_ref), Some(std::ptr::from_mut(write)), Some(share), ends)
            }
        };
        let (own, ends) = (Shown::new(read, write), AtEnds::new(ends));
        let mut shown = std::mem::take(&mut self.shown);
        let result = if share.is_some_and(|share| self.shares[share].is_alone()) {
            // No other rank looks into this now: from visits before, all have left, and for the next one all wait for this rank.
            shown.clear();
            shown.resize(self.ranks.len(), Shown::new(None, None));
            shown[self.comm.rank()] = own;
            work(&mut Visit { commons: self, shown: &shown, ends, share: self.shared(share) })
        } else {
            self.visits += 1;
            let station = self.own();
            self.post(&station.read, read);
            self.post(&station.write, write.map(<*mut [u8]>::cast_const));
            station.share.store(share.unwrap_or(NOTHING), Ordering::Relaxed);
            self.arrive().and_then(|()| {
                // From here to the drop of `leaving` in every rank, all that is shown is lent.
                let leaving = Leaving(self);
                let commons = leaving.0;
                commons.look(share, own, &mut shown)?;
                work(&mut Visit { commons, shown: &shown, ends, share: commons.shared(share) })
            })
        };
        self.shown = shown;
        result
    }
}
