//! Copies of memory that is larger than the caches.
//!
//! A processor reads each line of memory before it overwrites it, unless it is told that all of the line is new and will not be read
//! soon: then a copy moves two thirds of the bytes. And it fetches ahead in the pages that are being read, so that reading some by
//! turns has more on the way. (256 MiB by two cores of an Intel Xeon: 20 ms as the standard library copies, 15 past the caches, 12 if
//! four pages go by turns. Into the second-level cache 12 ms, by turns 10.) Where a run is short, the processor has hardly begun to
//! fetch ahead when it ends: there it is told.
//!
//! What is written past the caches goes by turns on processors of Intel alone. Two cores of an AMD EPYC (Zen 3) took 13 ms in order for
//! that copy, 14 with two pages by turns, and 33 with four, where the standard library took 20. Other processors were not tried.
//!
//! On processors other than x86-64 nothing goes past the caches.

use std::ops::Range;
#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;

/// Bytes that the ranks of a host hold of an array from which on it is larger than the caches, for all that is known of them: with less a
/// copy past the caches was slower for what came after it. (Two and four ranks on two cores of an Intel Xeon, which share their last
/// cache with others: 32 MiB took a quarter longer, 62 MiB as long, 108 MiB a tenth less.)
pub const LARGE_BYTES: usize = 64 << 20;
/// Bytes of a run from which on a copy of it past the caches, or by turns, is worth while.
pub const LONG_BYTES: usize = BY_TURNS * PAGE;

/// Bytes of a line of memory, which processors read and write as a whole.
pub const LINE: usize = 64;
/// Bytes of a page: what lies in different ones is fetched ahead independently.
const PAGE: usize = 4096;
/// Pages that are copied by turns, a line of each.
const BY_TURNS: usize = 4;

/// Copies past the caches: `to` is as large as to be in memory, not in a cache, before it is read again.
///
/// # Panics
/// If their lengths differ.
pub fn copy_past(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "as much is read as written");
    // SAFETY: both are slices of this length, of which one is borrowed exclusively.
    unsafe { past(from.as_ptr(), to.as_mut_ptr(), from.len()) };
    fence();
}

/// Copies from memory, to where it is used soon: long runs by turns.
///
/// # Panics
/// If their lengths differ.
pub fn copy_near(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "as much is read as written");
    // SAFETY: as in `copy_past`.
    unsafe { near(from.as_ptr(), to.as_mut_ptr(), from.len()) };
}

/// Copies so many bytes past the caches, as [`copy_past`].
///
/// # Safety
/// `from` is valid for reads and `to` for writes of so many bytes, and they do not overlap. [`fence`] is called before anything else
/// touches `to`, by this thread or another.
pub unsafe fn past(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's.
    unsafe { past_so(past_by_turns(), from, to, bytes) };
}

/// As [`past`], some pages by turns or all in order.
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

/// Copies so many bytes from memory, to where they are used soon.
///
/// # Safety
/// `from` is valid for reads and `to` for writes of so many bytes, and they do not overlap.
pub unsafe fn near(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: all offsets are below `bytes`.
    unsafe {
        let end = lines(bytes, |at| store::near(from.add(at).cast(), to.add(at).cast()));
        from.add(end).copy_to_nonoverlapping(to.add(end), bytes - end);
    }
}

/// Fetches the line of memory at this address ahead, whatever is there.
#[inline(always)]
pub fn ahead(at: *const u8) {
    prefetch::<FIRST>(at);
}

/// The same to the second-level cache, where it is not in the way of what a computation has in the first.
#[inline(always)]
pub fn ahead_of_computing(at: *const u8) {
    prefetch::<SECOND>(at);
}

/// To which cache: `_MM_HINT_T0` and `_MM_HINT_T1`.
const FIRST: i32 = 3;
const SECOND: i32 = 2;

#[inline(always)]
fn prefetch<const HINT: i32>(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: any address may be given; nothing is read that a program would see.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<HINT>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Makes what was copied [past] the caches like any other memory.
#[inline(always)]
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: all processors of this architecture have this instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Calls `line` with where each whole line begins, of some pages by turns; returns where the last one ends.
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

/// Calls `line` with where each whole line begins, one after the other; returns where the last one ends.
#[inline(always)]
fn in_order(bytes: Range<usize>, line: impl FnMut(usize)) -> usize {
    let end = bytes.end - bytes.end % LINE;
    (bytes.start..end).step_by(LINE).for_each(line);
    end
}

/// Whether this processor writes several pages past the caches by turns as fast as one.
fn past_by_turns() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        static INTEL: LazyLock<bool> = LazyLock::new(|| {
            // Of late it is a safe function.
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

/// A line of memory.
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

    /// Copies a line past the caches; [`fence`](super::fence) must be called before anything else touches it.
    ///
    /// # Safety
    /// `from` is valid for reads and `to` for writes, and that begins at a multiple of its length.
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
