//! The bytes that one rank sends to another, in memory that they share.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that have been written or read, on a cache line of its own: different processes write the
/// two.
#[repr(C, align(64))]
struct Cursor(AtomicU64);

#[repr(C)]
pub(super) struct Cursors {
    written: Cursor,
    read: Cursor,
}

/// A ring with one writer and one reader.
pub(super) struct Ring<'a> {
    cursors: &'a Cursors,
    bytes: *mut u8,
    len: usize,
    memory: PhantomData<&'a [u8]>,
}

impl Ring<'_> {
    /// # Safety
    /// `at` is aligned to cache lines and leads to cursors and then `len` bytes, all zero at first,
    /// which are used by rings at the same address of the same memory alone, of one writer and one
    /// reader.
    pub(super) unsafe fn new(at: *mut u8, len: usize) -> Self {
        // SAFETY: the caller's.
        let cursors = unsafe { &*at.cast::<Cursors>() };
        Self { cursors, bytes: at.wrapping_add(size_of::<Cursors>()), len, memory: PhantomData }
    }

    /// Writes as many bytes as fit, and returns their number.
    pub(super) fn write(&self, from: &[u8]) -> usize {
        let Cursors { written, read } = self.cursors;
        let begin = written.0.load(Ordering::Relaxed);
        let used = begin - read.0.load(Ordering::Acquire);
        let bytes = from.len().min(self.len - used as usize);
        let at = begin as usize % self.len;
        let first = bytes.min(self.len - at);
        // SAFETY: these bytes have been read, and the reader does not look at them before the
        // cursor says that they have been written.
        unsafe {
            self.bytes.add(at).copy_from_nonoverlapping(from.as_ptr(), first);
            self.bytes.copy_from_nonoverlapping(from[first..].as_ptr(), bytes - first);
        }
        written.0.store(begin + bytes as u64, Ordering::Release);
        bytes
    }

    /// Reads as many bytes as there are and have room, and returns their number.
    pub(super) fn read(&self, to: &mut [u8]) -> usize {
        let begin = self.cursors.read.0.load(Ordering::Relaxed);
        let bytes = to.len().min(self.filled());
        let at = begin as usize % self.len;
        let first = bytes.min(self.len - at);
        // SAFETY: these bytes have been written, and the writer leaves them until the cursor says
        // that they have been read.
        unsafe {
            to.as_mut_ptr().copy_from_nonoverlapping(self.bytes.add(at), first);
            to[first..].as_mut_ptr().copy_from_nonoverlapping(self.bytes, bytes - first);
        }
        self.skip(bytes);
        bytes
    }

    /// Bytes that can be read.
    pub(super) fn filled(&self) -> usize {
        let Cursors { written, read } = self.cursors;
        (written.0.load(Ordering::Acquire) - read.0.load(Ordering::Relaxed)) as usize
    }

    /// Leaves bytes unread that there are.
    pub(super) fn skip(&self, bytes: usize) {
        let read = &self.cursors.read.0;
        read.store(read.load(Ordering::Relaxed) + bytes as u64, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fft_core::{SLOT_ALIGN, Slot};

    #[test]
    fn bytes_arrive_in_order_whatever_the_lengths() {
        const LEN: usize = 64;
        let room = size_of::<Cursors>() + LEN;
        let mut slot = Slot::new(room + SLOT_ALIGN, 0).expect("little memory");
        // SAFETY: the slot is aligned, has the room, is zero, and is used by this ring alone.
        let ring = unsafe { Ring::new(slot.bytes_mut().as_mut_ptr(), LEN) };
        let sent: Vec<u8> = (0..=255).cycle().take(5000).collect();
        let (mut written, mut found) = (0, Vec::new());
        for turn in 0.. {
            let end = sent.len().min(written + 1 + turn * 7 % 100);
            written += ring.write(&sent[written..end]);
            assert!(ring.filled() <= LEN);
            let mut some = vec![0; 1 + turn * 5 % 90];
            let read = ring.read(&mut some);
            found.extend_from_slice(&some[..read]);
            if found.len() == sent.len() {
                break;
            }
        }
        assert_eq!(found, sent);
        assert_eq!(ring.write(&sent), LEN);
        ring.skip(LEN - 1);
        let mut last = [0; 2];
        assert_eq!((ring.read(&mut last), last[0]), (1, sent[LEN - 1]));
    }
}
