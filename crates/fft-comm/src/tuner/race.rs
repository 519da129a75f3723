//! Several ways to do the same, timed turn by turn until it is clear which is fastest, or time is up.
//!
//! Every decision is made from times that were reduced over all ranks before, so that all ranks decide the same. A trial
//! that fails on any rank is dropped on all.

use std::time::{Duration, Instant};

use fft_core::{Comm, Error, Reduce, agree};

/// Something that can be timed.
pub trait Trial {
    /// Does it once. Collective over the ranks of the race.
    ///
    /// # Errors
    /// Any, on any rank, after its collective part.
    fn run(&mut self) -> Result<(), Error>;
}

/// What became of a trial; the same on all ranks.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Time was up before.
    NotTried,
    /// It failed on some rank, which said this.
    Failed(String),
    /// It was clearly slower, or there was no room to keep it; seconds of its runs.
    Dropped(Vec<f64>),
    /// Seconds of its runs on the slowest rank, to the end.
    Timed(Vec<f64>),
}

impl Outcome {
    /// The median of its times, if it has any.
    pub fn seconds(&self) -> Option<f64> {
        match self {
            Self::NotTried | Self::Failed(_) => None,
            Self::Dropped(times) | Self::Timed(times) => median(times),
        }
    }
}

/// How far a race is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Which one is timed next, from 0.
    pub candidate: usize,
    /// Of how many.
    pub candidates: usize,
    /// Turns that all that remain have had.
    pub rounds: usize,
    /// Time so far, on the slowest rank.
    pub spent: Duration,
    /// Time there is.
    pub budget: Duration,
}

/// Turns before anything is judged.
const FIRST: usize = 2;
/// Turns that one has by itself at most, while all together take no more than a quarter of the budget.
const ALONE: usize = 8;
/// Turns at most: more tell nothing new.
const ROUNDS: usize = 24;
/// Trials that are kept at a time.
const KEPT: usize = 4;

/// How much slower than the fastest is clearly slower after so many turns, in the best time and in the median: twice after
/// two, a quarter after eight. Few times may all have been disturbed by something else, and one may have been lucky.
fn slower(turns: usize) -> f64 {
    1.0 + (2.0 / turns.max(1) as f64).max(0.1)
}

/// One that is in the race.
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

    /// Whether it has lost to those of which this is the best time, and the best median.
    fn lags(&self, [best, median]: [f64; 2]) -> bool {
        let slower = slower(self.times.len());
        self.times.len() >= FIRST && self.best() > best * slower && self.median() > median * slower
    }
}

/// Times `count` trials, made by `make`, in their order; returns what became of each. Collective; the same on every rank.
///
/// Each is made, run once without being timed, and two to eight times more. One that is clearly slower than the fastest is
/// dropped, the sooner the slower it is; those that remain, four at most, take turns until one is left, time is up, or they
/// have had 24 turns. No turn is begun that would end after the budget, by what turns took before; the first trial that
/// works has two in any case.
///
/// # Errors
/// When a rank has gone or the transport fails.
pub fn race<'t>(
    comm: &dyn Comm,
    count: usize,
    budget: Duration,
    make: &mut dyn FnMut(usize) -> Result<Box<dyn Trial + 't>, Error>,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Outcome>, Error> {
    let watch = Watch { comm, start: Instant::now(), budget: budget.as_secs_f64() };
    let mut tell = |candidate, rounds, spent: f64| {
        let spent = Duration::try_from_secs_f64(spent).unwrap_or_default();
        on_progress(Progress { candidate, candidates: count, rounds, spent, budget });
    };
    let mut outcomes = vec![Outcome::NotTried; count];
    let mut running: Vec<Runner<'t>> = Vec::new();
    // The longest that one took to be made and run.
    let (mut longest, mut spent) = (0.0, watch.spent()?);
    for number in 0..count {
        if !running.is_empty() && spent + longest > watch.budget {
            break;
        }
        tell(number, 0, spent);
        let before = spent;
        let goal =
            Goal { until: spent + watch.budget / (4 * count) as f64, fastest: fastest(&running) };
        match first_turns(&watch, number, make, goal) {
            Ok(runner) => running.push(runner),
            Err(error) => outcomes[number] = Outcome::Failed(error.to_string()),
        }
        // If ranks are gone, not only the trial, this fails, too.
        spent = watch.spent()?;
        longest = f64::max(longest, spent - before);
        part(&mut running, &mut outcomes, KEPT);
    }
    for round in 0..ROUNDS - ALONE {
        let turn: f64 = running.iter().filter_map(|runner| median(&runner.times)).sum();
        if running.len() < 2 || spent + turn > watch.budget {
            break;
        }
        let mut place = 0;
        while place < running.len() {
            let runner = &mut running[place];
            tell(runner.number, round, spent);
            match watch.time(runner.trial.as_mut()) {
                Ok([seconds, now]) => {
                    runner.times.push(seconds);
                    spent = now;
                    place += 1;
                }
                Err(error) => {
                    outcomes[runner.number] = Outcome::Failed(error.to_string());
                    running.remove(place);
                    spent = watch.spent()?;
                }
            }
        }
        part(&mut running, &mut outcomes, KEPT);
    }
    // In the same order on all ranks: what trials hold may be given back by all together.
    for runner in running {
        outcomes[runner.number] = Outcome::Timed(runner.times);
    }
    Ok(outcomes)
}

/// When a trial has had enough turns by itself: then, or when it lags behind the fastest.
struct Goal {
    until: f64,
    fastest: [f64; 2],
}

/// The best time of all, and the best median.
fn fastest(running: &[Runner<'_>]) -> [f64; 2] {
    let both = running.iter().map(|runner| [runner.best(), runner.median()]);
    both.fold([f64::INFINITY; 2], |least, next| [least[0].min(next[0]), least[1].min(next[1])])
}

/// Makes a trial and times it for the first time.
fn first_turns<'t>(
    watch: &Watch<'_>,
    number: usize,
    make: &mut dyn FnMut(usize) -> Result<Box<dyn Trial + 't>, Error>,
    goal: Goal,
) -> Result<Runner<'t>, Error> {
    let trial = agree(watch.comm, make(number))?;
    let mut runner = Runner { number, trial, times: Vec::with_capacity(ROUNDS) };
    // The first run of all meets memory that nobody has touched.
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

/// Drops what is clearly slower than the fastest, and the slowest of more than `most`.
fn part(running: &mut Vec<Runner<'_>>, outcomes: &mut [Outcome], most: usize) {
    let fastest = fastest(running);
    let mut order: Vec<(f64, usize)> = running.iter().map(|r| (r.median(), r.number)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let stays = |runner: &Runner<'_>| {
        let place = order.iter().position(|(_, number)| *number == runner.number);
        !runner.lags(fastest) && place.is_some_and(|place| place < most)
    };
    running.retain_mut(|runner| {
        let stays = stays(runner);
        if !stays {
            outcomes[runner.number] = Outcome::Dropped(std::mem::take(&mut runner.times));
        }
        stays
    });
}

/// The timings of all ranks together.
struct Watch<'a> {
    comm: &'a dyn Comm,
    start: Instant,
    budget: f64,
}

impl Watch<'_> {
    /// Seconds since the race began, on the rank where that is longest. Collective.
    fn spent(&self) -> Result<f64, Error> {
        let mut spent = [self.start.elapsed().as_secs_f64()];
        self.comm.allreduce(Reduce::Max, &mut spent)?;
        Ok(spent[0])
    }

    /// Seconds of one run and since the race began, on the ranks where they are longest. Collective.
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
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some((sorted[last / 2] + sorted[sorted.len() / 2]) / 2.0)
}
