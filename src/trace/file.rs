//! The file of a trace. Rank 0 begins it, and every rank appends whole lines.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use fft_core::{Comm, Error, PerProcess, agree};

use super::clock::now;

/// When this process began each file, in microseconds since 1970. Later plans append to it.
static BEGUN: PerProcess<Mutex<HashMap<PathBuf, f64>>> = PerProcess::new(Mutex::default);

/// Text that is kept before it is written.
const BUFFER_BYTES: usize = 1 << 16;

/// A rank's end of the file.
pub(super) struct TraceFile {
    file: File,
    lines: String,
    path: PathBuf,
}

impl TraceFile {
    /// Opens the file, and returns when it was begun. Rank 0 replaces a file that another run has
    /// left. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::OnRank`] when the file cannot be written on one.
    pub(super) fn open(comm: &dyn Comm, path: &Path) -> Result<(Self, f64), Error> {
        let origin = if comm.rank() == 0 { begin(path) } else { Ok(0.0) };
        let origin = agree(comm, origin.map_err(|why| refused(path, &why)))?;
        let mut all = vec![0.0; comm.size()];
        comm.allgather(bytemuck::bytes_of(&origin), bytemuck::cast_slice_mut(&mut all))?;
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = agree(comm, file.map_err(|why| refused(path, &why)))?;
        Ok((Self { file, lines: String::new(), path: path.into() }, all[0]))
    }

    /// Adds a line, and writes all lines if they are many.
    pub(super) fn add(&mut self, line: &str) {
        self.lines.push_str(line);
        self.lines.push_str(",\n");
        if self.lines.len() > BUFFER_BYTES {
            self.flush();
        }
    }

    /// Writes all lines. A failure is logged, because a transform does not fail for its trace.
    pub(super) fn flush(&mut self) {
        // One call, so that lines of several ranks do not mix.
        if let Err(why) = self.file.write_all(self.lines.as_bytes()) {
            log::warn!("cannot write the trace {}: {why}", self.path.display());
        }
        self.lines.clear();
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Begins the file, unless this process has done so before.
fn begin(path: &Path) -> io::Result<f64> {
    let mut begun = BEGUN.get().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(origin) = begun.get(path) {
        return Ok(*origin);
    }
    // The closing bracket is optional in this format, so that a trace that breaks off can be read.
    std::fs::write(path, "[\n")?;
    let origin = now();
    begun.insert(path.into(), origin);
    Ok(origin)
}

fn refused(path: &Path, why: &io::Error) -> Error {
    Error::argument(format!("trace {}", path.display()), why, "a file that can be written")
}
