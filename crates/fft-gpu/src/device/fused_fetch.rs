//! A reshape and the transforms that follow as one: cuFFT's kernels fetch what they read from where ranks have it.

use fft_core::{DIMS, Direction, Kind, LocalReadBox, Pass, View};

use super::local_fft::{Group, Lines, is_large};
use crate::abi::pieces::Pieces;
use crate::base::{Gpu, GpuError, GpuReal};
use crate::ffi;
use crate::ffi::{Gathering, Run, links};
use crate::kernel::{C2c, Fft};

/// Lengths of lines with which it is faster than a pass more, on an H200 with cuFFT 12.0 of CUDA 13, which is all that was measured:
/// powers of two up to this. At 512³ in double precision it adds 0.1 ms to 1.2 (columns) and 2.2 (planes), and 0.4 to columns that lie across what they read; a pass
/// takes 1.0. With lines of 1024 points it adds 10 ms of 8, and 384 took other kernels and nothing less.
const POINTS: usize = 512;

fn pays<T: GpuReal>(n: usize) -> bool {
    T::PIECEWISE.is_some() && n > 1 && n.is_power_of_two() && n <= POINTS
}

/// The identity of a device where complex transforms along axes of these lengths, of so many elements per rank, fetch what they read
/// from other ranks on this device and those it is [`joined`] to, so that a reshape before them costs no pass; `None` where they do not.
pub fn fetches<T: GpuReal>(gpu: &Gpu, n: &[usize], elements: usize) -> Option<[u8; 16]> {
    let large = is_large::<T>(elements.saturating_mul(2));
    let all = large && n.iter().all(|n| pays::<T>(*n)) && links();
    all.then(|| ffi::identity(gpu.context())).filter(|identity| *identity != [0; 16])
}

/// Whether a device is the one of this identity, or joined to it by links such as NVLink.
pub fn joined(gpu: &Gpu, other: [u8; 16]) -> bool {
    ffi::joined(gpu.context(), other)
}

/// Pieces of an array in ranks' memory, of so many ranks.
pub(super) type Spread<'a> = (&'a [LocalReadBox], usize);

/// Plans a group of transforms of an array in these pieces of ranks' memory, the result of which goes to one place, or to such pieces. `None`
/// where a reshape and transforms are as fast, or cuFFT has no such plan.
///
/// # Errors
/// As [`crate::FftPlan::new`].
pub(super) fn plan<T: GpuReal>(
    gpu: &Gpu,
    group: &Group,
    from: Spread<'_>,
    to: Option<Spread<'_>>,
) -> Result<Option<Gathering>, GpuError> {
    let fits = group.passes.len() <= 2
        && group.passes.iter().all(|(_, pass)| pays::<T>(pass.n))
        && !group.halved()
        && !group.is_trig()
        && is_large::<T>(group.reals()[1]);
    let table = |(pieces, ranks): Spread<'_>, factor| {
        Pieces::new(pieces, ranks, 2 * size_of::<T>(), factor)
    };
    let Some(from) = table(from, group.factor).filter(|_| fits) else { return Ok(None) };
    let to = match to {
        None => None,
        // Only lines are done at once, without a place for planes that are half done.
        Some(to) => match table(to, 1.0).filter(|to| to.is_straight() && group.passes.len() == 1) {
            None => return Ok(None),
            some => some,
        },
    };
    let run = match group.direction() {
        Direction::Forward => Run::Forward,
        Direction::Inverse => Run::Inverse,
    };
    let lens = &group.lens[0];
    let last = lens.len() - 1;
    match &group.passes[..] {
        [(place, _)] => {
            let lines = Lines::new(group);
            let across = *place != last;
            match lines.times == 1 && (across || from.is_straight()) {
                true => C2c::<T>::gathering(gpu, &lines.fft, run, from, to),
                false => Ok(None),
            }
        }
        _ if from.is_straight() => {
            let planes = Fft::rows([lens[last - 1], lens[last]], lens[..last - 1].iter().product());
            C2c::<T>::gathering(gpu, &planes, run, from, to)
        }
        _ => Ok(None),
    }
}

/// Transforms that become operations.
pub(super) enum Next {
    Groups(Vec<Group>),
    FusedAcross(Box<FusedAcross>),
}

impl Next {
    /// Of these transforms.
    ///
    /// # Errors
    /// As [`plan`].
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

    /// What is left of it, when what is done first is already.
    ///
    /// # Errors
    /// As [`plan`].
    pub(super) fn rest<T: GpuReal>(self, gpu: &Gpu, fused: bool) -> Result<Rest, GpuError> {
        match self {
            Self::Groups(mut groups) => {
                groups.drain(..usize::from(fused));
                Ok(Rest::Groups(groups))
            }
            Self::FusedAcross(across) if fused => Ok(Rest::Plans(vec![across.first])),
            Self::FusedAcross(across) => {
                let FusedAcross { both, second, first } = *across;
                let [b, a, c] = [1, 2, 3].map(|axis| second.lens[0][axis]);
                let second = plan::<T>(gpu, &second, (&[transposed([b, a, c])], 1), None)?;
                Ok(match second {
                    Some(second) => Rest::Plans(vec![second, first]),
                    None => Rest::Groups(both.apart()),
                })
            }
        }
    }

    /// What is done first, fetched from these pieces.
    ///
    /// # Errors
    /// As [`plan`].
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

/// What is left to be made operations.
pub(super) enum Rest {
    Groups(Vec<Group>),
    Plans(Vec<Gathering>),
}

/// Transforms along the first two of three axes [a][b][c], where cuFFT does all lines of the first at once, and of the second only
/// those of one plane. The second is done first, with its axis in front, [b][a][c]; the first fetches what it reads from there.
pub(super) struct FusedAcross {
    both: Group,
    second: Group,
    /// Of [b][a][c] into [a][b][c].
    first: Gathering,
}

impl FusedAcross {
    /// Whether a pass and one that follows on the same layout, at such a place, are these two.
    pub(super) fn takes<T: GpuReal>(group: &Group, place: usize, pass: &Pass) -> bool {
        let ([one, _], [(other, before)]) = (&group.lens, &group.passes[..]) else { return false };
        let complex = |pass: &Pass| pass.kind == Kind::C2C && pays::<T>(pass.n);
        matches!((*other, place), (1, 2) | (2, 1))
            && one.len() == 4
            && one[0] == 1
            && complex(before)
            && complex(pass)
            && is_large::<T>(group.reals()[1])
    }

    /// The two, if the group is of two such and cuFFT has such plans.
    fn new<T: GpuReal>(gpu: &Gpu, group: &Group) -> Result<Option<Self>, GpuError> {
        let [a, b, c] = [1, 2, 3].map(|axis| group.lens[0][axis]);
        let second = Self::alone(group, 2, [1, b, a, c], 1.0);
        let (first, source) = Self::last(group);
        let first = plan::<T>(gpu, &first, (&[source], 1), None)?;
        Ok(first.map(|first| Self { both: group.clone(), second, first }))
    }

    /// What is done last, and where it reads.
    pub(super) fn last(group: &Group) -> (Group, LocalReadBox) {
        let lens @ [a, b, c] = [1, 2, 3].map(|axis| group.lens[0][axis]);
        (Self::alone(group, 1, [1, a, b, c], group.factor), transposed(lens))
    }

    /// The pass at a place, of an array that has its axis in front.
    fn alone(group: &Group, place: usize, lens: [usize; 4], factor: f64) -> Group {
        let passes = group.passes.iter().filter(|(at, _)| *at == place);
        Group {
            lens: [lens.to_vec(), lens.to_vec()],
            passes: passes.map(|(_, pass)| (1, pass.clone())).collect(),
            factor,
        }
    }

    /// What is done first, after a reshape that fetches boxes of [a][b][c].
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

/// An array of these lengths, of which memory has the first two axes the other way around.
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
