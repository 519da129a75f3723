//! The modes of a rank's part of a spectrum, on a box with physical lengths.

use std::fmt;
use std::sync::{Arc, Mutex};

use super::operator::Operator;
use super::scheme::Scheme;
use super::systems::{DividedAxis, SystemTask, Systems};
use super::tridiagonal::Tridiagonal;
use super::wavenumbers::{is_nyquist, wavenumber};
use crate::base::{Error, Precision, locked};
use crate::geometry::{Layout, PerAxis};
use crate::problem::{Kind, Problem};

/// A spectrum: the transform that made it, and its distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Spectrum {
    /// The transform along each axis.
    pub kinds: PerAxis<Kind>,
    /// The numbers of modes: the lengths of a transform that has as many points.
    pub modes: PerAxis<usize>,
    /// The bricks of all ranks.
    pub layout: Layout,
    /// Whether its points are complex.
    pub complex: bool,
    /// Precision of all numbers.
    pub precision: Precision,
}

impl Spectrum {
    /// The spectrum of a problem.
    pub fn of(problem: &Problem) -> Self {
        Self {
            kinds: problem.kinds,
            modes: problem.modes,
            layout: problem.output.clone(),
            complex: problem.complex_spectrum(),
            precision: problem.precision,
        }
    }

    /// Whether it is the spectrum of a problem.
    pub fn is_of(&self, problem: &Problem) -> bool {
        problem.kinds == self.kinds
            && problem.output == self.layout
            && problem.modes == self.modes
            && problem.complex_spectrum() == self.complex
            && problem.precision == self.precision
    }
}

/// The modes of a rank's part of a spectrum, with their wavenumbers on a box.
pub struct Modes {
    spectrum: Spectrum,
    rank: usize,
    axes: Vec<AxisModes>,
    dimensions: usize,
    systems: Option<Systems>,
    divided: Option<Arc<Mutex<DividedAxis>>>,
}

/// The modes of a brick along one axis of the grid.
#[derive(Debug)]
pub struct AxisModes {
    /// The axis.
    pub axis: usize,
    /// The component of a vector along this axis; none if it is left alone.
    pub component: Option<usize>,
    /// Wavenumbers, as [`Wavenumbers::k`](super::Wavenumbers), or the wavenumbers of a scheme,
    /// whose squares are minus the second derivative.
    pub k: Vec<f64>,
    /// Wavenumbers for derivatives of odd order, at a staggered point without the phase of half a
    /// cell; 0 for the middle mode of an even number of points, unless it is staggered.
    pub odd: Vec<f64>,
    /// First derivatives, forward if they are staggered: `i·odd`, with the phase.
    pub(super) forward: Vec<[f64; 2]>,
    /// The size of `k` relative to the highest wavenumber of the axis, `πn/length`.
    pub level: Vec<f64>,
    scheme: Scheme,
    length: f64,
}

impl AxisModes {
    fn new(spectrum: &Spectrum, rank: usize, axis: usize, (length, scheme): (f64, Scheme)) -> Self {
        let (kind, n) = (spectrum.kinds[axis], spectrum.modes[axis]);
        let positions = spectrum.layout.brick(rank).range(axis);
        let index = |position| spectrum.layout.index(axis, position);
        let modes: Vec<_> = positions.map(|position| kind.mode(n, index(position))).collect();
        let k = |mode: &i64| wavenumber(kind, *mode, length);
        let spacing = length / kind.intervals(n);
        let symbols: Vec<_> = modes
            .iter()
            .map(|mode| scheme.symbol(k(mode), spacing, is_nyquist(kind, n, *mode)))
            .collect();
        let forward = symbols.iter().zip(&modes).map(|(symbol, mode)| {
            let phase = if scheme.is_staggered() { 0.5 * k(mode) * spacing } else { 0.0 };
            [-symbol.odd * phase.sin(), symbol.odd * phase.cos()]
        });
        let highest = std::f64::consts::PI * n as f64 / length;
        let transformed = |axis: &usize| spectrum.kinds[*axis].is_transform();
        Self {
            axis,
            component: transformed(&axis).then(|| (0..axis).filter(transformed).count()),
            k: symbols.iter().map(|symbol| symbol.k).collect(),
            odd: symbols.iter().map(|symbol| symbol.odd).collect(),
            forward: forward.collect(),
            level: modes.iter().map(|mode| k(mode).abs() / highest).collect(),
            scheme,
            length,
        }
    }

    /// How derivatives along the axis are discretised.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }
}

impl Modes {
    /// The modes of a rank's brick on a box of these lengths, one for each axis.
    ///
    /// # Errors
    /// [`Error::Argument`] for lengths that are not positive, or of other axes than the grid's.
    pub fn new(spectrum: Spectrum, rank: usize, lengths: &[f64]) -> Result<Self, Error> {
        let axes = spectrum.kinds.len();
        if lengths.len() != axes {
            return Err(Error::argument("lengths of a domain", lengths.len(), axes));
        }
        let is_wrong = |length: &f64| !length.is_finite() || *length <= 0.0;
        if let Some(axis) = lengths.iter().position(is_wrong) {
            let what = format!("length of axis {axis}");
            return Err(Error::argument(what, lengths[axis], "a positive one"));
        }
        let order = spectrum.layout.order();
        let exact = |axis: usize| (lengths[axis], Scheme::Exact);
        let along = |axis: usize| AxisModes::new(&spectrum, rank, axis, exact(axis));
        let axes = order.into_iter().map(along).collect();
        let dimensions = spectrum.kinds.iter().filter(|kind| kind.is_transform()).count();
        Ok(Self { spectrum, rank, axes, dimensions, systems: None, divided: None })
    }

    /// The same, with what ranks need to solve systems along an axis that they divide. Operators
    /// are then collective.
    pub fn with_divided_axis(self, divided: Arc<Mutex<DividedAxis>>) -> Self {
        Self { divided: Some(divided), ..self }
    }

    /// The same with the symbols of difference schemes, one for each axis of the grid.
    ///
    /// # Errors
    /// [`Error::Argument`] for schemes of other axes than the grid's.
    pub fn with_schemes(mut self, schemes: &[Scheme]) -> Result<Self, Error> {
        let expected = self.spectrum.kinds.len();
        if schemes.len() != expected {
            return Err(Error::argument("axes of schemes", schemes.len(), expected));
        }
        for modes in &mut self.axes {
            let (axis, component) = (modes.axis, modes.component);
            let how = (modes.length, schemes[axis]);
            *modes =
                AxisModes { component, ..AxisModes::new(&self.spectrum, self.rank, axis, how) };
        }
        match self.systems.take() {
            Some(systems) => self.with_tridiagonal(systems.into_scheme()),
            None => Ok(self),
        }
    }

    /// The same with coefficients along the axis of kind tridiagonal. Reserves memory for a few of
    /// its lines.
    ///
    /// # Errors
    /// [`Error::Argument`] without such an axis, for coefficients of another number of points, and
    /// for an axis that ranks divide without [`Modes::with_divided_axis`].
    pub fn with_tridiagonal(mut self, scheme: Tridiagonal) -> Result<Self, Error> {
        let Some(axis) = self.tridiagonal_axis() else {
            let found = self.spectrum.kinds.map(Kind::name).join(", ");
            return Err(Error::argument("kinds", found, "one axis of kind tridiagonal"));
        };
        let (n, layout) = (self.spectrum.modes[axis], &self.spectrum.layout);
        if scheme.len() != n {
            return Err(Error::argument("number of coefficients", scheme.len(), n));
        }
        if !layout.is_whole(axis) && self.divided.is_none() {
            let what = format!("spectral data along the tridiagonal axis {axis}");
            return Err(Error::argument(what, layout, "whole lines on each rank"));
        }
        let place = self.axes.iter().position(|modes| modes.axis == axis);
        let divided = self.divided.as_ref();
        self.systems = place.map(|place| Systems::new(scheme, &self.axes, place, divided));
        Ok(self)
    }

    fn tridiagonal_axis(&self) -> Option<usize> {
        self.spectrum.kinds.iter().position(|kind| *kind == Kind::Tridiagonal)
    }

    /// The systems along the axis of kind tridiagonal, if there are coefficients.
    pub fn systems(&self) -> Option<&Systems> {
        self.systems.as_ref()
    }

    /// The same with the components of vectors in reverse: the first along the last axis, as
    /// Fortran numbers them.
    pub fn reversed(mut self) -> Self {
        for axis in &mut self.axes {
            axis.component = axis.component.map(|component| self.dimensions - 1 - component);
        }
        self
    }

    /// The spectrum that these modes belong to.
    pub fn spectrum(&self) -> &Spectrum {
        &self.spectrum
    }

    /// The rank whose brick it is.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The modes along each axis, in the order of memory, slowest first.
    pub fn axes(&self) -> &[AxisModes] {
        &self.axes
    }

    /// The components of a vector: the number of axes that are transformed.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Points of one component.
    pub fn points(&self) -> usize {
        self.axes.iter().map(|axis| axis.k.len()).product()
    }

    /// The modes along an axis of the grid.
    ///
    /// # Panics
    /// If there is no such axis.
    pub fn along(&self, axis: usize) -> &AxisModes {
        let found = self.axes.iter().find(|modes| modes.axis == axis);
        found.unwrap_or_else(|| panic!("axis {axis} of {}", self.axes.len()))
    }

    /// Real numbers of a point.
    pub fn width(&self) -> usize {
        if self.spectrum.complex { 2 } else { 1 }
    }

    /// Bytes of one component.
    pub fn component_bytes(&self) -> usize {
        self.points() * self.width() * self.spectrum.precision.bytes()
    }

    /// Checks that an operator can be applied, and returns its components of operand and result.
    fn check(&self, operator: Operator) -> Result<[usize; 2], Error> {
        operator.check()?;
        let kinds = &self.spectrum.kinds;
        if let Some(axis) = self.tridiagonal_axis() {
            let what = || format!("coefficients along the tridiagonal axis {axis}");
            match SystemTask::of(operator) {
                Some(_) if self.systems.is_none() => {
                    return Err(Error::argument(
                        what(),
                        "none",
                        "those of Domain::with_tridiagonal",
                    ));
                }
                None if matches!(operator, Operator::Gaussian(_)) => {
                    let what = format!("kind of axis {axis} for a Gaussian");
                    return Err(Error::argument(what, Kind::Tridiagonal, "another"));
                }
                _ => {}
            }
        }
        if let Operator::Derivative(axis) = operator
            && axis >= kinds.len()
        {
            return Err(Error::argument("axis", axis, format!("0 to {}", kinds.len() - 1)));
        }
        for (axis, kind) in kinds.iter().enumerate() {
            let may = match operator {
                _ if kind.is_fourier() => true,
                Operator::Derivative(one) => one != axis,
                _ => !kind.is_transform() || !operator.derives(),
            };
            if !may {
                return Err(Error::argument(format!("kind of axis {axis}"), kind, "c2c or r2c"));
            }
        }
        operator.components(self.dimensions)
    }

    /// Agrees with the ranks that divide the axis of systems on an operator, if there are any, and
    /// on the errors of `checked`, the components of operand and result in an array of these bytes.
    pub(super) fn agree<C>(
        &self,
        operator: Operator,
        checked: Result<C, Error>,
        operands: impl FnOnce(&C) -> usize,
    ) -> Result<C, Error> {
        let Some(divided) = &self.divided else { return checked };
        let divided = locked(divided);
        let count = checked.as_ref().map(operands).map_err(Error::clone);
        let coefficients = self.systems.as_ref().map_or(0, Systems::checksum);
        divided.agree(SystemTask::of(operator), count, coefficients)?;
        checked
    }

    /// The numbers of components of an operator's operand and result in arrays of these sizes: the
    /// operator's own, or a multiple of them for several operands.
    ///
    /// # Errors
    /// [`Error::Length`] for other arrays; [`Error::Argument`] for axes without derivatives, and
    /// for parameters that are not finite, or negative where the operator takes no such.
    pub fn components(
        &self,
        operator: Operator,
        [from, to]: [usize; 2],
    ) -> Result<[usize; 2], Error> {
        let [before, after] = self.check(operator)?;
        let one = self.component_bytes();
        let operands = from.checked_div(one * before).map_or(0, |found| found.max(1));
        for (what, found, components) in [("input", from, before), ("output", to, after)] {
            let expected = operands * components * one;
            self.check_len(what, found, expected)?;
        }
        Ok([before, after])
    }

    /// As [`Modes::components`], for an operator within one array.
    ///
    /// # Errors
    /// The errors of [`Modes::components`]; [`Error::Argument`] where the result has more or fewer
    /// components.
    pub fn components_in_place(&self, operator: Operator, bytes: usize) -> Result<usize, Error> {
        let [before, after] = self.check(operator)?;
        if before != after {
            let found = format!("{before} before and {after} after");
            return Err(Error::argument("components of an operator in place", found, "equal ones"));
        }
        self.components(operator, [bytes; 2]).map(|[before, _]| before)
    }

    /// Checks the bytes of a kernel and of data that is multiplied by it.
    ///
    /// # Errors
    /// [`Error::Length`].
    pub fn check_kernel(&self, [kernel, data]: [usize; 2]) -> Result<(), Error> {
        let one = self.component_bytes();
        let whole = data.checked_div(one).map_or(0, |components| components.max(1)) * one;
        for (what, found, expected) in [("kernel", kernel, one), ("spectrum", data, whole)] {
            self.check_len(what, found, expected)?;
        }
        Ok(())
    }

    /// Compares bytes of an array; an error counts points.
    fn check_len(&self, what: &'static str, found: usize, expected: usize) -> Result<(), Error> {
        let point = self.width() * self.spectrum.precision.bytes();
        let (found_points, expected_points) = (found.div_ceil(point), expected / point);
        if found == expected {
            Ok(())
        } else {
            Err(Error::Length {
                what,
                rank: self.rank,
                found: found_points,
                expected: expected_points,
            })
        }
    }

    /// Checks that an array is aligned for its numbers.
    pub(super) fn check_aligned(&self, array: &[u8]) -> Result<(), Error> {
        let align = self.spectrum.precision.bytes();
        if array.is_empty() || array.as_ptr().align_offset(align) == 0 {
            Ok(())
        } else {
            let (found, expected) =
                (format!("{:p}", array.as_ptr()), format!("a multiple of {align}"));
            Err(Error::argument("address of a spectrum", found, expected))
        }
    }
}

impl fmt::Debug for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Modes({} points of {})", self.points(), self.spectrum.layout)
    }
}
