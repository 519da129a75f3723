//! The file of a trace. Rank 0 begins it, and every rank appends whole lines.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fft_core::{Comm, Error, PerProcess, Reduce, agree, locked};

use super::clock::now;

/// How long lines wait to be written together, because every write delays a transform.
const INTERVAL: Duration = Duration::from_millis(100);

/// The files that this process has begun as rank 0. Later plans append to them.
static TRACES: PerProcess<Mutex<HashMap<PathBuf, StartedTrace>>> = PerProcess::new(Mutex::default);

/// The state that the plans of a file share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StartedTrace {
    /// When the file was begun, in microseconds since 1970.
    pub(super) origin: f64,
    /// The plans that it has.
    pub(super) plans: usize,
}

/// A rank's end of the file.
pub(super) struct TraceFile {
    file: File,
    lines: String,
    path: PathBuf,
    /// When lines were last written.
    flushed: Instant,
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        self.flush();
    }
}

impl TraceFile {
    /// Opens the file for one more plan. Rank 0 replaces a file that another run has left.
    /// Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::OnRank`] when the file cannot be written on one.
    pub(super) fn open(comm: &dyn Comm, path: &Path) -> Result<(Self, StartedTrace), Error> {
        let started = if comm.rank() == 0 { begin(path) } else { Ok(StartedTrace::default()) };
        let started = agree(comm, started.map_err(|why| refused(path, &why)))?;
        let mut of_first = [started.origin, started.plans as f64];
        // Other ranks add nothing.
        comm.allreduce(Reduce::Max, &mut of_first)?;
        let [origin, plans] = of_first;
        let started = StartedTrace { origin, plans: plans as usize };
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = agree(comm, file.map_err(|why| refused(path, &why)))?;
        let (lines, path, flushed) = (String::new(), path.into(), Instant::now());
        Ok((Self { file, lines, path, flushed }, started))
    }

    /// Adds a line.
    pub(super) fn add(&mut self, line: &str) {
        self.lines.push_str(line);
        self.lines.push_str(",\n");
    }

    /// Writes all lines, unless others were written a moment ago.
    pub(super) fn flush_at_intervals(&mut self) {
        if self.flushed.elapsed() > INTERVAL {
            self.flush();
        }
    }

    /// Writes all lines. A failure is logged, because a transform does not fail for its trace.
    pub(super) fn flush(&mut self) {
        self.flushed = Instant::now();
        // One call, so that lines of several ranks do not mix.
        if let Err(why) = self.file.write_all(self.lines.as_bytes()) {
            log::warn!("cannot write the trace {}: {why}", self.path.display());
        }
        self.lines.clear();
    }
}

/// Begins the file, unless this process has done so before, and counts the plan.
fn begin(path: &Path) -> io::Result<StartedTrace> {
    let mut files = locked(TRACES.get());
    if !files.contains_key(path) {
        // The closing bracket is optional in this format, so a trace that breaks off is still
        // valid.
        std::fs::write(path, "[\n")?;
    }
    let started =
        files.entry(path.into()).or_insert_with(|| StartedTrace { origin: now(), plans: 0 });
    started.plans += 1;
    Ok(*started)
}

fn refused(path: &Path, why: &io::Error) -> Error {
    Error::argument(format!("trace {}", path.display()), why, "a file that can be written")
}
