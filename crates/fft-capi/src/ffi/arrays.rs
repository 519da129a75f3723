//! Entry points for copies between local arrays.

use std::ffi::c_void;
use std::ops::Range;

use thriffty::Error;
use thriffty::arrays::{ArrayRole, BoundCopy};
#[cfg(feature = "cuda")]
use thriffty::gpu::keeping_context;
use thriffty::planning::MAX_AXES;

use super::Plan;
use super::addresses::{check, null};
#[cfg(feature = "cuda")]
use super::device;
use super::pointers::{bytes, bytes_mut, tell};
use crate::arrays::{self, Around, Copies, apart};
use crate::plan::Held;
use crate::registry::{copies, plans};
use crate::status::{Failure, Status, status};
use crate::values::{Brick, Subarray};

/// A copy between local arrays of all ranks, ready to run any number of times.
///
/// It may be used on any thread, by one at a time. A handle that is not a copy, or was destroyed,
/// is refused with `THRIFFTY_STATUS_PLAN` on this rank only, and other ranks wait for it.
pub struct Copy {
    _nobody_makes_one: [u8; 0],
}

/// Fills a struct for a brick in a dense array. The array has `lower` extra points below the brick
/// and `upper` above it along each axis: ghost points, or padded rows. NULL stands for none.
/// `order` is the order of axes in memory, slowest first; NULL as in C. With `components` above 1,
/// the components of a point are next to each other. Otherwise the arrays of a batch follow each
/// other.
///
/// The array's number is 0; set `array` for others.
///
/// # Safety
/// Pointers are NULL or point at what their types say: as many numbers as axes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_subarray_init(
    subarray: *mut Subarray,
    axes: i32,
    brick: *const Brick,
    lower: *const i64,
    upper: *const i64,
    order: *const i32,
    components: i64,
) -> Status {
    status(|| {
        let axes = match usize::try_from(axes) {
            Ok(axes @ 1..=MAX_AXES) => axes,
            _ => return Err(Error::argument("axes", axes, format!("1 to {MAX_AXES}")).into()),
        };
        if brick.is_null() {
            return Err(null("brick").into());
        }
        // SAFETY: the caller vouches for the pointers; alignment is not needed.
        unsafe {
            let around = [lower, upper].map(|place| numbers(place, axes).unwrap_or_default());
            let row_major = || std::array::from_fn(|axis| axis as i32);
            let order = numbers(order, axes).unwrap_or_else(row_major);
            let around = around.each_ref().map(|it| &it[..axes]);
            let found =
                arrays::subarray(brick.read_unaligned(), around, &order[..axes], components)?;
            Ok(tell("subarray", subarray, found)?)
        }
    })
}

/// As many numbers as axes.
///
/// # Safety
/// `place` is NULL or has as many numbers.
unsafe fn numbers<V: std::marker::Copy + Default>(
    place: *const V,
    axes: usize,
) -> Option<[V; MAX_AXES]> {
    let mut found = [V::default(); MAX_AXES];
    for (at, number) in found[..axes].iter_mut().enumerate() {
        if place.is_null() {
            return None;
        }
        // SAFETY: the caller vouches for the numbers.
        *number = unsafe { place.add(at).read_unaligned() };
    }
    Some(found)
}

/// Plans a copy of data like the data of one side of a plan, `THRIFFTY_SIDE_INPUT` or
/// `THRIFFTY_SIDE_OUTPUT`: the same grid, elements and batch, on the host or on the plan's device.
/// Each point of the targets comes from the source that has it, on whichever rank. Collective over
/// the plan's ranks; the same status on every rank. The plan may be destroyed before the copy. On
/// failure `*copy` is NULL.
///
/// Sources are disjoint, and have all points of the targets. To load a plan's data from a program's
/// arrays, the target is the brick of `thriffty_plan_sizes` in its order of axes. Plans with
/// `transposed_input` and `transposed_output` then have one reshape less on each side.
///
/// # Safety
/// Pointers are NULL or point at what their types say; there are as many structs as the counts say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_copy_create(
    copy: *mut *mut Copy,
    plan: *mut Plan,
    side: i32,
    source_count: usize,
    sources: *const Subarray,
    target_count: usize,
    targets: *const Subarray,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let asked = || unsafe {
        let found = arrays::side(side)?;
        Ok((
            found,
            structs("sources", sources, source_count)?,
            structs("targets", targets, target_count)?,
        ))
    };
    // SAFETY: as above.
    status(|| unsafe {
        create(copy, plan, asked(), |plan, asked| {
            plan.copy(asked.map(|(side, sources, targets)| (side, [sources, targets])))
        })
    })
}

/// Plans the exchange that fills the ghost points of arrays, also at edges and corners, from the
/// bricks that have them. `side` is as for `thriffty_copy_create`. Collective. It runs in place.
///
/// There are `lower` ghost points below each brick and `upper` above it along each axis. If
/// `periodic` is not 0, the grid continues at its other end; otherwise ghost points beyond the grid
/// stay as they are.
///
/// # Safety
/// As of `thriffty_copy_create`; `lower`, `upper` and `periodic` have as many numbers as the plan
/// has axes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_halo_create(
    copy: *mut *mut Copy,
    plan: *mut Plan,
    side: i32,
    lower: *const i64,
    upper: *const i64,
    periodic: *const i32,
    count: usize,
    subarrays: *const Subarray,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    let asked = || unsafe { Ok((arrays::side(side)?, structs("subarrays", subarrays, count)?)) };
    // SAFETY: as above.
    status(|| unsafe {
        create(copy, plan, asked(), |plan, asked| {
            let axes = plan.axes();
            let [below, above] = [lower, upper].map(|place| numbers(place, axes));
            let periodic = numbers(periodic, axes);
            let around = below.zip(above).zip(periodic).ok_or_else(|| null("ghost points"));
            let asked = around.and_then(|((lower, upper), periodic)| {
                let (side, arrays) = asked?;
                Ok((side, Around { lower, upper, periodic }, arrays))
            });
            plan.halo(asked)
        })
    })
}

/// Plans what was requested, and writes its handle. Collective.
///
/// # Safety
/// `place` must be NULL or have room for a handle.
unsafe fn create<A>(
    place: *mut *mut Copy,
    plan: *mut Plan,
    asked: Result<A, Error>,
    make: impl FnOnce(&mut Held, Result<A, Error>) -> Result<Copies, Error>,
) -> Result<(), Failure> {
    // SAFETY: the caller vouches for the room.
    let told = unsafe { tell("copy", place, std::ptr::null_mut()) };
    let asked = told.and(asked);
    let made = plans().with(plan.addr(), |plan| Ok(make(plan, asked)?))?;
    let number = copies().insert(made);
    // SAFETY: as above.
    unsafe { Ok(tell("copy", place, std::ptr::without_provenance_mut(number))?) }
}

/// # Safety
/// There are as many structs as `count` says.
unsafe fn structs(
    what: &str,
    place: *const Subarray,
    count: usize,
) -> Result<Vec<Subarray>, Error> {
    check(what, place.cast(), count.saturating_mul(size_of::<Subarray>()))?;
    // SAFETY: the caller vouches for the structs; alignment is not needed.
    Ok((0..count).map(|at| unsafe { place.add(at).read_unaligned() }).collect())
}

/// Copies from source arrays to target arrays; each side has as many arrays as its subarrays refer
/// to. If there are sources and `sources` is NULL, it works in place: targets are also sources. A
/// halo always runs in place. Collective; the same status on every rank.
///
/// Arrays do not overlap; bricks that are in one array have the same number. On a device arrays
/// begin at multiples of 16 bytes, and the copy is queued on the plan's stream, which lives as long
/// as the plan and its copies.
///
/// # Safety
/// Each array has the elements that its subarrays name, which nobody else touches meanwhile; on a
/// device, until the queued work is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_copy_run(
    copy: *mut Copy,
    sources: *const *const c_void,
    targets: *const *mut c_void,
) -> Status {
    status(|| {
        copies().with(copy.addr(), |held| {
            // SAFETY: the caller vouches for the arrays.
            unsafe { run(held, sources, targets) }.map_err(Failure::from)
        })
    })
}

/// # Safety
/// As of [`thriffty_copy_run`].
unsafe fn run(
    held: &mut Copies,
    sources: *const *const c_void,
    targets: *const *mut c_void,
) -> Result<(), Error> {
    let read = held.bytes(ArrayRole::Source);
    // A rank without sources may have no list of them.
    let in_place = sources.is_null() && !read.is_empty();
    let (read, written, list, what) = if in_place {
        (Vec::new(), held.bytes(ArrayRole::Both), "arrays", "array")
    } else {
        (read, held.bytes(ArrayRole::Target), "targets", "target")
    };
    // SAFETY: the caller vouches for the lists.
    let found = || unsafe {
        let from = addresses("sources", sources, &read)?;
        let to = addresses(list, targets.cast(), &written)?;
        apart(&ranges(&from, &read), &ranges(&to, &written))?;
        Ok((from, to))
    };
    let (mine, (from, to)) = split(found());
    let (from, to) = (from.into_iter().zip(read), to.into_iter().zip(written));
    match held.copy() {
        BoundCopy::Host(copy) => {
            // SAFETY: the caller vouches for the arrays, and those that are written are apart from
            // others.
            let arrays = || unsafe {
                let from = from.map(|(at, len)| bytes("source", at, len));
                let to = to.map(|(at, len)| bytes_mut(what, at.cast_mut(), len));
                Ok((from.collect::<Result<Vec<_>, _>>()?, to.collect::<Result<Vec<_>, _>>()?))
            };
            let (known, (from, mut to)) = split(arrays());
            if in_place {
                copy.run_in_place_after(mine.and(known), &mut to)
            } else {
                copy.run_after(mine.and(known), &from, &mut to)
            }
        }
        #[cfg(feature = "cuda")]
        BoundCopy::Device(copy) => keeping_context(|| {
            let (rank, stream) = (copy.rank(), copy.stream().clone());
            // SAFETY: as above.
            let array = |what, (at, len)| unsafe { device::array((rank, &stream), what, at, len) };
            let arrays = || {
                let from = from.map(|it| array("source", it)).collect::<Result<Vec<_>, _>>()?;
                Ok((from, to.map(|it| array(what, it)).collect::<Result<Vec<_>, _>>()?))
            };
            let (known, (from, mut to)) = split(arrays());
            let from: Vec<_> = from.iter().collect();
            let mut to: Vec<_> = to.iter_mut().collect();
            if in_place {
                copy.run_in_place_after(mine.and(known), &mut to)
            } else {
                copy.run_after(mine.and(known), &from, &mut to)
            }
        }),
    }
}

/// What went wrong, and the value, if it did not.
fn split<V: Default>(found: Result<V, Error>) -> (Result<(), Error>, V) {
    match found {
        Ok(found) => (Ok(()), found),
        Err(error) => (Err(error), V::default()),
    }
}

/// The addresses of arrays, with their numbers of bytes.
///
/// # Safety
/// `place` is NULL or has as many pointers.
unsafe fn addresses(
    what: &str,
    place: *const *const c_void,
    lens: &[usize],
) -> Result<Vec<*const u8>, Error> {
    if place.is_null() && !lens.is_empty() {
        return Err(null(what));
    }
    let found = lens.iter().enumerate().map(|(at, len)| {
        // SAFETY: the caller vouches for the pointers; alignment is not needed.
        let address = unsafe { place.add(at).read_unaligned() }.cast::<u8>();
        check(what, address, *len).map(|()| address)
    });
    found.collect()
}

fn ranges(addresses: &[*const u8], lens: &[usize]) -> Vec<Range<usize>> {
    addresses.iter().zip(lens).map(|(at, len)| at.addr()..at.addr() + len).collect()
}

/// Destroys a copy. Collective over its ranks. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn thriffty_copy_destroy(copy: *mut Copy) -> Status {
    status(|| match copy.addr() {
        0 => Ok(()),
        number => copies().remove(number),
    })
}
