//! Ranks of one host at work in each other's memory.
//!
//! Each rank has a [`SyncFlags`] where all can see it: there it posts what it shows, and counts how far it has come.
//! Nobody starts before all have posted, and nobody returns before all are done, so that a pointer is only followed
//! while its owner lends what it points to. A partition that is alone has only its rank's own elements, which between epochs are lent to
//! nobody: there nobody waits. Waiting costs no messages; the same few lines serve threads and
//! processes.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use fft_core::{
    Comm, Error, Expose, LocalBuffers, NodeMemory, SharedMemory, Slot, Work, WritePartition,
};

use super::epoch::{ExposureEpoch, LocalPointers, Shown};
use crate::idle::Idle;

/// What a rank lets the others of its host know. Lines of memory apart from its peers'.
#[repr(C, align(128))]
#[derive(Default)]
pub(crate) struct SyncFlags {
    /// `2v - 1` since this rank came to exposure_epoch `v`, `2v` since it was done there.
    came: AtomicU64,
    /// Set when it will not come again.
    pub(crate) gone: AtomicBool,
    read: ExposedRange,
    write: ExposedRange,
    partition: AtomicUsize,
}

/// Memory that is shown.
#[derive(Default)]
struct ExposedRange {
    /// In which segment of shared memory, and where.
    space: AtomicUsize,
    at: AtomicUsize,
    bytes: AtomicUsize,
}

/// ExposedRange by who shows nothing, to be written or at all.
const NOTHING: usize = usize::MAX;
/// ExposedRange by who tries to show what others cannot see.
const HIDDEN: usize = usize::MAX - 1;
/// ExposedRange for a partition by who drops its node_memory: with no memory of it in use, and with some.
const LEAVES: usize = usize::MAX - 1;
const LEAVES_MEMORY: usize = usize::MAX - 2;
/// ExposedRange for a partition by who only meets the others.
const WELL: usize = usize::MAX - 3;
const UNWELL: usize = usize::MAX - 4;

/// Where flags are, and how memory is reached.
///
/// # Safety
/// Stations are the same memory for all ranks of the host, and there as long as `self` is `ready`. For what a rank `locate`d,
/// `reach` gives on every rank of the host a pointer to the same memory, valid as long as that is.
pub(crate) unsafe trait AddressSpace: Send {
    /// Whether all memory can be located.
    const EVERYWHERE: bool;

    /// The flags of the `i`th rank of the host.
    fn flags(&self, i: usize) -> &SyncFlags;

    /// Whether there are flags, and this thread may wait at them.
    ///
    /// # Errors
    /// [`Error::Transport`] where not.
    fn ready(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Called while waiting: lets what is under way between hosts go on.
    fn progress(&self) {}

    /// The segment of shared memory that holds these bytes, and where.
    fn locate(&self, bytes: *const [u8]) -> Option<(usize, usize)>;

    /// What the `i`th rank located.
    fn reach(&self, i: usize, space: usize, at: usize) -> *mut u8;

    /// How what was allocated here is freed now.
    fn freed(&self) -> Freed {
        Freed::Alone
    }

    /// Never frees it, nor the flags: they live as long as the process.
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

/// The memory of one process, with who keeps its flags: all of it can be seen.
pub(crate) struct Process<S>(pub(crate) S);

// SAFETY: flags are in one place, which `S` keeps. Addresses are the same for all threads.
unsafe impl<S: AsRef<[SyncFlags]> + Send> AddressSpace for Process<S> {
    const EVERYWHERE: bool = true;

    fn flags(&self, i: usize) -> &SyncFlags {
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

/// [`NodeMemory`] on any space.
pub(crate) struct HostNodeMemory<G: AddressSpace> {
    space: G,
    /// The ranks of the host, which compare partitions.
    comm: Box<dyn Comm>,
    /// Their numbers in the communicator that this was made from, ascending.
    ranks: Vec<usize>,
    partitions: Vec<WritePartition>,
    epochs: u64,
    /// What everybody shows in the present exposure_epoch.
    shown: Vec<Shown>,
}

// SAFETY: the pointers in `shown` are followed only during a exposure_epoch, on the thread that epochs.
unsafe impl<G: AddressSpace> Send for HostNodeMemory<G> {}

/// How memory is freed that ranks have allocated together.
#[cfg_attr(not(feature = "mpi"), expect(dead_code, reason = "threads free each for itself"))]
pub(crate) enum Freed {
    /// By each rank for itself.
    Alone,
    /// By all ranks together, unless one still uses some of it.
    Together { in_use: bool },
    /// Not by this rank as it is now: it unwinds, or may not call MPI where it is.
    Not,
    /// Not any more: there is nothing left, not even flags.
    Gone,
}

/// What copy_in all ranks together to be freed is freed when all leave, and none uses any of it.
impl<G: AddressSpace> Drop for HostNodeMemory<G> {
    fn drop(&mut self) {
        let together = match self.space.freed() {
            Freed::Alone => return,
            Freed::Gone => return self.space.keep(),
            Freed::Not => false,
            Freed::Together { in_use } => {
                self.epochs += 1;
                let leaves = if in_use { LEAVES_MEMORY } else { LEAVES };
                self.own().partition.store(leaves, Ordering::Relaxed);
                self.enter().is_ok() && {
                    let leaving = EpochGuard(self);
                    let posted = |i| leaving.0.space.flags(i).partition.load(Ordering::Relaxed);
                    (0..leaving.0.ranks.len()).all(|i| posted(i) == LEAVES)
                }
            }
        };
        if !together {
            self.own().gone.store(true, Ordering::Release);
            self.space.keep();
        }
    }
}

impl<G: AddressSpace> HostNodeMemory<G> {
    /// The ranks of `comm`, all on one host; `ranks` are their numbers for those who call.
    pub(crate) fn new(space: G, comm: Box<dyn Comm>, ranks: Vec<usize>) -> Self {
        debug_assert!(ranks.is_sorted() && ranks.len() == comm.size());
        let shown = Vec::with_capacity(ranks.len());
        Self { space, comm, ranks, partitions: Vec::new(), epochs: 0, shown }
    }

    fn own(&self) -> &SyncFlags {
        self.space.flags(self.comm.rank())
    }

    pub(crate) fn place(&self, rank: usize) -> usize {
        self.ranks.binary_search(&rank).expect("only ranks of one host are peers")
    }

    fn shared(&self, partition: Option<usize>) -> Option<&WritePartition> {
        partition.map(|partition| &self.partitions[partition])
    }

    fn post(&self, posted: &ExposedRange, bytes: Option<*const [u8]>) {
        let (space, at) = match bytes {
            None => (NOTHING, 0),
            Some(bytes) if bytes.is_empty() => (0, 0),
            Some(bytes) => self.space.locate(bytes).unwrap_or((HIDDEN, 0)),
        };
        posted.space.store(space, Ordering::Relaxed);
        posted.at.store(at, Ordering::Relaxed);
        posted.bytes.store(bytes.map_or(0, |bytes| bytes.len()), Ordering::Relaxed);
    }

    /// Waits until all have come. Either all ranks return `Ok`, or none does.
    fn enter(&self) -> Result<(), Error> {
        let come = 2 * self.epochs - 1;
        // What was posted, and all that this rank has written before, is seen by who sees that it has come.
        self.own().came.store(come, Ordering::Release);
        for (i, &rank) in self.ranks.iter().enumerate() {
            let flags = self.space.flags(i);
            let mut idle = Idle::default();
            loop {
                let gone = flags.gone.load(Ordering::Acquire);
                if flags.came.load(Ordering::Acquire) >= come {
                    break;
                }
                if gone {
                    return Err(Error::Left { gone: rank });
                }
                self.space.progress();
                idle.wait();
            }
        }
        Ok(())
    }

    /// Whether a rank came for the same partition, or to meet as this one.
    fn same(&self, rank: usize, mine: usize, flags: &SyncFlags) -> Result<(), Error> {
        let theirs = flags.partition.load(Ordering::Relaxed);
        let kind = |partition| if partition == UNWELL { WELL } else { partition };
        if theirs == LEAVES || theirs == LEAVES_MEMORY {
            return Err(Error::Left { gone: rank });
        }
        if kind(theirs) == kind(mine) {
            return Ok(());
        }
        let text = |partition| match kind(partition) {
            NOTHING => "none".into(),
            WELL => "a meeting".into(),
            partition => format!("{partition}"),
        };
        let own = self.ranks[self.comm.rank()];
        let (a, b) = ((own, text(mine)), (rank, text(theirs)));
        let ((rank_a, a), (rank_b, b)) = if own < rank { (a, b) } else { (b, a) };
        Err(Error::Disagreement { what: "partition that is visited".into(), rank_a, a, rank_b, b })
    }

    /// Reads what all have posted. The same error on every rank.
    fn look(
        &self,
        partition: Option<usize>,
        own: Shown,
        shown: &mut Vec<Shown>,
    ) -> Result<(), Error> {
        shown.clear();
        for (i, &rank) in self.ranks.iter().enumerate() {
            let flags = self.space.flags(i);
            self.same(rank, partition.unwrap_or(NOTHING), flags)?;
            let partition = self.shared(partition);
            let least = partition.map_or(0, |partition| partition.bytes(rank));
            let least_read = partition.and_then(|partition| partition.read_bytes(rank));
            let wrong = |found: String, least: usize| {
                let what = format!("memory that rank {rank} shows");
                Error::argument(what, found, format!("{least} bytes that others can see"))
            };
            let there = |posted: &ExposedRange, least: usize| -> Result<(*mut u8, usize), Error> {
                let space = posted.space.load(Ordering::Relaxed);
                let bytes = posted.bytes.load(Ordering::Relaxed);
                match space {
                    HIDDEN => Err(wrong("what they cannot".into(), least)),
                    _ if space != NOTHING && bytes < least => {
                        Err(wrong(format!("{bytes} bytes"), least))
                    }
                    NOTHING => Ok((std::ptr::null_mut(), 0)),
                    _ if bytes == 0 => Ok((std::ptr::dangling_mut(), 0)),
                    space => {
                        Ok((self.space.reach(i, space, posted.at.load(Ordering::Relaxed)), bytes))
                    }
                }
            };
            let write = there(&flags.write, least)?;
            // What is read as a whole is nothing that anybody writes.
            let read = match (flags.read.space.load(Ordering::Relaxed), least_read) {
                (NOTHING, None) => write,
                (NOTHING, Some(least)) => return Err(wrong("none to be read".into(), least)),
                (_, apart) => there(&flags.read, apart.unwrap_or(least))?,
            };
            // This rank's own memory is reached as its caller reaches it.
            shown.push(if i == self.comm.rank() { own } else { Shown { read, write } });
        }
        Ok(())
    }
}

/// LocalBuffers a exposure_epoch when dropped, also by a panic: says that this rank is done and waits for all others.
struct EpochGuard<'a, G: AddressSpace>(&'a HostNodeMemory<G>);

impl<G: AddressSpace> Drop for EpochGuard<'_, G> {
    fn drop(&mut self) {
        let node_memory = self.0;
        let done = 2 * node_memory.epochs;
        // What this rank has written is seen by who sees that it is done.
        node_memory.own().came.store(done, Ordering::Release);
        for i in 0..node_memory.ranks.len() {
            let mut idle = Idle::default();
            while node_memory.space.flags(i).came.load(Ordering::Acquire) < done {
                node_memory.space.progress();
                idle.wait();
            }
        }
    }
}

impl<G: AddressSpace> NodeMemory for HostNodeMemory<G> {
    fn exposes_all(&self) -> bool {
        G::EVERYWHERE
    }

    fn sees(&self, memory: &[u8]) -> bool {
        memory.is_empty() || self.space.locate(memory).is_some()
    }

    fn allocate(&mut self, bytes: usize) -> Result<Box<dyn SharedMemory>, Error> {
        self.space.allocate(bytes).map_err(|error| numbered(error, &self.ranks))
    }

    fn register(&mut self, partition: WritePartition) -> Result<usize, Error> {
        let word =
            |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        let (mine, ranks) = (word(partition.division()), self.ranks.len());
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
        if partition.rank() != own {
            return Err(Error::argument("rank of a partition", partition.rank(), own));
        }
        self.partitions.push(partition);
        Ok(self.partitions.len() - 1)
    }

    fn sync(&mut self, well: bool) -> Result<bool, Error> {
        self.space.ready()?;
        self.epochs += 1;
        let mine = if well { WELL } else { UNWELL };
        self.own().partition.store(mine, Ordering::Relaxed);
        self.enter()?;
        let leaving = EpochGuard(self);
        let node_memory = leaving.0;
        let mut all = true;
        for (i, &rank) in node_memory.ranks.iter().enumerate() {
            let flags = node_memory.space.flags(i);
            node_memory.same(rank, mine, flags)?;
            all &= flags.partition.load(Ordering::Relaxed) == WELL;
        }
        Ok(all)
    }

    fn exposure_epoch(&mut self, show: Expose<'_>, work: Work<'_>) -> Result<(), Error> {
        self.space.ready()?;
        let (read, write, partition, local) = match show {
            Expose::Read(read) => {
                (Some(std::ptr::from_ref(read)), None, None, LocalBuffers::default())
            }
            Expose::Write { read, write, partition, local } => (
                read.map(std::ptr::from_ref),
                Some(std::ptr::from_mut(write)),
                Some(partition),
                local,
            ),
        };
        let (own, local) = (Shown::new(read, write), LocalPointers::new(local));
        let mut shown = std::mem::take(&mut self.shown);
        let result = if partition.is_some_and(|partition| self.partitions[partition].is_alone()) {
            // No other rank looks into this now: from epochs before, all have left, and for the next one all wait for this rank.
            shown.clear();
            shown.resize(self.ranks.len(), Shown::new(None, None));
            shown[self.comm.rank()] = own;
            work(&mut ExposureEpoch {
                node_memory: self,
                shown: &shown,
                local,
                partition: self.shared(partition),
            })
        } else {
            self.epochs += 1;
            let flags = self.own();
            self.post(&flags.read, read);
            self.post(&flags.write, write.map(<*mut [u8]>::cast_const));
            flags.partition.store(partition.unwrap_or(NOTHING), Ordering::Relaxed);
            self.enter().and_then(|()| {
                // From here to the drop of `leaving` in every rank, all that is shown is lent.
                let leaving = EpochGuard(self);
                let node_memory = leaving.0;
                node_memory.look(partition, own, &mut shown)?;
                work(&mut ExposureEpoch {
                    node_memory,
                    shown: &shown,
                    local,
                    partition: node_memory.shared(partition),
                })
            })
        };
        self.shown = shown;
        result
    }
}
