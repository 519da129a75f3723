//! Memory that is fetched ahead while transforms compute.

use std::ptr::without_provenance;

use fft_stream::{LINE, ahead_of_computing};

/// Runs of which some are fetched ahead: nothing is allocated while transforms run.
const MOST: usize = 32;

/// Runs of memory that are wanted soon. They are asked for a few lines at a time, between transforms of lines of numbers: then memory
/// has something to do while the processor computes, and the processor does not wait for it afterwards.
#[derive(Default)]
pub(crate) struct PrefetchQueue {
    /// Where each of the first `len` begins and ends. All before `run` have been asked for.
    runs: [[usize; 2]; MOST],
    len: usize,
    run: usize,
    /// Lines of memory not yet asked for, and work until all are.
    lines: usize,
    work: usize,
}

impl PrefetchQueue {
    /// Adds a run, if there is room for it: all is free when all runs have been asked for.
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

    /// Says how much work there is, in any unit, during which all is to be asked for.
    pub(crate) fn begin(&mut self, work: usize) {
        self.work = work;
    }

    /// Whether nothing is left to be asked for.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines == 0
    }

    /// Asks for as much as is due when so much more work has been done.
    pub(crate) fn step(&mut self, work: usize) {
        self.due(work, |at| ahead_of_computing(without_provenance(at)));
    }

    /// The addresses of lines that are due.
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

    /// Forgets all runs.
    pub(crate) fn end(&mut self) {
        (self.len, self.run, self.lines) = (0, 0, 0);
    }
}

/// Lines of memory from one that begins at the first address to one with what is before the second.
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
            let mut coming = PrefetchQueue::default();
            let mut expected = Vec::new();
            let mut taken = 0;
            for (at, bytes) in runs {
                coming.add_at(at, bytes);
                taken += usize::from(bytes > 0);
                if bytes > 0 && taken <= MOST {
                    expected.extend((at / LINE * LINE..at + bytes).step_by(LINE));
                }
            }
            let work: usize = steps.iter().sum();
            coming.begin(work);
            let (mut asked, mut done) = (Vec::new(), 0);
            for step in steps {
                coming.due(step, |at| asked.push(at));
                done += step;
                // At an even pace.
                prop_assert!(asked.len() * work >= expected.len() * done);
            }
            prop_assert_eq!(asked, expected);
            prop_assert!(coming.is_empty());
        }
    }

    #[test]
    fn what_is_forgotten_is_not_asked_for() {
        let mut coming = PrefetchQueue::default();
        coming.add_at(LINE, 10 * LINE);
        coming.end();
        assert!(coming.is_empty());
        coming.begin(1);
        coming.due(1, |at| panic!("{at} is asked for"));
    }

    #[test]
    fn there_is_room_again_when_all_has_been_asked_for() {
        let mut coming = PrefetchQueue::default();
        for round in 1..=3 * MOST {
            coming.add_at(round * LINE, LINE);
            coming.begin(2);
            let mut asked = Vec::new();
            coming.due(1, |at| asked.push(at));
            assert_eq!(asked, [round * LINE]);
        }
    }
}
