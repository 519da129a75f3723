//! Prefetching while transforms compute.

use std::ptr::without_provenance;

use fft_stream::{LINE, ahead_of_computing};

/// Maximum runs in the queue, so that it never allocates.
const MOST: usize = 32;

/// Runs of memory to be read soon, prefetched between transforms of lines.
#[derive(Default)]
pub(crate) struct PrefetchQueue {
    /// The first and last addresses of `len` runs. All runs before `run` have been prefetched.
    runs: [[usize; 2]; MOST],
    len: usize,
    run: usize,
    /// Cache lines not yet prefetched, and work until all are.
    lines: usize,
    work: usize,
}

impl PrefetchQueue {
    /// Adds a run, if there is room. The queue is empty when all runs have been prefetched.
    pub(crate) fn add(&mut self, memory: &[u8]) {
        self.add_at(memory.as_ptr().addr(), memory.len());
    }

    fn add_at(&mut self, at: usize, bytes: usize) {
        if self.lines == 0 {
            (self.len, self.run) = (0, 0);
        }
        let Some(free) = self.runs.get_mut(self.len).filter(|_| bytes > 0) else { return };
        let run = [at - at % LINE, at + bytes];
        *free = run;
        self.len += 1;
        self.lines += lines(run);
    }

    /// Sets the amount of work, in any unit, during which all runs are prefetched.
    pub(crate) fn begin(&mut self, work: usize) {
        self.work = work;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// Prefetches the lines that are due after this much more work.
    pub(crate) fn step(&mut self, work: usize) {
        self.due(work, |at| ahead_of_computing(without_provenance(at)));
    }

    fn due(&mut self, work: usize, mut line: impl FnMut(usize)) {
        let share = self.lines.saturating_mul(work).div_ceil(self.work.max(1));
        let mut due = share.min(self.lines);
        self.work = self.work.saturating_sub(work);
        self.lines -= due;
        while due > 0 {
            let run = &mut self.runs[self.run];
            let here = due.min(lines(*run));
            (0..here).for_each(|number| line(run[0] + number * LINE));
            run[0] += here * LINE;
            due -= here;
            self.run += usize::from(run[0] >= run[1]);
        }
    }

    pub(crate) fn end(&mut self) {
        (self.len, self.run, self.lines) = (0, 0, 0);
    }
}

/// Number of cache lines between two addresses; the first is aligned.
fn lines([begin, end]: [usize; 2]) -> usize {
    end.saturating_sub(begin).div_ceil(LINE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_line_is_asked_for_once_in_order_and_in_time(
            runs in prop::collection::vec((1..1usize << 20, 0..3000usize), 0..MOST + 3),
            steps in prop::collection::vec(1..9usize, 1..40),
        ) {
            let mut queue = PrefetchQueue::default();
            let mut expected = Vec::new();
            let mut taken = 0;
            for (at, bytes) in runs {
                queue.add_at(at, bytes);
                taken += usize::from(bytes > 0);
                if bytes > 0 && taken <= MOST {
                    expected.extend((at / LINE * LINE..at + bytes).step_by(LINE));
                }
            }
            let work: usize = steps.iter().sum();
            queue.begin(work);
            let (mut asked, mut done) = (Vec::new(), 0);
            for step in steps {
                queue.due(step, |at| asked.push(at));
                done += step;
                prop_assert!(asked.len() * work >= expected.len() * done);
            }
            prop_assert_eq!(asked, expected);
            prop_assert!(queue.is_empty());
        }
    }

    #[test]
    fn what_is_forgotten_is_not_asked_for() {
        let mut queue = PrefetchQueue::default();
        queue.add_at(LINE, 10 * LINE);
        queue.end();
        assert!(queue.is_empty());
        queue.begin(1);
        queue.due(1, |at| panic!("{at} is asked for"));
    }

    #[test]
    fn there_is_room_again_when_all_has_been_asked_for() {
        let mut queue = PrefetchQueue::default();
        for round in 1..=3 * MOST {
            queue.add_at(round * LINE, LINE);
            queue.begin(2);
            let mut asked = Vec::new();
            queue.due(1, |at| asked.push(at));
            assert_eq!(asked, [round * LINE]);
        }
    }
}
