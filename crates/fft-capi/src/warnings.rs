//! What the library warns of, on standard error: programs in C have no other place for it.

use log::{LevelFilter, Log, Metadata, Record};

struct Stderr;

impl Log for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= LevelFilter::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            eprintln!("thriffty: {}: {}", record.level().as_str().to_lowercase(), record.args());
        }
    }

    fn flush(&self) {}
}

/// From now on, warnings are shown.
pub(crate) fn show() {
    // Whoever set a logger before shows them already.
    if log::set_logger(&Stderr).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}
