//! From a plan's events to lines of a trace.

use std::path::Path;
use std::time::Duration;

use fft_core::{Activity, Comm, Direction, Error, Event, PredictedOperation, Recipe};

use super::clock::SharedClock;
use super::file::TraceFile;

/// The tracks of a rank.
const HOST: usize = 0;
const DEVICE: usize = 1;

/// Writes what one rank of a plan does.
pub(crate) struct Tracer {
    file: TraceFile,
    clock: SharedClock,
    rank: usize,
    plan: usize,
    runs: usize,
    /// The operations of each direction.
    operations: [Vec<Operation>; 2],
}

/// An operation of the bound program, with the model's prediction if there is one.
struct Operation {
    text: String,
    predicted: Option<PredictedOperation>,
}

impl Tracer {
    /// Begins to trace a plan, whose operations have these texts. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::OnRank`] when the file cannot be written on one; when a rank left or
    /// the library fails.
    pub(crate) fn new(
        comm: &dyn Comm,
        path: &Path,
        recipe: &Recipe,
        texts: [&[String]; 2],
    ) -> Result<Self, Error> {
        let (file, started) = TraceFile::open(comm, path)?;
        let clock = SharedClock::new(comm, started.origin)?;
        let operations = [Direction::Forward, Direction::Inverse].map(|direction| {
            let predicted = recipe.predict_operations(direction);
            let texts = direction.choose(texts[0], texts[1]).iter();
            let operation = |text: &String| Operation {
                text: text.clone(),
                predicted: predicted.iter().find(|known| known.text == *text).cloned(),
            };
            texts.map(operation).collect()
        });
        let (rank, plan) = (comm.rank(), started.plans);
        let mut tracer = Self { file, clock, rank, plan, runs: 0, operations };
        let host = comm.host(rank);
        tracer.file.add(&format!(
            r#"{{"name":"process_name","ph":"M","pid":{rank},"args":{{"name":"rank {rank}, host of rank {host}"}}}}"#
        ));
        for (track, name) in [(HOST, "host"), (DEVICE, "GPU")] {
            tracer.file.add(&format!(
                r#"{{"name":"thread_name","ph":"M","pid":{rank},"tid":{track},"args":{{"name":"{name}"}}}}"#
            ));
        }
        tracer.file.flush();
        Ok(tracer)
    }

    /// Adds the events of one run; the event of the run itself comes last. If the ranks refused the
    /// run, it contains only the agreement.
    pub(crate) fn record(&mut self, events: &[Event], has_failed: bool) {
        let direction = events.iter().find_map(|event| match event.activity {
            Activity::Run(direction) => Some(direction),
            _ => None,
        });
        for event in events {
            let line = self.line(event, direction.unwrap_or(Direction::Forward));
            self.file.add(&line);
        }
        self.runs += 1;
        if has_failed {
            self.file.flush();
        } else {
            self.file.flush_at_intervals();
        }
    }

    fn line(&self, event: &Event, direction: Direction) -> String {
        let way = direction.choose("forward", "inverse");
        let (category, name, more) = match event.activity {
            Activity::Run(_) => ("run", way.to_owned(), spent(event)),
            Activity::Operation(number) => {
                let [forward, inverse] = &self.operations;
                let operations = direction.choose(forward, inverse);
                let Operation { text, predicted } = &operations[number];
                let model = predicted.as_ref().map_or(String::new(), |predicted| {
                    let (model, floor) = (predicted.seconds * 1e6, predicted.floor * 1e6);
                    format!(r#","model_us":{model:.1},"floor_us":{floor:.1}"#)
                });
                let more = format!(r#","operation":{number}{model}{}"#, spent(event));
                ("operation", text.clone(), more)
            }
            Activity::Agreement => ("agreement", "agreement".to_owned(), String::new()),
            Activity::Copy => ("operation", "copy to the output".to_owned(), String::new()),
            Activity::Pack { peer, bytes } => {
                let more = format!(r#","peer":{peer},"bytes":{bytes}"#);
                ("message", format!("pack for {peer}"), more)
            }
            Activity::Unpack { peer, bytes } => {
                let more = format!(r#","peer":{peer},"bytes":{bytes}"#);
                ("message", format!("unpack from {peer}"), more)
            }
        };
        let (begin, end) = (self.clock.micros(event.begin), self.clock.micros(event.end));
        let (rank, plan, run, duration) = (self.rank, self.plan, self.runs, end - begin);
        let track = if event.on_device { DEVICE } else { HOST };
        format!(
            r#"{{"name":"{name}","cat":"{category}","ph":"X","pid":{rank},"tid":{track},"ts":{begin:.3},"dur":{duration:.3},"args":{{"plan":{plan},"run":{run},"direction":"{way}"{more}}}}}"#
        )
    }
}

/// Where the time of an event went.
fn spent(event: &Event) -> String {
    let spent = &event.spent;
    let parts: [(&str, Duration); 6] = [
        ("fft", spent.fft),
        ("pack", spent.pack),
        ("exchange", spent.exchange),
        ("unpack", spent.unpack),
        ("own", spent.own),
        ("shared", spent.shared),
    ];
    let parts = parts.iter().filter(|(_, time)| !time.is_zero());
    let mut text: String = parts
        .map(|(name, time)| format!(r#","{name}_us":{:.1}"#, time.as_secs_f64() * 1e6))
        .collect();
    if spent.sent > 0 {
        text += &format!(r#","sent":{}"#, spent.sent);
    }
    text
}
