//! Transforms on demand, so that a benchmark can take turns between programs.
//!
//! Rank 0 sleeps on standard input; the others sleep on a socket to rank 0 rather than in a collective, where MPI
//! would spin and disturb whoever's turn it is. Sockets are local: all ranks must be on one machine.

use std::io::{self, BufRead, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use thriffty::{Comm, Error};

use crate::files::share_path;
use crate::world::{Failure, agree, on_first, print};

/// Prints `ready`, then for every line `go` what `once` returns. Ends at `quit` or the end of the input. Collective.
pub(crate) fn run(
    comm: &dyn Comm,
    mut once: impl FnMut() -> Result<f64, Error>,
) -> Result<(), Failure> {
    let mut waiting = Waiting::new(comm)?;
    print(comm, "ready\n")?;
    while agree(comm, waiting.wait())? {
        let seconds = once()?;
        print(comm, &format!("{seconds:e}\n"))?;
    }
    Ok(())
}

/// Where a rank sleeps.
enum Waiting {
    /// Rank 0: on standard input; it wakes the others.
    Leader { wakes: Vec<UnixStream> },
    /// The others: until rank 0 sends a byte, or closes.
    Follower { woken_by: UnixStream },
}

impl Waiting {
    /// Connects every rank to rank 0. Collective.
    fn new(comm: &dyn Comm) -> Result<Self, Failure> {
        // Neither the folder nor the socket in it is needed once all are connected.
        let door = on_first(comm, || {
            let folder = tempfile::Builder::new().prefix("fft-cli-").tempdir()?;
            let listener = UnixListener::bind(folder.path().join("serve"))?;
            Ok::<_, io::Error>((folder, listener))
        })?;
        let path = door.as_ref().map(|(folder, _)| folder.path().join("serve"));
        let path = share_path(comm, path.as_deref())?;
        let connected = match &door {
            Some(_) => Ok(None),
            None => connect(&path).map(Some),
        };
        let connected = agree(comm, connected)?;
        let accept = |(_, listener): (_, UnixListener)| -> io::Result<Vec<_>> {
            (1..comm.size()).map(|_| Ok(listener.accept()?.0)).collect()
        };
        let accepted = agree(comm, door.map(accept).transpose())?;
        Ok(match connected {
            None => Self::Leader { wakes: accepted.unwrap_or_default() },
            Some(woken_by) => Self::Follower { woken_by },
        })
    }

    /// Sleeps until there is something to do; false at the end.
    fn wait(&mut self) -> io::Result<bool> {
        match self {
            Self::Leader { wakes } => {
                let wake = |stream: &mut UnixStream| stream.write_all(b"!");
                let go = next_order().and_then(|go| {
                    if go { wakes.iter_mut().try_for_each(wake).map(|()| true) } else { Ok(false) }
                });
                // The others wake up in any case: by a byte, or by the end of their streams.
                if !matches!(go, Ok(true)) {
                    wakes.clear();
                }
                go
            }
            Self::Follower { woken_by } => Ok(woken_by.read(&mut [0])? == 1),
        }
    }
}

fn connect(path: &Path) -> Result<UnixStream, String> {
    let reason =
        |error| format!("{}: {error}; --serve needs all ranks on one machine", path.display());
    UnixStream::connect(path).map_err(reason)
}

/// Whether the next line of standard input is `go`, rather than `quit` or the end.
fn next_order() -> io::Result<bool> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line)?;
    match line.trim_end() {
        "go" => Ok(true),
        "quit" => Ok(false),
        _ if read == 0 => Ok(false),
        other => {
            Err(io::Error::other(format!("found `{other}` on standard input, expected go or quit")))
        }
    }
}
