//! Rules that all sources keep, and what they are measured by: `cargo xtask modules` and
//! `cargo xtask lines`.
//!
//! - No module uses another that uses it, itself or through others.
//! - Folders of a crate use only those that [`ORDERS`] names.
//! - Files have at most 500 lines, and lines of comments at most 100 columns.

mod graph;
mod lines;
mod parse;

use crate::tools::{Result, workspace};
use graph::Order;
use lines::{Count, files};
use parse::Crate;
use std::path::{Path, PathBuf};

/// The order of folders, by package. Packages that are not here are searched for circles alone.
const ORDERS: [(&str, &Order); 3] =
    [("crates/fft-core", FFT_CORE), ("crates/fft-gpu", FFT_GPU), ("crates/fft-cli", FFT_CLI)];

const FFT_CORE: &Order = &[
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
    ("spectral", &["problem"]),
    ("execute", &["comm", "lower"]),
    ("host", &["execute"]),
];

const FFT_GPU: &Order = &[
    ("base", &[]),
    ("abi", &["base"]),
    ("ffi", &["abi"]),
    ("kernel", &["ffi"]),
    ("device", &["kernel"]),
];

const FFT_CLI: &Order = &[
    ("ranks", &[]),
    ("args", &["ranks"]),
    ("engine", &["args"]),
    ("data", &["engine"]),
    ("check", &["data"]),
    ("output", &["check"]),
    ("commands", &["output"]),
];

/// Shows which folders of each crate use which, and all circles.
pub(crate) fn modules() -> Result {
    for package in packages() {
        let (krate, arrows) = read(&package)?;
        println!("{}: {} files", package.display(), krate.files.len());
        for (folder, used) in krate.folders(&arrows) {
            println!("  {folder:14} uses {}", used.into_iter().collect::<Vec<_>>().join(", "));
        }
        for fault in faults(&package)? {
            println!("  {fault}");
        }
    }
    Ok(())
}

/// Counts lines of Rust and long functions, without tests.
pub(crate) fn lines() -> Result {
    let (mut crates, mut others) = (Count::default(), Count::default());
    for package in packages() {
        let folder = package.join("src");
        for file in read(&package)?.0.files {
            add(&mut crates, &folder.join(file))?;
        }
    }
    for file in files(Path::new("."), &["rs"]) {
        if !file.iter().any(|part| part == "src" || part == "tests") {
            add(&mut others, &file)?;
        }
    }
    for (count, what) in [(crates, "crates"), (others, "benches, examples and build scripts")] {
        let Count { lines, functions } = count;
        println!(
            "{what}: {lines} lines, {} long functions\n{}\n",
            functions.len(),
            functions.join("\n")
        );
    }
    Ok(())
}

fn add(count: &mut Count, file: &Path) -> Result {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|e| format!("{name}: {e}"))?;
    count.add(&name, &text)
}

/// The folders of all packages, from the workspace's root.
fn packages() -> Vec<PathBuf> {
    let crates = std::fs::read_dir(workspace().join("crates")).into_iter().flatten().flatten();
    let mut packages: Vec<_> =
        crates.map(|entry| Path::new("crates").join(entry.file_name())).collect();
    packages.extend([".".into(), "xtask".into()]);
    packages.sort();
    packages
}

fn read(package: &Path) -> Result<(Crate, Vec<graph::Arrow>)> {
    let folder = workspace().join(package).join("src");
    let root = if folder.join("lib.rs").exists() { "lib" } else { "main" };
    let krate = Crate::read(root, &|name| std::fs::read_to_string(folder.join(name)).ok())?;
    let arrows = krate.arrows();
    Ok((krate, arrows))
}

/// A text for each circle of a package, and for each use against the order of its folders.
fn faults(package: &Path) -> Result<Vec<String>> {
    let (krate, arrows) = read(package)?;
    let order = ORDERS.iter().find(|(name, _)| Path::new(name) == package);
    let mut faults = order.map_or(Ok(Vec::new()), |(_, order)| krate.against(order, &arrows))?;
    for circle in krate.circles(&arrows) {
        let within = arrows.iter().filter(|a| circle.contains(&a.from) && circle.contains(&a.to));
        let within: String = within.map(|arrow| format!("\n    {}", krate.shown(arrow))).collect();
        faults.push(format!("a circle of {} files:{within}", circle.len()));
    }
    Ok(faults)
}

#[cfg(test)]
mod tests;
