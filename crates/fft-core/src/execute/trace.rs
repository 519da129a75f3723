//! Events: the activities of a rank, with their times.
//!
//! A plan that is traced records an event for each run, for each operation of its program and for
//! each message that it encodes or decodes. Without a trace, each costs one test of an option.
//! Operations of a device return when they are queued, so the device marks points in its queue, and
//! their times replace those of the host when the run has ended. A [`Profiler`] is called when a
//! run or an operation begins and ends.

use std::ffi::CStr;
use std::ops::{Deref, DerefMut, Sub};
use std::time::Instant;

use crate::base::Timings;
use crate::problem::Direction;

/// The activity of an [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The agreement of ranks that their arrays fit, during which they wait for the last one.
    Agreement,
    /// A transform.
    Run(Direction),
    /// The operation of this number in the program of its direction.
    Operation(usize),
    /// A copy of the result to the caller's array.
    Copy,
    /// Packing a message.
    Pack {
        /// The receiver.
        peer: usize,
        /// Bytes of the message.
        bytes: usize,
    },
    /// Unpacking a message.
    Unpack {
        /// The sender.
        peer: usize,
        /// Bytes of the message.
        bytes: usize,
    },
}

/// Something that a rank has done.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The activity.
    pub activity: Activity,
    /// When it began.
    pub begin: Instant,
    /// When it ended.
    pub end: Instant,
    /// Where its time went. Zero for messages.
    pub spent: Timings,
    /// Whether a device measured `begin` and `end`.
    pub on_device: bool,
}

/// Shows runs and operations to a tool that profiles the process.
pub trait Profiler: Send {
    /// A run or an operation begins in this thread, within those that have not ended.
    fn begin(&self, text: &CStr);

    /// Ends the innermost range of this thread.
    fn end(&self);
}

/// The times of a rank, and its events while it is traced.
#[derive(Default)]
pub struct Recorder {
    timings: Timings,
    events: Option<Vec<Event>>,
    profiler: Option<Box<dyn Profiler>>,
}

/// The beginning of an event; nothing without a trace.
#[derive(Clone, Copy, Debug)]
pub struct Begun(Option<(Instant, Timings)>);

impl Recorder {
    /// Records events from now on.
    pub fn start_trace(&mut self) {
        self.events = Some(Vec::new());
    }

    /// Whether events are recorded.
    pub(super) fn is_tracing(&self) -> bool {
        self.events.is_some()
    }

    /// Calls this profiler from now on.
    pub fn set_profiler(&mut self, profiler: Box<dyn Profiler>) {
        self.profiler = Some(profiler);
    }

    pub(super) fn begin_range(&self, text: &CStr) {
        if let Some(profiler) = &self.profiler {
            profiler.begin(text);
        }
    }

    pub(super) fn end_range(&self) {
        if let Some(profiler) = &self.profiler {
            profiler.end();
        }
    }

    /// Gives the last operations and copies the times that a device has measured: operation `i`
    /// lasted from mark `i` to mark `i + 1`.
    pub(super) fn set_device_times(&mut self, marks: &[Instant]) {
        let events = self.events.iter_mut().flatten().rev();
        let operations = events
            .filter(|event| matches!(event.activity, Activity::Operation(_) | Activity::Copy));
        for (event, marks) in operations.zip(marks.windows(2).rev()) {
            (event.begin, event.end, event.on_device) = (marks[0], marks[1], true);
        }
    }

    /// The events since the last call, in the order in which they ended.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Begins an event.
    pub fn begin(&self) -> Begun {
        Begun(self.events.as_ref().map(|_| (Instant::now(), self.timings)))
    }

    /// Records an event.
    pub fn end(&mut self, begun: Begun, activity: Activity) {
        let (Some(events), Some((begin, before))) = (&mut self.events, begun.0) else { return };
        let (end, spent) = (Instant::now(), self.timings - before);
        events.push(Event { activity, begin, end, spent, on_device: false });
    }
}

impl Deref for Recorder {
    type Target = Timings;

    fn deref(&self) -> &Timings {
        &self.timings
    }
}

impl DerefMut for Recorder {
    fn deref_mut(&mut self) -> &mut Timings {
        &mut self.timings
    }
}

impl Sub for Timings {
    type Output = Self;

    /// The times that have been added since `before`.
    fn sub(self, before: Self) -> Self {
        Self {
            pack: self.pack.saturating_sub(before.pack),
            exchange: self.exchange.saturating_sub(before.exchange),
            unpack: self.unpack.saturating_sub(before.unpack),
            own: self.own.saturating_sub(before.own),
            shared: self.shared.saturating_sub(before.shared),
            fft: self.fft.saturating_sub(before.fft),
            sent: self.sent.saturating_sub(before.sent),
            forwarded: self.forwarded.saturating_sub(before.forwarded),
            reals: self.reals.saturating_sub(before.reals),
        }
    }
}
