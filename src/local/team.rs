//! Threads that stay, one per rank.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use fft_core::{Comm, Error, Funnel, agree};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Threads that park between calls and end when this is dropped. A team of one runs on the
/// caller's thread, unless that must send for it.
pub(super) struct Team {
    ranks: usize,
    pool: Option<ThreadPool>,
    /// Serves the threads meanwhile.
    funnel: Option<Mutex<Box<dyn Funnel>>>,
}

/// The communicators of threads.
type Comms = Vec<Box<dyn Comm>>;

impl Team {
    /// So many threads of this process, and the communicator of each. Collective.
    ///
    /// # Errors
    /// The same on every process: those of [`Comm::team`]; [`Error::Threads`] when threads cannot
    /// be started.
    pub(super) fn new(comm: &dyn Comm, threads: usize) -> Result<(Self, Comms), Error> {
        let team = comm.team(threads)?;
        let name = |rank| format!("thriffty-{rank}");
        let pool = (threads > 1 || team.funnel.is_some()).then(|| {
            let pool = ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build();
            let why =
                |error| Error::Threads { found: None, wanted: threads, why: format!("{error}") };
            pool.map_err(why)
        });
        let pool = agree(comm, pool.transpose())?;
        Ok((Self { ranks: threads, pool, funnel: team.funnel.map(Mutex::new) }, team.comms))
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
        let results = match (&self.pool, &self.funnel) {
            (None, _) => vec![guarded(0)],
            (Some(pool), None) => pool.broadcast(|context| guarded(context.index())),
            (Some(pool), Some(funnel)) => {
                let mut funnel = funnel.lock().unwrap_or_else(PoisonError::into_inner);
                served(pool, funnel.as_mut(), self.ranks, &guarded)
            }
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

/// Calls `body` on each thread of a pool, while this one serves them.
fn served<R: Send>(
    pool: &ThreadPool,
    funnel: &mut dyn Funnel,
    threads: usize,
    body: &(impl Fn(usize) -> R + Sync),
) -> Vec<R> {
    let places: Vec<_> = (0..threads).map(|_| Mutex::new((Some(funnel.working()), None))).collect();
    pool.in_place_scope(|scope| {
        scope.spawn_broadcast(|_, context| {
            let place = &places[context.index()];
            let place = || place.lock().unwrap_or_else(PoisonError::into_inner);
            let working = place().0.take();
            let result = body(context.index());
            place().1 = Some(result);
            drop(working);
        });
        funnel.serve();
    });
    let results =
        places.into_iter().map(|it| it.into_inner().unwrap_or_else(PoisonError::into_inner));
    results.map(|(_, result)| result.expect("every thread has run")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_errors_are_those_of_their_rank() {
        for ranks in [1, 2, 5] {
            let (team, _) = Team::new(&fft_comm::alone(), ranks).unwrap();
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
