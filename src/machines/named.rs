//! Machines by name, and machine files.

use std::path::Path;

use fft_core::{Error, Machine};

/// Names that [`named`] accepts: `default` is [`Machine::default`].
pub const NAMES: [&str; 5] = ["default", "summit", "frontier", "ethernet", "h200"];

/// A machine that comes with the library, by its name alone. [`read`](super::read) and
/// [`read_file`] take a file as well.
///
/// ```
/// let summit = thriffty::machine::named("summit")?;
/// assert_eq!(summit.cores.value, 6.0);
/// # Ok::<(), thriffty::Error>(())
/// ```
///
/// # Errors
/// [`Error::Argument`] for a name that is not among [`NAMES`].
pub fn named(name: &str) -> Result<Machine, Error> {
    let (file, text) = match name {
        "default" => return Ok(Machine::default()),
        "summit" => ("summit.toml", include_str!("../../machines/summit.toml")),
        "frontier" => ("frontier.toml", include_str!("../../machines/frontier.toml")),
        "ethernet" => ("ethernet.toml", include_str!("../../machines/ethernet.toml")),
        "h200" => ("h200.toml", include_str!("../../machines/h200.toml")),
        _ => {
            let expected = format!("one of {}", NAMES.join(", "));
            return Err(Error::argument("machine", name, expected));
        }
    };
    parse(file, text)
}

/// The machine with this name, one of [`NAMES`], or in this file, which only this rank reads.
///
/// # Errors
/// [`Error::Argument`] when it is neither a name nor a file; with the file, the line, and the field
/// that is missing, unknown or out of range.
pub fn read_file(name_or_path: impl AsRef<Path>) -> Result<Machine, Error> {
    let path = name_or_path.as_ref();
    let file = path.display().to_string();
    if NAMES.contains(&file.as_str()) {
        return named(&file);
    }
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&file, &text),
        Err(why) => Err(unreadable(&file, why)),
    }
}

/// The error of a file without text.
pub(super) fn unreadable(file: &str, why: impl ToString) -> Error {
    let expected = format!("a file of text, or one of {}", NAMES.join(", "));
    Error::argument(format!("machine file {file}"), why, expected)
}

/// The machine that a text describes, from a file of this name.
pub(crate) fn parse(file: &str, text: &str) -> Result<Machine, Error> {
    let machine = toml::from_str::<Machine>(text).map_err(|error| {
        let line = error.span().map(|span| {
            let before = &text[..span.start.min(text.len())];
            let line = before.matches('\n').count();
            let shown: String =
                text.lines().nth(line).unwrap_or("").trim().chars().take(60).collect();
            format!(", line {}: `{shown}`", line + 1)
        });
        let what = format!("machine file {file}{}", line.unwrap_or_default());
        Error::argument(what, error.message().replace('\n', " "), "the fields of a machine")
    })?;
    machine.check().map_err(|error| match error {
        Error::Argument { what, found, expected } => {
            Error::Argument { what: format!("machine file {file}: {what}"), found, expected }
        }
        other => other,
    })?;
    Ok(machine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fft_core::{How, Quantity};

    #[test]
    fn every_number_of_every_machine_says_where_it_is_from() {
        for name in NAMES {
            let machine = named(name).unwrap();
            assert_eq!(machine.name, name);
            for (field, quantity) in machine.quantities() {
                assert!(quantity.source.len() > 5, "{field} of {name}");
            }
        }
        let fitted =
            |(field, quantity): (String, &Quantity)| (quantity.how == How::Fitted).then_some(field);
        let summit = named("summit").unwrap();
        assert_eq!(summit.lines, Machine::default().lines, "what a file does not say");
        let fitted: Vec<_> = summit.quantities().into_iter().filter_map(fitted).collect();
        assert_eq!(fitted, ["host", "congestion", "far.latency"]);
    }

    /// The network differs, and so do codecs that were measured.
    #[test]
    fn hosts_on_ethernet_are_default_hosts() {
        let (default, ethernet) = (Machine::default(), named("ethernet").unwrap());
        let numbers = |machine: &Machine| {
            let Machine { cores, memory, host_memory, strided, barrier, flops, .. } = machine;
            let quantities = [cores, memory, host_memory, strided, barrier];
            let lengths: Vec<_> = flops.iter().map(|rate| (rate.n, rate.rate.value)).collect();
            (quantities.map(|quantity| quantity.value), lengths)
        };
        assert_eq!(numbers(&ethernet), numbers(&default));
    }

    #[test]
    fn a_wrong_file_is_refused_with_its_name_and_the_field() {
        let text = include_str!("../../machines/ethernet.toml");
        let complaint = |text: &str| parse("my.toml", text).unwrap_err().to_string();
        let line = |of: &str| {
            let before = &text[..text.find(of).unwrap_or_else(|| panic!("no {of}"))];
            format!("my.toml, line {}: `", before.matches('\n').count() + 1)
        };
        for (from, to, found, expected) in [
            ("4e-5", "\"4e-5\"", line("4e-5"), "invalid type: string \"4e-5\""),
            ("4e-5", "-4e-5", "my.toml: far.latency".into(), "found -0.00004, expected at least 0"),
            ("congestion", "kongestion", line("congestion"), "unknown field `kongestion`"),
            ("measured", "guessed", line("measured"), "unknown variant `guessed`"),
            ("[decode]", "[decode", line("[decode]"), "found"),
            ("barrier = {", "# {", "my.toml".into(), "missing field `barrier`"),
        ] {
            let complaint = complaint(&text.replacen(from, to, 1));
            assert!(complaint.contains(&found) && complaint.contains(expected), "{complaint}");
        }
        let found = read_file("/nowhere/my.toml").unwrap_err().to_string();
        assert!(found.starts_with("machine file /nowhere/my.toml: found No such file"), "{found}");
    }

    #[test]
    fn a_name_that_is_none_is_answered_by_those_that_are() {
        let known = "one of default, summit, frontier, ethernet, h200";
        let found = named("titan").unwrap_err().to_string();
        assert_eq!(found, format!("machine: found titan, expected {known}"));
        assert_eq!(read_file("summit"), named("summit"));
        let found = read_file("titan").unwrap_err().to_string();
        assert!(found.starts_with("machine file titan: found No such file"), "{found}");
        assert!(found.ends_with(&format!("expected a file of text, or {known}")), "{found}");
    }
}
