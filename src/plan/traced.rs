//! Plans that write traces.

use std::path::Path;

use fft_core::{Direction, Error};

use super::dyn_plan::DynPlan;
use crate::bound::Bound;
use crate::trace::{self, Tracer};

/// Attaches the active profiler to this plan, if there is one.
pub(super) fn attach_profiler(bound: &mut dyn Bound) {
    if let Some(profiler) = trace::profiler()
        && let Some(recorder) = bound.executor_mut().recorder()
    {
        recorder.set_profiler(profiler);
    }
}

impl DynPlan {
    /// Records in a file what each rank does in later transforms, and when. Collective.
    ///
    /// The file is in Chrome's trace format, which Perfetto and browsers (`about:tracing`) show. It
    /// has a track for each rank, with its runs, the operations of each, and the messages that it
    /// packs and unpacks with their bytes. Operations have the time that the model predicts and a
    /// floor, which is the time of their memory accesses or of their messages. `fft-cli trace`
    /// prints a summary. Ranks append to one file; on hosts without a common file system each host
    /// has its own. Several plans of the same ranks can share a file; other plans need one of their
    /// own. Lines are written after a failure, when the plan is dropped, and otherwise a few times
    /// per second, so that a process that is killed loses little.
    ///
    /// Operations on a GPU have a track of their own, with times that the GPU measures. A traced
    /// transform waits for them, whereas other transforms return when all work is queued.
    ///
    /// # Errors
    /// On every rank: [`Error::OnRank`] when one cannot write the file.
    pub fn trace(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        if let Some(traced) = self.bound.trace(path.as_ref()) {
            return traced;
        }
        let executor = self.bound.executor();
        let texts = [Direction::Forward, Direction::Inverse].map(|way| executor.texts(way));
        let tracer = Tracer::new(self.comm(), path.as_ref(), &self.recipe, texts)?;
        if let Some(recorder) = self.bound.executor_mut().recorder() {
            recorder.start_trace();
            self.tracer = Some(tracer);
        }
        Ok(())
    }

    /// Adds the events of the last run to the trace, if there is one.
    pub(super) fn record(&mut self, has_failed: bool) {
        if let Some(tracer) = &mut self.tracer
            && let Some(recorder) = self.bound.executor_mut().recorder()
        {
            tracer.record(&recorder.take_events(), has_failed);
        }
    }
}
