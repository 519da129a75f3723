//! Sizes in bytes by which passes over memory and messages are planned.

/// A cache line.
pub(crate) const LINE_BYTES: usize = 64;
/// Columns copied together by a transpose: two lines, so that every line read is used at once.
pub(crate) const COLUMNS_BYTES: usize = 128;
/// The same if each row is on a page of its own: enough to prefetch each row.
pub(crate) const FAR_COLUMNS_BYTES: usize = 1 << 11;
/// A run that repays the TLB miss of its page.
pub(crate) const RUN_BYTES: usize = 1 << 11;
/// The shortest run of a chunk: shorter ones at a stride of a power of two evict each other.
pub(crate) const CHUNK_RUN_BYTES: usize = 256;
/// The shortest line that is copied to a tile on its own instead of row by row.
pub(crate) const STRAIGHT_BYTES: usize = 1 << 10;
/// Lines transformed between two prefetches.
pub(crate) const AHEAD_BYTES: usize = 1 << 12;
/// Rows at multiples of this distance share a few sets of the first-level cache.
pub(crate) const CONFLICT_BYTES: usize = 1 << 10;
/// Contiguous lines transformed in one call: they fit into the first-level cache.
pub(crate) const LINES_BYTES: usize = 1 << 15;
/// Rows of a tile transformed on arrival or departure: they fit into the first-level cache.
pub(crate) const STRIP_BYTES: usize = LINES_BYTES;
/// A block that a group of passes works on: half of a second-level cache of 2 MiB.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;
/// An uncached block of this size has rows that are far apart.
pub(crate) const FAR_BYTES: usize = BLOCK_BYTES / 4;
/// Lines gathered from far rows.
pub(crate) const FAR_LINES_BYTES: usize = BLOCK_BYTES / 2;
/// A tile: part of the second-level cache, unless a few of its lines take more.
pub(crate) const TILE_BYTES: usize = BLOCK_BYTES / 2;
/// Blocks that are transformed inside the tile.
pub(crate) const STAGE_BYTES: usize = TILE_BYTES;
/// The mean message of a chunk: the latency of shorter ones would dominate.
pub(crate) const MESSAGE_BYTES: usize = 1 << 13;
/// The mean message of a chunk, and the longest piece, between hosts that bundle messages. Most
/// networks send it eagerly, without asking the receiver first.
pub const BUNDLE_BYTES: usize = 3 << 14;
/// The mean message of a chunk if chunks save memory.
pub(crate) const LONG_MESSAGE_BYTES: usize = 1 << 17;
/// A chunk that stays in cache if chunks save memory.
pub(crate) const CACHED_CHUNK_BYTES: usize = 1 << 21;
