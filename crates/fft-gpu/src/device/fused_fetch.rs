//! A reshape fused with the transforms behind it: cuFFT loads what it reads from ranks' memory.

use fft_core::{DIMS, Kind, LocalReadBox, Pass, Precision, View};

use super::group::{Group, LineLayout, is_large};
use crate::abi::Fft;
use crate::abi::pieces::Pieces;
use crate::base::{Gpu, GpuError, GpuReal};
use crate::ffi;
use crate::ffi::{Gathering, links};

/// The longest lines for which that is faster than a pass more; only powers of two are.
const POINTS: usize = 512;

fn pays<T: GpuReal>(n: usize) -> bool {
    T::PRECISION == Precision::F64 && n > 1 && n.is_power_of_two() && n <= POINTS
}

/// The UUID of a device on which complex transforms load what they read from other ranks.
///
/// A reshape before them, between this device and those it is [`joined`] to, then costs no pass.
/// `n` are the lengths of the transforms' axes, `elements` those of a rank. `None` where they do
/// not load.
pub fn fetches<T: GpuReal>(gpu: &Gpu, n: &[usize], elements: usize) -> Option<[u8; 16]> {
    let large = is_large::<T>(elements.saturating_mul(2));
    let all = large && n.iter().all(|n| pays::<T>(*n)) && links();
    all.then(|| identity(gpu)).filter(|identity| *identity != [0; 16])
}

/// The UUID of a device; zeros where the driver tells none.
pub fn identity(gpu: &Gpu) -> [u8; 16] {
    ffi::identity(gpu.context())
}

/// Whether a device has this UUID, or is joined to that device by links such as NVLink.
pub fn joined(gpu: &Gpu, other: [u8; 16]) -> bool {
    ffi::joined(gpu.context(), other)
}

/// An array in pieces, of so many ranks.
pub(super) type PiecesOf<'a> = (&'a [LocalReadBox], usize);

/// Plans a group that loads an array in pieces, and stores to one array or to pieces. `None` where
/// a reshape and transforms are as fast, or cuFFT has no such plan.
pub(super) fn plan<T: GpuReal>(
    gpu: &Gpu,
    group: &Group,
    from: PiecesOf<'_>,
    to: Option<PiecesOf<'_>>,
) -> Result<Option<Gathering>, GpuError> {
    let fits = group.passes.len() <= 2
        && group.passes.iter().all(|(_, pass)| pays::<T>(pass.n))
        && !group.halved()
        && !group.is_trig()
        && !group.is_resized()
        && is_large::<T>(group.reals()[1]);
    let table = |(pieces, ranks): PiecesOf<'_>, factor| {
        Pieces::new(pieces, ranks, 2 * size_of::<T>(), factor)
    };
    let Some(from) = table(from, group.factor).filter(|_| fits) else { return Ok(None) };
    let to = match to {
        None => None,
        // Only lines are done in one pass.
        Some(to) => match table(to, 1.0).filter(|to| to.straight && group.passes.len() == 1) {
            None => return Ok(None),
            some => some,
        },
    };
    let (run, lens) = (group.run(), &group.lens[0]);
    let last = lens.len() - 1;
    match &group.passes[..] {
        [(place, _)] => {
            let lines = LineLayout::new(group);
            let across = *place != last;
            match lines.times == 1 && (across || from.straight) {
                true => Gathering::new::<T, 1>(gpu, &lines.fft.many(run)?, from, to),
                false => Ok(None),
            }
        }
        _ if from.straight => {
            let planes = Fft::rows([lens[last - 1], lens[last]], lens[..last - 1].iter().product());
            Gathering::new::<T, 2>(gpu, &planes.many(run)?, from, to)
        }
        _ => Ok(None),
    }
}

/// The transforms behind a reshape.
pub(super) enum NextTransforms {
    Groups(Vec<Group>),
    FusedAcross(Box<FusedAcross>),
}

impl NextTransforms {
    pub(super) fn of<T: GpuReal>(gpu: &Gpu, group: Option<Group>) -> Result<Self, GpuError> {
        let Some(group) = group else { return Ok(Self::Groups(Vec::new())) };
        if !group.is_across() {
            return Ok(Self::Groups(vec![group]));
        }
        Ok(match FusedAcross::new::<T>(gpu, &group)? {
            Some(across) => Self::FusedAcross(Box::new(across)),
            None => Self::Groups(group.apart()),
        })
    }

    /// The transforms that are left; `fused` says that the reshape does the first.
    pub(super) fn remaining<T: GpuReal>(
        self,
        gpu: &Gpu,
        fused: bool,
    ) -> Result<Remaining, GpuError> {
        match self {
            Self::Groups(mut groups) => {
                groups.drain(..usize::from(fused));
                Ok(Remaining::Groups(groups))
            }
            Self::FusedAcross(across) if fused => Ok(Remaining::Plans(vec![across.first])),
            Self::FusedAcross(across) => {
                let FusedAcross { both, second, first } = *across;
                let [b, a, c] = [1, 2, 3].map(|axis| second.lens[0][axis]);
                let second = plan::<T>(gpu, &second, (&[transposed([b, a, c])], 1), None)?;
                Ok(match second {
                    Some(second) => Remaining::Plans(vec![second, first]),
                    None => Remaining::Groups(both.apart()),
                })
            }
        }
    }

    /// The first transforms, loading from these pieces.
    pub(super) fn plan<T: GpuReal>(
        &self,
        gpu: &Gpu,
        pieces: &[LocalReadBox],
        ranks: usize,
    ) -> Result<Option<Gathering>, GpuError> {
        match self {
            Self::Groups(groups) => groups
                .first()
                .map_or(Ok(None), |group| plan::<T>(gpu, group, (pieces, ranks), None)),
            Self::FusedAcross(across) => across.plan::<T>(gpu, pieces, ranks),
        }
    }
}

/// Transforms that are not part of a reshape.
pub(super) enum Remaining {
    Groups(Vec<Group>),
    Plans(Vec<Gathering>),
}

/// Transforms along the first two of three axes, [a][b][c]. cuFFT does all lines of the first axis
/// in one plan, but those of the second only plane by plane. The second is done first, with its
/// axis in front, [b][a][c]. The first loads from there.
pub(super) struct FusedAcross {
    both: Group,
    second: Group,
    /// From [b][a][c] to [a][b][c].
    first: Gathering,
}

impl FusedAcross {
    /// Whether a group's pass and another that follows are these two.
    pub(super) fn takes<T: GpuReal>(group: &Group, place: usize, pass: &Pass) -> bool {
        let ([one, _], [(other, before)]) = (&group.lens, &group.passes[..]) else { return false };
        let complex =
            |pass: &Pass| pass.kind == Kind::C2C && pass.resized.is_none() && pays::<T>(pass.n);
        matches!((*other, place), (1, 2) | (2, 1))
            && one.len() == 4
            && one[0] == 1
            && complex(before)
            && complex(pass)
            && is_large::<T>(group.reals()[1])
    }

    /// `None` where cuFFT has no such plans.
    fn new<T: GpuReal>(gpu: &Gpu, group: &Group) -> Result<Option<Self>, GpuError> {
        let [a, b, c] = [1, 2, 3].map(|axis| group.lens[0][axis]);
        let second = Self::alone(group, 2, [1, b, a, c], 1.0);
        let (first, source) = Self::last(group);
        let first = plan::<T>(gpu, &first, (&[source], 1), None)?;
        Ok(first.map(|first| Self { both: group.clone(), second, first }))
    }

    /// The pass that is done last, and the layout that it reads.
    pub(super) fn last(group: &Group) -> (Group, LocalReadBox) {
        let lens @ [a, b, c] = [1, 2, 3].map(|axis| group.lens[0][axis]);
        (Self::alone(group, 1, [1, a, b, c], group.factor), transposed(lens))
    }

    /// The pass of an axis, of an array that has it in front.
    fn alone(group: &Group, place: usize, lens: [usize; 4], factor: f64) -> Group {
        let passes = group.passes.iter().filter(|(at, _)| *at == place);
        Group {
            lens: [lens.to_vec(), lens.to_vec()],
            passes: passes.map(|(_, pass)| (1, pass.clone())).collect(),
            factor,
            pitch: None,
        }
    }

    /// The pass that is done first, loading from boxes of [a][b][c].
    fn plan<T: GpuReal>(
        &self,
        gpu: &Gpu,
        pieces: &[LocalReadBox],
        ranks: usize,
    ) -> Result<Option<Gathering>, GpuError> {
        let transposed = |piece: &LocalReadBox| {
            let (mut ranges, mut source) = (piece.ranges.clone(), piece.source);
            ranges.swap(DIMS - 3, DIMS - 2);
            source.stride.swap(DIMS - 3, DIMS - 2);
            LocalReadBox { ranges, source, ..*piece }
        };
        let pieces: Vec<_> = pieces.iter().map(transposed).collect();
        plan::<T>(gpu, &self.second, (&pieces, ranks), None)
    }
}

/// An array of these lengths whose first two axes are swapped in memory.
fn transposed([a, b, c]: [usize; 3]) -> LocalReadBox {
    let (mut ranges, mut stride) = (std::array::from_fn(|_| 0..1), [0; DIMS]);
    for (i, (len, step)) in [(a, c), (b, a * c), (c, 1)].into_iter().enumerate() {
        ranges[DIMS - 3 + i] = 0..len;
        stride[DIMS - 3 + i] = step;
    }
    LocalReadBox { owner: 0, ranges, source: View { offset: 0, stride } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_exchanged_and_exchanged_back() {
        let [a, b, c] = [3, 4, 5];
        // [b][a][c] of memory that has [a][b][c], and [a][b][c] of what that makes.
        for [outer, inner] in [[b, a], [a, b]] {
            let mut pieces = Pieces::new(&[transposed([outer, inner, c])], 1, 16, 1.0).unwrap();
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
