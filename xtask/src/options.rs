//! The options of `cargo xtask bench`.

use crate::tools::Result;
use std::path::PathBuf;
use std::time::Duration;

/// What to time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Options {
    /// `c2c` or `r2c`.
    pub(crate) kind: String,
    pub(crate) size: [usize; 3],
    pub(crate) ranks: Vec<usize>,
    pub(crate) rounds: usize,
    /// Seconds that each heat may spend on waiting for idle cores, and on rounds that then do not count.
    pub(crate) patience: usize,
    /// Keep the record with the sources.
    pub(crate) record: bool,
    /// Names of programs to time; all when empty.
    pub(crate) only: Vec<String>,
    /// A built `fft-cli` to time.
    pub(crate) cli: Option<PathBuf>,
    /// Another one, of an older commit, to be timed beside it.
    pub(crate) beside: Option<PathBuf>,
    /// Each rank on a host of its own; what follows says which.
    pub(crate) net: bool,
    pub(crate) hosts: usize,
    /// Of the links between them.
    pub(crate) rate: String,
    /// Names of exchanges to time. When empty: all over a network, the default on one host.
    pub(crate) exchanges: Vec<String>,
    /// Wires to time beside raw messages, with one exchange: names, or numbers, which are tolerances.
    pub(crate) wires: Vec<String>,
    /// What is transformed then.
    pub(crate) field: Option<String>,
}

const COMMON: &[&str] = &["--kind", "--size", "--rounds", "--patience", "--cli", "--only"];
const LOCAL: &[&str] = &["--ranks", "--exchanges", "--beside"];
/// After `--net`.
const NET: &[&str] = &["--hosts", "--rate", "--exchanges", "--wires", "--field"];

impl Default for Options {
    fn default() -> Self {
        Self {
            kind: "c2c".into(),
            size: [256; 3],
            ranks: vec![1, 2, 4],
            rounds: 10,
            patience: 600,
            record: false,
            only: Vec::new(),
            cli: None,
            beside: None,
            net: false,
            hosts: 4,
            rate: "1gbit".into(),
            exchanges: Vec::new(),
            wires: Vec::new(),
            field: None,
        }
    }
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(&option) = words.next() {
            match option {
                "--record" => {
                    options.record = true;
                    continue;
                }
                "--net" => {
                    options.net = true;
                    continue;
                }
                _ => {}
            }
            let known = if options.net { NET } else { LOCAL };
            if !COMMON.contains(&option) && !known.contains(&option) {
                let which = if options.net { "bench --net" } else { "bench" };
                return Err(format!("{which} has no option {option}"));
            }
            let &value = words.next().ok_or(format!("{option} needs a value"))?;
            match option {
                "--kind" if ["c2c", "r2c"].contains(&value) => options.kind = value.into(),
                "--kind" => return Err(format!("--kind is c2c or r2c, not {value}")),
                "--size" => {
                    options.size = counts(option, value, 'x')?.try_into().map_err(|_| {
                        format!("--size is three lengths, like 256x256x256, not {value}")
                    })?;
                }
                "--ranks" => options.ranks = counts(option, value, ',')?,
                "--rounds" => options.rounds = count(option, value)?,
                "--patience" => options.patience = count(option, value)?,
                "--hosts" => options.hosts = count(option, value)?,
                "--rate" => options.rate = value.into(),
                "--only" => options.only = value.split(',').map(String::from).collect(),
                "--exchanges" => {
                    options.exchanges = value.split(',').map(String::from).collect();
                }
                "--wires" => options.wires = value.split(',').map(String::from).collect(),
                "--field" => options.field = Some(value.into()),
                "--beside" => options.beside = Some(value.into()),
                _ => options.cli = Some(value.into()),
            }
        }
        Ok(options)
    }

    /// Whether the program of this name is to be timed.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == name)
    }

    /// What a heat may spend on waiting.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(self.patience as u64)
    }

    /// `256x256x256`.
    pub(crate) fn size_text(&self) -> String {
        self.size.map(|n| n.to_string()).join("x")
    }

    /// The field that goes into the transform, over all ranks.
    pub(crate) fn bytes(&self) -> usize {
        let per_point = if self.kind == "r2c" { 8 } else { 16 };
        self.size.iter().product::<usize>() * per_point
    }
}

fn count(option: &str, text: &str) -> Result<usize> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(format!("{option} wants positive whole numbers, not {text}")),
    }
}

fn counts(option: &str, text: &str, separator: char) -> Result<Vec<usize>> {
    text.split(separator).map(|part| count(option, part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(&line.split_whitespace().collect::<Vec<_>>())
    }

    #[test]
    fn nothing_given_is_the_default() {
        assert_eq!(parse(""), Ok(Options::default()));
    }

    #[test]
    fn every_option_is_read() {
        let options = parse(
            "--size 8x9x10 --kind r2c --ranks 3,6 --rounds 2 --record --cli a/b --beside c \
                 --only a,b",
        )
        .unwrap();
        let expected = Options {
            kind: "r2c".into(),
            size: [8, 9, 10],
            ranks: vec![3, 6],
            rounds: 2,
            record: true,
            only: vec!["a".into(), "b".into()],
            cli: Some("a/b".into()),
            beside: Some("c".into()),
            ..Options::default()
        };
        assert_eq!(options, expected);
        assert!(options.wants("b") && !options.wants("c") && Options::default().wants("c"));
        assert_eq!(options.size_text(), "8x9x10");
        assert_eq!(options.bytes(), 8 * 9 * 10 * 8);
    }

    #[test]
    fn a_network_has_options_of_its_own() {
        let line = "--net --hosts 3 --rate 100mbit --exchanges p2p,kway2 --patience 5 --wires f32,1e-6 \
                    --field smooth";
        let options = parse(line).unwrap();
        let expected = Options {
            net: true,
            hosts: 3,
            rate: "100mbit".into(),
            exchanges: vec!["p2p".into(), "kway2".into()],
            wires: vec!["f32".into(), "1e-6".into()],
            field: Some("smooth".into()),
            patience: 5,
            ..Options::default()
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn mistakes_are_named() {
        for (line, part) in [
            ("--size 8x9", "three lengths"),
            ("--size 8x0x8", "positive"),
            ("--kind dct", "dct"),
            ("--ranks 1,,2", "--ranks"),
            ("--rounds", "needs a value"),
            ("--fast", "--fast"),
            ("--hosts 4", "bench has no option --hosts"),
            ("--net --ranks 4", "bench --net has no option --ranks"),
            ("--net --hosts 0", "positive"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
