//! Files of an installation, put where they belong.

use crate::tools::{self, Result, command, run};
use std::path::{Path, PathBuf};

/// Copies a library without the parts that only debuggers read.
pub(crate) fn stripped(from: &Path, to: &Path) -> Result {
    copy(from, to)?;
    run(command("objcopy").arg("--strip-unneeded").arg(to))
}

/// Copies a file, and makes the folder.
pub(crate) fn copy(from: &Path, to: &Path) -> Result {
    tools::make_folder(to.parent().unwrap_or(Path::new(".")))?;
    // A running program may have the old file mapped.
    let _ = std::fs::remove_file(to);
    std::fs::copy(from, to)
        .map(drop)
        .map_err(|e| format!("cannot copy {} to {}: {e}", from.display(), to.display()))
}

/// The files of a folder, sorted.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let cannot = |e| format!("cannot read {}: {e}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(cannot)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut files = paths.collect::<std::io::Result<Vec<_>>>().map_err(cannot)?;
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}
