//! Checks of the addresses that C programs pass; nothing here dereferences one.

use std::ops::Range;

use thriffty::Error;

/// The error for a pointer that must not be NULL.
pub(super) fn null(what: &str) -> Error {
    Error::argument(what, "NULL", "a pointer")
}

/// Checks that there can be `bytes` bytes at an address.
pub(super) fn check(what: &str, data: *const u8, bytes: usize) -> Result<(), Error> {
    if data.is_null() && bytes > 0 {
        return Err(null(what));
    }
    let end = data.addr().checked_add(bytes);
    if isize::try_from(bytes).is_err() || end.is_none() {
        return Err(Error::argument(format!("bytes of the {what}"), bytes, "as many as there are"));
    }
    Ok(())
}

/// Checks that two arrays do not overlap.
pub(super) fn apart(
    (input, input_bytes): (*const u8, usize),
    (output, output_bytes): (*mut u8, usize),
) -> Result<(), Error> {
    check("input", input, input_bytes)?;
    check("output", output, output_bytes)?;
    let range = |at: usize, bytes: usize| at..at + bytes;
    let [a, b]: [Range<usize>; 2] =
        [range(input.addr(), input_bytes), range(output.addr(), output_bytes)];
    if a.start < b.end && b.start < a.end && !a.is_empty() && !b.is_empty() {
        let expected = "arrays that lie apart, or a transform in place";
        return Err(Error::argument("input and output", "arrays that overlap", expected));
    }
    Ok(())
}
