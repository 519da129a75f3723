//! `trace`: the summary of a trace.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;

use crate::data::replace;
use crate::output::units;
use crate::ranks::world::{Failure, say};

/// Sums up a trace that plans have written with --trace, or THRIFFTY_TRACE.
///
/// For each operation of each plan it prints the time of the slowest rank, the time that the model
/// predicts, and how much of the floor is achieved: the time of the memory accesses or messages
/// alone, over the measured time. For operations in which ranks wait for each other, and for their
/// agreement before a run, it names the rank that came last most often. Then it says what to try.
/// The first run of each plan is left out if there are others.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The trace.
    file: PathBuf,
    /// Draw the last run into this file: a row for each rank.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let path = options.file.display();
    let text = std::fs::read_to_string(&options.file)
        .map_err(|why| Failure::Refused(format!("{path}: {why}")))?;
    let trace = Trace::of(&text);
    let summary = Summary::of(&trace).map_err(|why| Failure::Refused(format!("{path}: {why}")))?;
    if let Some(path) = &options.svg {
        let picture = timeline::draw(&trace.lines);
        let picture = picture.ok_or("found no run that has ended, expected at least one".into());
        let written = picture.and_then(|picture| replace::write(path, &picture));
        written.map_err(|why: String| Failure::Refused(format!("{}: {why}", path.display())))?;
    }
    say(&summary.to_string())
}

/// What a trace contains.
struct Trace {
    lines: Vec<Line>,
    /// The number of lines that are not part of a trace, such as the last line of a process that
    /// was killed.
    broken: usize,
}

impl Trace {
    fn of(text: &str) -> Self {
        let mut trace = Self { lines: Vec::new(), broken: 0 };
        for line in text.lines() {
            let line = line.trim().trim_end_matches(',');
            if ["", "[", "]"].contains(&line) {
                continue;
            }
            match serde_json::from_str::<Line>(line) {
                Ok(line) => trace.lines.push(line),
                Err(_) => trace.broken += 1,
            }
        }
        trace
    }
}

#[derive(Deserialize)]
struct Line {
    name: String,
    cat: Option<String>,
    pid: usize,
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    dur: f64,
    #[serde(default)]
    args: Arguments,
}

#[derive(Default, Deserialize)]
struct Arguments {
    #[serde(default)]
    plan: usize,
    #[serde(default)]
    run: usize,
    #[serde(default)]
    direction: String,
    operation: Option<usize>,
    #[serde(default)]
    model_us: f64,
    #[serde(default)]
    floor_us: f64,
    #[serde(default)]
    exchange_us: f64,
}

impl Line {
    /// The run that it belongs to: the numbers of the plan and of its run.
    fn run(&self) -> [usize; 2] {
        [self.args.plan, self.args.run]
    }
}

/// The order of operations: by plan, forward before inverse, then by number.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Key {
    plan: usize,
    direction: String,
    /// None for the agreement before a run.
    operation: Option<usize>,
}

/// One operation of one plan.
#[derive(Debug, Default)]
struct Operation {
    text: String,
    model: f64,
    floor: f64,
    /// For each run and rank: when it began, how long it took, and how long it waited.
    runs: BTreeMap<usize, BTreeMap<usize, Visit>>,
}

#[derive(Debug)]
struct Visit {
    begin: f64,
    duration: f64,
    waited: f64,
}

/// Times of an operation in seconds.
struct Figures {
    slowest: f64,
    waited: f64,
    /// The rank that came last most often, in which share of the runs, and how much later than the
    /// rank in the middle it came on average.
    latest: Option<Latest>,
}

struct Latest {
    rank: usize,
    share: f64,
    behind: f64,
}

#[derive(Debug, Default)]
struct Summary {
    operations: BTreeMap<Key, Operation>,
    broken: usize,
}

impl Summary {
    fn of(trace: &Trace) -> Result<Self, String> {
        let mut summary = Self { operations: BTreeMap::new(), broken: trace.broken };
        for line in &trace.lines {
            summary.add(line);
        }
        for operation in summary.operations.values_mut() {
            if operation.runs.len() > 1 {
                operation.runs.pop_first();
            }
        }
        if summary.operations.is_empty() {
            Err("found no operations, expected a trace that a plan has written".into())
        } else {
            Ok(summary)
        }
    }

    fn add(&mut self, line: &Line) {
        let Line { name, cat, pid, ts, dur, args } = line;
        let is_agreement = cat.as_deref() == Some("agreement");
        if !is_agreement && args.operation.is_none() {
            return;
        }
        let (plan, direction) = (args.plan, args.direction.clone());
        let key = Key { plan, direction, operation: args.operation };
        let operation = self.operations.entry(key).or_default();
        operation.text.clone_from(name);
        (operation.model, operation.floor) = (args.model_us * 1e-6, args.floor_us * 1e-6);
        let visit = Visit {
            begin: ts * 1e-6,
            duration: dur * 1e-6,
            waited: if is_agreement { *dur } else { args.exchange_us } * 1e-6,
        };
        operation.runs.entry(args.run).or_default().insert(*pid, visit);
    }
}

impl Operation {
    fn figures(&self) -> Figures {
        let (mut slowest, mut waited) = (0.0, 0.0);
        let mut last: HashMap<usize, Vec<f64>> = HashMap::new();
        for visits in self.runs.values() {
            slowest += visits.values().map(|visit| visit.duration).fold(0.0, f64::max);
            waited += visits.values().map(|visit| visit.waited).fold(0.0, f64::max);
            let mut begins: Vec<_> = visits.values().map(|visit| visit.begin).collect();
            begins.sort_by(f64::total_cmp);
            let middle = begins[(begins.len() - 1) / 2];
            let latest = visits.iter().max_by(|a, b| a.1.begin.total_cmp(&b.1.begin));
            if let Some((rank, latest)) = latest.filter(|_| visits.len() > 1) {
                last.entry(*rank).or_default().push(latest.begin - middle);
            }
        }
        let runs = self.runs.len() as f64;
        let latest =
            last.into_iter().max_by_key(|(rank, behind)| (behind.len(), usize::MAX - rank));
        let latest = latest.map(|(rank, behind)| {
            let times = behind.len() as f64;
            Latest { rank, share: times / runs, behind: behind.iter().sum::<f64>() / times }
        });
        let latest = latest.filter(|_| waited > 0.0);
        Figures { slowest: slowest / runs, waited: waited / runs, latest }
    }

    /// What to try, if anything stands out.
    fn advice(&self, figures: &Figures) -> Option<String> {
        let Figures { slowest, waited, latest } = figures;
        if let Some(Latest { rank, share, behind }) = latest
            && *behind > slowest / 4.0
            && *share >= 0.5
        {
            return Some(format!(
                "the others wait for rank {rank}: look for other work on its core, and for what \
                 its program does before"
            ));
        }
        if self.model > 0.0 && *slowest > 2.0 * self.model {
            let cause = if *waited > slowest / 2.0 {
                "ranks wait for messages or each other: are there as many cores as ranks, \
                 do messages take the fast network, and is the machine of the model this one \
                 (fft-cli calibrate)?"
            } else {
                "are ranks bound to cores, and is the machine of the model this one \
                 (fft-cli calibrate)?"
            };
            return Some(format!("twice as slow as the model expects: {cause}"));
        }
        None
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut plan = None;
        for (key, operation) in &self.operations {
            if plan != Some((key.plan, &key.direction)) {
                plan = Some((key.plan, &key.direction));
                let runs = operation.runs.len();
                let ranks = operation.runs.values().map(BTreeMap::len).max().unwrap_or(0);
                let (number, way) = (key.plan, &key.direction);
                writeln!(f, "plan {number}, {way}: mean of {runs} runs, {ranks} ranks")?;
            }
            let figures = operation.figures();
            let text = &operation.text;
            match key.operation {
                Some(number) => {
                    writeln!(f, "  {number}: {text}")?;
                    write!(f, "     {}", units::time(figures.slowest))?;
                    if operation.model > 0.0 {
                        let model = units::time(operation.model);
                        let achieved = 100.0 * operation.floor / figures.slowest;
                        write!(f, ", model {model}, {achieved:.0}% of floor")?;
                    }
                    if figures.waited > 0.0 {
                        write!(f, ", waits {}", units::time(figures.waited))?;
                    }
                }
                None => write!(f, "  {text}: waits {}", units::time(figures.waited))?,
            }
            if let Some(Latest { rank, share, behind }) = &figures.latest {
                let (share, behind) = (100.0 * share, units::time(*behind));
                write!(f, ", last rank {rank} ({share:.0}% of runs, {behind} behind)")?;
            }
            writeln!(f)?;
            if let Some(advice) = operation.advice(&figures) {
                writeln!(f, "     {advice}")?;
            }
        }
        if self.broken > 0 {
            writeln!(f, "{} lines could not be read", self.broken)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
mod timeline;
