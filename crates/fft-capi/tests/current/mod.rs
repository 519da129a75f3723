//! Files in the repository that are made from the source.

use std::path::Path;

/// Set by `cargo xtask header`: files are written, not compared.
const WRITE: &str = "THRIFFTY_WRITE_HEADER";

/// Writes a file, or asserts that it holds what was made.
pub(crate) fn check(path: &Path, made: &str) {
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(path, made).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(found == made, "{} is not current: run cargo xtask header", path.display());
}
