//! Message slots of the ranks of a host.
//!
//! ```text
//! memory of each rank, for each list of slots:
//!     done: the last run that the rank has finished
//!     for each slot that it owns:
//!         published: the last run in which it can be read, and its bytes
//!         for each rank: the last run in which it has written its parts, and the bytes used
//!     the slots
//!
//! a rank writes its parts of a slot when all ranks are done with the run before
//! the owner lends or publishes the slot when all ranks have written
//! ranks read the slot when it is published, and are done then
//! ```
//!
//! Each run is a number, so that no flag is reset.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use fft_core::{
    DeviceAllocation, DeviceBuffer, Error, MessageSlots, SLOT_ALIGN, SharedMemory, Slot, SlotParts,
    SlotSpec, UsedBytes, gather_lists,
};

use super::address_space::AddressSpace;
use super::node_memory::{HostNodeMemory, on_rank_of};

/// Slots, and the flags of different ranks, begin on cache lines of their own.
const ALIGN: usize = SLOT_ALIGN;

/// Flags of a rank.
#[repr(C, align(64))]
struct Done(AtomicU64);

/// Flags of a slot.
#[repr(C, align(64))]
struct Published {
    run: AtomicU64,
    bytes: AtomicUsize,
}

/// Flags of a rank's parts of a slot.
#[repr(C, align(64))]
struct Written {
    run: AtomicU64,
    used: AtomicUsize,
}

/// The memory of slots, as far as this process keeps it.
type Memory = Arc<Vec<Arc<Box<dyn SharedMemory>>>>;

/// A slot of a list.
struct ListedSlot {
    spec: SlotSpec,
    /// Where its flags and its bytes begin in its owner's memory.
    flags: usize,
    bytes: usize,
    /// In this run: whether this rank has written its parts; of a slot of this rank, whether it has
    /// been lent, and published.
    is_written: bool,
    is_lent: bool,
    is_published: bool,
    /// Each additional reference is a slot that is lent.
    lent: Arc<Lent>,
}

/// A list of slots, and memory of all ranks for it.
struct List {
    places: Vec<ListedSlot>,
    parts: Vec<*mut u8>,
    own_bytes: usize,
    run: u64,
    /// The memory behind `parts`, kept even if there are no slots.
    _memory: Memory,
}

/// Keeps the memory of slots.
struct Lent {
    _memory: Memory,
}

impl DeviceAllocation<Error> for Lent {
    fn on_host(&self) -> bool {
        true
    }

    fn another(&self, _bytes: usize) -> Result<DeviceBuffer, Error> {
        Err(Error::argument("message slot", "a trial of its memory", "no trials"))
    }

    unsafe fn read(&self, at: usize, to: &mut [u8]) -> Result<(), Error> {
        let from = std::ptr::with_exposed_provenance::<u8>(at);
        // SAFETY: the caller has these bytes of memory that this object keeps. A slot that is lent
        // is not written.
        unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    unsafe fn write(&self, at: usize, from: &[u8]) -> Result<(), Error> {
        let to = std::ptr::with_exposed_provenance_mut::<u8>(at);
        // SAFETY: as above; only the owner of a slot that is lent accesses it.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }
}

/// [`MessageSlots`] in any address space.
pub(crate) struct HostMessageSlots<A: AddressSpace> {
    // Dropped before the object that frees it together with the memory of other ranks.
    lists: Vec<List>,
    /// The list of this run.
    list: usize,
    is_running: bool,
    /// Whether a run has not finished, so that others count this rank as gone.
    is_broken: bool,
    host: HostNodeMemory<A>,
}

// SAFETY: pointers are to memory that all threads of the process address, and are followed as the
// flags in it allow.
unsafe impl<A: AddressSpace> Send for HostMessageSlots<A> {}

impl<A: AddressSpace> HostMessageSlots<A> {
    pub(crate) fn new(host: HostNodeMemory<A>) -> Self {
        Self { lists: Vec::new(), list: 0, is_running: false, is_broken: false, host }
    }

    fn rank(&self) -> usize {
        self.host.comm.rank()
    }

    fn list(&self) -> &List {
        &self.lists[self.list]
    }

    fn unfinished(&self) -> Error {
        let (rank, text) = (self.host.ranks[self.rank()], "a message slot is still in use".into());
        Error::Transport { rank, call: "exchange", text }
    }

    /// Panics unless flags and slots exist, which they do until MPI is finalised.
    fn check_ready(&self) {
        self.host
            .space
            .ready()
            .expect("slots are used while MPI runs, on a thread that may call it");
    }

    /// A slot of this rank that it may change now.
    fn own(&mut self, slot: usize) -> &mut ListedSlot {
        assert!(self.is_running, "slots are used in runs");
        let is_received = self.list().places[slot].spec.parts.is_empty();
        let is_settled = self.is_free() && (is_received || self.is_written(slot));
        assert!(is_settled, "other ranks may still read or write the slot");
        let rank = self.rank();
        let place = &mut self.lists[self.list].places[slot];
        // Acquires what the last holder did.
        let is_back = Arc::get_mut(&mut place.lent).is_some();
        let is_own = place.spec.owner == rank && is_back && !place.is_published;
        assert!(is_own, "only the owner changes a slot, before it is lent or published");
        place
    }

    /// Memory of all ranks, `bytes[rank]` bytes of each, with the object that keeps it. Collective.
    fn allocate(&mut self, bytes: &[usize]) -> Result<(Vec<*mut u8>, Memory), Error> {
        let HostNodeMemory { space, comm, ranks, .. } = &mut self.host;
        let memory = space.allocate(bytes[comm.rank()]).map_err(|error| on_rank_of(error, ranks));
        let mut memory = fft_core::agree(comm.as_ref(), memory)?;
        let all_of = std::ptr::from_mut(memory.bytes_mut());
        let (number, at) = space.locate(all_of).expect("just allocated to be shared");
        let memory = Arc::new(memory);
        let mine = [number, at, Arc::as_ptr(&memory).expose_provenance()];
        let mut all = vec![[0; 3]; ranks.len()];
        let gathered =
            comm.allgather(bytemuck::cast_slice(&mine), bytemuck::cast_slice_mut(&mut all));
        if let Err(error) = gathered {
            // Others may have received addresses of this memory.
            std::mem::forget(memory);
            return Err(error);
        }
        let parts = all.iter().enumerate().map(|(i, [number, at, _])| space.reach(i, *number, *at));
        let parts = parts.collect();
        if !A::EVERYWHERE {
            return Ok((parts, Arc::new(vec![memory])));
        }
        let shared = |[_, _, counted]: &[usize; 3]| {
            let counted = std::ptr::with_exposed_provenance::<Box<dyn SharedMemory>>(*counted);
            // SAFETY: the pointer is of an `Arc` of another thread, which keeps it until all have
            // come to the barrier below, or for good.
            unsafe {
                Arc::increment_strong_count(counted);
                Arc::from_raw(counted)
            }
        };
        let all = all.iter().map(shared).collect();
        if let Err(error) = comm.barrier() {
            // Others may not have counted their references yet.
            std::mem::forget(memory);
            return Err(error);
        }
        Ok((parts, Arc::new(all)))
    }
}

/// Where a slot's flags and bytes begin in its owner's memory, for each slot, and the bytes of each
/// of `ranks` ranks. `None` for more bytes than there can be.
fn places(slots: &[SlotSpec], ranks: usize) -> Option<(Vec<[usize; 2]>, Vec<usize>)> {
    let mut bytes = vec![size_of::<Done>(); ranks];
    let mut take = |owner: usize, len: usize| {
        let at = bytes[owner];
        bytes[owner] = at.checked_add(len.checked_next_multiple_of(ALIGN)?)?;
        Some(at)
    };
    let place = |spec: &SlotSpec| {
        let flags = size_of::<Published>() + spec.parts.len() * size_of::<Written>();
        Some([take(spec.owner, flags)?, take(spec.owner, spec.bytes)?])
    };
    let places = slots.iter().map(place).collect::<Option<_>>()?;
    Some((places, bytes))
}

/// Whether parts fill a slot, or there are none.
fn are_parts_whole(spec: &SlotSpec, ranks: usize) -> bool {
    let sum = spec.parts.iter().flatten().try_fold(0usize, |sum, len| sum.checked_add(*len));
    spec.parts.is_empty() || spec.parts.len() == ranks && sum == Some(spec.bytes)
}

impl List {
    fn done(&self, rank: usize) -> &AtomicU64 {
        // SAFETY: every rank's memory begins with this flag, zeroed at first, and lives as long as
        // the places. Flags are accessed as atomics alone.
        unsafe { &(*self.parts[rank].cast::<Done>()).0 }
    }

    fn published(&self, place: &ListedSlot) -> &Published {
        // SAFETY: `places` made room for these flags in the owner's memory, aligned and apart from
        // all else. As in `done`.
        unsafe { &*self.parts[place.spec.owner].add(place.flags).cast() }
    }

    fn written(&self, place: &ListedSlot, rank: usize) -> &Written {
        assert!(rank < place.spec.parts.len(), "only slots that are written have parts");
        let at = place.flags + size_of::<Published>() + rank * size_of::<Written>();
        // SAFETY: as in `published`.
        unsafe { &*self.parts[place.spec.owner].add(at).cast() }
    }

    fn bytes(&self, place: &ListedSlot) -> *mut u8 {
        self.parts[place.spec.owner].wrapping_add(place.bytes)
    }

    /// The first bytes of a slot.
    ///
    /// # Safety
    /// The slot has `bytes` bytes. For the life of the result nobody writes them, and if it is
    /// written, nobody else reads them.
    #[expect(clippy::mut_from_ref, reason = "the memory is another's")]
    unsafe fn all(&self, place: &ListedSlot, bytes: usize) -> &mut [u8] {
        // SAFETY: the caller's promise; the memory lives as long as the places.
        unsafe { std::slice::from_raw_parts_mut(self.bytes(place), bytes) }
    }

    /// Bytes that a rank has used of its second part of a slot in this run.
    fn used(&self, place: &ListedSlot, rank: usize) -> Option<usize> {
        let written = self.written(place, rank);
        let there = written.run.load(Ordering::Acquire) == self.run;
        there.then(|| written.used.load(Ordering::Relaxed))
    }
}

impl<A: AddressSpace> MessageSlots for HostMessageSlots<A> {
    fn ranks(&self) -> &[usize] {
        &self.host.ranks
    }

    fn allgather(&self, mine: &[u64]) -> Result<Vec<Vec<u64>>, Error> {
        gather_lists(self.host.comm.as_ref(), mine)
    }

    fn reserve(&mut self, slots: &[SlotSpec]) -> Result<usize, Error> {
        let words = |spec: &SlotSpec| {
            let head = [spec.owner, spec.bytes, spec.parts.len()];
            head.into_iter().chain(spec.parts.as_flattened().to_vec())
        };
        let words: Vec<_> = slots.iter().flat_map(words).map(|word| word as u64).collect();
        let all = self.allgather(&words)?;
        let ranks = &self.host.ranks;
        if let Some(other) = all.iter().position(|list| *list != all[0]) {
            let (rank_a, rank_b) = (ranks[0], ranks[other]);
            let (what, a, b) = ("message slots of a host".into(), "some".into(), "others".into());
            return Err(Error::Disagreement { what, rank_a, a, rank_b, b });
        }
        for spec @ SlotSpec { owner, bytes, parts } in slots {
            if *owner >= ranks.len() || !are_parts_whole(spec, ranks.len()) {
                let found = format!("{bytes} bytes of rank {owner} in {} parts", parts.len());
                return Err(Error::argument("message slot", found, "parts of all ranks, or none"));
            }
        }
        let rank = ranks[self.rank()];
        let (at, bytes) =
            places(slots, ranks.len()).ok_or(Error::Memory { rank, bytes: usize::MAX })?;
        let (parts, memory) = self.allocate(&bytes)?;
        let own_bytes = bytes[self.rank()];
        let place = |(spec, [flags, bytes]): (&SlotSpec, [usize; 2])| ListedSlot {
            spec: spec.clone(),
            flags,
            bytes,
            is_written: false,
            is_lent: false,
            is_published: false,
            lent: Arc::new(Lent { _memory: memory.clone() }),
        };
        let places = slots.iter().zip(at).map(place).collect();
        self.lists.push(List { places, parts, own_bytes, run: 0, _memory: memory });
        Ok(self.lists.len() - 1)
    }

    fn progress(&self) {
        self.host.space.progress();
    }

    fn begin(&mut self, list: usize) -> Result<(), Error> {
        self.host.space.ready()?;
        if self.is_running || self.is_broken {
            return Err(self.unfinished());
        }
        (self.list, self.is_running) = (list, true);
        let list = &mut self.lists[list];
        list.run += 1;
        for place in &mut list.places {
            (place.is_written, place.is_lent, place.is_published) = (false, false, false);
        }
        Ok(())
    }

    fn is_free(&self) -> bool {
        self.check_ready();
        let list = self.list();
        let is_done = |rank: usize| list.done(rank).load(Ordering::Acquire) + 1 >= list.run;
        (0..list.parts.len()).all(|rank| is_done(rank) || self.is_gone(rank))
    }

    fn is_gone(&self, rank: usize) -> bool {
        self.check_ready();
        self.host.space.is_gone(rank)
    }

    fn write(&mut self, slot: usize, write: &mut dyn FnMut(SlotParts<'_>) -> usize) {
        assert!(self.is_running && self.is_free(), "ranks may still read what was written before");
        let rank = self.rank();
        let list = &mut self.lists[self.list];
        let is_again = std::mem::replace(&mut list.places[slot].is_written, true);
        assert!(!is_again, "parts are written once in a run");
        let (list, place) = (&*list, &list.places[slot]);
        // Slots that an owner lent before it left may still be sent.
        if list.done(place.spec.owner).load(Ordering::Acquire) + 1 < list.run {
            return;
        }
        let [lens, [first, offset]] = [place.spec.parts[rank], place.spec.offsets(rank)];
        let at = list.bytes(place);
        // SAFETY: the parts are inside the slot, and the parts of different ranks and slots are
        // disjoint, because `reserve` has found the same list on all ranks. This rank writes its
        // own once in a run, before it sets the flag below. Until then the owner does not change
        // the slot, and what it lent before has been dropped, so it is done. So are readers of
        // earlier runs.
        let [first, second] = unsafe {
            let part = |at: *mut u8, len| std::slice::from_raw_parts_mut(at, len);
            [part(at.add(first), lens[0]), part(at.add(offset), lens[1])]
        };
        let used = write(SlotParts { first, second, offset });
        let written = list.written(place, rank);
        written.used.store(used.min(lens[1]), Ordering::Relaxed);
        // Releases what was written.
        written.run.store(list.run, Ordering::Release);
    }

    fn is_written(&self, slot: usize) -> bool {
        self.check_ready();
        let list = self.list();
        let place = &list.places[slot];
        // A rank that has gone may have written just before.
        let is_there = |rank: usize| {
            place.spec.parts[rank] == [0; 2]
                || self.is_gone(rank)
                || list.used(place, rank).is_some()
        };
        (0..place.spec.parts.len()).all(is_there)
    }

    fn edit(&mut self, slot: usize, edit: &mut dyn FnMut(&mut [u8], &UsedBytes<'_>)) {
        self.own(slot);
        let (list, place) = (self.list(), &self.list().places[slot]);
        // SAFETY: `own` has found that all ranks have written their parts or have gone, that this
        // rank is the owner, and that nobody else has the slot.
        edit(unsafe { list.all(place, place.spec.bytes) }, &|rank| list.used(place, rank));
    }

    fn lend(&mut self, slot: usize, bytes: usize) -> Slot {
        let place = self.own(slot);
        assert!(!place.is_lent, "a slot is lent once in a run");
        place.is_lent = true;
        let (list, place) = (self.list(), &self.list().places[slot]);
        let (at, bytes) = (list.bytes(place).expose_provenance(), bytes.min(place.spec.bytes));
        // SAFETY: `lent` keeps these bytes. Nobody else accesses them until the slot has been
        // dropped: `own` and `finish` count its references.
        Slot::opaque(unsafe { DeviceBuffer::from_raw(place.lent.clone(), at, bytes) })
    }

    fn copy(&mut self, slot: usize, message: &Slot) -> Result<(), Error> {
        self.own(slot);
        let (list, place) = (self.list(), &self.list().places[slot]);
        let bytes = message.len().min(place.spec.bytes);
        // SAFETY: `own` has found that nobody else has the slot, so that the message is elsewhere.
        message.copy_to(unsafe { list.all(place, bytes) })
    }

    fn publish(&mut self, slot: usize, bytes: usize) {
        self.own(slot).is_published = true;
        let (list, place) = (self.list(), &self.list().places[slot]);
        let published = list.published(place);
        published.bytes.store(bytes.min(place.spec.bytes), Ordering::Relaxed);
        published.run.store(list.run, Ordering::Release);
    }

    fn message(&self, slot: usize) -> Option<&[u8]> {
        self.check_ready();
        let (list, place) = (self.list(), &self.list().places[slot]);
        let published = list.published(place);
        let is_there = self.is_running && published.run.load(Ordering::Acquire) == list.run;
        // SAFETY: the owner has published these bytes, after all were written or received. Nobody
        // changes them until this rank is done with the run, which ends the borrow.
        is_there.then(|| unsafe {
            &*list.all(place, published.bytes.load(Ordering::Relaxed).min(place.spec.bytes))
        })
    }

    fn finish(&mut self) -> Result<(), Error> {
        assert!(self.is_running, "a run that has begun finishes");
        self.is_running = false;
        self.host.space.ready()?;
        let rank = self.rank();
        let is_lent = |place: &mut ListedSlot| Arc::get_mut(&mut place.lent).is_none();
        if self.lists[self.list].places.iter_mut().any(is_lent) {
            self.host.space.flags(rank).gone.store(true, Ordering::Release);
            self.is_broken = true;
            return Err(self.unfinished());
        }
        // Releases what was read.
        let list = self.list();
        list.done(rank).store(list.run, Ordering::Release);
        Ok(())
    }

    fn memory(&self) -> usize {
        self.lists.iter().map(|list| list.own_bytes).sum()
    }
}
