//! The worker threads of the process, which all teams share.
//!
//! Ranks of a team wait for each other, so all of them must run at the same time. Therefore a team
//! takes all the workers that it needs at once, and each worker returns when it has run its rank. A
//! pool that runs jobs from a queue, such as rayon's global one, could start half of a team and
//! wait forever for the other half. Threads for each plan would be simpler, but a program with many
//! plans would then have as many idle threads as all plans together.
//!
//! Each worker is a rayon pool of one thread, because that lends references to a thread safely.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use fft_core::{Error, PerProcess, locked};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::threads::cores;

/// The pool of this process.
static POOL: PerProcess<Pool> = PerProcess::new(Pool::default);

#[derive(Default)]
struct Pool {
    /// Held by the thread that waits for workers, so that smaller teams cannot overtake a large one
    /// forever.
    turn: Mutex<()>,
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Arc<ThreadPool>>,
    /// Idle or not.
    workers: usize,
    /// Workers of jobs that other processes wait for.
    awaited: usize,
    /// How many reservations there are, by their number of workers.
    reservations: BTreeMap<usize, usize>,
}

impl State {
    fn largest_reservation(&self) -> usize {
        self.reservations.last_key_value().map_or(0, |(workers, _)| *workers)
    }

    /// Starts more workers, idle at first.
    fn start(&mut self, count: usize) -> Result<(), ThreadPoolBuildError> {
        for _ in 0..count {
            let name = format!("thriffty-{}", self.workers + 1);
            let worker = ThreadPoolBuilder::new().num_threads(1).thread_name(move |_| name.clone());
            self.idle.push(Arc::new(worker.build()?));
            self.workers += 1;
        }
        Ok(())
    }

    /// Removes idle workers beyond the largest reservation. They end when the caller drops them,
    /// outside the lock.
    fn unneeded(&mut self) -> Vec<Arc<ThreadPool>> {
        let surplus = self.workers.saturating_sub(self.largest_reservation());
        let count = surplus.min(self.idle.len());
        self.workers -= count;
        self.idle.split_off(self.idle.len() - count)
    }
}

/// The workers of a team. They exist as long as this does, and other teams run on them meanwhile.
#[derive(Debug)]
pub(super) struct Reservation {
    workers: usize,
    process: u32,
}

/// The work that the threads of a team do at the same time.
pub(super) struct Job<'a> {
    /// The work of each worker; the argument is its number.
    pub(super) on_worker: &'a (dyn Fn(usize) + Sync),
    /// The work of the calling thread meanwhile.
    pub(super) on_caller: &'a mut dyn FnMut(),
    /// Whether threads of other processes wait for this team. Then it must not wait for idle
    /// workers, because the team that has them may wait for a team of such a process.
    pub(super) is_awaited: bool,
}

impl Reservation {
    /// Starts the workers that this team needs in addition to the existing ones.
    ///
    /// # Errors
    /// [`Error::Threads`] if the system starts too few.
    pub(super) fn new(workers: usize) -> Result<Self, Error> {
        let process = std::process::id();
        if workers > 0 {
            let mut state = POOL.get().state();
            let missing = workers.saturating_sub(state.workers);
            if let Err(why) = state.start(missing) {
                let started = state.unneeded();
                drop(state);
                drop(started);
                let why = why.to_string();
                return Err(Error::Threads { found: None, wanted: workers, why });
            }
            *state.reservations.entry(workers).or_default() += 1;
        }
        Ok(Self { workers, process })
    }

    /// Runs the job of a team. Waits while other teams have its workers, unless there may be more:
    /// one for each core, or as many as the largest team needs.
    ///
    /// # Errors
    /// [`Error::Argument`] in a process that was forked from the one of the plan.
    pub(super) fn run(&self, job: Job<'_>) -> Result<(), Error> {
        let process = std::process::id();
        if self.process != process {
            return Err(Error::argument("process of the plan", self.process, process));
        }
        if self.workers == 0 {
            (job.on_caller)();
            return Ok(());
        }
        let pool = POOL.get();
        let workers = pool.take(self.workers, job.is_awaited);
        let on_worker = |number: usize, worker: &Arc<ThreadPool>| {
            (job.on_worker)(number);
            pool.put_back(worker.clone(), job.is_awaited);
        };
        run_on(&workers, 0, &on_worker, job.on_caller);
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.workers == 0 || self.process != std::process::id() {
            return;
        }
        let mut state = POOL.get().state();
        if let Some(reservations) = state.reservations.get_mut(&self.workers) {
            *reservations -= 1;
            if *reservations == 0 {
                state.reservations.remove(&self.workers);
            }
        }
        let unneeded = state.unneeded();
        drop(state);
        drop(unneeded);
    }
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Takes this number of workers, which is at most the number of a reservation. If the system
    /// cannot start more threads, it waits for existing workers, because an error here would leave
    /// the ranks of other processes waiting.
    fn take(&self, count: usize, is_awaited: bool) -> Vec<Arc<ThreadPool>> {
        let _turn = (!is_awaited).then(|| locked(&self.turn));
        let mut state = self.state();
        while state.idle.len() < count {
            // A job that other processes wait for may itself wait for a job of this process, so its
            // workers must not keep others waiting.
            let busy = state.workers - state.idle.len() - state.awaited;
            let most = state.largest_reservation().max(cores() - 1);
            let missing = count - state.idle.len();
            if (is_awaited || busy + count <= most) && state.start(missing).is_ok() {
                break;
            }
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if is_awaited {
            state.awaited += count;
        }
        let others = state.idle.len() - count;
        state.idle.split_off(others)
    }

    fn put_back(&self, worker: Arc<ThreadPool>, is_awaited: bool) {
        let mut state = self.state();
        state.idle.push(worker);
        if is_awaited {
            state.awaited -= 1;
        }
        // Workers of concurrent teams stay, one for each core.
        let unneeded = if state.workers >= cores() { state.unneeded() } else { Vec::new() };
        drop(state);
        self.returned.notify_all();
        drop(unneeded);
    }
}

/// Runs `on_worker` on each of these workers and `on_caller` here, at once.
fn run_on(
    workers: &[Arc<ThreadPool>],
    first: usize,
    on_worker: &(dyn Fn(usize, &Arc<ThreadPool>) + Sync),
    on_caller: &mut dyn FnMut(),
) {
    match workers.split_first() {
        None => on_caller(),
        Some((worker, others)) => worker.in_place_scope(|scope| {
            scope.spawn(move |_| on_worker(first, worker));
            run_on(others, first + 1, on_worker, on_caller);
        }),
    }
}
