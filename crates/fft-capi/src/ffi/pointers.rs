//! Pointers of C programs as references, slices and texts; an error for invalid ones, if detected.

use std::ffi::{CStr, c_char};

use thriffty::planning::{DeviceChoice, MAX_AXES};
use thriffty::{Comm, Error};

use super::addresses::{apart, check, null};
#[cfg(feature = "cuda")]
use super::device::place;
#[cfg(not(feature = "cuda"))]
use crate::request::Place;
use crate::request::{Request, family};
use crate::status::{Failure, attempt};
use crate::values::{Brick, Options};

/// Writes a value of a call.
///
/// # Safety
/// `place` must be NULL or have room for a `V`.
pub(super) unsafe fn tell<V>(what: &str, place: *mut V, value: V) -> Result<(), Error> {
    if place.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller vouches for the room; alignment is not needed.
    unsafe { place.write_unaligned(value) };
    Ok(())
}

/// Reads a struct.
///
/// # Safety
/// `place` must be NULL or point at a `V` of numbers.
unsafe fn said<V: Copy>(place: *const V) -> Option<V> {
    // SAFETY: the caller vouches for it; alignment is not needed.
    (!place.is_null()).then(|| unsafe { place.read_unaligned() })
}

/// The text that a pointer points to, if it does.
///
/// # Safety
/// It must be NULL or point to a text that ends with a zero.
pub(super) unsafe fn text(what: &str, text: *const c_char) -> Result<Option<String>, Error> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller vouches for it.
    let text = unsafe { CStr::from_ptr(text) };
    let found = text.to_str().map_err(|why| Error::argument(what, why, "UTF-8"))?;
    Ok(Some(found.to_owned()))
}

/// The bytes of an array. Without bytes the pointer may be anything.
///
/// # Safety
/// There must be `bytes` bytes, which nobody writes to while the result lives.
pub(super) unsafe fn bytes<'a>(
    what: &str,
    data: *const u8,
    bytes: usize,
) -> Result<&'a [u8], Error> {
    check(what, data, bytes)?;
    match bytes {
        0 => Ok(&[]),
        // SAFETY: the caller vouches for the bytes; there are not more than a slice can have.
        _ => unsafe { Ok(std::slice::from_raw_parts(data, bytes)) },
    }
}

/// The same of an array that is written.
///
/// # Safety
/// There must be `bytes` bytes, which nobody else touches while the result lives.
pub(super) unsafe fn bytes_mut<'a>(
    what: &str,
    data: *mut u8,
    bytes: usize,
) -> Result<&'a mut [u8], Error> {
    check(what, data, bytes)?;
    match bytes {
        0 => Ok(&mut []),
        // SAFETY: as above.
        _ => unsafe { Ok(std::slice::from_raw_parts_mut(data, bytes)) },
    }
}

/// Two arrays; the second is written.
///
/// # Safety
/// As of [`bytes`] and [`bytes_mut`], but that they may overlap, which is an error.
pub(super) unsafe fn arrays<'a>(
    (input, input_bytes): (*const u8, usize),
    (output, output_bytes): (*mut u8, usize),
) -> Result<(&'a [u8], &'a mut [u8]), Error> {
    apart((input, input_bytes), (output, output_bytes))?;
    // SAFETY: the caller vouches for the bytes; they do not overlap, as just checked.
    unsafe { Ok((bytes("input", input, input_bytes)?, bytes_mut("output", output, output_bytes)?)) }
}

/// The request of a program, for a plan of these ranks or a call without a plan.
///
/// # Safety
/// Pointers must be NULL or point at what their types say, with as many lengths as axes.
pub(super) unsafe fn request(
    comm: Option<&dyn Comm>,
    (transform, axes): (i32, i32),
    shape: *const i64,
    bricks: [*const Brick; 2],
    options: *const Options,
) -> Result<Request, Error> {
    let family = family(transform, axes)?;
    if shape.is_null() {
        return Err(null("shape"));
    }
    let mut lens = [1; MAX_AXES];
    for (axis, len) in lens[..family.1].iter_mut().enumerate() {
        // SAFETY: there are as many lengths as axes.
        *len = unsafe { shape.add(axis).read_unaligned() };
    }
    // SAFETY: the caller vouches for all of them.
    unsafe {
        let bricks = bricks.map(|brick| said(brick));
        let usual = options.is_null().then(Options::default);
        let options = options.as_ref().or(usual.as_ref()).ok_or_else(|| null("options"))?;
        if let Some(why) = &options.failed {
            return Err(why.clone());
        }
        let place = match (options.settings.placement.device, comm) {
            (DeviceChoice::Host, _) => None,
            (device, Some(comm)) => Some(place(comm, device, options)?),
            (device, None) => {
                let what = "device of a transform without a plan";
                return Err(Error::argument(what, device, "host"));
            }
        };
        Request::new(family, &lens[..family.1], bricks, options, place)
    }
}

/// The device of a plan: there is none in a library without CUDA.
///
/// # Safety
/// None is needed; see the other one.
#[cfg(not(feature = "cuda"))]
unsafe fn place(comm: &dyn Comm, device: DeviceChoice, _: &Options) -> Result<Place, Error> {
    let why = format!("device {device} was asked for, and this library was built without CUDA");
    Err(Error::NoDevice { rank: comm.rank(), why })
}

/// Writes the beginning of a struct, as many bytes as a program's header gives it: one of `known`.
///
/// # Safety
/// `place` must be NULL or have room for `bytes` bytes.
pub(super) unsafe fn tell_struct<S>(
    what: &str,
    place: *mut S,
    bytes: usize,
    value: S,
    known: &[usize],
) -> Result<(), Error> {
    if place.is_null() {
        return Err(null(what));
    }
    if !known.contains(&bytes) {
        let size = format!("size of the {what}");
        return Err(Error::argument(size, bytes, format!("one of {known:?}")));
    }
    assert!(bytes <= size_of::<S>(), "no header has more");
    // SAFETY: the caller vouches for the room, and the value has as many bytes or more.
    unsafe { (&raw const value).cast::<u8>().copy_to(place.cast(), bytes) };
    Ok(())
}

/// Writes as much of a text as there is room for, with a zero; returns the length without it.
///
/// # Safety
/// `place` must be NULL or have room for `room` bytes.
pub(super) unsafe fn tell_text(place: *mut c_char, room: usize, text: &str) -> i64 {
    if !place.is_null() && room > 0 {
        let bytes = text.len().min(room - 1);
        // SAFETY: the caller vouches for the room, and this writes no more.
        unsafe {
            place.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), bytes);
            place.add(bytes).write(0);
        }
    }
    text.len() as i64
}

/// Writes a text as snprintf does; its length, or a status times -1.
///
/// # Safety
/// `place` is NULL or has room for `room` bytes.
pub(super) unsafe fn write_text(
    place: *mut c_char,
    room: usize,
    text: impl FnOnce() -> Result<String, Failure>,
) -> i64 {
    match attempt(text) {
        // SAFETY: the caller vouches for the room.
        Ok(text) => unsafe { tell_text(place, room, &text) },
        Err(status) => -(status as i64),
    }
}
