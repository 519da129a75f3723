//! Reduced systems of ranks that divide the axis of tridiagonal systems: the partition method of
//! Wang (1981), "A parallel method for tridiagonal equations", ACM TOMS 7.
//!
//! A group of ranks has the same modes, and each rank an interval of the axis. It eliminates the
//! points within, which leaves two rows for each mode. The ranks of a group divide their modes, and
//! each gets all rows of its modes, solves them, and sends the solutions back. Rows and solutions
//! move as copies on a small grid, in which the axis has a point for each interval and the numbers
//! of a mode are a batch.

use std::fmt;
use std::ops::Range;

use super::elimination::{EndRows, LANES, Lane, Room, Row, Rows};
use super::{Lanes, SystemTask, subtract, weighted_sums};
use crate::arrays::{CopyPlan, GridData, ParallelCopy, Subarray};
use crate::base::Error;
use crate::comm::{Comm, Reduce, agree, assert_same};
use crate::geometry::{DynBrick, PerAxis};
use crate::problem::Kind;
use crate::spectral::modes::Spectrum;
use crate::spectral::tridiagonal::Tridiagonal;
use crate::spectral::wavenumbers::wavenumber;

/// Binds a copy to a communicator of its own.
pub type BindCopy<'a> = &'a dyn Fn(CopyPlan) -> Result<ParallelCopy, Error>;

/// The part of a rank in systems along an axis that ranks divide, with its buffers.
pub struct DividedAxis {
    comm: Box<dyn Comm>,
    intervals: Vec<Range<usize>>,
    /// The interval of this rank.
    interval: usize,
    modes: usize,
    /// Modes whose reduced systems this rank solves.
    solved: usize,
    /// Real numbers of a point.
    width: usize,
    to_owners: ParallelCopy,
    from_owners: ParallelCopy,
    to_neighbours: ParallelCopy,
    to_group: ParallelCopy,
    /// An array over the modes for each component at the first end, then at the last, and then for
    /// each coefficient of the rows of both ends.
    ends: Vec<f64>,
    /// The same of all intervals, for the modes that this rank solves.
    reduced: Vec<f64>,
    /// The ends of the previous and of the next interval.
    neighbours: [Vec<f64>; 2],
    /// The modes that may be singular, ascending.
    mean_modes: Vec<usize>,
    /// Sums of these modes, by component.
    sums: Vec<f64>,
    /// Sums of all intervals.
    all_sums: Vec<f64>,
    means: Vec<f64>,
    has_means: bool,
}

/// The excess and the coupling of both ends.
const COEFFICIENTS: usize = 4;

/// Where modes are on the small grid.
struct Places {
    axis: usize,
    order: PerAxis<usize>,
    modes: DynBrick,
}

impl Places {
    /// An array of the modes of a brick, for each interval of a range.
    fn array(&self, modes: DynBrick, intervals: Range<usize>) -> Subarray {
        let mut brick = modes;
        if !modes.is_empty() {
            (brick.lo[self.axis], brick.hi[self.axis]) = (intervals.start, intervals.end);
        }
        Subarray::placed(brick, PerAxis::splat(brick.axes(), 0), brick.shape(), self.order)
    }

    /// The modes whose reduced systems the rank of an interval solves: a share along the longest
    /// axis.
    fn share(&self, interval: usize, count: usize) -> DynBrick {
        let mut share = self.modes;
        let others = (0..share.axes()).filter(|axis| *axis != self.axis);
        match others.max_by_key(|axis| share.len(*axis)) {
            Some(axis) => {
                let (first, len) = (share.lo[axis], share.len(axis));
                share.lo[axis] = first + len * interval / count;
                share.hi[axis] = first + len * (interval + 1) / count;
            }
            None if interval > 0 => share.hi[self.axis] = 0,
            None => {}
        }
        share
    }

    /// The modes that may have no shift: the means of axes that are transformed.
    fn means(&self, kinds: &[Kind]) -> DynBrick {
        let mut means = self.modes;
        for axis in (0..kinds.len()).filter(|axis| kinds[*axis].is_transform()) {
            means.hi[axis] = means.hi[axis].min(1);
        }
        means
    }

    /// The numbers of the modes of a brick within the rank's, ascending.
    fn numbers(&self, of: &DynBrick) -> Vec<usize> {
        let others = self.order.into_iter().filter(|axis| *axis != self.axis);
        others.fold(vec![0], |numbers, axis| {
            let (first, len) = (self.modes.lo[axis], self.modes.len(axis));
            let with = |number: usize| of.range(axis).map(move |at| number * len + at - first);
            numbers.into_iter().flat_map(with).collect()
        })
    }
}

impl DividedAxis {
    /// Plans what ranks exchange; `None` for a spectrum without such an axis. Collective.
    ///
    /// # Errors
    /// On every rank: the errors of the copies and of the communicator.
    pub fn new(
        comm: &dyn Comm,
        spectrum: &Spectrum,
        bind: BindCopy<'_>,
    ) -> Result<Option<Self>, Error> {
        let Spectrum { kinds, layout, complex, .. } = spectrum;
        let is_divided =
            |axis: &usize| kinds[*axis] == Kind::Tridiagonal && !layout.is_whole(*axis);
        let Some(axis) = (0..kinds.len()).find(is_divided) else { return Ok(None) };
        let Some(intervals) = layout.intervals(axis) else { return Ok(None) };
        let (brick, count) = (layout.brick(comm.rank()), intervals.len());
        let interval = intervals.partition_point(|other| other.start < brick.lo[axis]);
        let mut order = layout.order();
        order.sort_by_key(|other| *other != axis);
        let mut modes = brick;
        (modes.lo[axis], modes.hi[axis]) = (0, 1);
        let places = Places { axis, order, modes };
        let (share, means) = (places.share(interval, count), places.means(kinds));
        let width = if *complex { 2 } else { 1 };
        let grid = layout.grid().with_len(axis, count);
        let copy = |numbers: usize, sources: &[Subarray], targets: &[Subarray]| {
            let data = GridData::of::<f64>(grid).batch(numbers);
            bind(CopyPlan::new(comm, data, sources, targets)?)
        };
        let own = places.array(modes, interval..interval + 1);
        let solved = places.array(share, 0..count);
        let before = (interval + count - 1) % count;
        let after = (interval + 1) % count;
        let [before, after] = [before, after].map(|other| places.array(modes, other..other + 1));
        let one = places.array(means, interval..interval + 1);
        let all = places.array(means, 0..count);
        let to_owners = copy(2 * width + COEFFICIENTS, &[own], &[solved])?;
        let from_owners = copy(2 * width, &[solved], &[own])?;
        let to_neighbours = copy(2 * width, &[own], &[before, after.in_array(1)])?;
        let to_group = copy(width, &[one], &[all])?;
        let (modes, solved, mean_modes) = (modes.points(), share.points(), places.numbers(&means));
        // Lanes at the end read beyond their mode.
        let array = |numbers: usize, modes: usize| vec![0.0; numbers * modes + LANES];
        let has_mean =
            |kind: &Kind| !kind.is_transform() || wavenumber(*kind, kind.mode(2, 0), 1.0) == 0.0;
        Ok(Some(Self {
            comm: agree(comm, comm.dup())?,
            interval,
            modes,
            solved,
            width,
            to_owners,
            from_owners,
            to_neighbours,
            to_group,
            ends: array(2 * width + COEFFICIENTS, modes),
            reduced: array(2 * width + COEFFICIENTS, solved * count),
            neighbours: [array(2 * width, modes), array(2 * width, modes)],
            sums: vec![0.0; width * mean_modes.len()],
            all_sums: vec![0.0; width * mean_modes.len() * count],
            means: vec![0.0; width * mean_modes.len()],
            mean_modes,
            intervals,
            has_means: kinds.iter().all(has_mean),
        }))
    }

    /// Bytes of the buffers, and of the copies between ranks.
    pub fn memory(&self) -> usize {
        let Self { ends, reduced, neighbours: [before, after], .. } = self;
        let arrays = [ends, reduced, before, after, &self.sums, &self.all_sums, &self.means];
        let copies = [&self.to_owners, &self.from_owners, &self.to_neighbours, &self.to_group];
        arrays.into_iter().map(|array| size_of_val(&**array)).sum::<usize>()
            + copies.into_iter().map(ParallelCopy::memory).sum::<usize>()
    }

    /// The points of this rank along the axis.
    pub(super) fn range(&self) -> Range<usize> {
        self.intervals[self.interval].clone()
    }

    /// Rows of a reduced system.
    pub(super) fn reduced_rows(&self) -> usize {
        2 * self.intervals.len()
    }

    /// Whether a mode of some rank may have no shift.
    pub(super) fn has_means(&self) -> bool {
        self.has_means
    }

    /// Agrees on errors, on the task of this number of arrays, and on the coefficients, of which
    /// there is a checksum. Collective.
    ///
    /// # Errors
    /// The errors of [`agree`]; [`Error::Disagreement`].
    pub(in crate::spectral) fn agree(
        &self,
        task: Option<SystemTask>,
        arrays: Result<usize, Error>,
        coefficients: u32,
    ) -> Result<(), Error> {
        let (number, shift) = match task {
            None => (0.0, 0.0),
            Some(SystemTask::Laplacian) => (1.0, 0.0),
            Some(SystemTask::Solve(shift)) => (2.0, shift),
        };
        let count = *arrays.as_ref().unwrap_or(&0) as f64;
        let sum = f64::from(coefficients);
        let mut least =
            [f64::from(arrays.is_ok()), number, -number, shift, -shift, count, -count, sum, -sum];
        if arrays.is_err() {
            least[1..].fill(0.0);
        }
        self.comm.allreduce(Reduce::Min, &mut least)?;
        let [all, pairs @ ..] = least;
        if all == 1.0 && pairs.as_chunks().0.iter().all(|[least, most]| *least == -most) {
            return Ok(());
        }
        let count = agree(self.comm.as_ref(), arrays)?;
        let text = format!("{task:?} of {count} arrays");
        let sum = format!("{coefficients:08x}");
        assert_same(self.comm.as_ref(), &[("operator", text), ("coefficients", sum)])
    }

    pub(super) fn send_to_neighbours(&mut self) -> Result<(), Error> {
        let [before, after] = &mut self.neighbours;
        self.to_neighbours.run(&[&self.ends[..]], &mut [before, after])
    }

    pub(super) fn send_to_owners(&mut self) -> Result<(), Error> {
        self.to_owners.run(&[&self.ends[..]], &mut [&mut self.reduced])
    }

    pub(super) fn send_from_owners(&mut self) -> Result<(), Error> {
        self.from_owners.run(&[&self.reduced[..]], &mut [&mut self.ends])
    }

    /// Adds the sums of all intervals to means.
    pub(super) fn add_sums(&mut self) -> Result<(), Error> {
        self.to_group.run(&[&self.sums[..]], &mut [&mut self.all_sums])?;
        let modes = self.mean_modes.len();
        for (number, mean) in self.means.iter_mut().enumerate() {
            let (component, mode) = (number / modes, number % modes);
            let sums = &self.all_sums[component * modes * self.intervals.len()..];
            *mean = (0..self.intervals.len()).map(|interval| sums[interval * modes + mode]).sum();
        }
        Ok(())
    }

    pub(super) fn clear_means(&mut self) {
        self.means.fill(0.0);
    }

    /// The lanes without a shift, with the number of their mean.
    fn singular(&self, lanes: &Lanes) -> impl Iterator<Item = (usize, usize)> {
        (0..lanes.count).filter(|lane| lanes.shift[*lane] == 0.0).filter_map(|lane| {
            let number = self.mean_modes.binary_search(&(lanes.start + lane)).ok()?;
            Some((lane, number))
        })
    }

    /// Notes the weighted sums of the lanes without a shift.
    #[inline(never)]
    pub(super) fn sum<const W: usize>(
        &mut self,
        lanes: &Lanes,
        values: &[[Lane; W]],
        weights: &[f64],
    ) {
        let mut sums = std::mem::take(&mut self.sums);
        for (lane, number) in self.singular(lanes) {
            for (component, sum) in weighted_sums(values, weights, lane).into_iter().enumerate() {
                sums[component * self.mean_modes.len() + number] = sum;
            }
        }
        self.sums = sums;
    }

    /// Calls `body` with each lane without a shift, and its mean.
    pub(super) fn each_mean<const W: usize>(
        &self,
        lanes: &Lanes,
        mut body: impl FnMut(usize, [f64; W]),
    ) {
        for (lane, number) in self.singular(lanes) {
            let mean = |component| self.means[component * self.mean_modes.len() + number];
            body(lane, std::array::from_fn(mean));
        }
    }

    /// Subtracts means in the lanes without a shift.
    #[inline(never)]
    pub(super) fn subtract_means<const W: usize>(&self, lanes: &Lanes, values: &mut [[Lane; W]]) {
        self.each_mean(lanes, |lane, means| subtract(values, lane, means));
    }

    /// Notes values at both ends.
    #[inline(always)]
    pub(super) fn put_ends<const W: usize>(&mut self, lanes: &Lanes, ends: [[Lane; W]; 2]) {
        for (number, values) in ends.as_flattened().iter().enumerate() {
            let at = number * self.modes + lanes.start;
            self.ends[at..at + lanes.count].copy_from_slice(&values[..lanes.count]);
        }
    }

    /// Notes the rows of both ends.
    #[inline(always)]
    pub(super) fn put_rows<const W: usize>(&mut self, lanes: &Lanes, rows: &EndRows<W>) {
        self.put_ends(lanes, rows.right);
        for (number, values) in rows.excess.iter().chain(&rows.coupling).enumerate() {
            let at = (2 * W + number) * self.modes + lanes.start;
            self.ends[at..at + lanes.count].copy_from_slice(&values[..lanes.count]);
        }
    }

    /// Values at both ends.
    #[inline(always)]
    pub(super) fn ends<const W: usize>(&self, lanes: &Lanes) -> [[Lane; W]; 2] {
        let lane = |number: usize| lane_at(&self.ends, number * self.modes + lanes.start);
        std::array::from_fn(|end| std::array::from_fn(|component| lane(end * W + component)))
    }

    /// The last values of the previous interval, and the first of the next one.
    #[inline(always)]
    pub(super) fn beyond<const W: usize>(&self, lanes: &Lanes) -> [[Lane; W]; 2] {
        let lane = |side: usize, number: usize| {
            lane_at(&self.neighbours[side], number * self.modes + lanes.start)
        };
        std::array::from_fn(|side| {
            let first = if side == 0 { W } else { 0 };
            std::array::from_fn(|component| lane(side, first + component))
        })
    }

    /// Solves the reduced systems of this rank.
    #[inline(always)]
    pub(super) fn solve<const W: usize>(&mut self, scheme: &Tridiagonal, room: &mut [Lane]) {
        debug_assert_eq!(W, self.width);
        let (count, modes) = (self.intervals.len(), self.solved);
        let mut room = Room::<W>::new(room, 2 * count);
        for start in (0..modes).step_by(LANES) {
            let at = |number: usize, interval: usize| (number * count + interval) * modes + start;
            for (row, values) in room.values.iter_mut().enumerate() {
                for (component, values) in values.iter_mut().enumerate() {
                    *values = lane_at(&self.reduced, at(row % 2 * W + component, row / 2));
                }
            }
            let rows = ReducedRows { axis: self, scheme, start };
            room.solve(&rows, scheme.is_periodic());
            let count = LANES.min(modes - start);
            for (row, values) in room.values.iter().enumerate() {
                for (component, values) in values.iter().enumerate() {
                    let at = at(row % 2 * W + component, row / 2);
                    self.reduced[at..at + count].copy_from_slice(&values[..count]);
                }
            }
        }
    }
}

/// The rows of both ends of each interval, in the lanes from a mode on.
struct ReducedRows<'a> {
    axis: &'a DividedAxis,
    scheme: &'a Tridiagonal,
    start: usize,
}

impl Rows for ReducedRows<'_> {
    #[inline(always)]
    fn row(&self, j: usize) -> Row {
        let Self { axis, scheme, start } = self;
        let (interval, end) = (j / 2, j % 2);
        let lane = |coefficient: usize| {
            let number = 2 * axis.width + coefficient;
            lane_at(&axis.reduced, (number * axis.intervals.len() + interval) * axis.solved + start)
        };
        let (excess, coupling) = (lane(end), lane(2 + end));
        let Range { start: first, end: beyond } = axis.intervals[interval];
        match end {
            0 => Row { excess, lower: [scheme.lower[first]; LANES], upper: coupling },
            _ => Row { excess, lower: coupling, upper: [scheme.upper[beyond - 1]; LANES] },
        }
    }
}

/// The numbers from a place on.
#[inline(always)]
fn lane_at(values: &[f64], at: usize) -> Lane {
    std::array::from_fn(|lane| values[at + lane])
}

impl fmt::Debug for DividedAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DividedAxis({} of {} intervals)", self.interval, self.intervals.len())
    }
}
