//! `cargo xtask lines`: lines of code by folder and language, now or at an older commit.
//!
//! Comments, blank lines, tests and generated files do not count. The same rules count every
//! commit, so that two tables can be compared.

use crate::tools::{self, Result, command, output};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::Path;

const LANGUAGES: [(&str, &[&str]); 5] = [
    ("Rust", &["rs"]),
    ("CUDA", &["cu", "cuh"]),
    ("C, C++", &["c", "h", "cpp", "hpp"]),
    ("Fortran", &["f90", "F90", "inc"]),
    ("Python", &["py"]),
];
/// Files and folders of tests.
const TESTS: [&str; 3] = ["tests", "tests.rs", "on_cpu"];
/// `cargo xtask header` writes it.
const GENERATED: &str = "include/thriffty.h";

type Table = BTreeMap<String, [usize; LANGUAGES.len()]>;

/// Prints the table of the working tree, or of a commit.
pub(crate) fn run(commit: Option<&str>) -> Result {
    let (folder, names) = match commit {
        None => (".".into(), output(command("git").arg("ls-files"))?),
        Some(commit) => {
            let folder = tools::target_dir().join("lines");
            let _ = std::fs::remove_dir_all(&folder);
            tools::make_folder(&folder)?;
            let unpack = "git archive \"$0\" | tar -x -C \"$1\"";
            tools::run(command("sh").args(["-ec", unpack, commit]).arg(&folder))?;
            let names = ["ls-tree", "-r", "--name-only", commit];
            (folder, output(command("git").args(names))?)
        }
    };
    let mut table = Table::new();
    for name in names.lines().filter(|name| *name != GENERATED) {
        add(&mut table, &folder, Path::new(name))?;
    }
    match std::io::stdout().write_all(text(&table).as_bytes()) {
        Err(why) if why.kind() != ErrorKind::BrokenPipe => Err(format!("standard output: {why}")),
        _ => Ok(()),
    }
}

/// Adds a file to the rows of its package, of its folder and of everything.
fn add(table: &mut Table, folder: &Path, name: &Path) -> Result {
    let extension = name.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let language = LANGUAGES.iter().position(|(_, extensions)| extensions.contains(&extension));
    let is_test = name.iter().any(|part| TESTS.iter().any(|test| part == *test));
    let file = folder.join(name);
    let (Some(language), false, true) = (language, is_test, file.is_file()) else { return Ok(()) };

    let count = code_lines(&tools::read_text(&file)?, LANGUAGES[language].0);
    let name = name.to_string_lossy().replace("crates/", "").replace("/src/", "/");
    let name = name.strip_prefix("src/").map_or(name.clone(), |rest| format!("thriffty/{rest}"));
    let mut parts = name.split('/');
    let package = parts.next().unwrap_or_default();
    let mut rows = vec!["all".to_string(), package.to_string()];
    // The last part is the file.
    if let (Some(part), Some(_)) = (parts.next(), parts.next()) {
        rows.push(format!("{package}/{part}"));
    }
    for row in rows {
        table.entry(row).or_default()[language] += count;
    }
    Ok(())
}

/// Counts lines that are neither blank nor comments, up to the tests at the end of a Rust file.
fn code_lines(text: &str, language: &str) -> usize {
    let (line_comment, opening, closing): (_, &[&str], _) = match language {
        "Fortran" => ("!", &[], ""),
        "Python" => ("#", &["\"\"\"", "r\"\"\""], "\"\"\""),
        _ => ("//", &["/*"], "*/"),
    };
    let mut count = 0;
    let mut lines = text.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        let next = lines.peek().unwrap_or(&"");
        if line.starts_with("#[cfg(") && line.contains("test") && next.ends_with("mod tests {") {
            break;
        }
        if let Some(start) = opening.iter().find(|start| line.starts_with(**start)) {
            let mut rest = &line[start.len()..];
            while !rest.contains(closing) {
                let Some(line) = lines.next() else { break };
                rest = line;
            }
        } else if !line.is_empty() && !line.starts_with(line_comment) {
            count += 1;
            // Text in three quotes is code unless the line begins with it.
            if language == "Python" && line.matches(closing).count() == 1 {
                count += 1 + lines.by_ref().take_while(|line| !line.contains(closing)).count();
            }
        }
    }
    count
}

fn text(table: &Table) -> String {
    let mut text = format!("{:30}", "");
    for (language, _) in LANGUAGES {
        text += &format!("{language:>9}");
    }
    text += &format!("{:>9}", "all");
    for (name, counts) in table {
        let indent = if name.contains('/') { "  " } else { "" };
        text += &format!("\n{:30}", format!("{indent}{name}"));
        for count in counts {
            text += &match count {
                0 => " ".repeat(9),
                count => format!("{count:>9}"),
            };
        }
        text += &format!("{:>9}", counts.iter().sum::<usize>());
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blank_lines_and_tests_are_not_code() {
        let rust = "//! Why.\n\nfn f() {} // a\n/* b\n c */\n#[cfg(test)]\nmod tests {\n  x\n}\n";
        assert_eq!(code_lines(rust, "Rust"), 1);
        assert_eq!(code_lines("/* a */\nint b; /* c */\n// d\n", "C, C++"), 1);
        assert_eq!(code_lines("! a\nuse b\n  !> c\n", "Fortran"), 1);
        let python = "\"\"\"Why.\n\nMore.\"\"\"\n# a\nx = \"\"\"b\n\nc\"\"\"\ny = 1\n";
        assert_eq!(code_lines(python, "Python"), 4);
    }

    #[test]
    fn files_count_for_their_folder_and_package() {
        let folder = std::env::temp_dir().join(format!("thriffty-lines-{}", std::process::id()));
        let mut table = Table::new();
        for name in ["src/plan/a.rs", "crates/c/src/lib.rs", "crates/c/tests/t.rs", "README.md"] {
            let file = folder.join(name);
            tools::make_folder(file.parent().unwrap()).unwrap();
            tools::write(&file, "fn f() {}\n").unwrap();
            add(&mut table, &folder, Path::new(name)).unwrap();
        }
        std::fs::remove_dir_all(&folder).unwrap();
        let counts: Vec<_> =
            table.iter().map(|(name, counts)| (name.as_str(), counts[0])).collect();
        assert_eq!(counts, [("all", 2), ("c", 1), ("thriffty", 1), ("thriffty/plan", 1)]);
        assert!(text(&table).contains("\n  thriffty/plan  "), "{}", text(&table));
    }
}
