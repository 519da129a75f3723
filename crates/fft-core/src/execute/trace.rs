//! What a rank does, and when.
//!
//! A plan that is traced records an event for each run, for each operation of its program and for
//! each message that it encodes or decodes. Without a trace, each costs one test of an option.

use std::ops::{Deref, DerefMut, Sub};
use std::time::Instant;

use crate::base::Timings;
use crate::problem::Direction;

/// What an [`Event`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The agreement of ranks that their arrays fit, in which they wait for the latest one.
    Agreement,
    /// A transform.
    Run(Direction),
    /// The operation of this number in the program of its direction.
    Operation(usize),
    /// A copy of the result to where it was asked for.
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
    /// What it was.
    pub activity: Activity,
    /// When it began.
    pub begin: Instant,
    /// When it ended.
    pub end: Instant,
    /// Where its time went. It is zero for messages.
    pub spent: Timings,
}

/// The times of a rank, and its events while it is traced.
#[derive(Debug, Default)]
pub struct Recorder {
    timings: Timings,
    events: Option<Vec<Event>>,
}

/// The beginning of an event; nothing without a trace.
#[derive(Clone, Copy, Debug)]
pub struct Begun(Option<(Instant, Timings)>);

impl Recorder {
    /// Records events from now on.
    pub fn start_trace(&mut self) {
        self.events = Some(Vec::new());
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
        events.push(Event { activity, begin, end: Instant::now(), spent: self.timings - before });
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

    /// What has been added since `before`.
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
