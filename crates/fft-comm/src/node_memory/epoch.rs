//! What a rank does in a exposure_epoch ([`crate::node_memory`]): looks into what others show, fetches segments of its partition to a tile, and stores them.
//! Here pointers are followed.
#![allow(unsafe_code)]

use fft_core::{LocalBuffers, PeerMemory, Transfer, WritePartition};

use super::node_memory::{AddressSpace, HostNodeMemory};
use crate::node_memory::tile_copy;

/// Memory, as a pointer that is good here.
pub(crate) type Bytes = (*mut u8, usize);
/// None.
const NO_BYTES: Bytes = (std::ptr::null_mut(), 0);

/// What a rank shows.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    pub(crate) read: Bytes,
    /// Null when it shows memory only to be read.
    pub(crate) write: Bytes,
}

/// [`LocalBuffers`].
#[derive(Clone, Copy)]
pub(crate) struct LocalPointers {
    read: Bytes,
    write: Bytes,
    copy_in: bool,
    copy_out: bool,
}

impl Shown {
    pub(crate) fn new(read: Option<*const [u8]>, write: Option<*mut [u8]>) -> Self {
        let all = |bytes: *mut [u8]| (bytes.cast::<u8>(), bytes.len());
        let write = write.map(all);
        let read = read.map(|bytes| all(bytes.cast_mut())).or(write);
        Self { read: read.unwrap_or(NO_BYTES), write: write.unwrap_or(NO_BYTES) }
    }
}

impl LocalPointers {
    pub(crate) fn new(local: LocalBuffers<'_>) -> Self {
        let LocalBuffers { input, output, copy_in, copy_out } = local;
        let write = output.map_or(NO_BYTES, |bytes| (bytes.as_mut_ptr(), bytes.len()));
        let read = input.map_or(write, |bytes| (bytes.as_ptr().cast_mut(), bytes.len()));
        Self { read, write, copy_in, copy_out }
    }
}

/// A exposure_epoch in progress.
pub(crate) struct ExposureEpoch<'a, G: AddressSpace> {
    pub(crate) node_memory: &'a HostNodeMemory<G>,
    pub(crate) shown: &'a [Shown],
    pub(crate) local: LocalPointers,
    /// What this rank may touch, when memory is divided.
    pub(crate) partition: Option<&'a WritePartition>,
}

impl<G: AddressSpace> ExposureEpoch<'_, G> {
    /// Where a segment of the partition is read, and where it is written.
    fn segment(&self, segment: usize) -> Found<'_> {
        let partition = self.partition.expect("segments are touched while memory is divided");
        let (segment, local) = (&partition.segments()[segment], self.local);
        let shown = self.shown[self.node_memory.place(segment.owner())];
        let at = |at_end: bool, end: Bytes, shown: Bytes| {
            let own = segment.is_exclusive() || at_end && segment.owner() == partition.rank();
            if own { (segment.whole(), end) } else { (segment.transfer(), shown) }
        };
        Found {
            read: at(local.copy_in, local.read, shown.read),
            written: at(local.copy_out, local.write, shown.write),
            element: partition.element(),
        }
    }
}

/// A segment, and where it is.
struct Found<'a> {
    read: (&'a Transfer, Bytes),
    written: (&'a Transfer, Bytes),
    /// Bytes of an element.
    element: usize,
}

impl Found<'_> {
    /// Checks one side against the memory that is there, and against the tile.
    fn check(&self, (transfer, (_, there)): (&Transfer, Bytes), tile: usize) {
        let (reach, span) = (transfer.reach() * self.element, transfer.span() * self.element);
        assert!(reach <= there, "a segment local at {reach} of {there} bytes");
        assert!(span <= tile, "a segment copy_in {span} bytes of a tile of {tile}");
    }
}

impl<G: AddressSpace> PeerMemory for ExposureEpoch<'_, G> {
    fn shown(&self, peer: usize) -> &[u8] {
        let apart = self.partition.is_none_or(|partition| partition.read_bytes(peer).is_some());
        assert!(apart, "memory is shown to be read, not divided");
        let (at, bytes) = self.shown[self.node_memory.place(peer)].read;
        // SAFETY: the peer lends these bytes until it sees that this exposure_epoch, which outlives the slice, is done here. It
        // and all others only read them meanwhile: `look` made sure that everyone shows memory to be read, beside what it
        // shows to be written if it does.
        unsafe { std::slice::from_raw_parts(at, bytes) }
    }

    fn fetch(&mut self, segment: usize, tile: &mut [u8]) {
        let apart = self
            .partition
            .is_some_and(|partition| partition.read_bytes(partition.rank()).is_some());
        assert!(!apart, "what is read is other data than what is divided");
        let found = self.segment(segment);
        found.check(found.read, tile.len());
        let (transfer, (from, _)) = found.read;
        // SAFETY: `check` saw that nothing local beyond what the owner lends, nor beyond the tile. Of what the owner
        // lends to be written, nobody else touches these elements (the invariant of `WritePartition`; `register` and `look` made
        // sure that all ranks exposure_epoch partitions of one division, and of one that is alone all is this rank's own and lent to
        // nobody); what it lends to be read nobody writes; and what it has elsewhere no other rank knows. The tile is borrowed
        // exclusively by the caller, who cannot at the same time borrow memory that is lent.
        unsafe { tile_copy::fetch(transfer, found.element, from, tile.as_mut_ptr()) };
    }

    fn store(&mut self, segment: usize, tile: &[u8]) {
        let found = self.segment(segment);
        found.check(found.written, tile.len());
        let ((_, (from, _)), (transfer, (to, _))) = (found.read, found.written);
        // What was read there is in a cache, and so may all be that is small.
        let large = self
            .partition
            .is_some_and(|partition| partition.all_bytes() >= fft_stream::LARGE_BYTES);
        // SAFETY: as in `fetch`, the other way round; elements that are written are read by nobody else.
        unsafe {
            tile_copy::store(transfer, found.element, tile.as_ptr(), to, from != to && large)
        };
    }
}
