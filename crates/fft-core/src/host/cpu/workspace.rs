//! Memory of the passes of a rank.

use crate::host::cpu::prefetch::PrefetchQueue;

pub(crate) struct Workspace<'a, T> {
    /// Room for lines transformed together.
    pub(crate) lines: &'a mut [T],
    pub(crate) scratch: &'a mut [T],
    pub(crate) queue: &'a mut PrefetchQueue,
}
