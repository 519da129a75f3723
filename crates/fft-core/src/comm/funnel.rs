//! Threads that communicate by another thread of their process.

/// The thread that calls MPI for threads of its process (`MPI_THREAD_FUNNELED`). It stays on the
/// thread that made it.
pub trait Funnel: Send {
    /// Held by each thread while it may use its communicators. Take those of all threads before
    /// the first one starts.
    fn working(&self) -> Box<dyn Send>;

    /// Sends and receives for the threads until none is working.
    fn serve(&mut self);
}
