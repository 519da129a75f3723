//! The start and the end of ranks, which are threads of this process or processes of an MPI job.
//! All end with the same exit status, and one of them prints the error.

use std::fmt::Display;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::process::ExitCode;

use rustix::io::Errno;
use thriffty::planning::Reduce;
use thriffty::warnings::escaped;
use thriffty::{Comm, Error, ErrorKind, Job};

use super::signals::prepare;
#[cfg(feature = "mpi")]
use super::signals::remove_temporary;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Library(#[from] Error),
    /// An error that every rank finds by itself.
    #[error("{}", escaped(.0))]
    Refused(String),
    #[error("{}", escaped(.0))]
    Usage(String),
    /// Standard output cannot be written.
    #[error("standard output: {}", io::Error::from(*.0))]
    Output(Errno),
    /// An error that rank 0 prints, with the exit status of this rank.
    #[error("rank 0 failed")]
    OfFirst(u8),
}

impl Failure {
    /// Whether it may be an error of this rank only, while others wait.
    pub(crate) fn is_lonely(&self) -> bool {
        matches!(self, Self::Library(Error::Transport { .. } | Error::Left { .. }))
    }

    fn code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            // As for programs that SIGPIPE ends: 128 plus its number.
            Self::Output(Errno::PIPE) => 141,
            Self::OfFirst(code) => *code,
            _ => 1,
        }
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

/// Does something on rank 0 only; the others get `None`, or its error. Collective.
pub(crate) fn on_first<T, E: Display>(
    comm: &dyn Comm,
    action: impl FnOnce() -> Result<T, E>,
) -> Result<Option<T>, Failure> {
    agree(comm, if comm.rank() == 0 { action().map(Some) } else { Ok(None) })
}

/// Does something on rank 0 only, which keeps its error; the others learn that there is one.
/// Collective.
pub(crate) fn by_first(
    comm: &dyn Comm,
    action: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mine = if comm.rank() == 0 { action() } else { Ok(()) };
    let mut code = [mine.as_ref().map_or_else(|failure| failure.code().into(), |()| 0.0)];
    comm.allreduce(Reduce::Max, &mut code)?;
    mine.and(if code == [0.0] { Ok(()) } else { Err(Failure::OfFirst(code[0] as u8)) })
}

/// Prints a text, which is the result, on standard output, once. Collective.
pub(crate) fn print(comm: &dyn Comm, text: &str) -> Result<(), Failure> {
    by_first(comm, || say(text))
}

/// Prints a text about the result, which is a file: no failure to print is an error.
pub(crate) fn mention(comm: &dyn Comm, text: &str) {
    if comm.rank() == 0
        && let Err(failure) = say(text)
    {
        complain(&format_args!("warn: {failure}"), &failure);
    }
}

/// An array of zeros; an error on every rank if one of them lacks memory. Collective.
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

/// The work of a command.
pub(crate) enum Work<'a> {
    /// The work of one process, whatever the number of ranks.
    Alone(&'a dyn Fn() -> Result<(), Failure>),
    /// The work of ranks: of this many threads if given, else of the processes of this MPI job,
    /// else of one thread.
    OnRanks(Option<NonZeroUsize>, &'a (dyn Fn(&dyn Comm) -> Result<(), Failure> + Sync)),
}

/// Runs a command on every rank.
pub(crate) fn run(work: &Work<'_>) -> ExitCode {
    let job = Job::of_this_process();
    let several = job.is_some_and(|job| job.has_others());
    match (work, job) {
        // Also to detect that another process has other work.
        (_, Some(_)) if cfg!(feature = "mpi") && several => return as_processes(work),
        (Work::OnRanks(None, _), Some(_)) if cfg!(feature = "mpi") => return as_processes(work),
        _ => prepare(),
    }
    match (work, job) {
        (Work::OnRanks(None, _), Some(job)) if several => refuse(
            job,
            "started by mpirun, but built without MPI; \
             build it with `cargo build --release -p fft-cli --features mpi`, or give --ranks without mpirun",
        ),
        (Work::OnRanks(Some(_), _), Some(job)) if several => refuse(job, TWICE),
        (Work::Alone(_), Some(job)) if job.rank > 0 => ExitCode::SUCCESS,
        (Work::Alone(body), _) => end(true, body()),
        (Work::OnRanks(ranks, body), _) => {
            let ranks = ranks.map_or(1, NonZeroUsize::get);
            end(true, thriffty::threads(ranks, |comm| body(&comm)).map(drop))
        }
    }
}

const TWICE: &str = "--ranks asks for threads of one process, but mpirun started several; \
                     leave out one of the two";

/// A rank's part of the work. Collective.
#[cfg(feature = "mpi")]
fn part(comm: &dyn Comm, work: &Work<'_>) -> Result<(), Failure> {
    match work {
        Work::Alone(body) => by_first(comm, body),
        Work::OnRanks(Some(_), _) => Err(Failure::Usage(TWICE.into())),
        Work::OnRanks(None, body) => body(comm),
    }
}

/// An error if processes of a job were started with different command lines. The environment
/// matters only on rank 0. Collective.
#[cfg(feature = "mpi")]
fn check_command_lines(comm: &dyn Comm) -> Result<(), Failure> {
    let word = |word: std::ffi::OsString| {
        let word = word.to_string_lossy().into_owned();
        let plain = !word.is_empty() && word.chars().all(|c| !c.is_whitespace() && !c.is_control());
        if plain { word } else { format!("{word:?}") }
    };
    let words: Vec<_> = std::env::args_os().skip(1).map(word).collect();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let all = [("version of fft-cli", version), ("command line", words.join(" "))];
    thriffty::planning::assert_same(comm, &all).map_err(|error| match error {
        Error::Disagreement { .. } => Failure::Usage(error.to_string()),
        error => error.into(),
    })
}

pub(crate) fn say(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::Output(Errno::from_io_error(&error).unwrap_or(Errno::IO)))
}

/// Prints an error; nothing if the reader has left, as `head` does.
fn complain(text: &dyn Display, failure: &Failure) {
    if !matches!(failure, Failure::Output(Errno::PIPE)) {
        // If standard error cannot be written, the exit status still reports the failure.
        let _ = io::stderr().write_all(format!("fft-cli: {text}\n").as_bytes());
    }
}

/// Prints the error, if any; the exit status.
fn end(speaks: bool, result: Result<(), Failure>) -> ExitCode {
    let Err(failure) = result else { return ExitCode::SUCCESS };
    if speaks {
        complain(&failure, &failure);
    }
    ExitCode::from(failure.code())
}

#[cfg(feature = "mpi")]
fn as_processes(work: &Work<'_>) -> ExitCode {
    let mpi = match thriffty::mpi::init() {
        Ok(mpi) => mpi,
        Err(error) => return end(true, Err(error.into())),
    };
    // Only now, because a signal must end processes that fail while MPI starts, where others wait.
    prepare();
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        remove_temporary();
        thriffty::mpi::abort(101)
    }));
    // Communicators are dropped before MPI.
    let outcome = mpi
        .world()
        .map_err(Failure::from)
        .map(|world| (world.rank(), check_command_lines(&world).and_then(|()| part(&world, work))));
    let (rank, result) = outcome.unwrap_or_else(|error| (0, Err(error)));
    match &result {
        Err(failure) if failure.is_lonely() => {
            complain(failure, failure);
            thriffty::mpi::abort(failure.code().into())
        }
        // Printed before MPI ends: mpirun may kill this process once another has failed.
        _ => end(rank == 0, result),
    }
}

#[cfg(not(feature = "mpi"))]
fn as_processes(_: &Work<'_>) -> ExitCode {
    unreachable!("only called with the feature")
}

/// Ends every process of a job with an error. The first prints it; the others end later, because
/// mpirun may kill all once one has ended.
fn refuse(job: Job, why: &str) -> ExitCode {
    if job.rank > 0 {
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    end(job.rank == 0, Err(Failure::Usage(why.into())))
}
