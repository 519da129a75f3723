//! A board that the ranks of a host share: flags, a slot of each rank for collectives, and a ring
//! for the messages of each pair.
//!
//! ```text
//! a collective, in rounds:
//!     wait until all have looked at the slots of the round before
//!     write the own slot, and count the arrival
//!     wait until all have arrived, look at all slots, and count that
//! ```
//!
//! A rank that has left, or whose process has ended, is an error only if others wait for it. All of
//! them see the same flags of that rank, so all get the same result.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use fft_core::{Error, Reduce, agree_by};
use rustix::io::Errno;

use super::processes::Processes;
use super::ring::{Cursors, Ring};
use super::shared_memory::SharedMapping;
use crate::idle::Idle;
use crate::node_memory::SyncFlags;

/// Bytes of a rank's slot.
pub(super) const SLOT: usize = 8192;

/// Bytes of all rings together, within the limits of each ring.
const RINGS: usize = 1 << 24;
const RING: std::ops::RangeInclusive<usize> = 1 << 12..=1 << 18;

/// The flags of a rank.
#[repr(C)]
struct Flags {
    sync: SyncFlags,
    /// Rounds in which it has arrived, and in which it has looked.
    arrived: AtomicU64,
    looked: AtomicU64,
    /// Bytes in its slot.
    bytes: AtomicUsize,
    /// At the first board of a group: whether the group has failed on this rank.
    has_failed: AtomicBool,
}

/// Where flags, slots and rings begin.
#[derive(Clone, Copy)]
struct Places {
    ranks: usize,
    ring: usize,
}

impl Places {
    fn new(ranks: usize) -> Self {
        let ring = RINGS / (ranks * ranks);
        Self { ranks, ring: ring.clamp(*RING.start(), *RING.end()) }
    }

    fn slot(self, i: usize) -> usize {
        self.ranks * size_of::<Flags>() + i * SLOT
    }

    fn ring(self, from: usize, to: usize) -> usize {
        self.slot(self.ranks) + (from * self.ranks + to) * (size_of::<Cursors>() + self.ring)
    }

    fn bytes(self) -> usize {
        self.ring(self.ranks, 0)
    }
}

/// A rank's place at a board. When it is dropped, the other ranks see that this one has left.
pub(super) struct Board {
    processes: Arc<Processes>,
    /// The first board of the group, if this is another one.
    first: Option<Arc<Board>>,
    memory: SharedMapping,
    places: Places,
    /// This rank's index, and the rank of each index in the group, ascending.
    own: usize,
    ranks: Arc<[usize]>,
    round: AtomicU64,
    /// The first rank that was missing. Others leave because of it, but later calls still report
    /// this one.
    missing: OnceLock<usize>,
    /// The process that made this object. A forked process has a copy of it, but is not a rank.
    process: u32,
}

impl Drop for Board {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Board {
    /// A board of all processes. Collective, without an agreement on the result.
    pub(super) fn new(
        processes: Arc<Processes>,
        own: usize,
        ranks: Arc<[usize]>,
        gather: Gather<'_>,
    ) -> Result<Self, Error> {
        let places = Places::new(ranks.len());
        let bytes = if own == 0 { places.bytes() } else { 0 };
        let memory = share(&processes, own, bytes, ranks[own], gather)?.swap_remove(0);
        Ok(Self {
            processes,
            first: None,
            memory,
            places,
            own,
            ranks,
            round: AtomicU64::new(0),
            missing: OnceLock::new(),
            process: std::process::id(),
        })
    }

    /// Another board of the same ranks. Collective; the same error on all, which counts ranks by
    /// index.
    pub(super) fn another(self: &Arc<Self>) -> Result<Self, Error> {
        let gather: Gather<'_> = &mut |mine, all| self.allgather(mine, all);
        let made = Self::new(self.processes.clone(), self.own, self.ranks.clone(), gather);
        let mut board = self.agree(made)?;
        board.first = Some(self.first.as_ref().unwrap_or(self).clone());
        Ok(board)
    }

    /// Memory of each rank, by index. Collective; errors are as of [`Board::another`].
    pub(super) fn share(&self, bytes: usize) -> Result<Vec<SharedMapping>, Error> {
        let gather: Gather<'_> = &mut |mine, all| self.allgather(mine, all);
        let rank = self.ranks[self.own];
        self.agree(share(&self.processes, self.own, bytes, rank, gather))
    }

    fn agree<T>(&self, mine: Result<T, Error>) -> Result<T, Error> {
        let least = |value: &mut [f64]| self.allreduce(Reduce::Min, value);
        agree_by((self.own, self.len()), least, |mine, all| self.allgather(mine, all), mine)
    }

    pub(super) fn len(&self) -> usize {
        self.ranks.len()
    }

    pub(super) fn own(&self) -> usize {
        self.own
    }

    pub(super) fn ranks(&self) -> &Arc<[usize]> {
        &self.ranks
    }

    pub(super) fn processes(&self) -> &Processes {
        &self.processes
    }

    /// Checks that this rank can take part: this process is the one that made this object, and the
    /// group has not failed here.
    pub(super) fn check(&self) -> Result<(), Error> {
        let rank = self.ranks[self.own];
        if std::process::id() != self.process {
            let text = "a forked process is not a rank of its parent's group".into();
            return Err(Error::Transport { rank, call: "process group", text });
        }
        let failed = self.has_failed(self.own).then_some(&rank);
        match self.missing.get().or(self.first().missing.get()).or(failed) {
            Some(&gone) => Err(Error::Left { gone }),
            None => Ok(()),
        }
    }

    /// The first board of the group.
    fn first(&self) -> &Self {
        self.first.as_deref().unwrap_or(self)
    }

    fn has_failed(&self, i: usize) -> bool {
        self.first().flags(i).has_failed.load(Ordering::Acquire)
    }

    /// Called at the first board when the group has failed on this rank, because of `gone` if that
    /// rank is known. From then on the other ranks of the host do not wait for this one, nor it for
    /// them.
    pub(super) fn fail(&self, gone: Option<usize>) {
        self.missing.get_or_init(|| gone.unwrap_or(self.ranks[self.own]));
        self.flags(self.own).has_failed.store(true, Ordering::Release);
    }

    fn flags(&self, i: usize) -> &Flags {
        assert!(i < self.len(), "index of a rank of the host");
        // SAFETY: the memory begins with the flags of all ranks, was zeroed, which is their initial
        // state, and lives as long as this object. All fields are atomic.
        unsafe { &*self.memory.at().cast::<Flags>().add(i) }
    }

    pub(super) fn sync_flags(&self, i: usize) -> &SyncFlags {
        &self.flags(i).sync
    }

    /// The ring of messages from one rank to another.
    pub(super) fn ring(&self, from: usize, to: usize) -> Ring<'_> {
        assert!(from < self.len() && to < self.len(), "indices of ranks of the host");
        let at = self.memory.at().wrapping_add(self.places.ring(from, to));
        // SAFETY: there is room for the cursors and the bytes of each ring, zeroed at first, as
        // long as this object lives.
        unsafe { Ring::new(at, self.places.ring) }
    }

    /// Marks this rank as gone, so that the others do not wait for it.
    pub(super) fn leave(&self) {
        if std::process::id() == self.process {
            self.flags(self.own).sync.gone.store(true, Ordering::Release);
        }
    }

    /// Whether a rank has dropped its board, or its process has ended.
    pub(super) fn has_left(&self, i: usize) -> bool {
        self.flags(i).sync.gone.load(Ordering::Acquire) || self.processes.has_ended(i)
    }

    /// Whether a rank will come no more, or this rank waits for nobody any more.
    pub(super) fn is_gone(&self, i: usize) -> bool {
        self.has_left(i) || self.has_failed(i) || self.has_failed(self.own)
    }

    /// Waits until all ranks have arrived, or until a missing rank has left.
    fn wait(&self, is_there: impl Fn(&Flags) -> bool) -> Result<(), Error> {
        for i in 0..self.len() {
            let mut idle = Idle::default();
            while !is_there(self.flags(i)) {
                self.processes.watch();
                // Checks the other ranks, too: rank `i` may have seen that one is gone, and not
                // come.
                let is_missing = |&i: &usize| self.is_gone(i) && !is_there(self.flags(i));
                if let Some(missing) = (0..self.len()).find(is_missing) {
                    let gone = *self.missing.get_or_init(|| self.ranks[missing]);
                    return Err(Error::Left { gone });
                }
                idle.wait();
            }
        }
        Ok(())
    }

    /// Contributes at most [`SLOT`] bytes, as many as every other rank, and reads the bytes of each
    /// rank, by index. Collective.
    pub(super) fn meet<R>(
        &self,
        mine: &[u8],
        look: impl FnOnce(&dyn Fn(usize) -> *const u8) -> R,
    ) -> Result<R, Error> {
        assert!(mine.len() <= SLOT, "{} bytes in a slot of {SLOT}", mine.len());
        self.check()?;
        let round = 1 + self.round.fetch_add(1, Ordering::Relaxed);
        self.wait(|flags| flags.looked.load(Ordering::Acquire) >= round - 1)?;
        let own = self.flags(self.own);
        let slot = |i: usize| self.memory.at().wrapping_add(self.places.slot(i));
        // SAFETY: nobody reads this rank's slot, since all have looked at it, and nobody else
        // writes it. The arguments are elsewhere.
        unsafe { slot(self.own).copy_from_nonoverlapping(mine.as_ptr(), mine.len()) };
        own.bytes.store(mine.len(), Ordering::Relaxed);
        own.arrived.store(round, Ordering::Release);
        self.wait(|flags| flags.arrived.load(Ordering::Acquire) >= round)?;
        let bytes = |i: usize| self.flags(i).bytes.load(Ordering::Relaxed);
        let result = match (0..self.len()).find(|&i| bytes(i) != mine.len()) {
            None => Ok(look(&|i| slot(i).cast_const())),
            Some(i) => {
                let (rank, from) = (self.ranks[self.own], self.ranks[i]);
                Err(Error::Message { rank, from, found: bytes(i), expected: mine.len() })
            }
        };
        own.looked.store(round, Ordering::Release);
        result
    }

    pub(super) fn barrier(&self) -> Result<(), Error> {
        self.meet(&[], |_| ())
    }

    pub(super) fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Result<(), Error> {
        let len = mine.len();
        assert_eq!(all.len(), len * self.len(), "room for every rank's bytes");
        for first in (0..len).step_by(SLOT) {
            let bytes = SLOT.min(len - first);
            self.meet(&mine[first..first + bytes], |slot| {
                for (i, place) in all.chunks_exact_mut(len).enumerate() {
                    // SAFETY: each rank has written `bytes` bytes, as `meet` has checked, and
                    // changes them only after all ranks have read them.
                    unsafe { place[first..].as_mut_ptr().copy_from_nonoverlapping(slot(i), bytes) };
                }
            })?;
        }
        Ok(())
    }

    /// Reduces elementwise, in order of ranks.
    pub(super) fn allreduce(&self, how: Reduce, values: &mut [f64]) -> Result<(), Error> {
        let mut mine = [0.0; SLOT / size_of::<f64>()];
        for part in values.chunks_mut(mine.len()) {
            mine[..part.len()].copy_from_slice(part);
            self.meet(bytemuck::cast_slice(&mine[..part.len()]), |slot| {
                // SAFETY: as in `allgather`. Slots are aligned, and all bits are numbers.
                let of = |i: usize, at: usize| unsafe { slot(i).cast::<f64>().add(at).read() };
                for (at, value) in part.iter_mut().enumerate() {
                    *value = reduced(how, (0..self.len()).map(|i| of(i, at)));
                }
            })?;
        }
        Ok(())
    }
}

/// The reduction of one number of each rank.
pub(super) fn reduced(how: Reduce, all: impl Iterator<Item = f64>) -> f64 {
    match how {
        Reduce::Min => all.fold(f64::INFINITY, f64::min),
        Reduce::Max => all.fold(f64::NEG_INFINITY, f64::max),
        Reduce::Sum => all.sum(),
    }
}

/// Gathers the same number of bytes from each rank of a host, by index.
pub(super) type Gather<'a> = &'a mut dyn FnMut(&[u8], &mut [u8]) -> Result<(), Error>;

/// Makes memory of each rank and maps the memory of all, by index. Collective, without an agreement
/// on the result.
fn share(
    processes: &Processes,
    own: usize,
    bytes: usize,
    rank: usize,
    gather: Gather<'_>,
) -> Result<Vec<SharedMapping>, Error> {
    let failed = |why: Errno| match why {
        Errno::NOMEM => Error::Memory { rank, bytes },
        why => {
            let text = why.to_string();
            Error::Transport { rank, call: "memory of the ranks of a host", text }
        }
    };
    let created = match processes.len() {
        1 => SharedMapping::alone(bytes).map(|memory| (None, memory)),
        _ => SharedMapping::create(bytes).map(|(file, memory)| (Some(file), memory)),
    };
    let file = created.as_ref().ok().and_then(|(file, _)| Some(file.as_ref()?.number()));
    let mut all = vec![[0i64; 2]; processes.len()];
    let mine = [i64::from(file.unwrap_or(-1)), bytes as i64];
    gather(bytemuck::bytes_of(&mine), bytemuck::cast_slice_mut(&mut all))?;
    let open = |(i, [file, bytes]): (usize, &[i64; 2])| {
        // A rank that has failed to make its memory reports that.
        if i == own || *bytes == 0 || *file < 0 {
            return Ok(SharedMapping::none());
        }
        SharedMapping::open(processes.id(i), *file as i32, *bytes as usize)
    };
    let opened: Result<Vec<_>, _> = all.iter().enumerate().map(open).collect();
    // Until all have opened it, this rank's file stays open.
    gather(&[0], &mut vec![0; processes.len()])?;
    let (_file, mapping) = created.map_err(failed)?;
    let mut mappings = opened.map_err(failed)?;
    mappings[own] = mapping;
    Ok(mappings)
}
