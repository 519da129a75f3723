//! Processes with several threads as ranks, where one thread calls MPI (`MPI_THREAD_FUNNELED`).
//!
//! ```text
//! thread, a rank:
//!     message to a thread of this process: hand over the slot
//!     message to another process: request to send; the slot comes back when it has left
//!     message from another process: request to receive into a slot, which comes back full
//!     collective: the threads of the process meet; the first requests it for all of them
//! thread that calls MPI, until all threads have ended:
//!     start what is requested
//!     test messages under way: hand out what has arrived and what has left
//!     sleep until the next request, or for a moment if messages are under way
//! ```
//!
//! The thread that calls MPI is not a rank: messages proceed while the ranks compute.

mod funneled_comm;
mod messages;
mod operation;
mod queue;
mod server;

use std::sync::mpsc;
use std::thread::Builder;

use fft_core::{Comm, Error, Funnel, Reduce, TeamComms};

pub use funneled_comm::FunneledComm;
use server::Server;

use super::mpi_comm::MpiComm;

/// Communicators of `threads` threads of each process; with one thread each, the communicator of
/// the processes. Collective.
pub(super) fn team(comm: &MpiComm, threads: usize) -> Result<TeamComms, Error> {
    comm.raw.all(Server::check(threads))?;
    let mut most = [threads as f64];
    comm.allreduce(Reduce::Max, &mut most)?;
    if most == [1.0] {
        return Ok(TeamComms { comms: vec![comm.dup()?], funnel: None });
    }
    let (server, comms) = Server::new(comm, threads)?;
    let comms = comms.into_iter().map(|comm| Box::new(comm) as Box<dyn Comm>);
    Ok(TeamComms { comms: comms.collect(), funnel: Some(Box::new(server)) })
}

/// Runs `body` on `threads` threads of this process and returns the results in their order. Each is
/// a rank of one communicator, together with the threads of all other processes. Collective.
///
/// Ranks are numbered by process, then by thread. Processes may have different numbers of threads.
/// Only the calling thread calls MPI: it sends and receives for the threads until all have ended.
/// Threads of a process share memory as ranks of a host do; different processes exchange messages,
/// also on one host.
///
/// ```
/// use fft_comm::mpi;
/// use fft_core::{Comm, Reduce};
///
/// let library = mpi::init()?;
/// let sums = mpi::threads(&library.world()?, 2, |comm| {
///     let mut sum = [comm.rank() as f64];
///     comm.allreduce(Reduce::Sum, &mut sum).map(|()| sum[0])
/// })?;
/// assert_eq!(sums, [Ok(1.0), Ok(1.0)]);
/// # Ok::<(), fft_core::Error>(())
/// ```
///
/// # Errors
/// The same on every process: [`Error::Argument`] for no threads or more than 181;
/// [`Error::Threads`] when they cannot be started, and then no rank has run; the errors of the
/// library.
///
/// Communicators and plans of the threads end with `body`, because nobody serves them later. A
/// panic in a transform ends the job, because other processes wait.
///
/// # Panics
/// With the panic of the first thread that panicked, once all have ended.
pub fn threads<R: Send>(
    comm: &MpiComm,
    threads: usize,
    body: impl Fn(FunneledComm) -> R + Sync,
) -> Result<Vec<R>, Error> {
    let (mut server, comms) = Server::new(comm, threads)?;
    let body = &body;
    std::thread::scope(|scope| {
        let mut running = Vec::with_capacity(threads);
        let mut places = Vec::with_capacity(threads);
        let spawn = |_| {
            let (place, mine) = mpsc::channel::<(FunneledComm, _)>();
            // A thread without a place ends, because another one could not be started.
            let thread = move || mine.recv().ok().map(|(comm, _working)| body(comm));
            running.push(Builder::new().spawn_scoped(scope, thread)?);
            places.push(place);
            Ok(())
        };
        let started: std::io::Result<()> = (0..threads).try_for_each(spawn);
        let started = started.map_err(|why| {
            let found = Some(running.len());
            Error::Threads { found, wanted: threads, why: why.to_string() }
        });
        comm.raw.all(started)?;
        for (place, comm) in places.into_iter().zip(comms) {
            place.send((comm, server.working())).expect("the thread waits for its place");
        }
        server.serve();
        let ended: Vec<_> = running.into_iter().map(|thread| thread.join()).collect();
        let results: Result<Option<Vec<R>>, _> = ended.into_iter().collect();
        let results = results.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(results.expect("all have had a place"))
    })
}
