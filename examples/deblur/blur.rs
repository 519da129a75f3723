//! Blurring and Wiener's filter, by transforms over all ranks.

use std::f64::consts::TAU;

use thriffty::planning::{Reduce, agree};
use thriffty::spectral::Domain;
use thriffty::{Brick, Comm, Error, Field, Grid, Physical, Plan, R2c, Spectral};

use crate::kernel::Kernel;
use crate::picture::Picture;
use crate::target::Target;

/// How many times the continuation of a blurred picture is improved.
const ROUNDS: usize = 20;

/// A blur of pictures of one size. Rank 0 has the pictures; all ranks transform.
///
/// The picture is continued beyond its edges by its mirror image, which fades into the mirror image
/// at the opposite edge. Periodic convolution then meets no jumps.
pub(super) struct Blur<T: Target> {
    /// Transforms all colours at once.
    plan: Plan<R2c, 2, T::Location>,
    /// Transforms one array in the same layouts.
    one: Plan<R2c, 2, T::Location>,
    /// Convolutions take no lengths, so the lengths of this domain are 1.
    domain: Domain,
    kernel: Field<Spectral, R2c, 2>,
    /// The sizes of the continued picture.
    continued: [usize; 2],
}

impl<T: Target> Blur<T> {
    /// Collective. All ranks name the same sizes and number of colours.
    pub(super) fn new(
        (world, target): (&dyn Comm, &T),
        (shape, channels): ([usize; 2], usize),
        kernel: Kernel,
    ) -> Result<Self, Error> {
        let continued = shape.map(|len| continued_len(len, kernel.radius()));
        let whole = Grid::new(continued)?.whole();
        let mine = if world.rank() == 0 { whole } else { Brick::EMPTY };
        let all = thriffty::r2c(world, continued).batch(channels);
        let plan = target.place(all.input_brick(mine).transposed_output(true)).build()?;
        let mut one = target.place(thriffty::r2c(world, continued).like(&plan)).build()?;
        let mut points = agree(world, one.input().to_host())?;
        if world.rank() == 0 {
            for (displacement, weight) in kernel.weights() {
                // The first point is the kernel's centre, and negative displacements wrap.
                let wrapped = [0, 1]
                    .map(|axis| displacement[axis].rem_euclid(continued[axis] as isize) as usize);
                points[wrapped] += weight;
            }
        }
        let mut there = one.input();
        there.copy_from(&points);
        let kernel = agree(world, one.forward(there)?.to_host())?;
        let domain = plan.domain([1.0; 2])?;
        Ok(Self { plan, one, domain, kernel, continued })
    }

    /// The sizes of the continued picture, which is the one that is transformed.
    pub(super) fn continued(&self) -> [usize; 2] {
        self.continued
    }

    /// Blurs a picture of rank 0. Collective.
    pub(super) fn blur(&mut self, picture: Option<&Picture>) -> Result<Option<Picture>, Error> {
        let (field, kernel) = (self.field(picture)?, self.filter(&self.kernel));
        let blurred = self.convolve(&kernel, &field)?;
        Ok(picture.map(|picture| self.crop(&blurred, picture)))
    }

    /// Restores a blurred picture of rank 0 with noise of this standard deviation. Collective.
    ///
    /// Wiener's filter is `conj(H) / (|H|² + N/S)` for a kernel H, noise N and a signal S. The
    /// noise is white. The power of pictures falls with the square of the frequency, and adds up to
    /// their variance.
    ///
    /// The mirror image of a blurred picture is not a blurred picture. So the continuation is
    /// replaced several times by the blurred form of the restored picture.
    pub(super) fn restore(
        &mut self,
        picture: Option<&Picture>,
        noise: f64,
    ) -> Result<Option<Picture>, Error> {
        let mut variance = [picture.map_or(0.0, Picture::variance)];
        self.plan.comm().allreduce(Reduce::Sum, &mut variance)?;
        let lens = self.continued.map(|len| len as f64);
        // The integral of 1/f² from one wave in the picture to half a wave in a pixel.
        let integral = TAU * (lens[0].min(lens[1]) / 2.0).max(2.0).ln();
        let ratio = noise * noise * integral / variance[0].max(1e-12);
        let wiener = self.kernel.clone().map_modes(|mode, h| {
            let square: f64 = (0..2).map(|axis| (mode[axis] as f64 / lens[axis]).powi(2)).sum();
            h.conj() / (h.norm_sqr() + ratio * square).max(f64::MIN_POSITIVE)
        });
        let mut again = wiener.clone();
        let both = again.as_mut_slice().iter_mut().zip(self.kernel.as_slice());
        both.for_each(|(again, h)| *again *= h);
        let [wiener, again] = [wiener, again].map(|filter| self.filter(&filter));

        let mut field = self.field(picture)?;
        for _ in 0..ROUNDS {
            field = self.convolve(&again, &field)?;
            self.paste(picture, &mut field);
        }
        let restored = self.convolve(&wiener, &field)?;
        Ok(picture.map(|picture| self.crop(&restored, picture)))
    }

    /// A filter where the spectra are.
    fn filter(&self, filter: &Field<Spectral, R2c, 2>) -> Field<Spectral, R2c, 2, T::Location> {
        let mut there = self.one.output();
        there.copy_from(filter);
        there
    }

    /// Convolves all colours with a filter of one spectrum. Collective.
    fn convolve(
        &mut self,
        filter: &Field<Spectral, R2c, 2, T::Location>,
        field: &Field<Physical, R2c, 2>,
    ) -> Result<Field<Physical, R2c, 2>, Error> {
        let mut there = self.plan.input();
        there.copy_from(field);
        let mut spectrum = self.plan.forward(there)?;
        self.domain.convolve(filter, &mut spectrum);
        let found = self.plan.inverse(spectrum)?;
        agree(self.plan.comm(), found.to_host())
    }

    /// This rank's part of the continued picture.
    fn field(&self, picture: Option<&Picture>) -> Result<Field<Physical, R2c, 2>, Error> {
        let mut field = agree(self.plan.comm(), self.plan.input().to_host())?;
        if let Some(picture) = picture {
            let to = field.as_mut_slice().chunks_exact_mut(self.points());
            let from = picture.values.chunks_exact(picture.points());
            to.zip(from).for_each(|(to, from)| fill(to, self.continued, from, picture.shape));
        }
        Ok(field)
    }

    fn points(&self) -> usize {
        self.continued[0] * self.continued[1]
    }

    /// Puts the picture back into its place.
    fn paste(&self, picture: Option<&Picture>, field: &mut Field<Physical, R2c, 2>) {
        let Some(picture) = picture else { return };
        let [height, width] = picture.shape;
        let arrays = field.as_mut_slice().chunks_exact_mut(self.points());
        let lines = arrays.flat_map(|a| a.chunks_exact_mut(self.continued[1]).take(height));
        for (line, from) in lines.zip(picture.values.chunks_exact(width)) {
            line[..width].copy_from_slice(from);
        }
    }

    /// The part of a field in the place of a picture.
    fn crop(&self, field: &Field<Physical, R2c, 2>, picture: &Picture) -> Picture {
        let [height, width] = picture.shape;
        let arrays = field.as_slice().chunks_exact(self.points());
        let lines = arrays.flat_map(|a| a.chunks_exact(self.continued[1]).take(height));
        let values = lines.flat_map(|line| &line[..width]).copied().collect();
        Picture { values, ..picture.clone() }
    }
}

/// The length of a continued picture, such that the kernel does not reach the opposite edge, and
/// with the prime factors 2, 3 and 5 only.
fn continued_len(len: usize, radius: usize) -> usize {
    let smooth = |n: &usize| {
        let mut left = *n;
        for factor in [2, 3, 5] {
            while left.is_multiple_of(factor) {
                left /= factor;
            }
        }
        left == 1
    };
    let least = len + (4 * radius).max(16);
    (least..).find(smooth).unwrap_or(least)
}

/// Two indices of the picture with weights, for each index of the continued one.
fn sources(len: usize, continued: usize) -> Vec<[(usize, f64); 2]> {
    let source = |at: usize| {
        if at < len {
            return [(at, 1.0), (at, 0.0)];
        }
        let [after, before] = [at - len, continued - 1 - at];
        let t = (after as f64 + 0.5) / (continued - len) as f64;
        let fade = t * t * (3.0 - 2.0 * t);
        [(len - 1 - after.min(len - 1), 1.0 - fade), (before.min(len - 1), fade)]
    };
    (0..continued).map(source).collect()
}

/// Fills an array with a picture and its continuation.
fn fill(to: &mut [f64], continued: [usize; 2], from: &[f64], shape: [usize; 2]) {
    let [rows, columns] = [0, 1].map(|axis| sources(shape[axis], continued[axis]));
    for (line, row) in to.chunks_exact_mut(continued[1]).zip(rows) {
        for (value, column) in line.iter_mut().zip(&columns) {
            for (y, down) in row {
                for &(x, right) in column {
                    *value += down * right * from[y * shape[1] + x];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continued_pictures_have_no_jumps() {
        let continued = continued_len(40, 6);
        assert_eq!(continued, 64);
        let from: Vec<f64> = (0..40).map(f64::from).collect();
        let mut to = vec![0.0; continued];
        fill(&mut to, [1, continued], &from, [1, 40]);
        assert_eq!(to[..40], from);
        for at in 0..continued {
            let step: f64 = to[(at + 1) % continued] - to[at];
            assert!(step.abs() < 5.0, "{step} at {at}");
        }
    }

    #[test]
    fn tiny_pictures_under_wide_kernels_are_continued() {
        let kernel = Kernel::Gaussian(5.0);
        thriffty::threads(3, |world| {
            let picture = Picture { shape: [2, 3], values: vec![0.5; 6], levels: 255 };
            let mut blur = Blur::new((&world, &crate::OnHost), (picture.shape, 1), kernel)?;
            let mine = (world.rank() == 0).then_some(&picture);
            for found in [blur.blur(mine)?, blur.restore(mine, 0.01)?].into_iter().flatten() {
                assert!(found.values.iter().all(|v| (v - 0.5).abs() < 1e-12), "{found:?}");
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}
