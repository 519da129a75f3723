//! Another library of a program, also in Rust, which catches a panic of its own.

use std::panic::catch_unwind;

struct Dropped<'a>(&'a mut i32);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        *self.0 += 1;
    }
}

/// How often a value was dropped while a panic unwound: 1.
#[unsafe(no_mangle)]
pub extern "C" fn other_unwinds() -> i32 {
    let mut drops = 0;
    let caught = catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _dropped = Dropped(&mut drops);
        let none: Option<i32> = std::hint::black_box(None);
        none.expect("a panic of the other library")
    }));
    assert!(caught.is_err());
    drops
}
