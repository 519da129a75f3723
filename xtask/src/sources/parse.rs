//! The modules of a crate: the names that each defines or imports, and the paths that it uses.
//!
//! Sources are read as trees of tokens. So paths inside macros are seen, and text in comments and
//! strings is not. Items marked `#[cfg(test)]` are left out.

use crate::tools::Result;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{HashMap, HashSet};

/// The modules of a crate. The first is its root.
#[derive(Debug, Default)]
pub(super) struct Crate {
    /// Relative to the crate's `src`.
    pub(super) files: Vec<String>,
    pub(super) modules: Vec<Module>,
}

#[derive(Debug, Default)]
pub(super) struct Module {
    /// The root is its own parent.
    pub(super) parent: usize,
    /// An index of `Crate::files`. A module in braces shares the file of its parent.
    pub(super) file: usize,
    /// Where the files of its children are, with a slash at the end.
    folder: String,
    pub(super) children: HashMap<String, usize>,
    /// Names of items that it defines.
    pub(super) items: HashSet<String>,
    pub(super) imports: HashMap<String, Import>,
    /// What stands before `::*`.
    pub(super) globs: Vec<Vec<String>>,
    pub(super) uses: Vec<Use>,
}

/// A name that `use` brings into a module.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) path: Vec<String>,
    pub(super) public: bool,
}

/// A path, or a name alone, in code or in a `use` that is not `pub`.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
}

/// Returns the text of a file, or `None` if there is no such file.
type Source<'s> = &'s dyn Fn(&str) -> Option<String>;

impl Crate {
    /// Reads a crate whose root is `lib` or `main`.
    pub(super) fn read(root: &str, source: Source<'_>) -> Result<Self> {
        let mut reader = Reader { source, krate: Self::default() };
        reader.module(Module::default(), root, None)?;
        Ok(reader.krate)
    }
}

struct Reader<'s> {
    source: Source<'s>,
    krate: Crate,
}

impl Reader<'_> {
    /// Adds a module, whose body is given or else in a file, and returns its index.
    fn module(&mut self, new: Module, path: &str, body: Option<TokenStream>) -> Result<usize> {
        let index = self.krate.modules.len();
        self.krate.modules.push(new);
        let body = match body {
            Some(body) => body,
            None => {
                let mut names = [format!("{path}.rs"), format!("{path}/mod.rs")].into_iter();
                let found = names.find_map(|name| Some(((self.source)(&name)?, name)));
                let (text, name) = found.ok_or(format!("there is no {path}.rs"))?;
                self.krate.modules[index].file = self.krate.files.len();
                self.krate.files.push(name);
                text.parse().map_err(|e| format!("{path}.rs: {e}"))?
            }
        };
        self.tokens(index, body, true)?;
        Ok(index)
    }

    /// Adds tokens to a module. `outermost`: they are in no item.
    fn tokens(&mut self, module: usize, tokens: TokenStream, outermost: bool) -> Result {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            let (before, left) = tokens.split_at(at);
            at += match left {
                _ if test_item(left) > 0 => test_item(left),
                [TokenTree::Group(group), ..] => {
                    self.tokens(module, group.stream(), false)?;
                    1
                }
                [TokenTree::Ident(word), TokenTree::Ident(name), body, ..]
                    if outermost && word == "mod" =>
                {
                    self.child(module, name.to_string(), body)?;
                    3
                }
                // `use<'a>` is a bound.
                [TokenTree::Ident(word), next, ..] if word == "use" && !is(next, '<') => {
                    let length = left.iter().take_while(|token| !is(token, ';')).count();
                    self.import(module, &left[1..length], &[], is_public(before));
                    length
                }
                // A visibility uses nothing.
                [TokenTree::Ident(word), TokenTree::Group(_), ..] if word == "pub" => 2,
                [TokenTree::Ident(_), ..] => self.path(module, before, left, outermost),
                _ => 1,
            };
        }
        Ok(())
    }

    /// Adds a child, whose body is in braces or in a file.
    fn child(&mut self, parent: usize, name: String, body: &TokenTree) -> Result {
        let Module { file, folder, .. } = &self.krate.modules[parent];
        let path = format!("{folder}{name}");
        let folder = format!("{path}/");
        let body = match body {
            TokenTree::Group(body) => Some(body.stream()),
            _ => None,
        };
        let child = Module { parent, file: *file, folder, ..Module::default() };
        let child = self.module(child, &path, body)?;
        self.krate.modules[parent].children.insert(name, child);
        Ok(())
    }

    /// Adds the path that comes next, and the item if it is the word before one; how long it is.
    fn path(
        &mut self,
        module: usize,
        before: &[TokenTree],
        left: &[TokenTree],
        outermost: bool,
    ) -> usize {
        let mut path = vec![left[0].to_string()];
        let mut rest = &left[1..];
        if let (true, Some(TokenTree::Ident(name))) = (outermost, rest.first())
            && ITEMS.contains(&&*path[0])
        {
            self.krate.modules[module].items.insert(name.to_string());
        }
        while let [first, second, TokenTree::Ident(word), others @ ..] = rest
            && is(first, ':')
            && is(second, ':')
        {
            path.push(word.to_string());
            rest = others;
        }
        // What follows `::` goes on from a type; what follows one dot is a field or a method.
        let within = match before {
            [.., first, last] if is(last, ':') => is(first, ':'),
            [.., first, last] if is(last, '.') => !is(first, '.'),
            _ => false,
        };
        if !within {
            let line = left[0].span().start().line;
            self.krate.modules[module].uses.push(Use { path, line });
        }
        left.len() - rest.len()
    }

    /// Adds what follows `use`, or what its braces hold after the path `prefix`.
    fn import(&mut self, module: usize, tokens: &[TokenTree], prefix: &[String], public: bool) {
        for tree in tokens.split(|token| is(token, ',')) {
            // After `::` comes another crate.
            let Some(first) = tree.first().filter(|first| !is(first, ':')) else { continue };
            let (mut path, mut name) = (prefix.to_vec(), None);
            for token in tree {
                match token {
                    TokenTree::Ident(word) if word == "as" => name = tree.last(),
                    // `a::{self}` is `a`.
                    TokenTree::Ident(word) if word == "self" && !path.is_empty() => {}
                    TokenTree::Ident(word) if name.is_none() => path.push(word.to_string()),
                    TokenTree::Group(group) => {
                        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                        self.import(module, &inner, &std::mem::take(&mut path), public);
                    }
                    star if is(star, '*') => {
                        self.krate.modules[module].globs.push(std::mem::take(&mut path));
                    }
                    _ => {}
                }
            }
            let Some(name) = name.map(TokenTree::to_string).or(path.last().cloned()) else {
                continue;
            };
            let this = &mut self.krate.modules[module];
            this.imports.insert(name, Import { path: path.clone(), public });
            if !public {
                this.uses.push(Use { path, line: first.span().start().line });
            }
        }
    }
}

/// The words before the name of an item.
const ITEMS: [&str; 9] =
    ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "mut"];

fn is(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

/// Whether the tokens end with `pub`, or with `pub` and parentheses.
fn is_public(tokens: &[TokenTree]) -> bool {
    use TokenTree::{Group, Ident};
    matches!(tokens, [.., Ident(word)] | [.., Ident(word), Group(_)] if word == "pub")
}

/// The number of tokens of the item marked `#[cfg(test)]` that comes next, or 0.
pub(super) fn test_item(tokens: &[TokenTree]) -> usize {
    let [hash, TokenTree::Group(attribute), item @ ..] = tokens else { return 0 };
    let text: String = attribute.stream().to_string().split_whitespace().collect();
    if !is(hash, '#') || !(text == "cfg(test)" || text.starts_with("cfg(all(test,")) {
        return 0;
    }
    let is_use = item.iter().take(3).any(|token| token.to_string() == "use");
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => !is_use && group.delimiter() == Delimiter::Brace,
        other => is(other, ';'),
    };
    2 + item.iter().position(ends).map_or(item.len(), |last| last + 1)
}
