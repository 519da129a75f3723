//! The start and the end of ranks, which are threads of this process or processes of an MPI job.
//! All end with the same exit status, and one of them prints the error.

use std::fmt::Display;
use std::io::Write;
use std::num::NonZeroUsize;
use std::process::ExitCode;

use thriffty::{Comm, Error, ErrorKind};

use super::signals::prepare;
#[cfg(feature = "mpi")]
use super::signals::remove_temporary;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Library(#[from] Error),
    /// An error that every rank finds by itself.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Usage(String),
}

impl Failure {
    /// Whether it may be this rank's alone, while others wait for it.
    pub(crate) fn is_lonely(&self) -> bool {
        matches!(self, Self::Library(Error::Transport { .. } | Error::Left { .. }))
    }

    fn code(&self) -> u8 {
        if matches!(self, Self::Usage(_)) { 2 } else { 1 }
    }
}

/// An error that every rank finds by itself.
pub(crate) fn refused<T>(text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Refused(text.into()))
}

/// [`thriffty::planning::agree`] for any error. Collective.
pub(crate) fn agree<T>(comm: &dyn Comm, mine: Result<T, impl Display>) -> Result<T, Failure> {
    let (rank, kind) = (comm.rank(), ErrorKind::Argument);
    let told = mine.map_err(|error| Error::OnRank { rank, kind, message: error.to_string() });
    Ok(thriffty::planning::agree(comm, told)?)
}

/// Does something on rank 0 alone; the others get `None`, or its error. Collective.
pub(crate) fn on_first<T, E: Display>(
    comm: &dyn Comm,
    action: impl FnOnce() -> Result<T, E>,
) -> Result<Option<T>, Failure> {
    agree(comm, if comm.rank() == 0 { action().map(Some) } else { Ok(None) })
}

/// Prints a text on standard output, once. Collective.
pub(crate) fn print(comm: &dyn Comm, text: &str) -> Result<(), Failure> {
    on_first(comm, || say(text)).map(drop)
}

/// An array of zeros; an error on every rank where one of them lacks memory. Collective.
pub(crate) fn zeros<E: bytemuck::Zeroable + Clone>(
    comm: &dyn Comm,
    len: usize,
) -> Result<Vec<E>, Failure> {
    let mut zeros = Vec::new();
    let bytes = len.saturating_mul(size_of::<E>());
    let reserved = zeros.try_reserve_exact(len);
    let reserved = reserved.map_err(|_| Error::Memory { rank: comm.rank(), bytes });
    thriffty::planning::agree(comm, reserved)?;
    zeros.resize(len, E::zeroed());
    Ok(zeros)
}

/// Runs `body` on every rank: on `ranks` threads if given, else on the processes of this MPI job,
/// else on one thread.
pub(crate) fn run(
    ranks: Option<NonZeroUsize>,
    body: impl Fn(&dyn Comm) -> Result<(), Failure> + Sync,
) -> ExitCode {
    let job = Job::of_this_process();
    let several = job.as_ref().is_some_and(|job| job.size != Some(1));
    match (ranks, job) {
        (None, Some(_)) if cfg!(feature = "mpi") => as_processes(body),
        (None, Some(job)) if several => job.refuse(
            "started by mpirun, but built without MPI; \
             build it with `cargo build --release -p fft-cli --features mpi`, or give --ranks without mpirun",
        ),
        (Some(_), Some(job)) if several => job.refuse(
            "--ranks asks for threads of one process, but mpirun started several; leave out one of the two",
        ),
        (ranks, _) => {
            prepare();
            let ranks = ranks.map_or(1, NonZeroUsize::get);
            end(true, thriffty::threads(ranks, |comm| body(&comm)).map(drop))
        }
    }
}

/// Runs a command on the first process of a job.
pub(crate) fn alone(body: impl FnOnce() -> Result<(), Failure>) -> ExitCode {
    match Job::of_this_process() {
        Some(job) if job.rank > 0 => ExitCode::SUCCESS,
        _ => {
            prepare();
            end(true, body())
        }
    }
}

pub(crate) fn say(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::Refused(format!("standard output: {error}")))
}

/// Prints the error, if any; the exit status.
fn end(speaks: bool, result: Result<(), Failure>) -> ExitCode {
    let Err(failure) = result else { return ExitCode::SUCCESS };
    if speaks {
        eprintln!("fft-cli: {failure}");
    }
    ExitCode::from(failure.code())
}

#[cfg(feature = "mpi")]
fn as_processes(body: impl Fn(&dyn Comm) -> Result<(), Failure>) -> ExitCode {
    let mpi = match thriffty::mpi::init() {
        Ok(mpi) => mpi,
        Err(error) => return end(true, Err(error.into())),
    };
    // Only now: a signal ends processes that fail in the start of MPI, where others wait.
    prepare();
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        remove_temporary();
        thriffty::mpi::abort(101)
    }));
    // Communicators are dropped before MPI.
    let outcome = mpi.world().map_err(Failure::from).map(|world| (world.rank(), body(&world)));
    let (rank, result) = outcome.unwrap_or_else(|error| (0, Err(error)));
    match &result {
        Err(failure) if failure.is_lonely() => {
            eprintln!("fft-cli: {failure}");
            thriffty::mpi::abort(failure.code().into())
        }
        // Printed before MPI ends: mpirun may kill this process once another has failed.
        _ => end(rank == 0, result),
    }
}

#[cfg(not(feature = "mpi"))]
fn as_processes(_: impl Fn(&dyn Comm) -> Result<(), Failure>) -> ExitCode {
    unreachable!("only called with the feature")
}

/// The MPI job of this process, by the environment.
struct Job {
    rank: usize,
    /// `None` if unknown.
    size: Option<usize>,
}

impl Job {
    /// Open MPI's, MPICH's and PMIx's variables.
    fn of_this_process() -> Option<Self> {
        let number = |name: &str| std::env::var(name).ok()?.parse().ok();
        let rank = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"].into_iter().find_map(number);
        let size = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"].into_iter().find_map(number);
        (rank.is_some() || size.is_some()).then(|| Self { rank: rank.unwrap_or(0), size })
    }

    /// Ends every process of a job with an error. The first prints it; the others end later, as
    /// mpirun may kill all once one has ended.
    fn refuse(&self, why: &str) -> ExitCode {
        if self.rank > 0 {
            std::thread::sleep(std::time::Duration::from_millis(500));
        }
        end(self.rank == 0, Err(Failure::Usage(why.into())))
    }
}
