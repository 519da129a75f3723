//! The ranks of a plan, each on a thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use fft_core::{Comm, Error, Funnel, agree, locked};

use super::pool::{Job, Reservation};

/// Ranks that run at once. The calling thread is one of them, unless it must call MPI for the
/// others meanwhile.
pub(crate) struct Team {
    ranks: usize,
    workers: Reservation,
    /// Calls MPI for the threads while they run.
    funnel: Option<Mutex<Box<dyn Funnel>>>,
}

/// The communicators of threads.
type Comms = Vec<Box<dyn Comm>>;

impl Team {
    /// A team of `threads` ranks of this process, and the communicator of each. Collective.
    ///
    /// # Errors
    /// The same on every process: [`Error::Argument`] if ranks cannot have several threads; the
    /// errors of [`Teams::team`](fft_core::Teams::team); [`Error::Threads`] when threads cannot be
    /// started.
    pub(crate) fn new(comm: &dyn Comm, threads: usize) -> Result<(Self, Comms), Error> {
        let Some(teams) = comm.teams() else {
            let expected = "MPI, or one rank";
            return Err(Error::argument("threads of a rank", threads, expected));
        };
        let team = teams.team(threads)?;
        let workers = if team.funnel.is_some() { threads } else { threads - 1 };
        let workers = agree(comm, Reservation::new(workers))?;
        Ok((Self { ranks: threads, workers, funnel: team.funnel.map(Mutex::new) }, team.comms))
    }

    pub(crate) fn ranks(&self) -> usize {
        self.ranks
    }

    /// Calls `body` with each rank, at once, and returns the results in order of ranks.
    ///
    /// # Errors
    /// The error of the lowest rank whose error is its own; [`Error::Left`] for one that panics.
    pub(crate) fn run<R: Send>(
        &self,
        body: impl Fn(usize) -> Result<R, Error> + Sync,
    ) -> Result<Vec<R>, Error> {
        let guarded = |rank| {
            let result = catch_unwind(AssertUnwindSafe(|| body(rank)));
            result.unwrap_or(Err(Error::Left { gone: rank }))
        };
        let results = match &self.funnel {
            None => self.run_with_caller(&guarded)?,
            Some(funnel) => self.run_served(locked(funnel).as_mut(), &guarded)?,
        };
        // The error of a rank that only lost another one is less informative than the other one's.
        let lost = |error: &Error| matches!(error, Error::Left { .. });
        let mut own = results.iter().filter_map(|result| result.as_ref().err());
        match own.find(|error| !lost(error)) {
            Some(error) => Err(error.clone()),
            None => results.into_iter().collect(),
        }
    }

    /// The calling thread is rank 0.
    fn run_with_caller<R: Send>(
        &self,
        body: &(dyn Fn(usize) -> R + Sync),
    ) -> Result<Vec<R>, Error> {
        let results = places(self.ranks);
        let run = |rank: usize| {
            let result = body(rank);
            *locked(&results[rank]) = Some(result);
        };
        self.workers.run(Job {
            on_worker: &|worker| run(worker + 1),
            on_caller: &mut || run(0),
            is_awaited: false,
        })?;
        Ok(taken(results))
    }

    /// The calling thread serves the others.
    fn run_served<R: Send>(
        &self,
        funnel: &mut dyn Funnel,
        body: &(dyn Fn(usize) -> R + Sync),
    ) -> Result<Vec<R>, Error> {
        let results = places(self.ranks);
        let working: Vec<_> = (0..self.ranks).map(|_| Mutex::new(Some(funnel.working()))).collect();
        let run = |rank: usize| {
            let working = locked(&working[rank]).take();
            let result = body(rank);
            *locked(&results[rank]) = Some(result);
            drop(working);
        };
        self.workers.run(Job {
            on_worker: &run,
            on_caller: &mut || funnel.serve(),
            is_awaited: true,
        })?;
        Ok(taken(results))
    }
}

/// Room for the result of each rank.
fn places<R>(ranks: usize) -> Vec<Mutex<Option<R>>> {
    (0..ranks).map(|_| Mutex::new(None)).collect()
}

fn taken<R>(places: Vec<Mutex<Option<R>>>) -> Vec<R> {
    let results = places.into_iter().map(|place| place.into_inner());
    let results = results.map(|result| result.unwrap_or_else(PoisonError::into_inner));
    results.map(|result| result.expect("every rank has run")).collect()
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
            let fail = |rank| {
                if rank == last {
                    Err(Error::argument("rank", rank, "another"))
                } else {
                    Err::<(), _>(Error::Left { gone: last })
                }
            };
            assert_eq!(team.run(fail), Err(Error::argument("rank", last, "another")));
            let panics = |rank| if rank == last { panic!("as it should") } else { Ok(()) };
            assert_eq!(team.run(panics), Err(Error::Left { gone: last }));
            assert!(team.run(Ok).is_ok(), "the team goes on");
        }
    }
}
