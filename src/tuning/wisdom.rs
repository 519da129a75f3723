//! Wisdom: a file with the fastest recipe for each problem on each machine.

use std::path::Path;

use fft_comm::{Signature, seal, unseal};
use fft_core::{Comm, Error};
use serde::{Deserialize, Serialize};

use super::files;
use super::report::Report;

/// The first words of a file.
const KIND: &str = "thriffty wisdom";

/// Everything in a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wisdom {
    #[serde(default)]
    entry: Vec<Entry>,
}

/// The fastest recipe for a problem on a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    problem: String,
    processor: String,
    hosts: usize,
    ranks_per_host: usize,
    library: String,
    version: String,
    /// As it prints.
    pub(crate) recipe: String,
    /// Predicted seconds, for readers of the file.
    predicted: f64,
    /// Measured seconds, for reports.
    pub(crate) measured: f64,
}

impl Entry {
    fn signature(&self) -> Signature {
        let Self { processor, hosts, ranks_per_host, library, version, .. } = self.clone();
        Signature { processor, hosts, ranks_per_host, library, version }
    }
}

/// The entry for a problem on this machine.
///
/// # Errors
/// The reason why there is none: the file is not wisdom, was changed, or has no such entry.
pub(crate) fn find(text: &str, problem: &str, here: &Signature) -> Result<Entry, String> {
    let entries = parse(text)?.entry.into_iter().filter(|entry| entry.problem == problem);
    let mut elsewhere = None;
    for entry in entries {
        match here.difference(&entry.signature()) {
            None => return Ok(entry),
            Some((name, here, there)) => {
                elsewhere = Some(format!("its {name} is `{there}`, here it is `{here}`"));
            }
        }
    }
    Err(elsewhere.unwrap_or_else(|| format!("it knows nothing of {problem}")))
}

fn parse(text: &str) -> Result<Wisdom, String> {
    let body = unseal(KIND, text).ok_or("its checksum is not that of what it says")?;
    toml::from_str(body).map_err(|error| error.message().to_owned())
}

/// Adds the choice of a report for a problem, or replaces the entry on this machine. Collective.
///
/// # Errors
/// On every rank: [`Error::OnRank`] when the file cannot be written.
pub(crate) fn save(
    comm: &dyn Comm,
    path: &Path,
    problem: &str,
    report: &Report,
) -> Result<(), Error> {
    let Signature { processor, hosts, ranks_per_host, library, version } = Signature::of(comm)?;
    let row = report.chosen();
    let new = Entry {
        problem: problem.into(),
        processor,
        hosts,
        ranks_per_host,
        library,
        version,
        recipe: row.recipe.clone(),
        predicted: row.predicted,
        measured: row.measured().unwrap_or(row.predicted),
    };
    files::update(comm, path, |old| with(old, new))
}

/// The text of a file with one more entry.
///
/// # Errors
/// When the file is not wisdom, or was changed, because it may be somebody's only copy.
fn with(old: Option<&str>, new: Entry) -> Result<String, String> {
    let mut wisdom = match old {
        None | Some("") => Wisdom::default(),
        Some(text) => parse(text)?,
    };
    let same = |entry: &Entry| entry.problem == new.problem && entry.signature() == new.signature();
    wisdom.entry.retain(|entry| !same(entry));
    wisdom.entry.push(new);
    Ok(seal(KIND, &toml::to_string(&wisdom).expect("texts and numbers are TOML")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(problem: &str, ranks_per_host: usize, recipe: &str) -> Entry {
        Entry {
            problem: problem.into(),
            processor: "a \"quoted\" processor".into(),
            hosts: 1,
            ranks_per_host,
            library: "threads".into(),
            version: "0.0.0".into(),
            recipe: recipe.into(),
            predicted: 1e-3,
            measured: 2e-3,
        }
    }

    fn all(entries: &[Entry]) -> String {
        let grown = entries.iter().fold(None, |text: Option<String>, entry| {
            Some(with(text.as_deref(), entry.clone()).unwrap())
        });
        grown.unwrap()
    }

    #[test]
    fn each_problem_on_each_machine_has_one_entry_the_latest() {
        let (a, b) = (entry("a", 2, "(one)"), entry("b", 2, "(two)"));
        let (elsewhere, newer) = (entry("a", 3, "(three)"), entry("a", 2, "(four)"));
        let text = all(&[a.clone(), b.clone(), elsewhere.clone(), newer.clone()]);
        assert_eq!(parse(&text).unwrap().entry.len(), 3);
        let here = a.signature();
        assert_eq!(find(&text, "a", &here), Ok(newer));
        assert_eq!(find(&text, "b", &here), Ok(b));
        assert_eq!(find(&text, "a", &elsewhere.signature()), Ok(elsewhere));
        assert_eq!(find(&text, "c", &here).unwrap_err(), "it knows nothing of c");
        let other = Signature { library: "another".into(), ..here };
        let why = find(&text, "b", &other).unwrap_err();
        assert_eq!(why, "its library is `threads`, here it is `another`");
    }

    #[test]
    fn cut_off_or_damaged_at_any_byte_it_knows_nothing() {
        let (a, b) = (entry("a", 2, "(one)"), entry("b", 2, "(two)"));
        let (text, here) = (all(&[a.clone(), b]), a.signature());
        assert!(find(&text, "a", &here).is_ok());
        for at in 0..text.len() {
            assert!(find(&text[..at], "a", &here).is_err(), "cut off at {at}");
            for bit in [1, 32] {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= bit;
                let damaged = String::from_utf8(bytes).unwrap();
                assert!(find(&damaged, "a", &here).is_err(), "damaged at {at}");
            }
        }
        // Nothing is added to a text that cannot be read, because that text would be lost.
        assert!(with(Some(&text[1..]), a.clone()).is_err());
        let begun = with(Some(""), a.clone()).unwrap();
        assert_eq!(parse(&begun), Ok(Wisdom { entry: vec![a.clone()] }));
        // Sealed, but no wisdom.
        for body in ["entry = 1\n", "[[entry]]\nproblem = \"a\"\n", "no toml", "\u{0}"] {
            assert!(find(&seal(KIND, body), "a", &here).is_err(), "{body}");
        }
    }
}
