//! What `thriffty_last_error` says of hostile arguments: one short line, with the fault that it is.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr::null_mut;

use fft_capi::ffi::{
    thriffty_last_error, thriffty_plan_create_serial, thriffty_plan_destroy, thriffty_plan_refuse,
    thriffty_plan_report,
};
use fft_capi::status::Status;
use fft_capi::values::Options;

mod common;
use common::{options, set};

/// The status and the text of a plan of one process.
fn refusal(transform: i32, shape: &[i64], options: &Options) -> (Status, String) {
    let mut plan = null_mut();
    let axes = shape.len() as i32;
    // SAFETY: all pointers belong to values that live until the call returns; the text is read
    // before the next call.
    let (status, said) = unsafe {
        let place = &raw mut plan;
        let status = thriffty_plan_create_serial(place, transform, axes, shape.as_ptr(), options);
        (status, CStr::from_ptr(thriffty_last_error()).to_str().unwrap().to_owned())
    };
    assert!(plan.is_null() && status != Status::Ok, "{shape:?}: {status:?}");
    assert!(said.len() < 1000 && !said.contains(char::is_control), "{said}");
    (status, said)
}

#[test]
fn a_grid_that_cannot_be_counted_is_no_lack_of_memory() {
    for shape in [[1 << 32, 1 << 32], [i64::MAX, i64::MAX], [1 << 58, 2]] {
        let (status, said) = refusal(0, &shape, &Options::default());
        assert_eq!(status, Status::Argument, "{said}");
        assert!(said.contains("has more than 2^58 points"), "{said}");
    }
    let (status, said) = refusal(0, &[1, 1 << 57], &Options::default());
    assert_eq!(status, Status::Memory);
    assert_eq!(said.matches("rank 0").count(), 1, "{said}");
}

#[test]
fn hostile_texts_are_short_and_escaped() {
    let long = "x".repeat(100_000);
    let names = ["exchange", "wire", "memory", "layouts", "machine", "tuning", "kinds", "no such"];
    for text in ["\u{1b}[2J\u{7}\r\n", &long, "", "(fft z)", "\u{202e}é"] {
        for name in names {
            let (status, said) = refusal(0, &[4, 4], &options(&[(name, text)]));
            assert_eq!(status, Status::Argument, "{said}");
        }
        let (status, _) = refusal(0, &[4, 4], &options(&[(text, "1")]));
        assert_eq!(status, Status::Argument);
        let tuning = format!("recipe:{text}");
        assert_eq!(refusal(0, &[4, 4], &options(&[("tuning", &tuning)])).0, Status::Argument);
    }
    let mut latin = Options::default();
    assert_eq!(set(&mut latin, "exchange", [0xe9]), Status::Argument);
    assert_eq!(refusal(0, &[4], &latin).0, Status::Argument);
}

#[test]
fn hostile_numbers_are_told() {
    for (shape, transform, wanted) in [
        (&[4, 4][..], -1, "transform: found -1"),
        (&[4, 4], i32::MAX, "transform: found 2147483647"),
        (&[4, 0], 0, "axis 1 of grid 4x0 has no points"),
        (&[4, -1], 0, "points along axis 1: found -1"),
        (&[i64::MIN], 0, "points along axis 0: found -9223372036854775808"),
        (&[], 0, "axes: found 0, expected 1 to 4"),
        (&[1, 1, 1, 1, 1], 0, "axes: found 5, expected 1 to 4"),
    ] {
        let (_, said) = refusal(transform, shape, &Options::default());
        assert!(said.contains(wanted), "{said}");
    }
    for tolerance in ["nan", "-1", "2", "inf", "0", "1e-6 very strict"] {
        let (status, said) = refusal(0, &[4, 4], &options(&[("tolerance", tolerance)]));
        assert!(status == Status::Argument && said.contains("above 0 and at most 1"), "{said}");
    }
}

/// The first option that cannot be set is an error of the plan, whatever is set later.
#[test]
fn options_keep_their_first_failure() {
    let options = options(&[("batch", "many"), ("wire", "bits:99"), ("batch", "2")]);
    let (status, said) = refusal(0, &[4, 4], &options);
    assert_eq!(status, Status::Argument);
    assert!(said.contains("batch: found many, expected a whole number"), "{said}");
}

/// A program's own check fails in the words that it gives, and the report has a line per candidate.
#[test]
fn programs_refuse_in_their_own_words() {
    let [what, found, expected] = [c"dtype of x", c"int16", c"float64"].map(CStr::as_ptr);
    for threads in ["1", "2"] {
        let options = options(&[("threads", threads)]);
        let mut plan = null_mut();
        let mut table = vec![0_u8; 10_000];
        // SAFETY: as above; there is room for the table.
        unsafe {
            let made = thriffty_plan_create_serial(&raw mut plan, 0, 2, [4, 6].as_ptr(), &options);
            assert_eq!(made, Status::Ok);
            assert_eq!(thriffty_plan_refuse(plan, what, found, expected), Status::Argument);
            let said = CStr::from_ptr(thriffty_last_error()).to_str().unwrap();
            assert!(said.ends_with("dtype of x: found int16, expected float64"), "{said}");
            let length = thriffty_plan_report(plan, table.as_mut_ptr().cast(), table.len());
            table.truncate(usize::try_from(length).unwrap());
            assert_eq!(thriffty_plan_destroy(plan), Status::Ok);
        }
        let table = String::from_utf8(table).unwrap();
        let (reason, table) = table.split_once('\n').unwrap();
        assert!(reason.starts_with("chosen by the model: "), "{reason}");
        let (title, rows) = table.split_once('\n').unwrap();
        assert!(title.trim_start().starts_with("model"), "{table}");
        assert_eq!(rows.lines().filter(|row| row.starts_with('*')).count(), 1, "{table}");
    }
}
