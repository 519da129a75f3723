//! Operators, applied to arrays of the host.
//!
//! A row is a run of modes along the contiguous axis. The wavenumbers of all other axes are the
//! same for a row, so each mode costs one entry of a table.

use bytemuck::{cast_slice, cast_slice_mut};

use super::modes::{AxisModes, Modes};
use super::operator::Operator;
use super::systems::SystemTask;
use crate::base::{Error, Precision, Real};
use crate::geometry::MAX_AXES;

impl Modes {
    /// Applies an operator to an array, and writes the result to another. Collective if ranks
    /// divide the axis of systems, and then `mine` is an earlier error of this rank.
    ///
    /// # Errors
    /// The earlier error; the errors of [`Modes::components`]; [`Error::Argument`] for arrays that
    /// are not aligned. If collective, the errors of any rank, and [`Error::Disagreement`] about
    /// the operator.
    pub fn apply(
        &self,
        operator: Operator,
        mine: Result<(), Error>,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error> {
        let checked = mine.and_then(|()| {
            let counts = self.components(operator, [input.len(), output.len()])?;
            self.check_aligned(input)?;
            self.check_aligned(output)?;
            Ok(counts.map(|count| (count * self.component_bytes()).max(1)))
        });
        let [from, to] = self.agree(operator, checked, |[from, _]| input.len() / from)?;
        for (input, output) in input.chunks(from).zip(output.chunks_mut(to)) {
            match self.spectrum().precision {
                Precision::F32 => {
                    let arrays = Between::<f32>(cast_slice(input), cast_slice_mut(output));
                    run(self, operator, arrays)?;
                }
                Precision::F64 => {
                    let arrays = Between::<f64>(cast_slice(input), cast_slice_mut(output));
                    run(self, operator, arrays)?;
                }
            }
        }
        Ok(())
    }

    /// Applies an operator within an array, as [`Modes::apply`].
    ///
    /// # Errors
    /// As [`Modes::apply`]; the errors of [`Modes::components_in_place`].
    pub fn apply_in_place(
        &self,
        operator: Operator,
        mine: Result<(), Error>,
        data: &mut [u8],
    ) -> Result<(), Error> {
        let checked = mine.and_then(|()| {
            let count = self.components_in_place(operator, data.len())?;
            self.check_aligned(data)?;
            Ok((count * self.component_bytes()).max(1))
        });
        let bytes = self.agree(operator, checked, |bytes| data.len() / bytes)?;
        for data in data.chunks_mut(bytes) {
            match self.spectrum().precision {
                Precision::F32 => run(self, operator, Within::<f32>(cast_slice_mut(data)))?,
                Precision::F64 => run(self, operator, Within::<f64>(cast_slice_mut(data)))?,
            }
        }
        Ok(())
    }

    /// Multiplies each array by another, mode by mode, or by its complex conjugate: by the
    /// transform of a kernel, this convolves with the kernel, or correlates.
    ///
    /// # Errors
    /// [`Error::Length`] for a kernel that is not one component, and data that is not several;
    /// [`Error::Argument`] for arrays that are not aligned.
    pub fn multiply(&self, kernel: &[u8], conjugate: bool, data: &mut [u8]) -> Result<(), Error> {
        self.check_kernel([kernel.len(), data.len()])?;
        self.check_aligned(kernel)?;
        self.check_aligned(data)?;
        let width = self.width();
        for data in data.chunks_mut(kernel.len().max(1)) {
            match self.spectrum().precision {
                Precision::F32 => {
                    multiply::<f32>(cast_slice(kernel), cast_slice_mut(data), width, conjugate)
                }
                Precision::F64 => {
                    multiply::<f64>(cast_slice(kernel), cast_slice_mut(data), width, conjugate)
                }
            }
        }
        Ok(())
    }
}

/// Numbers that are read and written at the same places: of two arrays, or of one.
pub(super) trait Arrays<T> {
    fn read(&self, at: usize, len: usize) -> &[T];
    fn write(&mut self, at: usize, len: usize) -> &mut [T];
    fn get(&self, at: usize) -> T;
    fn set(&mut self, at: usize, value: T);
}

struct Between<'a, T>(&'a [T], &'a mut [T]);

impl<T: Real> Arrays<T> for Between<'_, T> {
    #[inline(always)]
    fn read(&self, at: usize, len: usize) -> &[T] {
        &self.0[at..at + len]
    }

    #[inline(always)]
    fn write(&mut self, at: usize, len: usize) -> &mut [T] {
        &mut self.1[at..at + len]
    }

    fn get(&self, at: usize) -> T {
        self.0[at]
    }

    fn set(&mut self, at: usize, value: T) {
        self.1[at] = value;
    }
}

struct Within<'a, T>(&'a mut [T]);

impl<T: Real> Arrays<T> for Within<'_, T> {
    #[inline(always)]
    fn read(&self, at: usize, len: usize) -> &[T] {
        &self.0[at..at + len]
    }

    #[inline(always)]
    fn write(&mut self, at: usize, len: usize) -> &mut [T] {
        &mut self.0[at..at + len]
    }

    fn get(&self, at: usize) -> T {
        self.0[at]
    }

    fn set(&mut self, at: usize, value: T) {
        self.0[at] = value;
    }
}

/// What the modes of a row have in common.
struct Row {
    first: usize,
    /// The sum of the squares of wavenumbers of other axes.
    square: f64,
    /// The largest relative wavenumber of other axes.
    level: f64,
    /// The symbol of a forward difference, by component of a vector.
    forward: [Pair<f64>; MAX_AXES],
}

/// Calls `body` with each row.
fn rows(modes: &Modes, mut body: impl FnMut(Row)) {
    let Some((inner, outer)) = modes.axes().split_last() else { return };
    let mut index = [0; MAX_AXES];
    let rows = outer.iter().map(|axis| axis.k.len()).product::<usize>();
    for row in 0..rows {
        let mut found = Row {
            first: row * inner.k.len(),
            square: 0.0,
            level: 0.0,
            forward: [[0.0; 2]; MAX_AXES],
        };
        for (axis, &at) in outer.iter().zip(&index) {
            found.square += axis.k[at] * axis.k[at];
            found.level = found.level.max(axis.level[at]);
            if let Some(component) = axis.component {
                found.forward[component] = axis.forward[at];
            }
        }
        body(found);
        for (axis, at) in outer.iter().zip(&mut index).rev() {
            *at += 1;
            if *at < axis.k.len() {
                break;
            }
            *at = 0;
        }
    }
}

/// Applies an operator to one operand whose lengths were checked.
fn run<T: Real>(
    modes: &Modes,
    operator: Operator,
    mut arrays: impl Arrays<T>,
) -> Result<(), Error> {
    if let Some((systems, task)) = modes.systems().zip(SystemTask::of(operator)) {
        return systems.run(task, modes.width(), &mut arrays);
    }
    match operator {
        Operator::Laplacian => scale(modes, arrays, |square| -square),
        Operator::Poisson => scale(modes, arrays, reciprocal),
        Operator::Helmholtz(shift) => scale(modes, arrays, |square| reciprocal(shift + square)),
        Operator::Gaussian(deviation) => {
            let by = -0.5 * deviation * deviation;
            scale(modes, arrays, |square| (by * square).exp());
        }
        Operator::Cutoff(fraction) => cut(modes, arrays, fraction),
        Operator::Derivative(axis) => {
            let component = modes.along(axis).component.unwrap_or(0);
            vectors(modes, arrays, |[u, ..]: [_; 1], d| [times(u, d[component])]);
        }
        Operator::Gradient => match modes.dimensions() {
            1 => vectors(modes, arrays, gradient::<T, 1>),
            2 => vectors(modes, arrays, gradient::<T, 2>),
            3 => vectors(modes, arrays, gradient::<T, 3>),
            _ => vectors(modes, arrays, gradient::<T, 4>),
        },
        Operator::Divergence => match modes.dimensions() {
            1 => vectors(modes, arrays, divergence::<T, 1>),
            2 => vectors(modes, arrays, divergence::<T, 2>),
            3 => vectors(modes, arrays, divergence::<T, 3>),
            _ => vectors(modes, arrays, divergence::<T, 4>),
        },
        Operator::Project => match modes.dimensions() {
            1 => vectors(modes, arrays, projection::<T, 1>),
            2 => vectors(modes, arrays, projection::<T, 2>),
            3 => vectors(modes, arrays, projection::<T, 3>),
            _ => vectors(modes, arrays, projection::<T, 4>),
        },
        Operator::Curl => match modes.dimensions() {
            2 => vectors(modes, arrays, |[x, y]: [_; 2], d| {
                [difference(times(y, d[0]), times(x, d[1]))]
            }),
            _ => vectors(modes, arrays, |[x, y, z]: [_; 3], d| {
                [
                    difference(times(z, d[1]), times(y, d[2])),
                    difference(times(x, d[2]), times(z, d[0])),
                    difference(times(y, d[0]), times(x, d[1])),
                ]
            }),
        },
    }
    Ok(())
}

/// The modes along the contiguous axis.
fn last(modes: &Modes) -> &AxisModes {
    let axes = modes.axes();
    &axes[axes.len() - 1]
}

/// The reciprocal, or 0 for 0.
fn reciprocal(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { 1.0 / x }
}

/// Multiplies each mode by a function of the square of its wave vector.
fn scale<T: Real>(modes: &Modes, mut arrays: impl Arrays<T>, of: impl Fn(f64) -> f64) {
    let (width, inner) = (modes.width(), &last(modes).k);
    rows(modes, |row| {
        for (i, k) in inner.iter().enumerate() {
            let factor = T::of(of(row.square + k * k));
            for at in (row.first + i) * width..(row.first + i + 1) * width {
                arrays.set(at, arrays.get(at) * factor);
            }
        }
    });
}

/// Sets modes to 0 whose wavenumber along an axis is not below this fraction of the highest.
fn cut<T: Real>(modes: &Modes, mut arrays: impl Arrays<T>, fraction: f64) {
    let limit = Operator::limit(fraction);
    let (width, inner) = (modes.width(), &last(modes).level);
    rows(modes, |row| {
        for (i, level) in inner.iter().enumerate() {
            let keeps = row.level.max(*level) < limit;
            for at in (row.first + i) * width..(row.first + i + 1) * width {
                arrays.set(at, if keeps { arrays.get(at) } else { T::default() });
            }
        }
    });
}

/// A complex number.
type Pair<T> = [T; 2];

/// Calls `of` with the components of each mode, and the symbols of forward differences.
fn vectors<T: Real, const I: usize, const O: usize>(
    modes: &Modes,
    mut arrays: impl Arrays<T>,
    of: impl Fn([Pair<T>; I], Symbols<T>) -> [Pair<T>; O],
) {
    let (points, inner) = (modes.points(), last(modes));
    rows(modes, |row| {
        let mut d = row.forward.map(|symbol| symbol.map(T::of));
        for (i, forward) in inner.forward.iter().enumerate() {
            if let Some(component) = inner.component {
                d[component] = forward.map(T::of);
            }
            let place = |component: usize| 2 * (component * points + row.first + i);
            let before = std::array::from_fn(|component| {
                [arrays.get(place(component)), arrays.get(place(component) + 1)]
            });
            for (component, [re, im]) in of(before, d).into_iter().enumerate() {
                arrays.set(place(component), re);
                arrays.set(place(component) + 1, im);
            }
        }
    });
}

/// Symbols of forward differences, by component. Minus their conjugates are those backward, which
/// are the same unless they are staggered.
type Symbols<T> = [Pair<T>; MAX_AXES];

fn times<T: Real>([re, im]: Pair<T>, by: Pair<T>) -> Pair<T> {
    [re * by[0] - im * by[1], re * by[1] + im * by[0]]
}

fn difference<T: Real>(a: Pair<T>, b: Pair<T>) -> Pair<T> {
    [a[0] - b[0], a[1] - b[1]]
}

/// The sum of components times the conjugates of symbols: minus the divergence.
fn dot<T: Real, const D: usize>(u: [Pair<T>; D], d: Symbols<T>) -> Pair<T> {
    u.iter().zip(d).fold([T::default(); 2], |sum, (u, d)| {
        let [re, im] = times(*u, [d[0], T::default() - d[1]]);
        [sum[0] + re, sum[1] + im]
    })
}

fn gradient<T: Real, const D: usize>([u]: [Pair<T>; 1], d: Symbols<T>) -> [Pair<T>; D] {
    std::array::from_fn(|component| times(u, d[component]))
}

fn divergence<T: Real, const D: usize>(u: [Pair<T>; D], d: Symbols<T>) -> [Pair<T>; 1] {
    [difference([T::default(); 2], dot(u, d))]
}

fn projection<T: Real, const D: usize>(u: [Pair<T>; D], d: Symbols<T>) -> [Pair<T>; D] {
    let squares = d.iter().take(D).flatten().map(|part| part.as_f64() * part.as_f64());
    let (along, by) = (dot(u, d), T::of(reciprocal(squares.sum())));
    let along = along.map(|part| part * by);
    std::array::from_fn(|component| difference(u[component], times(along, d[component])))
}

/// Multiplies the numbers of one array by the numbers of another, or by their conjugates.
fn multiply<T: Real>(by: &[T], data: &mut [T], width: usize, conjugate: bool) {
    if width == 1 {
        data.iter_mut().zip(by).for_each(|(x, by)| *x = *x * *by);
        return;
    }
    let sign = T::of(if conjugate { -1.0 } else { 1.0 });
    for (x, by) in data.chunks_exact_mut(2).zip(by.chunks_exact(2)) {
        let (re, im) = (by[0], by[1] * sign);
        (x[0], x[1]) = (x[0] * re - x[1] * im, x[0] * im + x[1] * re);
    }
}
