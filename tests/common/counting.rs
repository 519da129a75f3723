//! The system's allocator, counting the calls of each thread and the bytes of all. It is the
//! allocator of every test program that includes this file.
#![allow(dead_code, reason = "every test program uses one of the counts")]
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// Calls of the allocator by this thread, except those that free memory.
pub(crate) fn calls() -> usize {
    CALLS.get()
}

/// Bytes that the program holds.
pub(crate) fn bytes() -> usize {
    BYTES.load(Ordering::SeqCst)
}

fn count(bytes: usize) {
    BYTES.fetch_add(bytes, Ordering::SeqCst);
    // A thread that is ending has no counter any more, and nobody reads it.
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
}

// SAFETY: every method does what the system's allocator does, which keeps the contract of
// `GlobalAlloc`; counting touches a number of the calling thread and an atomic one, and does not
// allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes);
        BYTES.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::realloc`.
        unsafe { System.realloc(old, layout, bytes) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(old, layout) }
    }
}
