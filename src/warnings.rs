//! Warnings of the library on standard error, for programs without a logger.

use std::io::Write;
use std::sync::OnceLock;

pub use fft_core::{escaped, shown};
use log::{LevelFilter, Log, Metadata, Record};

/// A logger that begins lines with a name.
struct Stderr(&'static str);

impl Log for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= LevelFilter::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let level = record.level().as_str().to_lowercase();
            let line = format!("{}: {level}: {}\n", self.0, escaped(&record.args().to_string()));
            // A warning that cannot be written is not an error.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }

    fn flush(&self) {}
}

static LOGGER: OnceLock<Stderr> = OnceLock::new();

/// Prints warnings on standard error, in lines that begin with `name`, unless the program has set a
/// logger or this was called before.
pub fn show(name: &'static str) {
    // If the program has set a logger, the warnings go there.
    if log::set_logger(LOGGER.get_or_init(|| Stderr(name))).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}
