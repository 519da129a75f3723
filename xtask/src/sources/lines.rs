//! Counts of lines and of long functions.

use super::parse::test_item;
use crate::tools::Result;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

const FUNCTION_LINES: usize = 50;

/// What some Rust files have, without items marked `#[cfg(test)]`.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Count {
    /// Lines that are not blank.
    pub(super) lines: usize,
    /// Those that are too long, from the signature to the last brace.
    pub(super) functions: Vec<String>,
}

impl Count {
    pub(super) fn add(&mut self, name: &str, text: &str) -> Result {
        let tokens: TokenStream = text.parse().map_err(|e| format!("{name}: {e}"))?;
        let mut tests = Vec::new();
        self.tokens(name, tokens, &mut tests);
        let lines = (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty());
        self.lines +=
            lines.filter(|(line, _)| !tests.iter().any(|test| test.contains(line))).count();
        Ok(())
    }

    /// Adds functions, and the lines of tests to `tests`.
    fn tokens(&mut self, name: &str, tokens: TokenStream, tests: &mut Vec<RangeInclusive<usize>>) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut left = &tokens[..];
        while let [first, rest @ ..] = left {
            let start = first.span().start().line;
            let test = test_item(left);
            if test > 0 {
                tests.push(start..=left[test - 1].span().end().line);
            }
            if let ([TokenTree::Ident(function), ..], "fn") = (rest, &*first.to_string())
                && let Some(end) = rest.iter().find(|token| is_end(token))
            {
                let lines = end.span().end().line - start + 1;
                if lines > FUNCTION_LINES {
                    self.functions.push(format!("{name}:{start}: {function}, {lines} lines"));
                }
            }
            if let TokenTree::Group(group) = first {
                self.tokens(name, group.stream(), tests);
            }
            left = &left[test.max(1)..];
        }
    }
}

/// Whether a function ends with this token.
fn is_end(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        other => other.to_string() == ";",
    }
}

/// The source files of these kinds below a folder. A link is not followed.
pub(super) fn files(folder: &Path, kinds: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type());
        let built = entry.file_name() == "target" || entry.file_name() == "carry";
        if kind.as_ref().is_ok_and(|kind| kind.is_dir()) && !built {
            files.extend(self::files(&path, kinds));
        } else if kind.is_ok_and(|kind| kind.is_file())
            && path.extension().is_some_and(|end| kinds.iter().any(|&kind| end == kind))
        {
            files.push(path);
        }
    }
    files.sort();
    files
}
