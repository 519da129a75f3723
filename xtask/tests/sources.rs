//! Rules that all sources keep:
//!
//! - Folders of a crate use only those that [`ORDERS`] names, and no two use each other, not even
//!   through others.
//! - Files have at most 500 lines, and lines of comments at most 100 columns.
//!
//! Paths are found in the text, so that no parser of Rust is needed: `crate::name`, and chains of
//! `super::` that lead to the root. Comments, and tests at the end of a file, are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Each folder, with the folders that it may use. It may also use the folders that these may use.
type Order = [(&'static str, &'static [&'static str])];

/// Packages that are not here are only searched for cycles.
const ORDERS: [(&str, &Order); 3] = [
    (
        "crates/fft-core",
        &[
            ("base", &[]),
            ("geometry", &["base"]),
            ("codec", &["geometry"]),
            ("problem", &["codec"]),
            ("recipe", &["problem"]),
            ("redistribute", &["recipe"]),
            ("lower", &["redistribute"]),
            ("planner", &["lower"]),
            ("simulate", &["planner"]),
            ("comm", &["problem"]),
            ("arrays", &["comm"]),
            ("spectral", &["arrays"]),
            ("execute", &["comm", "lower"]),
            ("host", &["execute"]),
        ],
    ),
    (
        "crates/fft-gpu",
        &[
            ("base", &[]),
            ("abi", &["base"]),
            ("ffi", &["abi"]),
            ("kernel", &["ffi"]),
            ("device", &["kernel"]),
            // Tests.
            ("on_cpu", &["device"]),
        ],
    ),
    (
        "crates/fft-cli",
        &[
            ("ranks", &[]),
            ("args", &["ranks"]),
            ("engine", &["args"]),
            ("data", &["engine"]),
            ("check", &["data"]),
            ("output", &["check"]),
            ("commands", &["output"]),
        ],
    ),
];
/// `cargo xtask header` writes it.
const GENERATED: &str = "include/thriffty.h";

/// All sources by name, from the workspace's root.
fn sources(extensions: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(root);
    let names = String::from_utf8(git.output().unwrap().stdout).unwrap();
    let wanted = |name: &&str| {
        let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| extensions.contains(&extension))
    };
    let read = |name: &str| Some((name.into(), std::fs::read_to_string(root.join(name)).ok()?));
    names.lines().filter(wanted).filter_map(read).collect()
}

/// The code of a file: no lines of comments, and no tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The top-level module of a file; none for the crate's root.
fn module(file: &str) -> Option<&str> {
    let top = file.split('/').next()?.trim_end_matches(".rs");
    (top != "lib" && top != "main").then_some(top)
}

/// The names that a path begins with: one, or those in braces.
fn first_names(path: &str) -> Vec<&str> {
    let word = |text: &str| text.find(|c: char| c != '_' && !c.is_alphanumeric());
    let Some(list) = path.strip_prefix('{') else {
        return vec![&path[..word(path).unwrap_or(path.len())]];
    };
    let (mut depth, mut names, mut start) = (1, Vec::new(), 0);
    for (at, c) in list.char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if depth == 0 || (depth == 1 && c == ',') {
            let name = list[start..at].trim();
            names.push(&name[..word(name).unwrap_or(name.len())]);
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    names
}

/// What follows each path to the crate's root, in a file of a module of this depth.
fn paths_from_root(code: &str, depth: usize) -> Vec<&str> {
    let mut paths: Vec<_> = code.split("crate::").skip(1).collect();
    for (at, _) in code.match_indices("super::").filter(|(at, _)| !code[..*at].ends_with("super::"))
    {
        let path = code[at..].trim_start_matches("super::");
        if (code[at..].len() - path.len()) / "super::".len() >= depth {
            paths.push(path);
        }
    }
    paths
}

/// The top-level modules that use each other, and a file where they do. Names that the root exports
/// belong to the module that it has them from.
fn arrows(files: &[(String, String)]) -> BTreeMap<(String, String), String> {
    let modules: BTreeSet<_> = files.iter().filter_map(|(file, _)| module(file)).collect();
    let mut exports = BTreeMap::new();
    for (_, root) in files.iter().filter(|(file, _)| module(file).is_none()) {
        for statement in code(root).split(';').filter_map(|text| text.split_once("use ")) {
            let (from, names) = statement.1.split_once("::").unwrap_or_default();
            let words = names.split(|c: char| c != '_' && !c.is_alphanumeric());
            exports.extend(words.map(|word| (word.to_string(), from.to_string())));
        }
    }
    let mut arrows = BTreeMap::new();
    for (file, text) in files {
        let Some(from) = module(file) else { continue };
        let depth = file.split('/').count() - usize::from(file.ends_with("/mod.rs"));
        let code = code(text);
        for name in paths_from_root(&code, depth).into_iter().flat_map(first_names) {
            let to = modules.get(name).map(|name| name.to_string());
            let to = to.or_else(|| exports.get(name).cloned());
            if let Some(to) = to.filter(|to| to != from && modules.contains(to.as_str())) {
                arrows.entry((from.to_string(), to)).or_insert(file.clone());
            }
        }
    }
    arrows
}

/// A line for each use against an order, and for each module that it lacks.
fn against(order: &Order, files: &[(String, String)]) -> Vec<String> {
    let mut allowed = BTreeMap::<&str, BTreeSet<&str>>::new();
    for (folder, below) in order {
        let further = below.iter().flat_map(|name| allowed[name].clone()).collect::<Vec<_>>();
        allowed.insert(folder, below.iter().copied().chain(further).collect());
    }
    let strangers = files.iter().filter_map(|(file, _)| {
        let stranger = module(file).filter(|module| !allowed.contains_key(module))?;
        Some(format!("{file}: {stranger} has no place in the order"))
    });
    let upward = arrows(files).into_iter().filter_map(|((from, to), file)| {
        let refused = allowed.get(&*from).is_some_and(|allowed| !allowed.contains(&*to));
        refused.then(|| format!("{file}: {from} may not use {to}"))
    });
    strangers.chain(upward).collect()
}

/// Uses that are part of a cycle, or lie between two cycles.
fn circles(files: &[(String, String)]) -> Vec<String> {
    let mut arrows = arrows(files);
    loop {
        let (from, to): (BTreeSet<_>, BTreeSet<_>) = arrows.keys().cloned().unzip();
        let before = arrows.len();
        arrows.retain(|arrow, _| to.contains(&arrow.0) && from.contains(&arrow.1));
        if arrows.len() == before {
            let shown = |((from, to), file)| format!("{file}: {from} uses {to}, a circle");
            return arrows.into_iter().map(shown).collect();
        }
    }
}

/// The parts of a file that are too long: the file itself, and lines of comments.
fn too_long(name: &str, text: &str) -> Vec<String> {
    let lines = text.lines().count();
    let long = (lines > 500).then(|| format!("{name}: {lines} lines"));
    let fortran = [".F90", ".f90", ".inc"].iter().any(|end| name.ends_with(end));
    let starts: &[&str] = if fortran { &["!"] } else { &["//", "/*", "*"] };
    let wide = (1..).zip(text.lines()).filter_map(|(line, text)| {
        let columns = text.chars().count();
        let comment = starts.iter().any(|start| text.trim_start().starts_with(start));
        (comment && columns > 100).then(|| format!("{name}:{line}: a comment of {columns} columns"))
    });
    long.into_iter().chain(wide).collect()
}

#[test]
fn sources_use_folders_in_their_order() {
    let mut packages = BTreeMap::<String, Vec<(String, String)>>::new();
    for (name, text) in sources(&["rs"]) {
        let name = if name.starts_with("src/") { format!("./{name}") } else { name };
        if let Some((package, file)) = name.split_once("/src/") {
            packages.entry(package.into()).or_default().push((file.into(), text));
        }
    }
    assert!(packages.len() > 9, "{:?}", packages.keys());
    for (package, files) in &packages {
        let order = ORDERS.iter().find(|(name, _)| name == package);
        let mut faults = order.map_or(Vec::new(), |(_, order)| against(order, files));
        faults.extend(circles(files));
        assert!(faults.is_empty(), "{package}\n{}", faults.join("\n"));
    }
    assert!(ORDERS.iter().all(|(name, _)| packages.contains_key(*name)));
}

#[test]
fn sources_are_short() {
    let files = sources(&["rs", "cu", "cuh", "c", "h", "cpp", "hpp", "F90", "f90", "inc"]);
    let files = files.iter().filter(|(name, _)| name != GENERATED);
    let faults: Vec<_> = files.flat_map(|(name, text)| too_long(name, text)).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn faults_of_sources_are_named() {
    let files = [
        ("lib.rs", "mod base; mod grid; mod other; pub use base::{tol::Tol, Err};"),
        ("base/mod.rs", "use super::grid::G;"),
        ("base/tol.rs", "// crate::other\n#[cfg(test)]\nmod tests {\n use crate::other::O;"),
        (
            "grid/cut.rs",
            "use crate::{Tol, base::{Err, grid}};\nfn f() { super::super::other::o() }",
        ),
        ("grid/mod.rs", "use super::base::Err;"),
        ("other.rs", "use std::fmt;"),
    ]
    .map(|(file, text)| (file.to_string(), text.to_string()));
    assert_eq!(
        against(&[("base", &[]), ("grid", &["base"])], &files),
        [
            "other.rs: other has no place in the order",
            "base/mod.rs: base may not use grid",
            "grid/cut.rs: grid may not use other"
        ]
    );
    let circle = ["base/mod.rs: base uses grid, a circle", "grid/cut.rs: grid uses base, a circle"];
    assert_eq!(circles(&files), circle);
    let wide = "é".repeat(98);
    let rust = format!("// {wide}\nlet a = \"{wide}\";\n");
    assert_eq!(too_long("a.rs", &rust), ["a.rs:1: a comment of 101 columns"]);
    assert_eq!(too_long("a.F90", &format!("!> {wide}")), ["a.F90:1: a comment of 101 columns"]);
    assert_eq!(too_long("a.cu", &"\n".repeat(501)), ["a.cu: 501 lines"]);
}
