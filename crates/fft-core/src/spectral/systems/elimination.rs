//! Elimination of tridiagonal systems side by side. The row of a system is
//!
//! ```text
//! excess[j] x[j] + lower[j] (x[j] − x[j−1]) + upper[j] (x[j] − x[j+1])
//! ```
//!
//! Written like this, elimination adds and divides numbers of one sign, so that no digits cancel,
//! and a pivot is 0 only if the system is singular:
//!
//! ```text
//! f[j] = excess[j] + lower[j] f[j−1]/p[j−1]        p[j] = f[j] + upper[j]
//! ```
//!
//! In a periodic system the last point is a second right-hand side of the others. Its solution is
//! 1 − q, where q solves them with `excess` on the right.

use std::ops::Range;

/// Systems that are solved side by side.
pub(super) const LANES: usize = 8;

pub(super) type Lane = [f64; LANES];

/// The coefficients of a row in each system.
pub(super) struct Row {
    pub(super) excess: Lane,
    pub(super) lower: Lane,
    pub(super) upper: Lane,
}

/// The rows of systems.
pub(super) trait Rows {
    fn row(&self, j: usize) -> Row;
}

/// Memory for the systems of some lanes.
pub(super) struct Room<'a, const W: usize> {
    /// Right-hand sides, then solutions, by row and component.
    pub(super) values: &'a mut [[Lane; W]],
    upper: &'a mut [Lane],
    column: &'a mut [Lane],
}

impl<'a, const W: usize> Room<'a, W> {
    /// Lanes of memory that `n` rows need.
    pub(super) const fn lanes(n: usize) -> usize {
        (W + 2) * n
    }

    /// Room for `n` rows in this memory.
    #[inline(always)]
    pub(super) fn new(memory: &'a mut [Lane], n: usize) -> Self {
        let (values, rest) = memory.split_at_mut(W * n);
        let (upper, rest) = rest.split_at_mut(n);
        Self { values: values.as_chunks_mut().0, upper, column: &mut rest[..n] }
    }

    /// Solves all rows, of which the last may be followed by the first.
    #[inline(always)]
    pub(super) fn solve(&mut self, rows: &impl Rows, periodic: bool) {
        let n = self.values.len();
        if periodic {
            self.solve_periodic(rows)
        } else {
            self.eliminate::<false, false>(rows, 0..n)
        }
    }

    /// Solves all rows but the first and the last, whose values are known.
    #[inline(always)]
    pub(super) fn solve_between(&mut self, rows: &impl Rows) {
        let last = self.values.len() - 1;
        if last < 2 {
            return;
        }
        for (end, inner) in [(0, 1), (last, last - 1)] {
            let Row { lower, upper, .. } = rows.row(inner);
            let known = if end == 0 { lower } else { upper };
            for component in 0..W {
                for lane in 0..LANES {
                    self.values[inner][component][lane] +=
                        known[lane] * self.values[end][component][lane];
                }
            }
        }
        self.eliminate::<true, false>(rows, 1..last);
    }

    /// Solves some rows by elimination. With `DIRICHLET` the values beyond them are 0, and
    /// otherwise nothing follows or precedes them. `COLUMN` also solves for q.
    #[inline(always)]
    fn eliminate<const DIRICHLET: bool, const COLUMN: bool>(
        &mut self,
        rows: &impl Rows,
        range: Range<usize>,
    ) {
        let Self { values, upper, column } = self;
        let (mut ratio, mut before, mut q) = ([0.0; LANES], [[0.0; LANES]; W], [0.0; LANES]);
        for j in range.clone() {
            let Row { excess, lower: mut a, upper: mut c } = rows.row(j);
            let (mut f, mut inverse) = (excess, [0.0; LANES]);
            if j == range.start {
                if DIRICHLET {
                    (0..LANES).for_each(|lane| f[lane] += a[lane]);
                }
                a = [0.0; LANES];
            }
            if j + 1 == range.end {
                if DIRICHLET {
                    (0..LANES).for_each(|lane| f[lane] += c[lane]);
                }
                c = [0.0; LANES];
            }
            for lane in 0..LANES {
                f[lane] += a[lane] * ratio[lane];
                inverse[lane] = reciprocal(f[lane] + c[lane]);
                ratio[lane] = f[lane] * inverse[lane];
                upper[j][lane] = c[lane] * inverse[lane];
            }
            for component in 0..W {
                for lane in 0..LANES {
                    let right = values[j][component][lane] + a[lane] * before[component][lane];
                    before[component][lane] = right * inverse[lane];
                }
            }
            values[j] = before;
            if COLUMN {
                for lane in 0..LANES {
                    q[lane] = (excess[lane] + a[lane] * q[lane]) * inverse[lane];
                }
                column[j] = q;
            }
        }
        for j in range.rev().skip(1) {
            for component in 0..W {
                for lane in 0..LANES {
                    before[component][lane] =
                        values[j][component][lane] + upper[j][lane] * before[component][lane];
                }
            }
            values[j] = before;
            if COLUMN {
                for lane in 0..LANES {
                    q[lane] = column[j][lane] + upper[j][lane] * q[lane];
                }
                column[j] = q;
            }
        }
    }

    #[inline(always)]
    fn solve_periodic(&mut self, rows: &impl Rows) {
        let last = self.values.len() - 1;
        self.eliminate::<true, true>(rows, 0..last);
        let Self { values, column, .. } = self;
        let Row { excess, lower, upper } = rows.row(last);
        let mut inverse = [0.0; LANES];
        for lane in 0..LANES {
            let ends = lower[lane] * column[last - 1][lane] + upper[lane] * column[0][lane];
            inverse[lane] = reciprocal(excess[lane] + ends);
        }
        let (first, below) = (values[0], values[last - 1]);
        let mut end = values[last];
        for component in 0..W {
            for lane in 0..LANES {
                let ends =
                    lower[lane] * below[component][lane] + upper[lane] * first[component][lane];
                end[component][lane] = (end[component][lane] + ends) * inverse[lane];
            }
        }
        values[last] = end;
        for (row, q) in values[..last].iter_mut().zip(column.iter()) {
            for component in 0..W {
                for lane in 0..LANES {
                    row[component][lane] += (1.0 - q[lane]) * end[component][lane];
                }
            }
        }
    }
}

/// The rows of the first and the last point that are left when the points between them are
/// eliminated. They have the same form: each has the other point as its neighbour.
pub(super) struct EndRows<const W: usize> {
    /// What is on the right, by end and component.
    pub(super) right: [[Lane; W]; 2],
    pub(super) excess: [Lane; 2],
    /// The upper coefficient of the first row, and the lower one of the last.
    pub(super) coupling: [Lane; 2],
}

impl<const W: usize> EndRows<W> {
    /// Eliminates what is between the first and the last of several rows.
    #[inline(always)]
    pub(super) fn new(rows: &impl Rows, values: &[[Lane; W]]) -> Self {
        let (first, next) = (rows.row(0), rows.row(1));
        let mut right = [values[0], values[1]];
        let mut excess = [first.excess, next.excess];
        let mut coupling = [first.upper, next.lower];
        let mut c = next.upper;
        for j in 2..values.len() {
            // Row j - 1, whose lower neighbour is the first point, leaves its two neighbours' rows.
            let Row { excess: own, lower: a, upper } = rows.row(j);
            let mut shares = [[0.0; LANES]; 2];
            for lane in 0..LANES {
                let inverse = reciprocal(excess[1][lane] + coupling[1][lane] + c[lane]);
                let (up, down) = (coupling[0][lane] * inverse, a[lane] * inverse);
                (shares[0][lane], shares[1][lane]) = (up, down);
                excess[0][lane] += up * excess[1][lane];
                excess[1][lane] = own[lane] + down * excess[1][lane];
                coupling[0][lane] = up * c[lane];
                coupling[1][lane] *= down;
            }
            for component in 0..W {
                for lane in 0..LANES {
                    let gone = right[1][component][lane];
                    right[0][component][lane] += shares[0][lane] * gone;
                    right[1][component][lane] = values[j][component][lane] + shares[1][lane] * gone;
                }
            }
            c = upper;
        }
        Self { right, excess, coupling }
    }
}

/// The reciprocal, or 0 for 0.
#[inline(always)]
fn reciprocal(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { 1.0 / x }
}
