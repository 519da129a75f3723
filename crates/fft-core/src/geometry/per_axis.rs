//! A value per axis of a grid.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter::Take;
use std::ops::{Deref, DerefMut};

/// The most axes of a grid.
pub const MAX_AXES: usize = 4;

/// Panics unless a grid can have this many axes. Functions that callers name an array's length to
/// call it in a `const` block first, so that the compiler's error is this sentence at their call.
///
/// # Panics
/// If it is not 1 to 4.
#[track_caller]
pub const fn check_axes(axes: usize) {
    assert!(axes >= 1 && axes <= MAX_AXES, "a grid has 1 to 4 axes, and this array another number");
}

/// One value per axis of a grid, which has 1 to 4 axes. It derefs to a slice.
///
/// The number of axes is a runtime value, so that planning is compiled once.
///
/// ```
/// use fft_core::PerAxis;
/// let shape = PerAxis::from([4, 6, 8]);
/// assert_eq!(shape.map(|n| n / 2), [2, 3, 4]);
/// assert_eq!(shape.array::<3>(), [4, 6, 8]);
/// ```
#[derive(Clone, Copy)]
pub struct PerAxis<V> {
    values: [V; MAX_AXES],
    axes: u8,
}

impl<V: Copy> PerAxis<V> {
    /// `of(axis)` for each axis.
    ///
    /// # Panics
    /// If there are not 1 to 4 axes.
    #[inline]
    pub fn from_fn(axes: usize, mut of: impl FnMut(usize) -> V) -> Self {
        assert!((1..=MAX_AXES).contains(&axes), "{axes} axes, expected 1 to {MAX_AXES}");
        let mut values = [of(0); MAX_AXES];
        for (axis, value) in values[..axes].iter_mut().enumerate().skip(1) {
            *value = of(axis);
        }
        Self { values, axes: axes as u8 }
    }

    /// Combines the values of each axis. The loop has a fixed length, without bounds checks.
    #[inline]
    pub(crate) fn zip_with(&self, other: &Self, mut of: impl FnMut(V, V) -> V) -> Self {
        let values = std::array::from_fn(|axis| of(self.values[axis], other.values[axis]));
        Self { values, axes: self.axes }
    }

    /// Whether a predicate holds for every axis, without bounds checks.
    #[inline]
    pub(crate) fn all(&self, mut is: impl FnMut(V) -> bool) -> bool {
        (0..MAX_AXES).all(|axis| axis >= usize::from(self.axes) || is(self.values[axis]))
    }

    /// The same value for each axis.
    ///
    /// # Panics
    /// If there are not 1 to 4 axes.
    pub fn splat(axes: usize, value: V) -> Self {
        Self::from_fn(axes, |_| value)
    }

    /// Maps each value.
    pub fn map<W: Copy>(&self, mut of: impl FnMut(V) -> W) -> PerAxis<W> {
        PerAxis::from_fn(self.len(), |axis| of(self.values[axis]))
    }

    /// The values as an array.
    ///
    /// # Panics
    /// If there are not `D` axes.
    pub fn array<const D: usize>(&self) -> [V; D] {
        let found: Result<[V; D], _> = self[..].try_into();
        found.unwrap_or_else(|_| panic!("{} axes, expected {D}", self.len()))
    }
}

impl PerAxis<usize> {
    #[inline]
    pub(crate) fn product(&self) -> usize {
        let of = |axis| if axis < usize::from(self.axes) { self.values[axis] } else { 1 };
        (0..MAX_AXES).map(of).product()
    }

    /// The axes in ascending order: the row-major order of axes.
    ///
    /// # Panics
    /// If there are not 1 to 4 axes.
    pub fn row_major(axes: usize) -> Self {
        Self::from_fn(axes, |axis| axis)
    }

    /// The contiguous axis of this order of axes.
    pub(crate) fn contiguous(&self) -> usize {
        self[self.len() - 1]
    }
}

impl<V> Deref for PerAxis<V> {
    type Target = [V];

    #[inline]
    fn deref(&self) -> &[V] {
        &self.values[..usize::from(self.axes)]
    }
}

impl<V> DerefMut for PerAxis<V> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [V] {
        &mut self.values[..usize::from(self.axes)]
    }
}

impl<V: Copy, const D: usize> From<[V; D]> for PerAxis<V> {
    fn from(values: [V; D]) -> Self {
        const { check_axes(D) };
        Self::from_fn(D, |axis| values[axis])
    }
}

impl<V> IntoIterator for PerAxis<V> {
    type Item = V;
    type IntoIter = Take<std::array::IntoIter<V, MAX_AXES>>;

    fn into_iter(self) -> Self::IntoIter {
        self.values.into_iter().take(usize::from(self.axes))
    }
}

impl<V: PartialEq> PartialEq for PerAxis<V> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let same = |axis| axis >= usize::from(self.axes) || self.values[axis] == other.values[axis];
        self.axes == other.axes && (0..MAX_AXES).all(same)
    }
}

impl<V: Eq> Eq for PerAxis<V> {}

impl<V: PartialEq, const D: usize> PartialEq<[V; D]> for PerAxis<V> {
    fn eq(&self, other: &[V; D]) -> bool {
        self[..] == other[..]
    }
}

impl<V: Ord> PartialOrd for PerAxis<V> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<V: Ord> Ord for PerAxis<V> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self[..].cmp(&other[..])
    }
}

impl<V: Hash> Hash for PerAxis<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self[..].hash(state);
    }
}

impl<V: fmt::Debug> fmt::Debug for PerAxis<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}

/// `4x6x8`
pub(crate) fn times(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join("x")
}
