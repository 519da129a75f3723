//! What a rank does in a visit ([`crate::commons`]): looks into what others show, fetches pieces of its share to a tile, and stores them.
//! Here pointers are followed.
#![allow(unsafe_code)]

use fft_core::{Ends, Neighbours, Share, Transfer};

use super::node_memory::{Ground, HostCommons};
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

/// [`Ends`].
#[derive(Clone, Copy)]
pub(crate) struct AtEnds {
    read: Bytes,
    write: Bytes,
    takes: bool,
    brings: bool,
}

impl Shown {
    pub(crate) fn new(read: Option<*const [u8]>, write: Option<*mut [u8]>) -> Self {
        let all = |bytes: *mut [u8]| (bytes.cast::<u8>(), bytes.len());
        let write = write.map(all);
        let read = read.map(|bytes| all(bytes.cast_mut())).or(write);
        Self { read: read.unwrap_or(NO_BYTES), write: write.unwrap_or(NO_BYTES) }
    }
}

impl AtEnds {
    pub(crate) fn new(ends: Ends<'_>) -> Self {
        let Ends { input, output, takes, brings } = ends;
        let write = output.map_or(NO_BYTES, |bytes| (bytes.as_mut_ptr(), bytes.len()));
        let read = input.map_or(write, |bytes| (bytes.as_ptr().cast_mut(), bytes.len()));
        Self { read, write, takes, brings }
    }
}

/// A visit in progress.
pub(crate) struct Visit<'a, G: Ground> {
    pub(crate) commons: &'a HostCommons<G>,
    pub(crate) shown: &'a [Shown],
    pub(crate) ends: AtEnds,
    /// What this rank may touch, when memory is divided.
    pub(crate) share: Option<&'a Share>,
}

impl<G: Ground> Visit<'_, G> {
    /// Where a piece of the share is read, and where it is written.
    fn piece(&self, piece: usize) -> Found<'_> {
        let share = self.share.expect("pieces are touched while memory is divided");
        let (piece, ends) = (&share.pieces()[piece], self.ends);
        let shown = self.shown[self.commons.place(piece.owner())];
        let at = |at_end: bool, end: Bytes, shown: Bytes| {
            let own = piece.is_private() || at_end && piece.owner() == share.rank();
            if own { (piece.whole(), end) } else { (piece.transfer(), shown) }
        };
        Found {
            read: at(ends.takes, ends.read, shown.read),
            written: at(ends.brings, ends.write, shown.write),
            element: share.element(),
        }
    }
}

/// A piece, and where it is.
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
        assert!(reach <= there, "a piece ends at {reach} of {there} bytes");
        assert!(span <= tile, "a piece takes {span} bytes of a tile of {tile}");
    }
}

impl<G: Ground> Neighbours for Visit<'_, G> {
    fn shown(&self, peer: usize) -> &[u8] {
        let apart = self.share.is_none_or(|share| share.read_bytes(peer).is_some());
        assert!(apart, "memory is shown to be read, not divided");
        let (at, bytes) = self.shown[self.commons.place(peer)].read;
        // SAFETY: the peer lends these bytes until it sees that this visit, which outlives the slice, is done here. It
        // and all others only read them meanwhile: `look` made sure that everyone shows memory to be read, beside what it
        // shows to be written if it does.
        unsafe { std::slice::from_raw_parts(at, bytes) }
    }

    fn fetch(&mut self, piece: usize, tile: &mut [u8]) {
        let apart = self.share.is_some_and(|share| share.read_bytes(share.rank()).is_some());
        assert!(!apart, "what is read is other data than what is divided");
        let found = self.piece(piece);
        found.check(found.read, tile.len());
        let (transfer, (from, _)) = found.read;
        // SAFETY: `check` saw that nothing ends beyond what the owner lends, nor beyond the tile. Of what the owner
        // lends to be written, nobody else touches these elements (the invariant of `Share`; `admit` and `look` made
        // sure that all ranks visit shares of one division, and of one that is alone all is this rank's own and lent to
        // nobody); what it lends to be read nobody writes; and what it has elsewhere no other rank knows. The tile is borrowed
        // exclusively by the caller, who cannot at the same time borrow memory that is lent.
        unsafe { tile_copy::fetch(transfer, found.element, from, tile.as_mut_ptr()) };
    }

    fn store(&mut self, piece: usize, tile: &[u8]) {
        let found = self.piece(piece);
        found.check(found.written, tile.len());
        let ((_, (from, _)), (transfer, (to, _))) = (found.read, found.written);
        // What was read there is in a cache, and so may all be that is small.
        let large = self.share.is_some_and(|share| share.all_bytes() >= fft_stream::LARGE_BYTES);
        // SAFETY: as in `fetch`, the other way round; elements that are written are read by nobody else.
        unsafe {
            tile_copy::store(transfer, found.element, tile.as_ptr(), to, from != to && large)
        };
    }
}
