//! Whether there is room for memory that processes share. The system grants memory that it does not
//! have, and kills a process that touches a page for which there is none.

use fft_core::{Error, Reduce};
use rustix::process::{Resource, getrlimit};

const PAGE: usize = 4096;

/// What bounds the memory of a process.
const LIMITS: &str = "the limit of a file or of memory (ulimit -f, -v)";

/// Bytes that this process may share in addition to those that it shares already, and what limits
/// them.
pub(crate) struct Room {
    free: f64,
    place: &'static str,
}

impl Room {
    /// Room in a file system.
    #[cfg(feature = "mpi")]
    pub(crate) fn in_file_system(path: &'static str) -> Self {
        let free = rustix::fs::statvfs(path)
            .map_or(f64::INFINITY, |system| system.f_bavail as f64 * system.f_frsize as f64);
        Self { free, place: path }.within_limits()
    }

    /// Room in the memory of the host.
    pub(crate) fn in_memory() -> Self {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
        let free = kibibytes.map_or(f64::INFINITY, |kibibytes: f64| kibibytes * 1024.0);
        Self { free, place: "the memory of the host" }.within_limits()
    }

    fn within_limits(self) -> Self {
        let limit = |of| getrlimit(of).current.map_or(f64::INFINITY, |bytes| bytes as f64);
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages = pages.split(' ').next().and_then(|pages| pages.parse::<f64>().ok());
        let mapped = pages.unwrap_or(0.0) * PAGE as f64;
        let limit = limit(Resource::Fsize).min(limit(Resource::As) - mapped).max(0.0);
        if limit < self.free { Self { free: limit, place: LIMITS } } else { self }
    }
}

/// Reduces a number over the ranks of a host.
type ReduceOne<'a> = &'a dyn Fn(Reduce, f64) -> Result<f64, Error>;

/// Checks that there is room for the shared memory of all ranks of a host. Collective, with the
/// same result on all.
///
/// # Errors
/// [`Error::SharedMemory`], and the errors of the reduction.
pub(crate) fn check_room(
    room: &Room,
    rank: usize,
    bytes: usize,
    reduce: ReduceOne<'_>,
) -> Result<(), Error> {
    let wanted = reduce(Reduce::Sum, bytes as f64)?;
    let free = reduce(Reduce::Min, room.free)?;
    if wanted <= free {
        return Ok(());
    }
    let (wanted, free) = (wanted as u64, free as u64);
    Err(Error::SharedMemory { rank, wanted, place: room.place, free })
}
