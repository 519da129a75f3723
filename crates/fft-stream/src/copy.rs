//! Copies of memory larger than the caches, with non-temporal stores, and prefetching.
//!
//! An ordinary store reads the cache line first; a non-temporal store does not, and bypasses the
//! caches. The processor prefetches within each page that is read, so that reading several pages
//! alternately has more in flight. Short runs end before hardware prefetching starts, and need
//! explicit prefetches.
//!
//! Non-temporal stores alternate between pages on Intel processors only; on AMD's Zen 3 that is
//! slower. There are none on processors other than x86-64. A record has times of such copies on an
//! Intel Xeon: `benches/records/2026-11-24-826119-limit.txt`.

use std::ops::Range;
#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;

/// An array of the ranks of a host with at least so many bytes is taken to exceed the caches. A
/// non-temporal copy of less slows down what follows it.
pub const LARGE_BYTES: usize = 64 << 20;
/// Bytes of a run from which on a non-temporal or alternating copy pays.
pub const LONG_BYTES: usize = BY_TURNS * PAGE;

/// Bytes of a cache line.
pub const LINE: usize = 64;
/// Bytes of a page, the unit of hardware prefetching.
const PAGE: usize = 4096;
/// Pages that are copied alternately, a line of each.
const BY_TURNS: usize = 4;

/// Copies with non-temporal stores, for a destination that leaves the caches before it is read
/// again.
///
/// # Panics
/// If their lengths differ.
pub fn copy_past(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "as much is read as written");
    // SAFETY: both are slices of this length, of which one is borrowed exclusively.
    unsafe { past(from.as_ptr(), to.as_mut_ptr(), from.len()) };
    fence();
}

/// Copies from memory to a destination that is used soon; long runs alternate between pages.
///
/// # Panics
/// If their lengths differ.
pub fn copy_near(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "as much is read as written");
    // SAFETY: as in `copy_past`.
    unsafe { near(from.as_ptr(), to.as_mut_ptr(), from.len()) };
}

/// Copies `bytes` bytes with non-temporal stores, as [`copy_past`].
///
/// # Safety
/// `from` is valid for reads and `to` for writes of `bytes` bytes, and they do not overlap.
/// [`fence`] is called before any thread accesses `to` again.
pub unsafe fn past(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's.
    unsafe { past_so(past_by_turns(), from, to, bytes) };
}

/// As [`past`], with pages alternating or in order.
///
/// # Safety
/// As [`past`].
#[inline(always)]
unsafe fn past_so(by_turns: bool, from: *const u8, to: *mut u8, bytes: usize) {
    let before = to.align_offset(LINE).min(bytes);
    // SAFETY: all offsets are below `bytes`, and lines of `to` begin at multiples of their length.
    unsafe {
        from.copy_to_nonoverlapping(to, before);
        let (from, to, bytes) = (from.add(before), to.add(before), bytes - before);
        let line = |at| store::past(from.add(at).cast(), to.add(at).cast());
        let end = if by_turns { lines(bytes, line) } else { in_order(0..bytes, line) };
        from.add(end).copy_to_nonoverlapping(to.add(end), bytes - end);
    }
}

/// Copies `bytes` bytes from memory to a destination that is used soon.
///
/// # Safety
/// `from` is valid for reads and `to` for writes of `bytes` bytes, and they do not overlap.
pub unsafe fn near(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: all offsets are below `bytes`.
    unsafe {
        let end = lines(bytes, |at| store::near(from.add(at).cast(), to.add(at).cast()));
        from.add(end).copy_to_nonoverlapping(to.add(end), bytes - end);
    }
}

/// Prefetches a cache line to the first-level cache. Any address is allowed.
#[inline(always)]
pub fn ahead(at: *const u8) {
    prefetch::<FIRST>(at);
}

/// Prefetches to the second-level cache, which leaves the first to the present computation.
#[inline(always)]
pub fn ahead_of_computing(at: *const u8) {
    prefetch::<SECOND>(at);
}

/// The target cache: `_MM_HINT_T0` and `_MM_HINT_T1`.
const FIRST: i32 = 3;
const SECOND: i32 = 2;

#[inline(always)]
fn prefetch<const HINT: i32>(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: any address is allowed, and a prefetch has no effect that a program can see.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<HINT>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Orders the non-temporal stores of [past] before later accesses.
#[inline(always)]
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: all processors of this architecture have this instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Calls `line` with the offset of each whole line, alternating between pages; returns the end of
/// the last line.
#[inline(always)]
fn lines(bytes: usize, mut line: impl FnMut(usize)) -> usize {
    let turns = bytes - bytes % (BY_TURNS * PAGE);
    for first in (0..turns).step_by(BY_TURNS * PAGE) {
        for at in (first..first + PAGE).step_by(LINE) {
            (0..BY_TURNS).for_each(|page| line(at + page * PAGE));
        }
    }
    in_order(turns..bytes, line)
}

/// Calls `line` with the offset of each whole line in order; returns the end of the last line.
#[inline(always)]
fn in_order(bytes: Range<usize>, line: impl FnMut(usize)) -> usize {
    let end = bytes.end - bytes.end % LINE;
    (bytes.start..end).step_by(LINE).for_each(line);
    end
}

/// Whether non-temporal stores to several pages alternately are as fast as in order.
fn past_by_turns() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        static INTEL: LazyLock<bool> = LazyLock::new(|| {
            // A safe function in recent compilers.
            #[allow(unused_unsafe)]
            // SAFETY: all processors of this architecture have this instruction.
            let found = unsafe { std::arch::x86_64::__cpuid(0) };
            let name = [found.ebx, found.edx, found.ecx].map(u32::to_le_bytes);
            name.as_flattened() == b"GenuineIntel"
        });
        *INTEL
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Copies of one cache line.
mod store {
    use super::LINE;

    type Line = [u8; LINE];

    /// Copies a line.
    ///
    /// # Safety
    /// `from` is valid for reads and `to` for writes.
    #[inline(always)]
    pub(super) unsafe fn near(from: *const Line, to: *mut Line) {
        // SAFETY: the caller's. Bytes need no alignment.
        unsafe { to.write(from.read()) };
    }

    /// Copies a line with non-temporal stores; [`fence`](super::fence) must be called before it is
    /// accessed.
    ///
    /// # Safety
    /// `from` is valid for reads and `to` for writes, and `to` is aligned to a line.
    #[inline(always)]
    #[cfg(target_arch = "x86_64")]
    pub(super) unsafe fn past(from: *const Line, to: *mut Line) {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        let (from, to) = (from.cast::<__m128i>(), to.cast::<__m128i>());
        // SAFETY: the caller's; all processors of this architecture have these instructions.
        unsafe {
            let quarters: [__m128i; 4] = std::array::from_fn(|i| _mm_loadu_si128(from.add(i)));
            for (i, quarter) in quarters.into_iter().enumerate() {
                _mm_stream_si128(to.add(i), quarter);
            }
        }
    }

    /// Copies a line with ordinary stores.
    ///
    /// # Safety
    /// As [`near`].
    #[inline(always)]
    #[cfg(not(target_arch = "x86_64"))]
    pub(super) unsafe fn past(from: *const Line, to: *mut Line) {
        // SAFETY: the caller's.
        unsafe { near(from, to) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Copies between places that are aligned in any way; nothing beside is touched.
    fn copies(copy: impl FnOnce(*const u8, *mut u8, usize), [before, ahead, bytes]: [usize; 3]) {
        let from: Vec<u8> = (1..=251).cycle().take(before + bytes).collect();
        let mut to = vec![0; ahead + bytes + LINE];
        copy(from[before..].as_ptr(), to[ahead..].as_mut_ptr(), bytes);
        fence();
        assert_eq!(to[ahead..][..bytes], from[before..]);
        let beside = to[..ahead].iter().chain(&to[ahead + bytes..]);
        assert!(beside.into_iter().all(|byte| *byte == 0), "what is beside is not touched");
    }

    proptest! {
        #[test]
        fn copies_are_whole_and_nothing_beside_is_touched(
            before in 0..2 * LINE, ahead in 0..2 * LINE,
            bytes in prop_oneof![0..3 * LINE, 0..3 * BY_TURNS * PAGE],
        ) {
            // SAFETY: `copies` has so many bytes there.
            unsafe {
                copies(|from, to, bytes| past_so(true, from, to, bytes), [before, ahead, bytes]);
                copies(|from, to, bytes| past_so(false, from, to, bytes), [before, ahead, bytes]);
                copies(|from, to, bytes| near(from, to, bytes), [before, ahead, bytes]);
            }
        }
    }

    #[test]
    fn slices_are_copied() {
        let from: Vec<u8> = (1..=251).cycle().take(100_000).collect();
        for copy in [copy_past, copy_near] {
            let mut to = vec![0; from.len()];
            copy(&from, &mut to);
            assert_eq!(to, from);
        }
    }

    #[test]
    #[should_panic(expected = "as much is read as written")]
    fn lengths_are_equal() {
        copy_past(&[0; 3], &mut [0; 2]);
    }
}
