//! The Python dictionary in a header, parsed strictly: of Python's literals only the few that occur in the files we
//! accept are understood, and everything else is an error that says where it stands.

use std::path::Path;

use super::{Dtype, NpyError};

const KEYS: &str = "the keys 'descr', 'fortran_order' and 'shape', each once";

/// What the three keys say.
pub(super) struct Dictionary {
    pub(super) shape: Vec<usize>,
    pub(super) dtype: Dtype,
    pub(super) fortran_order: bool,
}

impl Dictionary {
    /// Parses the text of a header; `path` is for errors.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, NpyError> {
        let (mut shape, mut dtype, mut fortran_order) = (None, None, None);
        let mut parser = Parser { path, text, at: 0 };
        parser.expect("{", "`{`")?;
        while !parser.accept("}") {
            parser.skip_spaces();
            let start = parser.at;
            let key = parser.string("a key")?;
            parser.expect(":", "`:`")?;
            let repeated = match key {
                "descr" => dtype.replace(parser.dtype()?).is_some(),
                "fortran_order" => fortran_order.replace(parser.boolean()?).is_some(),
                "shape" => shape.replace(parser.shape()?).is_some(),
                _ => return Err(parser.error_at(start, KEYS)),
            };
            if repeated {
                return Err(parser.error_at(start, KEYS));
            }
            if !parser.accept(",") {
                parser.expect("}", "`,` or `}`")?;
                break;
            }
        }
        parser.skip_spaces();
        if parser.at < text.len() {
            return Err(parser.error("nothing but spaces after the dictionary"));
        }
        match (shape, dtype, fortran_order) {
            (Some(shape), Some(dtype), Some(fortran_order)) => {
                Ok(Self { shape, dtype, fortran_order })
            }
            _ => Err(parser.error_at(0, KEYS)),
        }
    }
}

/// A cursor over the text. Each method skips spaces first and leaves the cursor behind what it took.
struct Parser<'a> {
    path: &'a Path,
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn dtype(&mut self) -> Result<Dtype, NpyError> {
        self.skip_spaces();
        let start = self.at;
        if self.accept("[") {
            return Err(self.dtype_error(start, self.text.len()));
        }
        let name = self.string("a dtype")?;
        let dtype = Dtype::ALL.into_iter().find(|dtype| dtype.descr() == name);
        dtype.ok_or_else(|| self.dtype_error(start, self.at))
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        if self.accept("True") {
            return Ok(true);
        }
        self.expect("False", "True or False").map(|()| false)
    }

    /// A tuple of lengths.
    fn shape(&mut self) -> Result<Vec<usize>, NpyError> {
        let mut shape = Vec::new();
        self.expect("(", "a tuple")?;
        while !self.accept(")") {
            shape.push(self.length()?);
            if self.accept(",") {
                continue;
            }
            // In Python, `(3)` is no tuple.
            let closing = if shape.len() == 1 { "`,`" } else { "`,` or `)`" };
            if shape.len() == 1 {
                return Err(self.error(closing));
            }
            self.expect(")", closing)?;
            break;
        }
        Ok(shape)
    }

    /// The length of an axis. Python 2 may have put an `L` after it.
    fn length(&mut self) -> Result<usize, NpyError> {
        self.skip_spaces();
        let rest = &self.text[self.at..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let length = rest[..digits].parse();
        let length = length.map_err(|_| self.error("an axis length of at least 0, below 2^64"))?;
        self.at += digits;
        self.accept("L");
        Ok(length)
    }

    /// A string between quotes of either sort, without escapes.
    fn string(&mut self, expected: &'static str) -> Result<&'a str, NpyError> {
        self.skip_spaces();
        let rest = &self.text[self.at..];
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let inside = quote.and_then(|quote| rest[1..].split_once(quote));
        let (inside, _) = inside.ok_or_else(|| self.error(expected))?;
        self.at += inside.len() + 2;
        Ok(inside)
    }

    fn expect(&mut self, token: &str, expected: &'static str) -> Result<(), NpyError> {
        if self.accept(token) { Ok(()) } else { Err(self.error(expected)) }
    }

    fn accept(&mut self, token: &str) -> bool {
        self.skip_spaces();
        let found = self.text[self.at..].starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.text[self.at..].trim_ascii_start().len();
    }

    fn error(&self, expected: &'static str) -> NpyError {
        self.error_at(self.at, expected)
    }

    fn error_at(&self, at: usize, expected: &'static str) -> NpyError {
        let found = excerpt(&self.text[at..]);
        NpyError::Syntax { path: self.path.to_path_buf(), at, found, expected }
    }

    fn dtype_error(&self, start: usize, end: usize) -> NpyError {
        let found = excerpt(&self.text[start..end]);
        NpyError::Dtype { path: self.path.to_path_buf(), found }
    }
}

/// The start of a text that may be long or unprintable.
fn excerpt(text: &str) -> String {
    let visible =
        |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.trim_ascii_end().chars().take(40).map(visible).collect()
}
