//! Batches of transforms. Forward is exp(-2πi jk/n), and nothing is scaled.

use crate::base::GpuError;

/// The kind and direction of transforms. Nothing is scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FftRun {
    /// Complex to complex, with exp(-2πi jk/n).
    Forward,
    /// Complex to complex, with exp(2πi jk/n).
    Inverse,
    /// Real to complex: the last axis becomes n/2 + 1 long.
    RealToComplex,
    /// Complex to real; the source is overwritten.
    ComplexToReal,
}

/// The layout of transforms in memory, in elements.
///
/// Point `[i₀, i₁, i₂]` of transform `b` is at
/// `b·distance + stride·((i₀·embed₁ + i₁)·embed₂ + i₂)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread<const D: usize> {
    /// Points along each axis of the array around; the first does not matter.
    pub embed: [usize; D],
    /// From a point to the next along the last axis.
    pub stride: usize,
    /// From a transform to the next.
    pub distance: usize,
}

/// A batch of transforms along `D` axes, 1 to 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fft<const D: usize> {
    /// Physical points along each axis, the contiguous one last.
    pub n: [usize; D],
    /// The number of transforms.
    pub batch: usize,
    /// The layout before; one array after the other by default.
    pub input: Option<Spread<D>>,
    /// The layout after, likewise.
    pub output: Option<Spread<D>>,
}

impl<const D: usize> Fft<D> {
    /// Arrays one after the other.
    pub fn rows(n: [usize; D], batch: usize) -> Self {
        Self { n, batch, input: None, output: None }
    }

    /// The same as arguments of cuFFT.
    pub(crate) fn many(&self, run: FftRun) -> Result<Many<D>, GpuError> {
        const { assert!(D >= 1 && D <= 3, "cuFFT transforms along 1 to 3 axes") };
        let Self { n, batch, .. } = *self;
        if batch == 0 || n.contains(&0) {
            let found = format!("{batch} of {n:?}");
            return Err(GpuError::argument("transforms", found, "some, of some points"));
        }
        let widths = match run {
            FftRun::Forward | FftRun::Inverse => [2, 2],
            FftRun::RealToComplex => [1, 2],
            FftRun::ComplexToReal => [2, 1],
        };
        let sides = [(self.input, 0), (self.output, 1)].map(|(spread, side)| {
            let (mut lens, width) = (n, widths[side]);
            // Half of the spectrum of a real array.
            if width == 2 && widths[1 - side] == 1 {
                lens[D - 1] = lens[D - 1] / 2 + 1;
            }
            let distance = lens.into_iter().fold(1, usize::saturating_mul);
            let rows = Spread { embed: lens, stride: 1, distance };
            let Spread { embed, stride, distance } = spread.unwrap_or(rows);
            Span { lens, embed, stride, distance, width }
        });
        Ok(Many { run, n, batch, sides })
    }
}

impl Fft<1> {
    /// Transforms along the first axis of an array with `columns` columns.
    pub fn columns(n: usize, columns: usize) -> Self {
        let side = Some(Spread { embed: [n], stride: columns, distance: 1 });
        Self { n: [n], batch: columns, input: side, output: side }
    }
}

/// One side of a plan, in elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span<const D: usize> {
    /// Points along each axis.
    pub(crate) lens: [usize; D],
    /// Points along each axis of the array around.
    pub(crate) embed: [usize; D],
    pub(crate) stride: usize,
    pub(crate) distance: usize,
    pub(crate) width: usize,
}

impl<const D: usize> Span<D> {
    /// One more than the last element of `batch` transforms; `None` on overflow.
    pub(crate) fn reach(&self, batch: usize) -> Option<usize> {
        let (mut last, mut stride) = ((batch - 1).checked_mul(self.distance)?, self.stride);
        for axis in (0..D).rev() {
            last = last.checked_add((self.lens[axis] - 1).checked_mul(stride)?)?;
            stride = stride.checked_mul(self.embed[axis])?;
        }
        last.checked_add(1).filter(|reach| *reach < 1 << 58)
    }
}

/// A batch of transforms of these lengths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Many<const D: usize> {
    pub(crate) run: FftRun,
    pub(crate) n: [usize; D],
    pub(crate) batch: usize,
    /// Before and after.
    pub(crate) sides: [Span<D>; 2],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reaches<const D: usize>(run: FftRun, fft: &Fft<D>) -> [usize; 2] {
        fft.many(run).unwrap().sides.map(|side| side.reach(fft.batch).unwrap())
    }

    #[test]
    fn plans_know_what_they_touch() {
        let cube = Fft::rows([4, 5, 6], 2);
        assert_eq!(reaches(FftRun::Forward, &cube), [240, 240]);
        assert_eq!(reaches(FftRun::RealToComplex, &cube), [240, 160]);
        assert_eq!(reaches(FftRun::ComplexToReal, &Fft::rows([5, 7], 3)), [60, 105]);
        assert_eq!(reaches(FftRun::Inverse, &Fft::columns(8, 30)), [240, 240]);
        let padded = Spread { embed: [9, 10], stride: 2, distance: 300 };
        let fft = Fft { input: Some(padded), ..Fft::rows([5, 7], 3) };
        assert_eq!(reaches(FftRun::Forward, &fft), [600 + 2 * (4 * 10 + 6) + 1, 105]);
    }

    #[test]
    fn nothing_to_transform_is_an_error() {
        for fft in [Fft::rows([4, 0], 1), Fft::rows([4, 4], 0)] {
            assert!(matches!(fft.many(FftRun::Forward), Err(GpuError::Argument { .. })));
        }
        let huge = Fft::rows([1 << 40, 1 << 40], 1).many(FftRun::Forward).unwrap();
        assert!(huge.sides[0].reach(1).is_none());
    }
}
