//! A rank in an exposure epoch: it reads memory that others expose, fetches segments of its
//! partition to a tile, and stores them. Here pointers are followed.
#![allow(unsafe_code)]

use fft_core::{LocalBuffers, PeerMemory, Transfer, WritePartition};

use super::address_space::Bytes;
use super::tile_copy;

const NO_BYTES: Bytes = (std::ptr::null_mut(), 0);

#[derive(Clone, Copy)]
pub(super) struct Exposed {
    pub(super) read: Bytes,
    /// Null when memory is exposed for reading only.
    pub(super) write: Bytes,
}

#[derive(Clone, Copy)]
pub(super) struct LocalPointers {
    read: Bytes,
    write: Bytes,
    copy_in: bool,
    copy_out: bool,
}

impl Exposed {
    pub(super) fn new(read: Option<*const [u8]>, write: Option<*mut [u8]>) -> Self {
        let all = |bytes: *mut [u8]| (bytes.cast::<u8>(), bytes.len());
        let write = write.map(all);
        let read = read.map(|bytes| all(bytes.cast_mut())).or(write);
        Self { read: read.unwrap_or(NO_BYTES), write: write.unwrap_or(NO_BYTES) }
    }
}

impl LocalPointers {
    pub(super) fn new(local: LocalBuffers<'_>) -> Self {
        let LocalBuffers { input, output, copy_in, copy_out } = local;
        let write = output.map_or(NO_BYTES, |bytes| (bytes.as_mut_ptr(), bytes.len()));
        let read = input.map_or(write, |bytes| (bytes.as_ptr().cast_mut(), bytes.len()));
        Self { read, write, copy_in, copy_out }
    }
}

pub(super) struct ExposureEpoch<'a> {
    /// The ranks of the host, ascending, and what each exposes.
    pub(super) ranks: &'a [usize],
    pub(super) exposed: &'a [Exposed],
    pub(super) local: LocalPointers,
    /// This rank's part of memory that is written.
    pub(super) partition: Option<&'a WritePartition>,
}

impl ExposureEpoch<'_> {
    fn exposed(&self, rank: usize) -> Exposed {
        self.exposed[self.ranks.binary_search(&rank).expect("only ranks of one host are peers")]
    }

    /// The places where a segment of the partition is read and written.
    fn segment(&self, segment: usize) -> Sides<'_> {
        let partition = self.partition.expect("segments are touched while memory is divided");
        let (segment, local) = (&partition.segments()[segment], self.local);
        let exposed = self.exposed(segment.owner());
        let at = |in_local: bool, local: Bytes, exposed: Bytes| {
            let own = segment.is_exclusive() || in_local && segment.owner() == partition.rank();
            if own { (segment.whole(), local) } else { (segment.transfer(), exposed) }
        };
        Sides {
            read: at(local.copy_in, local.read, exposed.read),
            written: at(local.copy_out, local.write, exposed.write),
            element: partition.element(),
        }
    }
}

struct Sides<'a> {
    read: (&'a Transfer, Bytes),
    written: (&'a Transfer, Bytes),
    element: usize,
}

impl Sides<'_> {
    /// Checks one side against its memory and the tile.
    fn check(&self, (transfer, (_, bytes)): (&Transfer, Bytes), tile: usize) {
        let (reach, span) = (transfer.reach() * self.element, transfer.span() * self.element);
        assert!(reach <= bytes, "a segment that reaches to {reach} of {bytes} bytes");
        assert!(span <= tile, "a segment that takes {span} bytes of a tile of {tile}");
    }
}

impl PeerMemory for ExposureEpoch<'_> {
    fn shown(&self, peer: usize) -> &[u8] {
        let apart = self.partition.is_none_or(|partition| partition.read_bytes(peer).is_some());
        assert!(apart, "memory is shown to be read, not divided");
        let (at, bytes) = self.exposed(peer).read;
        // SAFETY: the peer lends these bytes until this rank has exited the epoch, which outlives
        // the slice. Nobody writes them meanwhile: `read_exposed` made sure that everyone exposes
        // memory for reading, apart from the memory that it exposes for writing, if any.
        unsafe { std::slice::from_raw_parts(at, bytes) }
    }

    fn fetch(&mut self, segment: usize, tile: &mut [u8]) {
        let apart = self
            .partition
            .is_some_and(|partition| partition.read_bytes(partition.rank()).is_some());
        assert!(!apart, "what is read is other data than what is divided");
        let sides = self.segment(segment);
        sides.check(sides.read, tile.len());
        let (transfer, (from, _)) = sides.read;
        // SAFETY: `check` compared the transfer with the owner's memory and the tile. Nobody else
        // touches these elements in memory exposed for writing (the invariant of `WritePartition`;
        // `register` and `read_exposed` made sure that all ranks use partitions of one division; a
        // partition that is alone has only elements of this rank, exposed to nobody). Nobody writes
        // memory exposed for reading, and no other rank can reach local memory. The caller borrows
        // the tile exclusively, and cannot borrow memory that is exposed.
        unsafe { tile_copy::fetch(transfer, sides.element, from, tile.as_mut_ptr()) };
    }

    fn store(&mut self, segment: usize, tile: &[u8]) {
        let sides = self.segment(segment);
        sides.check(sides.written, tile.len());
        let ((_, (from, _)), (transfer, (to, _))) = (sides.read, sides.written);
        // Memory that was just read, or is small, is in cache, and non-temporal stores would evict
        // it.
        let large = self
            .partition
            .is_some_and(|partition| partition.all_bytes() >= fft_stream::LARGE_BYTES);
        // SAFETY: as in `fetch`, in the other direction; nobody else reads elements that are
        // written.
        unsafe {
            tile_copy::store(transfer, sides.element, tile.as_ptr(), to, from != to && large)
        };
    }
}
