//! The options of `cargo xtask bench`.

use clap::Parser;
use clap::builder::ArgPredicate;
use std::path::PathBuf;
use std::time::Duration;

/// Time thriffty and FFTW, in rounds of one transform each.
///
/// With --net each rank is on a host of its own, in a network of the script netlab (its path in
/// THRIFFTY_NETLAB; as root), and times are shown next to the limit of the links. NETLAB_MPIEXEC
/// names another launcher than mpirun, for a --cli built with its MPI.
#[derive(Debug, Clone, Parser)]
pub(crate) struct Options {
    /// The transform.
    #[arg(long, default_value = "c2c", value_parser = ["c2c", "r2c"])]
    pub(crate) kind: String,
    /// The grid, of three axes or one.
    #[arg(long, default_value = "256x256x256", value_parser = size, value_name = "N0xN1xN2")]
    pub(crate) size: Size,
    /// Time cubes of these lengths instead, at one rank and at four unless --ranks says otherwise.
    #[arg(long, value_delimiter = ',', value_parser = count, value_name = "N,...")]
    #[arg(conflicts_with_all = ["size", "net", "exchanges"])]
    pub(crate) sizes: Vec<usize>,
    /// Time cubes on one, two, four and eight GPUs of this host, as many as there are, and cuFFT if
    /// there is an nvcc.
    #[arg(long, conflicts_with_all = ["size", "net", "exchanges", "beside", "only"])]
    pub(crate) gpu: bool,
    /// The precision.
    #[arg(long, default_value = "f64", value_parser = ["f32", "f64"], conflicts_with = "net")]
    pub(crate) precision: String,
    /// Numbers of ranks.
    #[arg(long, default_value = "1,2,4", value_delimiter = ',', value_parser = count)]
    #[arg(default_value_if("gpu", ArgPredicate::Equals("true".into()), "1,2,4,8"))]
    #[arg(default_value_if("sizes", ArgPredicate::IsPresent, "1,4"))]
    #[arg(value_name = "P,...", conflicts_with = "net")]
    pub(crate) ranks: Vec<usize>,
    /// Measured rounds.
    #[arg(long, default_value = "10", value_parser = count, value_name = "N")]
    pub(crate) rounds: usize,
    /// How long to wait for idle cores; rounds after that are marked.
    #[arg(long, default_value = "600", value_parser = count, value_name = "SECONDS")]
    patience: usize,
    /// Keep the record in benches/records, not in target/.
    #[arg(long)]
    pub(crate) record: bool,
    /// Time these programs alone: fftw-mpi, thriffty-mpi, ...
    #[arg(long, value_delimiter = ',', value_name = "A,...")]
    pub(crate) only: Vec<String>,
    /// Time this fft-cli instead of building one.
    #[arg(long, value_name = "PATH")]
    pub(crate) cli: Option<PathBuf>,
    /// Time this fft-cli of an older commit, too.
    #[arg(long, value_name = "PATH", conflicts_with = "net")]
    pub(crate) beside: Option<PathBuf>,
    /// Time these exchanges, too: p2p, alltoallv, kway4, ..., or `tuned`; all of them with --net.
    #[arg(long, value_delimiter = ',', value_name = "A,...")]
    pub(crate) exchanges: Vec<String>,
    /// Place each rank on a host of its own.
    #[arg(long)]
    pub(crate) net: bool,
    /// The number of hosts.
    #[arg(long, default_value = "4", value_parser = count, value_name = "H", requires = "net")]
    pub(crate) hosts: usize,
    /// The rate of the links.
    #[arg(long, default_value = "1gbit", requires = "net")]
    pub(crate) rate: String,
    /// Time one exchange with raw messages and with these: bits:16, f32, ...; numbers are
    /// tolerances.
    #[arg(long, value_delimiter = ',', value_name = "A,...", requires = "net")]
    pub(crate) wires: Vec<String>,
    /// The input: uniform, smooth, ...
    #[arg(long, requires = "net")]
    pub(crate) field: Option<String>,
}

/// The lengths of a grid.
#[derive(Debug, Clone)]
pub(crate) struct Size(pub(crate) Vec<usize>);

impl Options {
    /// Whether the program of this name is to be timed.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == name)
    }

    /// The same for a cube.
    pub(crate) fn cube(&self, n: usize) -> Self {
        Self { size: Size(vec![n; 3]), ..self.clone() }
    }

    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(self.patience as u64)
    }

    /// `256x256x256`.
    pub(crate) fn size_text(&self) -> String {
        self.size.0.iter().map(usize::to_string).collect::<Vec<_>>().join("x")
    }

    /// Bytes of the input of all ranks.
    pub(crate) fn bytes(&self) -> usize {
        let parts = if self.kind == "r2c" { 1 } else { 2 };
        let per_point = parts * if self.precision == "f32" { 4 } else { 8 };
        self.size.0.iter().product::<usize>() * per_point
    }
}

fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(format!("found {text}, expected a positive whole number")),
    }
}

fn size(text: &str) -> Result<Size, String> {
    let lengths = text.split('x').map(count).collect::<Result<Vec<_>, _>>()?;
    match lengths.len() {
        1 | 3 => Ok(Size(lengths)),
        _ => Err("expected one length, or three lengths, like 256x256x256".into()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The options of a command line.
    pub(crate) fn parse(line: &str) -> Result<Options, String> {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        Options::try_parse_from(words).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_read_and_have_defaults() {
        let options = parse("--kind r2c --size 8x9x10 --ranks 3,6 --only a,b").unwrap();
        assert!(options.wants("b") && !options.wants("c") && parse("").unwrap().wants("c"));
        assert_eq!((options.size_text().as_str(), options.bytes()), ("8x9x10", 8 * 9 * 10 * 8));
        assert_eq!((options.ranks, options.rounds), (vec![3, 6], 10));
        let options = parse("--sizes 64,100 --precision f32").unwrap();
        assert_eq!((options.sizes, options.ranks), (vec![64, 100], vec![1, 4]));
        assert_eq!(parse("--sizes 64 --ranks 2").unwrap().ranks, [2]);
        assert_eq!(parse("--gpu --sizes 64").unwrap().ranks, [1, 2, 4, 8]);
        let options = parse("--net --wires f32,1e-6 --hosts 3").unwrap();
        assert_eq!((options.wires.len(), options.hosts, options.rate.as_str()), (2, 3, "1gbit"));
    }

    #[test]
    fn mistakes_are_named() {
        for (line, part) in [
            ("--size 8x9", "three lengths"),
            ("--size 8x0x8", "positive"),
            ("--kind dct", "dct"),
            ("--ranks 1,,2", "--ranks"),
            ("--rounds", "--rounds"),
            ("--fast", "--fast"),
            ("--hosts 4", "--net"),
            ("--net --ranks 4", "--ranks"),
            ("--net --hosts 0", "positive"),
            ("--sizes 64 --size 8x8x8", "--size"),
            ("--gpu --net", "--net"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
