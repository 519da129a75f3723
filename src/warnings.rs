//! What the library warns of, on standard error: for programs that have no logger.

use std::sync::OnceLock;

use log::{LevelFilter, Log, Metadata, Record};

/// Who warns.
struct Stderr(&'static str);

impl Log for Stderr {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= LevelFilter::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let level = record.level().as_str().to_lowercase();
            eprintln!("{}: {level}: {}", self.0, record.args());
        }
    }

    fn flush(&self) {}
}

static LOGGER: OnceLock<Stderr> = OnceLock::new();

/// From now on, warnings are lines on standard error that begin with `name`. Nothing where the program has a logger of its
/// own, or this was called before.
pub fn show(name: &'static str) {
    // Whoever set a logger before shows them already.
    if log::set_logger(LOGGER.get_or_init(|| Stderr(name))).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}
