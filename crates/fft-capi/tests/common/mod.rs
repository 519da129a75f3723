//! Options as C programs set them.

use std::ffi::CString;

use fft_capi::ffi::options::thriffty_options_set;
use fft_capi::status::Status;
use fft_capi::values::Options;

/// Sets an option. The options keep a failure.
pub(crate) fn set(options: &mut Options, name: &str, value: impl Into<Vec<u8>>) -> Status {
    let (name, value) = (CString::new(name).unwrap(), CString::new(value).unwrap());
    // SAFETY: the pointers belong to values that live until the call returns.
    unsafe { thriffty_options_set(options, name.as_ptr(), value.as_ptr()) }
}

/// Options with these values.
#[allow(dead_code, reason = "not every test program uses it")]
pub(crate) fn options(settings: &[(&str, &str)]) -> Options {
    let mut options = Options::default();
    for (name, value) in settings {
        set(&mut options, name, *value);
    }
    options
}
