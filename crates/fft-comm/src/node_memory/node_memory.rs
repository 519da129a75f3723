//! Exposure epochs of the ranks of one host.
//!
//! Each rank has [`SyncFlags`] that all can read. Before an epoch it publishes there what it
//! exposes, then counts its entry. Nobody starts before all have entered, and nobody returns before
//! all have exited, so that a pointer is followed only while its owner lends the memory. A
//! partition that is alone has only elements of its own rank, exposed to nobody, and needs no
//! synchronisation. Waiting costs no messages; threads and processes use the same code.
#![allow(unsafe_code)]

use std::cell::OnceCell;
use std::sync::atomic::Ordering;

use fft_core::{
    Comm, Error, Expose, LocalBuffers, NodeMemory, SharedMemory, Work, WritePartition, gather_lists,
};

use super::address_space::{AddressSpace, Bytes, ExposedRange, Found, Freed, Purpose, SyncFlags};
use super::epoch::{Exposed, ExposureEpoch, LocalPointers};
use crate::idle::Idle;

/// Translates the rank of an agreed error: `ranks` maps ranks of another communicator to ranks of
/// this one.
pub(crate) fn on_rank_of(error: Error, ranks: &[usize]) -> Error {
    match error {
        Error::OnRank { rank, kind, message } => {
            Error::OnRank { rank: ranks.get(rank).copied().unwrap_or(rank), kind, message }
        }
        error => error,
    }
}

/// [`NodeMemory`] in any address space.
pub(crate) struct HostNodeMemory<A: AddressSpace> {
    pub(super) space: A,
    /// The ranks of the host, which compare partitions.
    pub(super) comm: Box<dyn Comm>,
    /// Their numbers in the communicator that this was made from, ascending.
    pub(super) ranks: Vec<usize>,
    partitions: Vec<WritePartition>,
    epochs: u64,
    /// The first rank that was missing. Others leave because of it, but later epochs still report
    /// this one.
    missing: OnceCell<usize>,
    /// What each rank exposes in the present epoch.
    exposed: Vec<Exposed>,
}

// SAFETY: the pointers in `exposed` are followed only during an epoch, on the thread that entered
// it.
unsafe impl<A: AddressSpace> Send for HostNodeMemory<A> {}

/// Frees collective allocations when all ranks leave and no rank uses any of them.
impl<A: AddressSpace> Drop for HostNodeMemory<A> {
    fn drop(&mut self) {
        let together = match self.space.freed() {
            Freed::Alone => return,
            Freed::Gone => return self.space.keep(),
            Freed::Not => false,
            Freed::Together { in_use } => {
                self.epochs += 1;
                self.own().set_purpose(Purpose::Leave { in_use });
                self.enter().is_ok() && {
                    let leaving = EpochGuard(self);
                    let purpose = |i| leaving.0.space.flags(i).purpose();
                    let frees = |i| purpose(i) == Purpose::Leave { in_use: false };
                    (0..leaving.0.ranks.len()).all(frees)
                }
            }
        };
        if !together {
            self.own().gone.store(true, Ordering::Release);
            self.space.keep();
        }
    }
}

impl<A: AddressSpace> HostNodeMemory<A> {
    /// The ranks of `comm`, all on one host; `ranks` are their numbers in the callers'
    /// communicator.
    pub(crate) fn new(space: A, comm: Box<dyn Comm>, ranks: Vec<usize>) -> Self {
        debug_assert!(ranks.is_sorted() && ranks.len() == comm.size());
        let exposed = Vec::with_capacity(ranks.len());
        let (partitions, missing) = (Vec::new(), OnceCell::new());
        Self { space, comm, ranks, partitions, epochs: 0, missing, exposed }
    }

    fn own(&self) -> &SyncFlags {
        self.space.flags(self.comm.rank())
    }

    fn partition(&self, partition: Option<usize>) -> Option<&WritePartition> {
        partition.map(|partition| &self.partitions[partition])
    }

    /// Whether a rank's count of entries and exits has reached `count`.
    fn has_counted(&self, i: usize, count: u64) -> bool {
        self.space.flags(i).epoch.load(Ordering::Acquire) >= count
    }

    /// Enters an epoch: waits until all ranks have. Either all return `Ok` or none does.
    fn enter(&self) -> Result<(), Error> {
        let entered = 2 * self.epochs - 1;
        // Releases what this rank has published and written before.
        self.own().epoch.store(entered, Ordering::Release);
        for i in 0..self.ranks.len() {
            let mut idle = Idle::default();
            while !self.has_counted(i, entered) {
                self.space.progress();
                // Checks the other ranks, too: rank `i` may have seen that one is missing, and not
                // come.
                let is_missing =
                    |&i: &usize| self.space.is_gone(i) && !self.has_counted(i, entered);
                if let Some(missing) = (0..self.ranks.len()).find(is_missing) {
                    let gone = *self.missing.get_or_init(|| self.ranks[missing]);
                    return Err(Error::Left { gone });
                }
                idle.wait();
            }
        }
        Ok(())
    }

    /// Exits an epoch: counts this rank's exit and waits until the others have counted theirs. An
    /// error, the same on all ranks, if one has ended in the epoch.
    fn exit(&self) -> Result<(), Error> {
        let exited = 2 * self.epochs;
        // Releases what this rank has written.
        self.own().epoch.store(exited, Ordering::Release);
        let mut result = Ok(());
        for (i, &rank) in self.ranks.iter().enumerate() {
            let mut idle = Idle::default();
            while !self.has_counted(i, exited) {
                self.space.progress();
                if self.space.has_left(i) && !self.has_counted(i, exited) {
                    // Waits for the others nevertheless, because they still access the memory that
                    // this rank exposes.
                    let gone = *self.missing.get_or_init(|| rank);
                    result = result.and(Err(Error::Left { gone }));
                    break;
                }
                idle.wait();
            }
        }
        result
    }

    /// Checks that a rank entered for the same partition as this one, or to synchronize as well.
    fn check_same(&self, rank: usize, mine: Purpose, theirs: Purpose) -> Result<(), Error> {
        match (mine, theirs) {
            (_, Purpose::Leave { .. }) => return Err(Error::Left { gone: rank }),
            (Purpose::Synchronize { .. }, Purpose::Synchronize { .. }) => return Ok(()),
            _ if mine == theirs => return Ok(()),
            _ => {}
        }
        let text = |purpose| match purpose {
            Purpose::Exchange { partition: Some(number) } => format!("{number}"),
            Purpose::Exchange { partition: None } => "none".into(),
            Purpose::Synchronize { .. } => "a barrier".into(),
            Purpose::Leave { .. } => "the end".into(),
        };
        let own = self.ranks[self.comm.rank()];
        let (a, b) = ((own, text(mine)), (rank, text(theirs)));
        let ((rank_a, a), (rank_b, b)) = if own < rank { (a, b) } else { (b, a) };
        Err(Error::Disagreement { what: "partition of the epoch".into(), rank_a, a, rank_b, b })
    }

    /// Collects what all ranks expose. The same error on every rank.
    fn read_exposed(
        &self,
        partition: Option<usize>,
        own: Exposed,
        exposed: &mut Vec<Exposed>,
    ) -> Result<(), Error> {
        exposed.clear();
        for (i, &rank) in self.ranks.iter().enumerate() {
            let flags = self.space.flags(i);
            self.check_same(rank, Purpose::Exchange { partition }, flags.purpose())?;
            let partition = self.partition(partition);
            let least = partition.map_or(0, |partition| partition.bytes(rank));
            let least_read = partition.and_then(|partition| partition.read_bytes(rank));
            let write = self.find(i, &flags.write, least)?.unwrap_or((std::ptr::null_mut(), 0));
            let read = self.find(i, &flags.read, least_read.unwrap_or(least))?;
            let read = match (read, least_read) {
                (Some(read), _) => read,
                (None, None) => write,
                (None, Some(least)) => return Err(self.lacks(i, "none to be read", least)),
            };
            // This rank's own memory is accessed through its caller's pointers.
            exposed.push(if i == self.comm.rank() { own } else { Exposed { read, write } });
        }
        Ok(())
    }

    /// The memory that the `i`th rank exposes, of at least `least` bytes, if it does.
    fn find(&self, i: usize, range: &ExposedRange, least: usize) -> Result<Option<Bytes>, Error> {
        match range.get() {
            Found::Nothing => Ok(None),
            Found::Hidden => Err(self.lacks(i, "what they cannot", least)),
            Found::Empty if least > 0 => Err(self.lacks(i, "0 bytes", least)),
            Found::Empty => Ok(Some((std::ptr::dangling_mut(), 0))),
            Found::Range { bytes, .. } if bytes < least => {
                Err(self.lacks(i, &format!("{bytes} bytes"), least))
            }
            Found::Range { space, at, bytes } => Ok(Some((self.space.reach(i, space, at), bytes))),
        }
    }

    fn lacks(&self, i: usize, found: &str, least: usize) -> Error {
        let what = format!("memory that rank {} shows", self.ranks[i]);
        Error::argument(what, found, format!("{least} bytes that others can see"))
    }
}

/// An epoch that this rank has entered, and exits on drop, also in a panic.
struct EpochGuard<'a, A: AddressSpace>(&'a HostNodeMemory<A>);

impl<A: AddressSpace> EpochGuard<'_, A> {
    fn exit(self) -> Result<(), Error> {
        let result = self.0.exit();
        std::mem::forget(self);
        result
    }
}

impl<A: AddressSpace> Drop for EpochGuard<'_, A> {
    fn drop(&mut self) {
        // A rank that has ended is missing in the next epoch as well.
        let _ = self.0.exit();
    }
}

impl<A: AddressSpace> NodeMemory for HostNodeMemory<A> {
    fn exposes_all(&self) -> bool {
        A::EVERYWHERE
    }

    fn sees(&self, memory: &[u8]) -> bool {
        memory.is_empty() || self.space.locate(memory).is_some()
    }

    fn allocate(&mut self, bytes: usize) -> Result<Box<dyn SharedMemory>, Error> {
        self.space.allocate(bytes).map_err(|error| on_rank_of(error, &self.ranks))
    }

    fn register(&mut self, partition: WritePartition) -> Result<usize, Error> {
        let all = gather_lists(self.comm.as_ref(), partition.division())?;
        if let Some(other) = all.iter().position(|division| *division != all[0]) {
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

    fn sync(&mut self, succeeded: bool) -> Result<bool, Error> {
        self.space.ready()?;
        self.epochs += 1;
        let mine = Purpose::Synchronize { failed: !succeeded };
        self.own().set_purpose(mine);
        self.enter()?;
        let leaving = EpochGuard(self);
        let node_memory = leaving.0;
        let mut all = true;
        for (i, &rank) in node_memory.ranks.iter().enumerate() {
            let purpose = node_memory.space.flags(i).purpose();
            node_memory.check_same(rank, mine, purpose)?;
            all &= purpose == Purpose::Synchronize { failed: false };
        }
        leaving.exit()?;
        Ok(all)
    }

    fn exposure_epoch(&mut self, show: Expose<'_>, work: Work<'_>) -> Result<(), Error> {
        self.space.ready()?;
        let (read, write, partition, local) = match show {
            Expose::Read(read) => {
                (Some(std::ptr::from_ref(read)), None, None, LocalBuffers::default())
            }
            Expose::Write { read, write, partition, local } => {
                let (read, write) = (read.map(std::ptr::from_ref), std::ptr::from_mut(write));
                (read, Some(write), Some(partition), local)
            }
        };
        let (own, local) = (Exposed::new(read, write), LocalPointers::new(local));
        let mut exposed = std::mem::take(&mut self.exposed);
        let mut run = |node_memory: &Self, exposed: &[Exposed]| {
            let partition = node_memory.partition(partition);
            work(&mut ExposureEpoch { ranks: &node_memory.ranks, exposed, local, partition })
        };
        let result = if self.partition(partition).is_some_and(WritePartition::is_alone) {
            // No other rank accesses this memory now: all have exited earlier epochs, and the next
            // one waits for this rank.
            exposed.clear();
            exposed.resize(self.ranks.len(), Exposed::new(None, None));
            exposed[self.comm.rank()] = own;
            run(self, &exposed)
        } else {
            self.epochs += 1;
            let flags = self.own();
            flags.read.set(&self.space, read);
            flags.write.set(&self.space, write.map(<*mut [u8]>::cast_const));
            flags.set_purpose(Purpose::Exchange { partition });
            self.enter().and_then(|()| {
                // From here until all ranks have dropped their guards, all exposed memory is lent.
                let leaving = EpochGuard(self);
                let found = leaving.0.read_exposed(partition, own, &mut exposed);
                let done = found.and_then(|()| run(leaving.0, &exposed));
                done.and(leaving.exit())
            })
        };
        self.exposed = exposed;
        result
    }
}
