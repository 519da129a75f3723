//! A reshape fused with the transforms after it: cuFFT loads its input from ranks' memory.

use fft_core::{FftGroup, LocalReadBox};

use super::group::{LineLayout, fft_run};
use crate::abi::Fft;
use crate::abi::pieces::Pieces;
use crate::base::{Gpu, GpuError, GpuReal};
use crate::ffi;
use crate::ffi::{Gathering, links};

/// Whether this cuFFT supports transforms that load their input themselves.
pub fn can_load() -> bool {
    links()
}

/// The UUID of a device; zeros if the driver reports none.
pub fn identity(gpu: &Gpu) -> [u8; 16] {
    ffi::identity(gpu.context())
}

/// Whether a device has this UUID, or is joined to that device by links such as NVLink.
pub fn joined(gpu: &Gpu, other: [u8; 16]) -> bool {
    ffi::joined(gpu.context(), other)
}

/// An array in pieces, and the number of ranks.
pub(super) type PiecesOf<'a> = (&'a [LocalReadBox], usize);

/// Plans a group that loads an array in pieces, and stores to one array or to pieces. `None` if
/// cuFFT has no such plan.
pub(super) fn plan<T: GpuReal>(
    gpu: &Gpu,
    group: &FftGroup,
    from: PiecesOf<'_>,
    to: Option<PiecesOf<'_>>,
) -> Result<Option<Gathering>, GpuError> {
    let table = |(pieces, ranks): PiecesOf<'_>, factor| {
        Pieces::new(pieces, ranks, 2 * size_of::<T>(), factor)
    };
    let Some(from) = table(from, group.factor) else { return Ok(None) };
    let to = match to {
        None => None,
        // Only lines are done in one pass.
        Some(to) => match table(to, 1.0).filter(|to| to.straight && group.passes.len() == 1) {
            None => return Ok(None),
            some => some,
        },
    };
    let (run, lens) = (fft_run(group), &group.lens[0]);
    let last = lens.len() - 1;
    match &group.passes[..] {
        [(place, _)] => {
            let lines = LineLayout::new(group);
            let across = *place != last;
            if lines.times == 1 && (across || from.straight) {
                Gathering::new::<T, 1>(gpu, &lines.fft.many(run)?, from, to)
            } else {
                Ok(None)
            }
        }
        _ if from.straight => {
            let planes = Fft::rows([lens[last - 1], lens[last]], lens[..last - 1].iter().product());
            Gathering::new::<T, 2>(gpu, &planes.many(run)?, from, to)
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use fft_core::{Direction, Kind};

    use super::super::group::tests::pass;
    use super::*;

    #[test]
    fn axes_are_exchanged_and_exchanged_back() {
        let [a, b, c] = [3, 4, 5];
        let lens = vec![1, a, b, c];
        let passes = [(1, a), (2, b)];
        let passes = passes.map(|(place, n)| (place, pass(Kind::C2C, Direction::Forward, n)));
        let lens = [lens.clone(), lens];
        let both = FftGroup { lens, passes: passes.to_vec(), factor: 1.0, pitch: None };
        // [b][a][c] of memory that has [a][b][c], and [a][b][c] of what that makes.
        for (source, [outer, inner]) in
            [(both.across_whole(), [b, a]), (both.across_source(), [a, b])]
        {
            let mut pieces = Pieces::new(&[source], 1, 16, 1.0).unwrap();
            pieces.table(&[0]);
            for (o, i, k) in (0..outer).flat_map(|o| (0..inner * c).map(move |r| (o, r / c, r % c)))
            {
                let number = (o * inner + i) * c + k;
                let place = (i * outer + o) * c + k;
                assert_eq!(pieces.place(number as u32, 16), 16 * place as u64);
            }
        }
    }
}
