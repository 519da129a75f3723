//! What Python and the documents say of options is what the tables say, today.

mod current;

use std::path::Path;

use thriffty::planning::{Form, OptionInfo, Scope, Settings};

/// What texts say of one option.
struct Row(&'static OptionInfo);

impl Row {
    /// The argument of Python: its name, type and default.
    fn argument(&self) -> String {
        let hint = match self.0.form {
            Form::Flag => "bool",
            Form::Count => "int",
            Form::Tolerance => "float | str",
            Form::Path => "str | os.PathLike[str]",
            Form::NamesOrCount(_) => "str | int",
            Form::Lengths => "int | Sequence[int]",
            Form::Order => "str | Sequence[int]",
            Form::Kinds => "str | Sequence[str | None]",
            _ => "str",
        };
        let optional = if self.has_default() { "" } else { " | None" };
        let default = match (self.0.form, self.0.default_text().as_str()) {
            (_, "default") => "None".into(),
            (Form::Flag, "true") => "True".into(),
            (Form::Flag, _) => "False".into(),
            (Form::Count, number) => number.into(),
            (_, text) => format!("{text:?}"),
        };
        format!("        {}: {hint}{optional} = {default},\n", self.0.name)
    }

    /// Its entry in Python's dictionary of options.
    fn value(&self) -> String {
        format!("            \"{0}\": {0},\n", self.0.name)
    }

    /// Its entry in a docstring as NumPy has them.
    fn entry(&self) -> String {
        let hint = match self.0.form {
            Form::Flag => "bool".into(),
            Form::Count => "int".into(),
            Form::Tolerance => "float or str".into(),
            Form::Path => "str or path".into(),
            Form::Names(names) => format!("{{\"{}\"}}", names.join("\", \"")),
            Form::NamesOrCount(names) => format!("{{\"{}\"}} or int", names.join("\", \"")),
            Form::Lengths => "int or sequence of int".into(),
            Form::Order => "\"C\", \"F\" or sequence of int".into(),
            Form::Kinds => "str or sequence of str".into(),
            _ => "str".to_owned(),
        };
        let optional = if self.has_default() { "" } else { ", optional" };
        format!(
            "    {} : {hint}{optional}\n{}",
            self.0.name,
            wrapped(&self.0.meaning(), "        ")
        )
    }

    /// Its line in the table of the documents.
    fn line(&self) -> String {
        let values = match self.0.form {
            Form::Flag => "`true`, `false`".into(),
            Form::Count => "a whole number".into(),
            Form::Tolerance => "`1e-6`, `1e-6 strict`".into(),
            Form::Path => "a name or a file".into(),
            Form::Names(names) => format!("`{}`", names.join("`, `")),
            Form::NamesOrCount(names) => format!("`{}`, a whole number", names.join("`, `")),
            Form::Lengths => "a length per axis: `64,32`".into(),
            Form::Order => "axes: `1,0`".into(),
            Form::Kinds => "a kind per axis: `c2c,r2c`".into(),
            _ => "a text".to_owned(),
        };
        let default =
            if self.has_default() { format!("`{}`", self.0.default_text()) } else { "–".into() };
        let meaning = self.0.meaning().replace('\n', " ");
        format!("| `{}` | {values} | {default} | {meaning} |\n", self.0.name)
    }

    /// Whether the default is a value, and not left to the library.
    fn has_default(&self) -> bool {
        self.0.default_text() != "default"
    }
}

/// Words in lines of at most 100 columns.
fn wrapped(text: &str, indent: &str) -> String {
    let (mut lines, mut line) = (String::new(), indent.to_owned());
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > 100 {
            lines += &format!("{}\n", line.trim_end());
            line = indent.into();
        }
        line += word;
        line.push(' ');
    }
    lines + line.trim_end() + "\n"
}

/// A text with other contents between two lines of it.
fn replaced(text: &str, begin: &str, end: &str, contents: &str) -> String {
    let (before, rest) = text.split_once(begin).unwrap_or_else(|| panic!("there is no {begin}"));
    let (_, after) = rest.split_once(end).unwrap_or_else(|| panic!("there is no {end}"));
    format!("{before}{begin}{contents}{end}{after}")
}

#[test]
fn texts_of_options_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Python has the precision from the type of data.
    let rows = || Settings::all().filter(|option| option.name != "precision").map(Row);
    let path = root.join("python/thriffty/_plan.py");
    let source = std::fs::read_to_string(&path).unwrap();
    let entries: String = rows().map(|row| row.entry()).collect();
    let arguments: String = rows().map(|row| row.argument()).collect();
    let values: String = rows().map(|row| row.value()).collect();
    let begin = "    Other Parameters\n    ----------------\n";
    let source = replaced(&source, begin, "\n    Raises\n", &entries);
    let begin = "        # The options, as `cargo xtask header` writes them.\n";
    let source = replaced(&source, begin, "    ) -> None:\n", &arguments);
    let source = replaced(&source, "        options = {\n", "        }\n", &values);
    current::check(&path, &source);

    let path = root.join("docs/options.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let head = "| name | values | default | meaning |\n|---|---|---|---|\n";
    let mut page = page;
    for (title, is_placement) in [("## The transform", false), ("## Where it runs", true)] {
        let rows = Settings::all().filter(|it| (it.scope == Scope::Placement) == is_placement);
        let lines: String = rows.map(|option| Row(option).line()).collect();
        page =
            replaced(&page, &format!("{title}\n"), "\n<!-- end -->", &format!("\n{head}{lines}"));
    }
    current::check(&path, &page);
}
