//! How many threads a plan has if you do not set the number.

use std::env;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

/// Variables that set the number of threads; the first that is set counts.
const VARIABLES: [&str; 2] = ["THRIFFTY_THREADS", "OMP_NUM_THREADS"];

/// 0 before they are counted.
static CORES: AtomicUsize = AtomicUsize::new(0);

/// Cores that the process may use, by its affinity and the quota of its control group.
pub(super) fn cores() -> usize {
    let known = CORES.load(Ordering::Relaxed);
    if known > 0 {
        return known;
    }
    let cores = available_parallelism().map_or(1, usize::from);
    CORES.store(cores, Ordering::Relaxed);
    cores
}

/// The number of threads of plans of one process, if you do not choose it.
///
/// It is the value of `THRIFFTY_THREADS` or, if that is not set, of `OMP_NUM_THREADS`, which batch
/// systems, joblib and dask set for the jobs that they run side by side. Otherwise there is one
/// thread for each core that the process may use, according to its affinity and the quota of its
/// control group. Values that are not a number from 1 on are ignored. In a list, such as
/// `OMP_NUM_THREADS=4,2`, the first number counts.
///
/// The variables are read in each call, the cores in the first one.
pub fn default_threads() -> usize {
    let given = VARIABLES.into_iter().find_map(|name| threads_in(&env::var(name).ok()?));
    given.unwrap_or_else(cores)
}

fn threads_in(value: &str) -> Option<usize> {
    let first = value.split(',').next()?;
    first.trim().parse().ok().filter(|threads| *threads > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_variables_are_numbers_from_one_on() {
        for (value, expected) in [
            ("3", Some(3)),
            (" 4,2", Some(4)),
            ("0", None),
            ("", None),
            ("all", None),
            ("-1", None),
        ] {
            assert_eq!(threads_in(value), expected, "{value}");
        }
    }
}
