//! Threads of a rank that are ranks themselves.

use super::comm::Comm;

/// The thread that calls MPI for threads of its process (`MPI_THREAD_FUNNELED`). It stays on the
/// thread that made it.
pub trait Funnel: Send {
    /// Held by each thread while it may use its communicators. Take those of all threads before
    /// the first one starts.
    fn working(&self) -> Box<dyn Send>;

    /// Sends and receives for the threads until none is working.
    fn serve(&mut self);
}

/// Communicators of the threads of a rank, in order.
pub struct Team {
    /// Of each thread.
    pub comms: Vec<Box<dyn Comm>>,
    /// Where threads cannot send by themselves.
    pub funnel: Option<Box<dyn Funnel>>,
}

impl std::fmt::Debug for Team {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Team of {}", self.comms.len())
    }
}
