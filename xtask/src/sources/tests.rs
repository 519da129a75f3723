//! The rules on small trees, and on the workspace.

use super::graph::{Arrow, Order};
use super::lines::{Count, files};
use super::parse::Crate;
use super::{faults, packages};
use crate::tools::{Result, workspace};
use std::path::Path;

/// A crate of these files, the first of which is its root.
fn krate(files: &[(&str, &str)]) -> Result<(Crate, Vec<Arrow>)> {
    let text = |name: &str| Some(files.iter().find(|(file, _)| *file == name)?.1.to_string());
    let krate = Crate::read(files[0].0.trim_end_matches(".rs"), &text)?;
    let arrows = krate.arrows();
    Ok((krate, arrows))
}

fn arrows(files: &[(&str, &str)]) -> Vec<String> {
    let (krate, arrows) = krate(files).unwrap();
    arrows.iter().map(|arrow| krate.shown(arrow)).collect()
}

fn circles(files: &[(&str, &str)]) -> Vec<String> {
    let (krate, arrows) = krate(files).unwrap();
    let names = |circle: Vec<usize>| {
        circle.into_iter().map(|file| krate.files[file].as_str()).collect::<Vec<_>>().join(" ")
    };
    krate.circles(&arrows).into_iter().map(names).collect()
}

#[test]
fn a_path_leads_through_exports_to_the_file_of_its_item() {
    let user = "use crate::geometry::{grid::{self, Grid}, Brick as Piece,};
        use crate::{Brick, outside::Far};
        fn f(x: super::geometry::Layout) { assert!(grid::STEP > Layout::new()); Piece::of() }";
    let files = [
        (
            "lib.rs",
            "mod geometry; mod plan; mod outside { pub use far::Far; } pub use geometry::Brick;",
        ),
        (
            "geometry/mod.rs",
            "pub(crate) mod brick; pub mod grid; pub use self::{brick::*, grid::Layout};",
        ),
        ("geometry/brick.rs", "pub struct Brick; macro_rules! m { () => { $crate::plan::f() } }"),
        ("geometry/grid.rs", "pub const STEP: usize = 1; pub struct Grid; pub enum Layout { A }"),
        ("plan.rs", user),
    ];
    assert_eq!(
        arrows(&files),
        [
            "geometry/brick.rs:1: crate::plan::f -> plan.rs",
            "plan.rs:2: crate::Brick -> geometry/brick.rs",
            "plan.rs:1: crate::geometry::Brick -> geometry/brick.rs",
            "plan.rs:1: crate::geometry::grid -> geometry/grid.rs",
            "plan.rs:1: crate::geometry::grid::Grid -> geometry/grid.rs",
            "plan.rs:3: super::geometry::Layout -> geometry/grid.rs",
        ]
    );
    assert_eq!(circles(&files), ["geometry/brick.rs plan.rs"]);
}

#[test]
fn tests_comments_strings_and_other_crates_use_nothing() {
    let child = r#"//! See [`crate::b::B`].
        #[cfg(test)] use crate::{b::B, b};
        #[cfg(test)] fn f() -> crate::b::B { crate::b::B }
        #[cfg(all(test, feature = "b"))] mod tests;
        use ::b::B; use b::C; use std::fmt;
        pub(in crate::b) fn g<'a>() -> impl Fn() + use<'a> { "crate::b::B"; std::b::B; x.b::<u8>() }
        #[cfg(test)] mod more { use crate::b::B; }"#;
    let files = [("main.rs", "mod a; mod b;"), ("a.rs", child), ("b.rs", "pub struct B;")];
    assert_eq!(arrows(&files), [""; 0]);
}

#[test]
fn a_parent_and_its_child_may_be_a_circle() {
    let child = ("tree/leaf.rs", "use super::*; pub fn leaf() { root() }");
    let parent = |text| [("lib.rs", "mod tree;"), ("tree.rs", text), child];
    let exports = parent("mod leaf; pub use leaf::leaf; fn root() {}");
    assert_eq!(arrows(&exports), ["tree/leaf.rs:1: root -> tree.rs"]);
    assert_eq!(circles(&exports), [""; 0]);
    let calls = parent("mod leaf; pub use leaf::leaf; fn root() { leaf() }");
    assert_eq!(circles(&calls), ["tree.rs tree/leaf.rs"]);
    let inline = parent("mod leaf; fn root() {} mod inner { use super::leaf::leaf; }");
    assert_eq!(circles(&inline), ["tree.rs tree/leaf.rs"]);
}

#[test]
fn circles_are_apart_and_each_is_found_once() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; mod d; mod e; use a::A;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::c::C; pub struct B;"),
        ("c.rs", "use crate::{a::A, d::D}; pub struct C;"),
        ("d.rs", "use crate::e::E; pub struct D;"),
        ("e.rs", "use crate::d::D; pub struct E;"),
    ];
    assert_eq!(circles(&files), ["a.rs b.rs c.rs", "d.rs e.rs"]);
}

#[test]
fn imports_of_each_other_end() {
    let files = [
        ("lib.rs", "mod a; pub use a::X; fn f(x: X) {}"),
        ("a.rs", "pub use crate::X; pub use crate::*;"),
    ];
    assert_eq!(arrows(&files), [""; 0]);
}

#[test]
fn a_use_against_the_order_is_named() {
    let order: &Order = &[("base", &[]), ("grid", &["base"]), ("plan", &["grid"])];
    let files = [
        ("lib.rs", "mod base; mod grid; mod plan; mod other; pub fn f() { plan::p() }"),
        ("base.rs", "pub fn b() { crate::grid::cut::g() }"),
        ("grid/mod.rs", "pub mod cut; use crate::base::b;"),
        ("grid/cut.rs", "pub fn g() { super::super::f() }"),
        ("plan.rs", "use crate::base::b; pub fn p() {}"),
        ("other.rs", "use crate::plan::p;"),
    ];
    let (krate, arrows) = krate(&files).unwrap();
    assert_eq!(
        krate.against(order, &arrows).unwrap(),
        [
            "other.rs: the folder other has no place in the order",
            "base.rs:1: crate::grid::cut::g -> grid/cut.rs: base may not use grid",
            "grid/cut.rs:1: super::super::f -> lib.rs: grid may not use (root)",
        ]
    );
    let circle: &Order = &[("base", &["grid"]), ("grid", &["base"])];
    assert_eq!(
        krate.against(circle, &arrows).unwrap_err(),
        "base uses grid, which is not above it"
    );
}

#[test]
fn a_module_without_a_file_is_an_error() {
    assert_eq!(krate(&[("lib.rs", "mod a;")]).unwrap_err(), "there is no a.rs");
    assert!(krate(&[("lib.rs", "mod a {")]).unwrap_err().starts_with("lib.rs: "));
}

#[test]
fn lines_and_long_functions_are_counted_without_tests() {
    let body = "    call();\n".repeat(49);
    let text = format!(
        "fn long() {{\n{body}}}\n\n// Why.\nfn short() {{ }}\ntrait T {{ fn f(); }}\n
        #[cfg(test)]\nmod tests {{\n fn test() {{\n{body}{body}}}\n}}\nstruct S;\n"
    );
    let mut count = Count::default();
    count.add("a.rs", &text).unwrap();
    let functions = vec!["a.rs:1: long, 51 lines".to_string()];
    assert_eq!(count, Count { lines: 55, functions });
}

/// cbindgen writes it.
const GENERATED: &str = "include/thriffty.h";

/// What is too long in a file: itself, and lines of comments.
fn too_long(name: &str, text: &str) -> Vec<String> {
    let lines = text.lines().count();
    let long = (lines > 500).then(|| format!("{name}: {lines} lines"));
    let fortran = [".F90", ".f90", ".inc"].iter().any(|kind| name.ends_with(kind));
    let starts: &[&str] = if fortran { &["!"] } else { &["//", "/*", "*"] };
    let wide = (1..).zip(text.lines()).filter_map(|(line, text)| {
        let columns = text.chars().count();
        let comment = starts.iter().any(|start| text.trim_start().starts_with(start));
        (comment && columns > 100).then(|| format!("{name}:{line}: a comment of {columns} columns"))
    });
    long.into_iter().chain(wide).collect()
}

#[test]
fn long_files_and_comments_are_named() {
    let wide = "é".repeat(98);
    let rust = format!("// {wide}\nlet a = \"{wide}\";\n");
    assert_eq!(too_long("a.rs", &rust), ["a.rs:1: a comment of 101 columns"]);
    let c = format!("/* a\n * {wide} */");
    assert_eq!(too_long("a.h", &c), ["a.h:2: a comment of 104 columns"]);
    assert_eq!(too_long("a.F90", &format!("!> {wide}")), ["a.F90:1: a comment of 101 columns"]);
    assert_eq!(too_long("a.cu", &"\n".repeat(500)), [""; 0]);
    assert_eq!(too_long("a.cu", &"\n".repeat(501)), ["a.cu: 501 lines"]);
}

#[test]
fn files_and_comments_are_short() {
    let kinds = ["rs", "cu", "cuh", "c", "h", "cpp", "hpp", "F90", "f90", "inc"];
    let mut faults = Vec::new();
    for file in files(workspace(), &kinds) {
        let name = file.strip_prefix(workspace()).unwrap_or(&file).display().to_string();
        if name != GENERATED {
            faults.extend(too_long(&name, &std::fs::read_to_string(&file).unwrap()));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

macro_rules! packages {
    ($($test:ident $package:literal)*) => {
        $(
            #[test]
            fn $test() {
                let faults = faults(Path::new($package)).unwrap();
                assert!(faults.is_empty(), "{}\n{}", $package, faults.join("\n"));
            }
        )*

        #[test]
        fn all_packages_are_searched() {
            assert_eq!(packages(), [$(Path::new($package)),*]);
        }
    };
}

packages! {
    thriffty_has_an_order "."
    fft_capi_has_an_order "crates/fft-capi"
    fft_cli_has_an_order "crates/fft-cli"
    fft_comm_has_an_order "crates/fft-comm"
    fft_core_has_an_order "crates/fft-core"
    fft_gpu_has_an_order "crates/fft-gpu"
    fft_heffte_has_an_order "crates/fft-heffte"
    fft_lines_has_an_order "crates/fft-lines"
    fft_stream_has_an_order "crates/fft-stream"
    xtask_has_an_order "xtask"
}
