//! Reading a brick.
//!
//! Long runs are read straight into place. A brick that is narrow along the contiguous axis has many short ones, and
//! a system call for each would cost more than the data: where the gaps between them are small, a block of the file
//! that covers several runs is read into a staging buffer, gaps and all, and the runs are copied out of it.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::runs::Runs;
use super::{Header, NpyError};

/// Bytes of a staging buffer.
const STAGING: u64 = 1 << 20;
/// Longer runs are not staged: copying them would cost more than the system call that it saves.
const LONG_RUN: usize = 1 << 16;
/// Gaps up to this are read over. It is a page: the kernel fetches that much anyway, and copies it in less time than
/// a system call takes.
const SMALL_GAP: u64 = 1 << 12;

/// Reads the brick `lo..hi` (half-open, in the array's axes) of a file into `out`, in the file's own memory order.
///
/// `E` must have the memory layout of the file's dtype, and `out` one element for each of the brick.
/// Cost: one pass over the brick, 1 MiB of staging at most; of the file, the brick and gaps no larger than it.
///
/// # Errors
///
/// If the brick is not inside the array, `E` or `out` do not fit it, or the file cannot be read. After an error the
/// contents of `out` are unspecified.
pub(crate) fn read_brick<E: bytemuck::Pod>(
    path: &Path,
    header: &Header,
    lo: &[usize],
    hi: &[usize],
    out: &mut [E],
) -> Result<(), NpyError> {
    let runs = Runs::new::<E>(path, header, lo, hi, out.len())?;
    let file = File::open(path).map_err(NpyError::io(path, "open"))?;
    let read = |bytes: &mut [u8], offset: u64| {
        let done = file.read_exact_at(bytes, offset);
        done.map_err(NpyError::transfer(path, "read", bytes.len() as u64, offset))
    };

    let mut staging = Vec::new();
    let mut rest: &mut [u8] = bytemuck::cast_slice_mut(out);
    let mut next = 0;
    while next < runs.count {
        let block = block(&runs, next);
        let start = runs.offset(next);
        let (place, after) = rest.split_at_mut(block.len() * runs.bytes);
        if block.len() == 1 {
            read(place, start)?;
        } else {
            staging.resize((runs.offset(block.end - 1) - start) as usize + runs.bytes, 0);
            read(&mut staging, start)?;
            for (run, place) in block.clone().zip(place.chunks_exact_mut(runs.bytes)) {
                let at = (runs.offset(run) - start) as usize;
                place.copy_from_slice(&staging[at..at + runs.bytes]);
            }
        }
        (rest, next) = (after, block.end);
    }
    Ok(())
}

/// The runs, from `first` on, that are worth one read.
fn block(runs: &Runs, first: usize) -> Range<usize> {
    let start = runs.offset(first);
    let mut end_of_last = start + runs.bytes as u64;
    let mut last = first;
    while last + 1 < runs.count && runs.bytes <= LONG_RUN {
        let next = runs.offset(last + 1);
        let end_of_next = next + runs.bytes as u64;
        let gap = next - end_of_last;
        // No gap longer than a run: at most twice the brick is read, whatever its shape.
        if gap > SMALL_GAP.min(runs.bytes as u64) || end_of_next - start > STAGING {
            break;
        }
        (last, end_of_last) = (last + 1, end_of_next);
    }
    first..last + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::npy::Dtype;

    /// How many runs each block of the first `width` columns of an array of `f64` has.
    fn blocks(rows: usize, columns: usize, width: usize) -> Vec<usize> {
        let header = Header::new(&[rows, columns], Dtype::F64, false);
        let (lo, hi) = ([0, 0], [rows, width]);
        let runs = Runs::new::<f64>(Path::new("x.npy"), &header, &lo, &hi, rows * width).unwrap();
        let next = |last: &Range<usize>| (last.end < runs.count).then(|| block(&runs, last.end));
        std::iter::successors(Some(block(&runs, 0)), next).map(|block| block.len()).collect()
    }

    #[test]
    fn a_small_gap_is_read_over_and_a_large_one_is_not() {
        assert_eq!(blocks(3, 1024, 512), [3]);
        assert_eq!(blocks(3, 1025, 512), [1, 1, 1]);
        assert_eq!(blocks(3, 2, 1), [3]);
        assert_eq!(blocks(3, 3, 1), [1, 1, 1]);
    }

    #[test]
    fn long_runs_are_read_in_place() {
        assert_eq!(blocks(3, 8193, 8192), [3]);
        assert_eq!(blocks(3, 8194, 8193), [1, 1, 1]);
    }

    #[test]
    fn a_block_ends_at_the_size_of_the_staging_buffer() {
        // Rows of 4 KiB, of which the first half is read: the 256th ends 2 KiB before the limit.
        assert_eq!(blocks(600, 512, 256), [256, 256, 88]);
    }
}
