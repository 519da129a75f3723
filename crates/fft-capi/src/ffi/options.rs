//! The options of plans.

use std::ffi::{c_char, c_void};

use thriffty::Error;
use thriffty::planning::{MAX_AXES, Settings};

use super::addresses::null;
use super::pointers::{tell, text, write_text};
use crate::options::{describe, in_c_order, in_fortran_order};
use crate::status::{Status, status};
use crate::values::Options;

/// Makes options, which all have their defaults. On failure `*options` is NULL.
///
/// # Safety
/// `options` is NULL or has room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_options_create(options: *mut *mut Options) -> Status {
    status(|| {
        let made = Box::into_raw(Box::<Options>::default());
        // SAFETY: the caller vouches for the room.
        let told = unsafe { tell("options", options, made) };
        if told.is_err() {
            // SAFETY: nobody else has this pointer.
            drop(unsafe { Box::from_raw(made) });
        }
        Ok(told?)
    })
}

/// Destroys options. NULL is ignored.
///
/// # Safety
/// `options` is NULL or of `thriffty_options_create`, and not destroyed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_options_destroy(options: *mut Options) -> Status {
    status(|| {
        if !options.is_null() {
            // SAFETY: the caller vouches for it.
            drop(unsafe { Box::from_raw(options) });
        }
        Ok(())
    })
}

/// Sets the option of this name to the value that a text describes: for example "tolerance" to
/// "1e-6", "batch" to "3", "shared_arrays" to "true" or "kinds" to "c2c,r2c". "default" is always
/// allowed. Unknown names and values are refused with `THRIFFTY_STATUS_ARGUMENT`, and a text that
/// lists the known ones. Not collective.
///
/// The options keep the first failure of this and the following calls, and every plan that is made
/// with them fails with it, on all ranks. So you need to check only the plan's status, and no rank
/// waits for one that gave up.
///
/// # Safety
/// `options` is NULL or of `thriffty_options_create`; each text is NULL or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_options_set(
    options: *mut Options,
    name: *const c_char,
    value: *const c_char,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { change(options, |it| it.set(&needed("name", name)?, &needed("value", value)?)) }
}

/// As `thriffty_options_set`, but values for each axis are in the order of Fortran, and axes are
/// counted from 1.
///
/// # Safety
/// As of `thriffty_options_set`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_options_set_f(
    options: *mut Options,
    name: *const c_char,
    value: *const c_char,
) -> Status {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        change(options, |settings| {
            let (name, value) = (needed("name", name)?, needed("value", value)?);
            settings.set(&name, &in_c_order(&name, &value)?)
        })
    }
}

/// Sets an option that has a whole number for each axis, such as "zero_padded" or "input_order", to
/// `count` numbers.
///
/// # Safety
/// As of `thriffty_options_set`; `values` is NULL or has `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_options_set_integers(
    options: *mut Options,
    name: *const c_char,
    count: usize,
    values: *const i64,
) -> Status {
    let set = |settings: &mut Settings| {
        // SAFETY: the caller vouches for the text.
        let name = unsafe { needed("name", name) }?;
        if values.is_null() {
            return Err(null("values"));
        }
        if count > MAX_AXES {
            let expected = format!("1 to {MAX_AXES}");
            return Err(Error::argument(format!("axes of {name}"), count, expected));
        }
        let mut numbers = Vec::new();
        for place in 0..count {
            // SAFETY: there are `count` numbers; alignment is not needed.
            numbers.push(unsafe { values.add(place).read_unaligned() }.to_string());
        }
        settings.set(&name, &numbers.join(","))
    };
    // SAFETY: the caller vouches for the options.
    unsafe { change(options, set) }
}

/// Sets the CUDA stream for all work of plans on a device: a `CUstream` or `cudaStream_t` of the
/// device's primary context, which lives as long as the plan and its copies. NULL is CUDA's default
/// stream.
///
/// # Safety
/// `options` is NULL or of `thriffty_options_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_options_set_stream(
    options: *mut Options,
    stream: *mut c_void,
) -> Status {
    status(|| {
        // SAFETY: the caller vouches for the options.
        unsafe { given(options) }?.stream = stream.expose_provenance();
        Ok(())
    })
}

/// Sets options from the environment, as in `THRIFFTY_TOLERANCE=1e-6`: only options for how a
/// transform is done, so that arrays and results keep their form. For programs whose users cannot
/// set options otherwise.
///
/// # Safety
/// `options` is NULL or of `thriffty_options_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_options_read_environment(options: *mut Options) -> Status {
    // SAFETY: the caller vouches for the options.
    unsafe { change(options, |settings| settings.options.read_environment()) }
}

/// Changes options, which keep the first failure.
///
/// # Safety
/// `options` is NULL or of `thriffty_options_create`.
unsafe fn change(
    options: *mut Options,
    change: impl FnOnce(&mut Settings) -> Result<(), Error>,
) -> Status {
    status(|| {
        // SAFETY: the caller vouches for it.
        let options = unsafe { given(options) }?;
        let outcome = change(&mut options.settings);
        if options.failed.is_none() {
            options.failed = outcome.clone().err();
        }
        Ok(outcome?)
    })
}

/// Options that may not be NULL.
///
/// # Safety
/// `options` is NULL or of `thriffty_options_create`.
unsafe fn given<'a>(options: *mut Options) -> Result<&'a mut Options, Error> {
    // SAFETY: the caller vouches for it.
    unsafe { options.as_mut() }.ok_or_else(|| null("options"))
}

/// A text that may not be NULL.
///
/// # Safety
/// `place` is NULL or ends with a zero.
unsafe fn needed(what: &str, place: *const c_char) -> Result<String, Error> {
    // SAFETY: the caller vouches for it.
    unsafe { text(what, place) }?.ok_or_else(|| null(what))
}

/// Writes the value of the option of this name, as snprintf does: at most `room` bytes with the
/// final zero. Returns the length of the whole text without the zero or, on failure, a status times
/// -1. So you can test whether a library has an option: the options do not keep this failure.
///
/// # Safety
/// `options` is NULL or of `thriffty_options_create`, `name` is NULL or ends with a zero, and
/// `value` is NULL or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_options_get(
    options: *const Options,
    name: *const c_char,
    value: *mut c_char,
    room: usize,
) -> i64 {
    // SAFETY: the caller vouches for the pointers and the room.
    unsafe { write_text(value, room, || Ok(value_of(options, name)?.1)) }
}

/// As `thriffty_options_get`, but values for each axis are in the order of Fortran, and axes are
/// counted from 1.
///
/// # Safety
/// As of `thriffty_options_get`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_options_get_f(
    options: *const Options,
    name: *const c_char,
    value: *mut c_char,
    room: usize,
) -> i64 {
    let found = || {
        // SAFETY: the caller vouches for the pointers.
        let (name, text) = unsafe { value_of(options, name) }?;
        Ok(in_fortran_order(&name, &text)?)
    };
    // SAFETY: the caller vouches for the room.
    unsafe { write_text(value, room, found) }
}

/// An option's name, and its value as text.
///
/// # Safety
/// `options` is NULL or of `thriffty_options_create`, and `name` is NULL or ends with a zero.
unsafe fn value_of(
    options: *const Options,
    name: *const c_char,
) -> Result<(String, String), Error> {
    // SAFETY: the caller vouches for the pointers.
    let (options, name) = unsafe { (options.as_ref(), needed("name", name)?) };
    let text = options.ok_or_else(|| null("options"))?.settings.get(&name)?;
    Ok((name, text))
}

/// Writes all options as JSON, as `thriffty_options_get` writes one: an array of objects with
/// "name", "form", "names", "scope", "default" and "meaning". For programs that make their own
/// interface from them.
///
/// # Safety
/// `json` is NULL or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thriffty_options_describe(json: *mut c_char, room: usize) -> i64 {
    // SAFETY: the caller vouches for the room.
    unsafe { write_text(json, room, || Ok(describe())) }
}
