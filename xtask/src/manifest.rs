//! The list by which an installation is removed: its files, and the folders that it made.

use crate::tools::{self, Result};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// Where the list is in a prefix.
pub(crate) const PLACE: &str = "share/thriffty/install_manifest.txt";

/// The first line of a list.
const TITLE: &str = "# what thriffty has installed here, for `cargo xtask uninstall --prefix`";

/// Paths below a prefix. In the file, paths of folders end in a slash.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Manifest {
    pub(crate) files: BTreeSet<PathBuf>,
    pub(crate) folders: BTreeSet<PathBuf>,
}

impl Manifest {
    /// The list of a prefix, or an empty one.
    pub(crate) fn of(prefix: &Path) -> Result<Self> {
        let path = prefix.join(PLACE);
        if !path.exists() {
            return Ok(Self::default());
        }
        Self::parse(&tools::read_text(&path)?).map_err(|why| format!("{}, {why}", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let mut found = Self::default();
        for (number, line) in text.lines().enumerate().skip(1) {
            let below = |part| matches!(part, Component::Normal(_));
            let path = PathBuf::from(line.trim_end_matches('/'));
            if line.is_empty() || line.starts_with('/') || !path.components().all(below) {
                let number = number + 1;
                return Err(format!(
                    "line {number}: found {line}, expected a path below the prefix"
                ));
            }
            let kept = if line.ends_with('/') { &mut found.folders } else { &mut found.files };
            kept.insert(path);
        }
        Ok(found)
    }

    fn text(&self) -> String {
        let files = self.files.iter().map(|file| file.display().to_string());
        let folders = self.folders.iter().map(|folder| format!("{}/", folder.display()));
        let lines: Vec<_> = std::iter::once(TITLE.into()).chain(files).chain(folders).collect();
        lines.join("\n") + "\n"
    }

    /// Replaces the list of a prefix, as a whole.
    pub(crate) fn write(&self, prefix: &Path) -> Result {
        let path = prefix.join(PLACE);
        let new = path.with_extension("new");
        tools::write(&new, &self.text())?;
        std::fs::rename(&new, &path).map_err(|e| format!("cannot write {}: {e}", path.display()))
    }

    /// Adds the paths of another list.
    pub(crate) fn add(&mut self, other: &Self) {
        self.files.extend(other.files.iter().cloned());
        self.folders.extend(other.folders.iter().cloned());
    }

    /// Removes listed folders that are empty, from the disk and from the list.
    pub(crate) fn remove_empty_folders(&mut self, prefix: &Path) -> Result {
        // A folder comes before those in it.
        for folder in std::mem::take(&mut self.folders).into_iter().rev() {
            match std::fs::remove_dir(prefix.join(&folder)) {
                Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty => {
                    self.folders.insert(folder);
                }
                Err(e) if e.kind() != ErrorKind::NotFound => {
                    return Err(format!("cannot remove {}: {e}", folder.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Removes a file, which may be gone already.
pub(crate) fn remove_file(path: &Path) -> Result {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {e}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Removes an installation: the files in its list, and folders that it made and that are then
/// empty. The prefix itself stays.
pub(crate) fn uninstall(prefix: &Path) -> Result {
    let place = prefix.join(PLACE);
    if !place.exists() {
        let why = "nothing was installed there by `cargo xtask install`";
        return Err(format!("nothing is removed: {} does not exist, so {why}", place.display()));
    }
    let mut list = Manifest::of(prefix)?;
    for file in &list.files {
        remove_file(&prefix.join(file))?;
    }
    // The last file, so that what could not be removed stays listed.
    remove_file(&place)?;
    list.remove_empty_folders(prefix)?;
    println!("removed {} files from {}", list.files.len(), prefix.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let mut list = Manifest::default();
        list.files.extend(["lib/a b.so", "include/x.h"].map(PathBuf::from));
        list.folders.extend(["include", "lib/thriffty"].map(PathBuf::from));
        assert_eq!(Manifest::parse(&list.text()).unwrap(), list);
        assert!(list.text().ends_with("include/x.h\nlib/a b.so\ninclude/\nlib/thriffty/\n"));
    }

    #[test]
    fn paths_outside_of_the_prefix_are_refused() {
        for path in ["/etc/passwd", "../x", "lib/../../x", "/", "", "./x"] {
            let why = Manifest::parse(&format!("{TITLE}\nlib/x\n{path}\n")).unwrap_err();
            let expected = format!("line 3: found {path}, expected a path below the prefix");
            assert_eq!(why, expected);
        }
    }
}
