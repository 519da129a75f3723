//! A prefix that is installed into, and the list of the files put there.

use crate::manifest::{self, Manifest};
use crate::place;
use crate::tools::{self, Result, command, run};
use std::path::{Path, PathBuf};

pub(crate) struct Prefix {
    root: PathBuf,
    /// The files of an earlier installation.
    earlier: Manifest,
    list: Manifest,
}

impl Prefix {
    /// A prefix, given by its absolute path.
    pub(crate) fn open(root: &Path) -> Result<Self> {
        tools::make_folder(root)?;
        let earlier = Manifest::of(root)?;
        Ok(Self { root: root.into(), earlier, list: Manifest::default() })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.join(below)
    }

    /// Makes a folder.
    pub(crate) fn folder(&mut self, below: impl AsRef<Path>) -> Result {
        let mut path = PathBuf::new();
        for part in below.as_ref().components() {
            path.push(part);
            if !self.path(&path).exists() {
                tools::make_folder(&self.path(&path))?;
                self.list.folders.insert(path.clone());
            }
        }
        Ok(())
    }

    /// Lists a file that is about to be made, and makes its folder. Returns its path.
    pub(crate) fn file(&mut self, below: impl AsRef<Path>) -> Result<PathBuf> {
        let below = below.as_ref();
        self.folder(below.parent().unwrap_or(Path::new("")))?;
        self.list.files.insert(below.into());
        Ok(self.path(below))
    }

    pub(crate) fn copy(&mut self, from: &Path, below: impl AsRef<Path>) -> Result {
        place::copy(from, &self.file(below)?)
    }

    pub(crate) fn write(&mut self, below: impl AsRef<Path>, text: &str) -> Result {
        tools::write(&self.file(below)?, text)
    }

    /// Makes a link to a path relative to the link's folder.
    pub(crate) fn link(&mut self, target: &str, below: impl AsRef<Path>) -> Result {
        let link = self.file(below)?;
        // An existing link may be of another version.
        manifest::remove_file(&link)?;
        std::os::unix::fs::symlink(target, &link)
            .map_err(|e| format!("cannot make {}: {e}", link.display()))
    }

    /// Copies a stripped shared library under its soname, and links the name for linkers to it.
    pub(crate) fn shared(
        &mut self,
        from: &Path,
        folder: &str,
        [name, soname]: [&str; 2],
    ) -> Result {
        let library = self.file(Path::new(folder).join(soname))?;
        place::stripped(from, &library)?;
        self.link(soname, Path::new(folder).join(name))
    }

    /// Makes a static library of an object, which is moved into it.
    pub(crate) fn archive(&mut self, objects: &[PathBuf], below: &str) -> Result {
        let archive = self.file(below)?;
        // `ar` would add to an existing archive.
        manifest::remove_file(&archive)?;
        run(command("ar").arg("rcs").arg(&archive).args(objects))?;
        objects.iter().try_for_each(|object| manifest::remove_file(object))
    }

    /// Writes the list. After a success, files that only the earlier installation had are removed;
    /// after a failure, they are still listed.
    pub(crate) fn close(mut self, outcome: Result) -> Result {
        self.folder(Path::new(manifest::PLACE).parent().unwrap_or(Path::new("")))?;
        if outcome.is_ok() {
            for file in self.earlier.files.difference(&self.list.files) {
                manifest::remove_file(&self.path(file))?;
            }
            self.earlier.files.clear();
        }
        self.list.add(&self.earlier);
        self.list.write(&self.root)?;
        self.list.remove_empty_folders(&self.root)?;
        self.list.write(&self.root)?;
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::uninstall;
    use std::collections::BTreeSet;

    /// An empty folder for a test.
    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// All files and folders below a folder.
    fn below(root: &Path) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut folders = vec![root.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                found.insert(path.strip_prefix(root).unwrap().display().to_string());
                if path.is_dir() && !path.is_symlink() {
                    folders.push(path);
                }
            }
        }
        found
    }

    fn install(root: &Path, files: &[&str], outcome: Result) -> Result {
        let mut prefix = Prefix::open(root)?;
        files.iter().try_for_each(|file| prefix.write(file, "ours"))?;
        prefix.link("a.so.0", "lib/a.so")?;
        prefix.close(outcome)
    }

    #[test]
    fn what_was_installed_is_removed_and_nothing_else() {
        let root = scratch("uninstall");
        for file in ["lib/theirs", "share/thriffty/theirs"] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "theirs").unwrap();
        }
        let theirs = below(&root);
        install(&root, &["lib/a.so.0", "include/thriffty/x/y.h"], Ok(())).unwrap();
        assert_eq!(below(&root).len(), theirs.len() + 7);
        uninstall(&root).unwrap();
        assert_eq!(below(&root), theirs);
        let why = uninstall(&root).unwrap_err();
        assert!(why.starts_with("nothing is removed: ") && why.contains(manifest::PLACE), "{why}");
        assert_eq!(below(&root), theirs);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_later_installation_replaces_an_earlier_one() {
        let root = scratch("reinstall");
        install(&root, &["lib/a.so.0", "lib/old/b"], Ok(())).unwrap();
        let first = below(&root);
        // What fails removes nothing, and all is listed afterwards.
        install(&root, &["lib/new"], Err("failed".into())).unwrap_err();
        assert!(below(&root).is_superset(&first) && root.join("lib/new").exists());
        install(&root, &["lib/a.so.0"], Ok(())).unwrap();
        assert!(!root.join("lib/old").exists() && !root.join("lib/new").exists());
        uninstall(&root).unwrap();
        assert_eq!(below(&root), BTreeSet::new());
        std::fs::remove_dir_all(root).unwrap();
    }
}
