//! Threads that communicate through another thread of their process.

/// Calls MPI for the threads of its process (`MPI_THREAD_FUNNELED`), on a thread that may use the
/// communicator from which it was made.
pub trait Funnel: Send {
    /// A guard that each thread holds while it may use its communicators. Take the guards of all
    /// threads before the first one starts.
    fn working(&self) -> Box<dyn Send>;

    /// Sends and receives for the threads until none is working.
    fn serve(&mut self);
}
