//! Signals that end the program, and the temporary files that it must then remove.

use std::ffi::c_int;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool, atomic::Ordering, mpsc};
use std::thread::Builder;

use signal_hook::consts::{SIGABRT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

/// Signals whose default action ends a program, and that users, shells and batch systems send.
const ENDING: [c_int; 5] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU];

#[derive(Default)]
struct Temporary {
    names: Vec<PathBuf>,
    /// Whether a thread waits for signals.
    watched: bool,
}

/// Locked while a file is made, so that its name is recorded when a signal comes.
static TEMPORARY: Mutex<Temporary> = Mutex::new(Temporary { names: Vec::new(), watched: false });

fn temporary() -> MutexGuard<'static, Temporary> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Turns signals that the program causes itself into errors. Called once, before the work.
pub(crate) fn prepare() {
    // Any handler will do: a write beyond the limit of a file's size then fails with an error.
    let files = flag::register(SIGXFSZ, Arc::default());
    // The allocator aborts after it has printed which allocation failed, because lack of memory is
    // an error, too.
    let always = Arc::new(AtomicBool::new(true));
    let memory = flag::register_conditional_shutdown(SIGABRT, 1, always);
    // Where a handler is refused, the default action stays.
    let _ = (files, memory);
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // The standard library makes a stack for signal handlers in each new thread. If there is no
        // memory for it, it panics before the thread can return an error.
        if panic.location().is_some_and(|at| at.file().ends_with("stack_overflow.rs")) {
            end_without_stack();
        }
        report(panic);
    }));
}

/// Ends the program with one sentence, whichever thread comes first.
fn end_without_stack() -> ! {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    if !IS_SAID.swap(true, Ordering::Relaxed) {
        let text = "fft-cli: too many threads: no memory for the stack of one; use fewer ranks\n";
        // If standard error cannot be written, the exit status still reports the failure.
        let _ = io::stderr().write_all(text.as_bytes());
        if let Ok(temporary) = TEMPORARY.try_lock() {
            remove(&temporary);
        }
        low_level::exit(1);
    }
    loop {
        std::thread::park();
    }
}

/// Makes a file with a temporary name. It is removed if a signal ends the program.
pub(crate) fn guarded<T>(
    make: impl FnOnce() -> io::Result<T>,
    name: impl FnOnce(&T) -> &Path,
) -> io::Result<T> {
    let mut temporary = temporary();
    if !temporary.watched {
        // Without a thread that waits for signals a file may be left, but it can be written.
        temporary.watched = watch().is_ok();
    }
    let made = make()?;
    temporary.names.push(name(&made).to_path_buf());
    Ok(made)
}

/// Removes the temporary files that are still there.
#[cfg(feature = "mpi")]
pub(crate) fn remove_temporary() {
    remove(&temporary());
}

fn remove(temporary: &Temporary) {
    for name in &temporary.names {
        // A file that already has its final name is not found here.
        let _ = std::fs::remove_file(name);
    }
}

/// Starts a thread that ends the program as the signal would have, without temporary files. It
/// runs when this returns: a thread without a stack ends the program before any file is made.
fn watch() -> io::Result<()> {
    let ignored = ignored();
    let heard = ENDING.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(heard)?;
    let (started, has_started) = mpsc::channel();
    let end = move || {
        let _ = started.send(());
        for signal in signals.forever() {
            let temporary = temporary();
            remove(&temporary);
            // Locked until the end, so that no file is made in between.
            let _ = low_level::emulate_default_handler(signal);
        }
    };
    Builder::new().name("signals".into()).spawn(end)?;
    let _ = has_started.recv();
    Ok(())
}

/// The signals that this program was started to ignore, as by nohup: a bit for each.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
