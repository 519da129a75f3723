//! Prefetching while lines are transformed.

use std::ops::Range;
use std::ptr::without_provenance;

use fft_stream::{LINE, ahead};

use super::kernel::Strides;

/// Contiguous memory outside the caches, prefetched in as many parts as a transform has stages.
/// Kernels access several lines at once, which hardware prefetchers do not follow.
#[derive(Clone, Copy)]
pub(crate) struct Ahead {
    /// The first address and the number of cache lines of what is read by the next lines, and of
    /// what these lines write.
    runs: [(usize, usize); 2],
}

impl Ahead {
    /// For the lines from `first` on, `count` of them.
    pub(crate) fn of<T>(
        src: Option<&[T]>,
        from: Strides,
        dst: &[T],
        to: Strides,
        [first, count, width]: [usize; 3],
    ) -> Self {
        let run = |numbers: &[T], at: Strides, first: usize| {
            let line = width * at.dist;
            let all = numbers.len().min(line * first)..numbers.len().min(line * (first + count));
            let bytes = size_of_val(&numbers[all.clone()]);
            (numbers[all].as_ptr().addr(), bytes / LINE)
        };
        let source = run(src.unwrap_or(dst), from, first + count);
        let destination = if src.is_some() { run(dst, to, first) } else { (0, 0) };
        Self { runs: [source, destination] }
    }

    /// Prefetches one part of `parts`.
    pub(crate) fn prefetch(self, part: usize, parts: usize) {
        for (address, lines) in self.runs {
            let range: Range<usize> = lines * part / parts..lines * (part + 1) / parts;
            range.for_each(|line| ahead(without_provenance(address + line * LINE)));
        }
    }
}
