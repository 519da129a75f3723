//! Trials timed in turns until one is clearly the fastest, or the budget is spent.
//!
//! All decisions are made from times reduced over all ranks, so that all ranks decide the same. A
//! trial that fails on one rank is dropped on all.

use std::time::{Duration, Instant};

use fft_core::{Comm, Error, Reduce, agree};
use serde::{Deserialize, Serialize};

/// A task that can be timed.
pub(crate) trait Trial {
    /// Runs it once. Collective over the ranks of the race.
    ///
    /// # Errors
    /// Any, on any rank, after its collective part.
    fn run(&mut self) -> Result<(), Error>;
}

/// The outcome of a trial; the same on all ranks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// The budget was spent before.
    NotTried,
    /// It failed on some rank, with this error.
    Failed(String),
    /// It was clearly slower, or one too many; seconds of its runs.
    Dropped(Vec<f64>),
    /// It stayed to the end; seconds of its runs on the slowest rank.
    Timed(Vec<f64>),
    /// It was timed in an earlier run, with this median.
    Remembered(f64),
}

impl Outcome {
    /// The median of its times, if it has any.
    pub fn seconds(&self) -> Option<f64> {
        match self {
            Self::NotTried | Self::Failed(_) => None,
            Self::Dropped(times) | Self::Timed(times) => median(times),
            Self::Remembered(seconds) => Some(*seconds),
        }
    }
}

/// The progress of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The number of the trial that is timed next.
    pub candidate: usize,
    /// The number of trials.
    pub candidates: usize,
    /// Turns that all remaining trials have had.
    pub rounds: usize,
    /// Time since the beginning, on the slowest rank.
    pub spent: Duration,
    /// The time that the race may take.
    pub budget: Duration,
}

/// Turns before a trial is judged.
const FIRST: usize = 2;
/// Turns of a trial by itself, at most, while all together take no more than a quarter of the
/// budget.
const ALONE: usize = 8;
/// Turns at most.
const ROUNDS: usize = 24;
/// Trials that remain, at most.
const KEPT: usize = 4;

/// The ratio to the fastest, of best times and of medians, above which a trial counts as clearly
/// slower after this number of turns. If there are few times, all of them may be disturbed.
fn slower(turns: usize) -> f64 {
    1.0 + (2.0 / turns.max(1) as f64).max(0.1)
}

struct Runner<'t> {
    number: usize,
    trial: Box<dyn Trial + 't>,
    times: Vec<f64>,
}

impl Runner<'_> {
    fn best(&self) -> f64 {
        self.times.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn median(&self) -> f64 {
        median(&self.times).unwrap_or(f64::INFINITY)
    }

    /// Whether it is clearly slower than these best values.
    fn lags(&self, [best, median]: [f64; 2]) -> bool {
        let slower = slower(self.times.len());
        self.times.len() >= FIRST && self.best() > best * slower && self.median() > median * slower
    }
}

type MakeTrial<'m, 't> = &'m mut dyn FnMut(usize) -> Result<Box<dyn Trial + 't>, Error>;

/// Times `count` trials, made by `make`, in their order, and returns the outcome of each.
/// Collective; the same on every rank.
///
/// Each trial is made, run once untimed, and then timed two to eight times. Clearly slower ones are
/// dropped. At most four remain, which take turns until one is left, the budget is spent, or each
/// has had 24 turns. No turn begins that is expected to end after the budget; the first trial that
/// works has two in any case.
///
/// # Errors
/// When a rank has gone or the transport fails.
pub(crate) fn race<'t>(
    comm: &dyn Comm,
    count: usize,
    budget: Duration,
    make: MakeTrial<'_, 't>,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Outcome>, Error> {
    let watch = Watch { comm, start: Instant::now(), budget };
    let (outcomes, running, spent) = (vec![Outcome::NotTried; count], Vec::new(), watch.spent()?);
    let mut race = Race { watch, on_progress, outcomes, running, spent };
    race.first_turns(make)?;
    for round in 0..ROUNDS - ALONE {
        let turn: f64 = race.running.iter().filter_map(|runner| median(&runner.times)).sum();
        if race.running.len() < 2 || race.spent + turn > race.watch.seconds() {
            break;
        }
        race.round(round)?;
    }
    // In the same order on all ranks, because dropping a trial may be collective.
    for runner in race.running {
        race.outcomes[runner.number] = Outcome::Timed(runner.times);
    }
    Ok(race.outcomes)
}

struct Race<'a, 't> {
    watch: Watch<'a>,
    on_progress: &'a mut dyn FnMut(Progress),
    outcomes: Vec<Outcome>,
    running: Vec<Runner<'t>>,
    spent: f64,
}

impl<'t> Race<'_, 't> {
    fn report(&mut self, candidate: usize, rounds: usize) {
        let spent = Duration::try_from_secs_f64(self.spent).unwrap_or_default();
        let (candidates, budget) = (self.outcomes.len(), self.watch.budget);
        (self.on_progress)(Progress { candidate, candidates, rounds, spent, budget });
    }

    /// Makes each trial and times it by itself, as long as there is time.
    fn first_turns(&mut self, make: MakeTrial<'_, 't>) -> Result<(), Error> {
        let (count, budget) = (self.outcomes.len(), self.watch.seconds());
        let mut longest = 0.0;
        for number in 0..count {
            if !self.running.is_empty() && self.spent + longest > budget {
                break;
            }
            self.report(number, 0);
            let before = self.spent;
            let until = before + budget / (4 * count) as f64;
            let goal = Goal { until, fastest: fastest(&self.running) };
            match first_turns(&self.watch, number, make, goal) {
                Ok(runner) => self.running.push(runner),
                Err(error) => self.outcomes[number] = Outcome::Failed(error.to_string()),
            }
            // This fails, too, if ranks have left, and not only the trial.
            self.spent = self.watch.spent()?;
            longest = f64::max(longest, self.spent - before);
            self.drop_slow();
        }
        Ok(())
    }

    /// One turn of each that remains.
    fn round(&mut self, round: usize) -> Result<(), Error> {
        let mut place = 0;
        while place < self.running.len() {
            self.report(self.running[place].number, round);
            let runner = &mut self.running[place];
            match self.watch.time(runner.trial.as_mut()) {
                Ok([seconds, now]) => {
                    runner.times.push(seconds);
                    self.spent = now;
                    place += 1;
                }
                Err(error) => {
                    self.outcomes[runner.number] = Outcome::Failed(error.to_string());
                    self.running.remove(place);
                    self.spent = self.watch.spent()?;
                }
            }
        }
        self.drop_slow();
        Ok(())
    }

    /// Drops all trials that are clearly slower than the fastest, and all except the best few.
    fn drop_slow(&mut self) {
        let Self { running, outcomes, .. } = self;
        let fastest = fastest(running);
        let mut order: Vec<(f64, usize)> = running.iter().map(|r| (r.median(), r.number)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let stays = |runner: &Runner<'_>| {
            let place = order.iter().position(|(_, number)| *number == runner.number);
            !runner.lags(fastest) && place.is_some_and(|place| place < KEPT)
        };
        running.retain_mut(|runner| {
            let stays = stays(runner);
            if !stays {
                outcomes[runner.number] = Outcome::Dropped(std::mem::take(&mut runner.times));
            }
            stays
        });
    }
}

/// The end of a trial's turns by itself: this time, or when it lags behind the fastest.
struct Goal {
    until: f64,
    fastest: [f64; 2],
}

/// The best time and the best median of all.
fn fastest(running: &[Runner<'_>]) -> [f64; 2] {
    let both = running.iter().map(|runner| [runner.best(), runner.median()]);
    both.fold([f64::INFINITY; 2], |least, next| [least[0].min(next[0]), least[1].min(next[1])])
}

fn first_turns<'t>(
    watch: &Watch<'_>,
    number: usize,
    make: MakeTrial<'_, 't>,
    goal: Goal,
) -> Result<Runner<'t>, Error> {
    let trial = agree(watch.comm, make(number))?;
    let mut runner = Runner { number, trial, times: Vec::with_capacity(ROUNDS) };
    // The first run maps pages, and is not counted.
    watch.time(runner.trial.as_mut())?;
    loop {
        let [seconds, now] = watch.time(runner.trial.as_mut())?;
        runner.times.push(seconds);
        let turns = runner.times.len();
        let enough = turns >= ALONE || now > goal.until || runner.lags(goal.fastest);
        if turns >= FIRST && enough {
            return Ok(runner);
        }
    }
}

/// The clock of all ranks together.
struct Watch<'a> {
    comm: &'a dyn Comm,
    start: Instant,
    budget: Duration,
}

impl Watch<'_> {
    fn seconds(&self) -> f64 {
        self.budget.as_secs_f64()
    }

    /// Seconds since the beginning, on the slowest rank. Collective.
    fn spent(&self) -> Result<f64, Error> {
        let mut spent = [self.start.elapsed().as_secs_f64()];
        self.comm.allreduce(Reduce::Max, &mut spent)?;
        Ok(spent[0])
    }

    /// Seconds of one run and since the beginning, each on its slowest rank. Collective.
    fn time(&self, trial: &mut dyn Trial) -> Result<[f64; 2], Error> {
        self.comm.barrier()?;
        let start = Instant::now();
        let result = trial.run();
        let mut seconds = [start.elapsed().as_secs_f64(), self.start.elapsed().as_secs_f64()];
        agree(self.comm, result)?;
        self.comm.allreduce(Reduce::Max, &mut seconds)?;
        Ok(seconds)
    }
}

fn median(times: &[f64]) -> Option<f64> {
    if times.is_empty() { None } else { Some(fft_core::median(&mut times.to_vec())) }
}
