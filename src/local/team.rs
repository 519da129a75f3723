//! Threads that stay, one per rank.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fft_core::Error;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Threads that park between calls and end when this is dropped. A team of one runs on the
/// caller's thread.
pub(super) struct Team {
    ranks: usize,
    pool: Option<ThreadPool>,
}

impl Team {
    /// # Errors
    /// [`Error::Threads`] when they cannot be started.
    pub(super) fn new(ranks: usize) -> Result<Self, Error> {
        if ranks == 1 {
            return Ok(Self { ranks, pool: None });
        }
        let name = |rank| format!("thriffty-{rank}");
        let pool = ThreadPoolBuilder::new().num_threads(ranks).thread_name(name).build();
        let why = |error| Error::Threads { found: 0, wanted: ranks, why: format!("{error}") };
        Ok(Self { ranks, pool: Some(pool.map_err(why)?) })
    }

    pub(super) fn ranks(&self) -> usize {
        self.ranks
    }

    /// Calls `body` with each rank, at once, and returns the results in order of ranks.
    ///
    /// # Errors
    /// That of the lowest rank whose error is its own; [`Error::Left`] for one that panics.
    pub(super) fn run<R: Send>(
        &self,
        body: impl Fn(usize) -> Result<R, Error> + Sync,
    ) -> Result<Vec<R>, Error> {
        let guarded = |rank| {
            let result = catch_unwind(AssertUnwindSafe(|| body(rank)));
            result.unwrap_or(Err(Error::Left { gone: rank }))
        };
        let results = match &self.pool {
            None => vec![guarded(0)],
            Some(pool) => pool.broadcast(|context| guarded(context.index())),
        };
        // Ranks that only lost another one say less than that one does.
        let lost = |error: &Error| matches!(error, Error::Left { .. });
        let mut own = results.iter().filter_map(|result| result.as_ref().err());
        match own.find(|error| !lost(error)) {
            Some(error) => Err(error.clone()),
            None => results.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_errors_are_those_of_their_rank() {
        for ranks in [1, 2, 5] {
            let team = Team::new(ranks).unwrap();
            assert_eq!(team.run(Ok).unwrap(), (0..ranks).collect::<Vec<_>>());
            let last = ranks - 1;
            let fail = |rank| match rank == last {
                true => Err(Error::argument("rank", rank, "another")),
                false => Err::<(), _>(Error::Left { gone: last }),
            };
            assert_eq!(team.run(fail), Err(Error::argument("rank", last, "another")));
            let panics = |rank| if rank == last { panic!("as it should") } else { Ok(()) };
            assert_eq!(team.run(panics), Err(Error::Left { gone: last }));
            assert!(team.run(Ok).is_ok(), "the team goes on");
        }
    }
}
