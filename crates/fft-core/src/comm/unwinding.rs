//! Panics of a rank for which others wait.

use super::comm::Comm;

/// Notifies the communicator of a panic, because other ranks wait for this one.
pub struct Unwinding<'a> {
    comm: &'a dyn Comm,
    /// Whether the thread was panicking before.
    already: bool,
}

impl<'a> Unwinding<'a> {
    /// Notifies if a panic drops it.
    pub fn watch(comm: &'a dyn Comm) -> Self {
        Self { comm, already: std::thread::panicking() }
    }
}

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.already {
            self.comm.abandon();
        }
    }
}
