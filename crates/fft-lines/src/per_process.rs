//! State of the process that a forked child does not inherit.
//!
//! A child of `fork` has one thread. Threads of a pool are gone there, and a lock that another
//! thread held stays locked for ever. So whatever keeps threads, or a lock for the whole process,
//! is made anew in a child, and what the parent had made is left alone.
//!
//! It is here because tables of lines need it, and this crate depends on no other one.

use std::sync::OnceLock;

/// A value that is made once in each process, also in one that was forked.
///
/// ```
/// use fft_lines::PerProcess;
/// static NAMES: PerProcess<Vec<u32>> = PerProcess::new(|| vec![std::process::id()]);
/// assert_eq!(NAMES.get(), &[std::process::id()]);
/// ```
#[derive(Debug)]
pub struct PerProcess<V> {
    make: fn() -> V,
    first: OnceLock<Box<Made<V>>>,
}

/// The value of one process, and the one of a process that was forked from it.
#[derive(Debug)]
struct Made<V> {
    process: u32,
    value: V,
    child: OnceLock<Box<Made<V>>>,
}

impl<V> PerProcess<V> {
    /// A place for values that `make` returns. It should do little: a process that is forked while
    /// another thread runs it would wait for that thread.
    pub const fn new(make: fn() -> V) -> Self {
        Self { make, first: OnceLock::new() }
    }

    /// The value of this process. The first call in a process makes it.
    pub fn get(&self) -> &V {
        let process = std::process::id();
        let mut made = self.first.get_or_init(|| self.made_for(process));
        while made.process != process {
            made = made.child.get_or_init(|| self.made_for(process));
        }
        &made.value
    }

    fn made_for(&self, process: u32) -> Box<Made<V>> {
        Box::new(Made { process, value: (self.make)(), child: OnceLock::new() })
    }
}
