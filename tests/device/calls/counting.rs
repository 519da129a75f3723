//! The counting library: builds it, and loads it before the driver of another process.

use std::ffi::{CString, c_char};
use std::path::{Path, PathBuf};
use std::process::Command;

use thriffty::gpu::cudarc::driver::sys;

use crate::common::again;

/// Names a prebuilt library, for machines without a compiler.
const BUILT: &str = "THRIFFTY_DRIVER_CALLS";

/// The number of calls of each function so far.
pub(super) fn calls(list: &[&str]) -> Vec<u64> {
    type Calls = unsafe extern "C" fn(*const c_char) -> u64;
    // SAFETY: the symbol is of the counting library; the function takes a text and returns a
    // number.
    let calls = unsafe { sys::culib().get::<Calls>(b"thriffty_driver_calls\0") };
    let calls = calls.expect("started by another test");
    let names = list.iter().map(|name| CString::new(*name).expect("a name"));
    // SAFETY: as above.
    names.map(|name| unsafe { calls(name.as_ptr()) }).collect()
}

type Refuse = unsafe extern "C" fn(*const c_char, u64, i32) -> i32;

/// Makes the driver refuse one call of this thread with a code: a call of this function, after a
/// number of others.
///
/// Returns whether the call that was to be refused before has been.
fn refuse_next(name: &str, after: u64, code: i32) -> bool {
    // SAFETY: as in `calls`.
    let refuse = unsafe { sys::culib().get::<Refuse>(b"thriffty_driver_refuse\0") };
    let (refuse, name) =
        (refuse.expect("started by another test"), CString::new(name).expect("a name"));
    // SAFETY: as in `calls`.
    unsafe { refuse(name.as_ptr(), after, code) != 0 }
}

/// Runs `work` while the driver refuses a call of this thread; also returns whether it was called.
pub(super) fn refusing<R>(
    name: &str,
    after: u64,
    code: i32,
    work: impl FnOnce() -> R,
) -> (R, bool) {
    refuse_next(name, after, code);
    let found = work();
    (found, refuse_next("", 0, 0))
}

pub(super) fn compile(words: &[&str], to: &Path) -> bool {
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-O1", "-Wall", "-Werror", "-shared", "-fPIC"]).args(words);
    match cc.arg("-o").arg(to).status() {
        Ok(status) => {
            assert!(status.success(), "cc {words:?}: {status}");
            true
        }
        Err(why) => {
            println!("not run: no C compiler ({why}), and no {BUILT}");
            false
        }
    }
}

/// Runs the ignored test of this name with the counting library before the driver.
///
/// Several processes are started by `mpirun`. `None` without a C compiler or `mpirun`.
pub(super) fn count_in(test: &str, driver: &Path, processes: usize) -> Option<bool> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let real = at("libthriffty_real_driver.so");
    match std::env::var_os(BUILT) {
        Some(built) => drop(std::fs::copy(built, at("libcuda.so.1")).unwrap()),
        None => {
            // Linking needs only the driver's name.
            let name = "-Wl,-soname,libthriffty_real_driver.so";
            if !compile(&["-xc", "/dev/null", name], &real) {
                return None;
            }
            let counter = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/device/calls/counter.c");
            let real = real.to_str().unwrap();
            let words = [counter, "-Wl,-soname,libcuda.so.1", "-Wl,--no-as-needed", real, "-ldl"];
            compile(&words, &at("libcuda.so.1"));
        }
    }
    let _ = std::fs::remove_file(&real);
    std::os::unix::fs::symlink(driver, &real).unwrap();
    std::os::unix::fs::symlink("libcuda.so.1", at("libcuda.so")).unwrap();
    let mut path = folder.path().as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_LIBRARY_PATH") {
        path.push(":");
        path.push(others);
    }
    let mut program = match processes {
        1 => again::only(test),
        _ => again::under_mpirun(processes, test),
    };
    program.env("LD_LIBRARY_PATH", path);
    match program.status() {
        Ok(status) => Some(status.success()),
        Err(why) => {
            println!("not run: {why}");
            None
        }
    }
}

/// The path of the driver that this process has loaded.
pub(super) fn loaded() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    let driver = paths.find(|path| path.rsplit('/').next().unwrap().starts_with("libcuda.so"));
    driver.expect("a driver was found").into()
}
