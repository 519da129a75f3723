//! Copies between local arrays, over the ranks of a plan.

use std::ops::Range;

use thriffty::arrays::{
    ArrayRole, BoundCopy, CopyPlan, Ghosts, GridData, Subarray, check_in_order,
};
use thriffty::planning::{MAX_AXES, PerAxis};
use thriffty::{Comm, Error};

use crate::plan::{Held, keeping};
use crate::request::{brick, one_of, order};
use crate::values::{self, Brick, Side};

/// A copy that a program has planned.
pub(crate) struct Copies {
    /// There until it is dropped.
    copy: Option<BoundCopy>,
    on_device: bool,
}

/// Ghost points as programs describe them: how many below and above, and whether the grid is
/// periodic.
pub(crate) struct Around {
    pub(crate) lower: [i64; MAX_AXES],
    pub(crate) upper: [i64; MAX_AXES],
    pub(crate) periodic: [i32; MAX_AXES],
}

/// The side of a transform.
pub(crate) fn side(found: i32) -> Result<usize, Error> {
    let known = [Side::Input, Side::Output].map(|side| (side as i32, side as usize));
    one_of("side", found, &known)
}

impl Held {
    /// The data of a side of its transform.
    fn grid_data(&self, side: usize) -> Result<GridData, Error> {
        let problem = self.plan().problem();
        let layout = [&problem.input, &problem.output][side];
        check_in_order(layout)?;
        let bytes = problem.widths()[side] * problem.precision.bytes();
        Ok(GridData { grid: layout.grid(), bytes, batch: problem.batch })
    }

    /// Plans something with the communicator of this plan, if all ranks request it. Collective.
    fn with_comm<A>(
        &mut self,
        asked: Result<A, Error>,
        plan: impl FnOnce(&dyn Comm, A) -> Result<CopyPlan, Error>,
    ) -> Result<Copies, Error> {
        let asked = self.agree_with_all(asked)?;
        let (held, on_device) = (self.plan(), self.is_on_device());
        let plan = plan(held.comm(), asked)?;
        let copy = keeping(on_device, || BoundCopy::new(held, plan))?;
        Ok(Copies { copy: Some(copy), on_device })
    }

    /// Plans a copy of data of a side. Collective.
    pub(crate) fn copy(
        &mut self,
        asked: Result<(usize, [Vec<values::Subarray>; 2]), Error>,
    ) -> Result<Copies, Error> {
        let asked = asked.and_then(|(side, [sources, targets])| {
            let data = self.grid_data(side)?;
            let axes = data.grid.axes();
            Ok((data, subarrays(&sources, axes)?, subarrays(&targets, axes)?))
        });
        self.with_comm(asked, |comm, (data, sources, targets)| {
            CopyPlan::new(comm, data, &sources, &targets)
        })
    }

    /// Plans the exchange of ghost points of a side. Collective.
    pub(crate) fn halo(
        &mut self,
        asked: Result<(usize, Around, Vec<values::Subarray>), Error>,
    ) -> Result<Copies, Error> {
        let asked = asked.and_then(|(side, around, arrays)| {
            let data = self.grid_data(side)?;
            let axes = data.grid.axes();
            let Around { lower, upper, periodic } = around;
            let ghosts = Ghosts {
                lower: counts("ghost points below", &lower[..axes])?,
                upper: counts("ghost points above", &upper[..axes])?,
                periodic: PerAxis::from_fn(axes, |axis| periodic[axis] != 0),
            };
            Ok((data, ghosts, subarrays(&arrays, axes)?))
        });
        self.with_comm(asked, |comm, (data, ghosts, arrays)| {
            CopyPlan::halo(comm, data, ghosts, &arrays)
        })
    }
}

impl Copies {
    pub(crate) fn copy(&mut self) -> &mut BoundCopy {
        self.copy.as_mut().expect("a copy until it is dropped")
    }

    /// Bytes of each array in this role.
    pub(crate) fn bytes(&mut self, role: ArrayRole) -> Vec<usize> {
        let plan = self.copy().plan();
        plan.least(role).iter().map(|elements| elements * plan.data.bytes).collect()
    }
}

/// A copy on a device is dropped without changing the program's current device.
impl Drop for Copies {
    fn drop(&mut self) {
        keeping(self.on_device, || drop(self.copy.take()));
    }
}

/// Checks that written arrays overlap no others.
pub(crate) fn apart(read: &[Range<usize>], written: &[Range<usize>]) -> Result<(), Error> {
    let read = read.iter().map(|range| (range, false));
    let mut all: Vec<_> = read.chain(written.iter().map(|range| (range, true))).collect();
    all.retain(|(range, _)| !range.is_empty());
    all.sort_by_key(|(range, _)| range.start);
    // The ends of all arrays so far, and of those that are written.
    let mut ends = [0, 0];
    for (range, is_written) in all {
        if range.start < ends[usize::from(!is_written)] {
            let expected = "arrays that lie apart; several bricks may be in one";
            return Err(Error::argument("arrays of a copy", "some that overlap", expected));
        }
        ends[0] = ends[0].max(range.end);
        if is_written {
            ends[1] = ends[1].max(range.end);
        }
    }
    Ok(())
}

fn count(what: &str, found: i64) -> Result<usize, Error> {
    usize::try_from(found).map_err(|_| Error::argument(what, found, "0 or more"))
}

fn counts(what: &str, found: &[i64]) -> Result<PerAxis<usize>, Error> {
    let mut counts = PerAxis::splat(found.len(), 0);
    for (known, found) in counts.iter_mut().zip(found) {
        *known = count(what, *found)?;
    }
    Ok(counts)
}

fn subarrays(found: &[values::Subarray], axes: usize) -> Result<Vec<Subarray>, Error> {
    let known = |it: &values::Subarray| {
        Ok(Subarray {
            array: count("array of a subarray", it.array)?,
            brick: brick(it.brick, axes)?,
            offset: count("offset of a subarray", it.offset)?,
            strides: counts("stride of a subarray", &it.strides[..axes])?,
            distance: count("distance of a subarray", it.distance)?,
        })
    };
    found.iter().map(known).collect()
}

/// A brick in a dense array of this order of axes, with `lower` points below it and `upper` above.
/// Several components are side by side.
pub(crate) fn subarray(
    brick_asked: Brick,
    [lower, upper]: [&[i64]; 2],
    order_asked: &[i32],
    components: i64,
) -> Result<values::Subarray, Error> {
    let axes = lower.len();
    let brick = brick(brick_asked, axes)?;
    let order = order("order", order_asked)?;
    if !(0..axes).all(|axis| order.contains(&axis)) {
        let expected = format!("each of 0 to {} once", axes - 1);
        return Err(Error::argument("order", format!("{order:?}"), expected));
    }
    let [lower, upper] =
        [counts("ghost points below", lower)?, counts("ghost points above", upper)?];
    let shape = PerAxis::from_fn(axes, |axis| {
        lower[axis].saturating_add(brick.len(axis)).saturating_add(upper[axis])
    });
    let components = count("components", components)?.max(1);
    let mut found = Subarray::placed(brick, lower, shape, order);
    if components > 1 {
        found = found.interleaved(components);
    }
    found.least_len(components)?;
    let mut strides = [0; MAX_AXES];
    for (known, stride) in strides.iter_mut().zip(found.strides.iter()) {
        *known = *stride as i64;
    }
    Ok(values::Subarray {
        brick: brick_asked,
        array: 0,
        offset: found.offset as i64,
        strides,
        distance: found.distance as i64,
    })
}
