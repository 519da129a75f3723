//! Which file of a crate uses which: circles among files, and the order of folders.
//!
//! A path leads to the file that defines its item. A `pub use` on the way is no user of the item,
//! unless its own file names the item again.

use super::parse::{Crate, Import, Module, Use};
use crate::tools::Result;
use std::collections::{BTreeMap, BTreeSet};

/// A file uses an item of another.
#[derive(Debug, PartialEq)]
pub(super) struct Arrow {
    /// Indices of `Crate::files`.
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) line: usize,
    /// As it is written in the source.
    pub(super) path: String,
}

/// The folders of a crate. Each may use those named after it and all that these may use.
pub(super) type Order = [(&'static str, &'static [&'static str])];

/// The longest chain of imports. Imports that name each other would make an endless one.
const LONGEST: usize = 32;

impl Crate {
    /// The uses of each file, one for each path, at its first line.
    pub(super) fn arrows(&self) -> Vec<Arrow> {
        let mut arrows = BTreeMap::new();
        for (index, module) in self.modules.iter().enumerate() {
            for Use { path, line } in &module.uses {
                let Some(target) = self.resolve(index, path, 0) else { continue };
                // An item that was imported is used where it was imported.
                let import = module.imports.get(&path[0]).filter(|import| !import.public);
                let imported = import.and_then(|Import { path, .. }| self.resolve(index, path, 0));
                let (from, to) = (module.file, self.modules[target].file);
                if from != to && imported != Some(target) {
                    let path = path.join("::");
                    let arrow = Arrow { from, to, line: *line, path: path.clone() };
                    arrows.entry((from, to, path)).or_insert(arrow);
                }
            }
        }
        arrows.into_values().collect()
    }

    /// The module that a path names, or that defines its item. `None` for other crates.
    fn resolve(&self, module: usize, path: &[String], depth: usize) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        let parent = self.modules[module].parent;
        match (first.as_str(), rest) {
            ("crate", _) => self.follow(0, rest, depth),
            ("self", _) => self.follow(module, rest, depth),
            ("super", [next, ..]) if next == "super" => self.resolve(parent, rest, depth),
            ("super", _) => self.follow(parent, rest, depth),
            _ if self.knows(module, first, depth) => self.follow(module, path, depth),
            _ => None,
        }
    }

    /// As `resolve`, for a path whose first name is one of the module's.
    fn follow(&self, module: usize, path: &[String], depth: usize) -> Option<usize> {
        let Some((name, rest)) = path.split_first() else { return Some(module) };
        let Module { children, imports, items, .. } = &self.modules[module];
        if depth > LONGEST {
            return None;
        }
        // A module and an item may share a name, as in `pub use copy::copy`.
        match (children.get(name), imports.get(name)) {
            (Some(&child), _) if !rest.is_empty() => self.follow(child, rest, depth),
            (_, Some(import)) => self.resolve(module, &[&import.path, rest].concat(), depth + 1),
            (Some(&child), None) => Some(child),
            (None, None) if items.contains(name) => Some(module),
            (None, None) => match self.glob(module, name, depth) {
                Some(target) => self.follow(target, path, depth + 1),
                // A macro may have made the item.
                None => Some(module),
            },
        }
    }

    /// The module from which a `::*` brings a name.
    fn glob(&self, module: usize, name: &str, depth: usize) -> Option<usize> {
        let globs = self.modules[module].globs.iter();
        let mut targets = globs.filter_map(|glob| self.resolve(module, glob, depth + 1));
        targets.find(|&target| target != module && self.knows(target, name, depth + 1))
    }

    fn knows(&self, module: usize, name: &str, depth: usize) -> bool {
        let Module { children, imports, items, .. } = &self.modules[module];
        children.contains_key(name)
            || imports.contains_key(name)
            || items.contains(name)
            || (depth <= LONGEST && self.glob(module, name, depth).is_some())
    }

    /// The top-level module that a file belongs to. The crate's root is in none.
    pub(super) fn folder(&self, file: usize) -> Option<&str> {
        let top = self.files[file].split('/').next().unwrap_or_default();
        (file != 0).then(|| top.trim_end_matches(".rs"))
    }

    pub(super) fn folders(&self, arrows: &[Arrow]) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut folders = BTreeMap::<_, BTreeSet<_>>::new();
        for Arrow { from, to, .. } in arrows {
            let (from, to) = (self.folder(*from), self.folder(*to));
            if from != to {
                folders.entry(from.unwrap_or("(root)")).or_default().insert(to.unwrap_or("(root)"));
            }
        }
        folders
    }

    /// A line for each use that the order does not allow, and for each folder that it lacks.
    pub(super) fn against(&self, order: &Order, arrows: &[Arrow]) -> Result<Vec<String>> {
        let allowed = allowed(order)?;
        let files = (0..self.files.len()).filter_map(|file| Some((file, self.folder(file)?)));
        let strangers = files.filter(|(_, folder)| !allowed.contains_key(folder));
        let strangers = strangers.map(|(file, folder)| {
            format!("{}: the folder {folder} has no place in the order", self.files[file])
        });
        let upward = arrows.iter().filter_map(|arrow| {
            let (from, to) = (self.folder(arrow.from)?, self.folder(arrow.to).unwrap_or("(root)"));
            let fine = from == to || allowed.get(from).is_none_or(|allowed| allowed.contains(to));
            (!fine).then(|| format!("{}: {from} may not use {to}", self.shown(arrow)))
        });
        Ok(strangers.chain(upward).collect())
    }

    /// Files that lead to each other along arrows.
    pub(super) fn circles(&self, arrows: &[Arrow]) -> Vec<Vec<usize>> {
        let files = 0..self.files.len();
        let reach: Vec<_> = files.clone().map(|from| reached(from, arrows)).collect();
        let circle = |file: usize| -> Vec<usize> {
            let both =
                |&other: &usize| reach[file].contains(&other) && reach[other].contains(&file);
            files.clone().filter(both).collect()
        };
        // Each circle once: at its first file.
        let circles = files.clone().map(|file| (file, circle(file)));
        circles.filter(|(file, circle)| circle.first() == Some(file)).map(|(_, all)| all).collect()
    }

    /// `file:line: path -> file`.
    pub(super) fn shown(&self, arrow: &Arrow) -> String {
        let Arrow { from, to, line, path } = arrow;
        format!("{}:{line}: {path} -> {}", self.files[*from], self.files[*to])
    }
}

/// All folders that each folder may use.
///
/// # Errors
/// A folder that is named before its own line: so there are no circles.
fn allowed(order: &Order) -> Result<BTreeMap<&'static str, BTreeSet<&'static str>>> {
    let mut allowed = BTreeMap::<_, BTreeSet<_>>::new();
    for (folder, below) in order {
        let mut all: BTreeSet<_> = below.iter().copied().collect();
        for &name in *below {
            let earlier = allowed.get(name);
            all.extend(earlier.ok_or(format!("{folder} uses {name}, which is not above it"))?);
        }
        allowed.insert(*folder, all);
    }
    Ok(allowed)
}

/// The files that arrows lead to from one. It is among them if they lead back.
fn reached(from: usize, arrows: &[Arrow]) -> BTreeSet<usize> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        let next = arrows.iter().filter(|arrow| arrow.from == at).map(|arrow| arrow.to);
        open.extend(next.filter(|&to| reached.insert(to)));
    }
    reached
}
