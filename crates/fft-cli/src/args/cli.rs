//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use thriffty::planning::{Algorithm, Direction, Memory, Precision};
use thriffty::{Kind, Scale, Tolerance, Wire};

use super::shape::Shape;
use crate::data::fields::Field;

/// Benchmarks, verifies and runs distributed Fourier transforms on NumPy files.
///
/// Ranks are threads of this process (--ranks), or the processes that mpirun started, in a build with MPI.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub(crate) struct Cli {
    /// Run on so many ranks, each a thread of this process.
    #[arg(long, global = true, value_name = "P")]
    pub(crate) ranks: Option<NonZeroUsize>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Bench(Bench),
    Calibrate(Calibrate),
    Tune(Tune),
    Transform(Transform),
    Verify(Verify),
    Sample(Sample),
    Spectrum(Spectrum),
    Study(Study),
    Plan(Plan),
    Scale(Scaling),
}

/// Time a transform and measure its errors.
///
/// GFlop/s are 5·N·log2(N) per second for complex data and half of that for real data, N being the number of points:
/// the convention of FFTW's benchmarks, not the number of operations done. Fails when an error is larger than
/// 2ε·max(4, log2 N), or the largest error of a point than 8 times that.
///
/// With --tolerance or --wire, the forward transform is compared with that of the same plan without. Fails when it loses
/// more than the tolerance or the bound that the library reports; the errors above may be larger by the bounds.
#[derive(Args, Debug)]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) problem: Problem,
    #[command(flatten)]
    pub(crate) choosing: Choosing,
    /// Where the data is: host; or cuda, GPUs dealt out to the ranks of a host in turn.
    #[arg(long, default_value = "host", value_parser = device())]
    pub(crate) device: Device,
    /// How data gets to other ranks' GPUs: reached, where they can be; or in messages, from memory of the device or the host.
    #[arg(long, default_value = "reached", value_parser = ["reached", "device", "host"])]
    pub(crate) transport: String,
    /// Times that the transform is measured, after one that is not.
    #[arg(long, default_value = "10", value_name = "N")]
    pub(crate) reps: NonZeroUsize,
    #[arg(long, default_value = "forward", value_parser = direction())]
    pub(crate) direction: Direction,
    /// What is transformed.
    #[arg(long, default_value = "noise", value_parser = field())]
    pub(crate) field: Field,
    /// Print one JSON object and nothing else.
    #[arg(long)]
    pub(crate) json: bool,
    /// Compare 32 spectral points with their definition.
    #[arg(long)]
    pub(crate) check: bool,
    /// Print `ready`, then the seconds of one transform for each line `go`, until `quit` or the end of the input.
    ///
    /// For a line `timings`: the mean seconds of each part of the transforms since the last one, and the bytes sent.
    #[arg(long, conflicts_with_all = ["json", "check", "reps"])]
    pub(crate) serve: bool,
}

/// Where data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    Host,
    Cuda,
}

/// What is transformed, and what is known of the machine.
#[derive(Args, Debug)]
pub(crate) struct Problem {
    /// What is done along each axis.
    #[arg(value_parser = kind())]
    pub(crate) kind: Kind,
    /// Points along each of 1 to 4 axes: 256x256x256, or 256^3.
    pub(crate) shape: Shape,
    #[arg(long, default_value = "f64", value_parser = precision())]
    pub(crate) precision: Precision,
    #[command(flatten)]
    pub(crate) grids: Grids,
    /// Equal transforms done at once.
    #[arg(long, default_value = "1", value_name = "N")]
    pub(crate) howmany: NonZeroUsize,
    /// How data travels: shared, p2p, pipelined, alltoallv, kway2, kway4, ..., ring or ring-flush; chosen by default.
    #[arg(long)]
    pub(crate) exchange: Option<Algorithm>,
    /// What the plan may take beside input and output: ample, or least, which is little more than once the data, and what of
    /// that does not fit into the output.
    #[arg(long, default_value = "ample", value_parser = memory())]
    pub(crate) memory: Memory,
    /// Keep input and output in memory that the ranks of a host share, and on the host nothing beside.
    #[arg(long)]
    pub(crate) shared_arrays: bool,
    #[command(flatten)]
    pub(crate) wires: Wires,
    /// What the model reckons with, as `fft-cli calibrate` writes it, or one that is known by its name; THRIFFTY_MACHINE by
    /// default, where that is of this machine.
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) machine: Option<PathBuf>,
}

/// How the recipe is chosen.
#[derive(Args, Debug)]
pub(crate) struct Choosing {
    /// By the model, or by timing its best few; under Open MPI's mpirun `--tune=measure`, as `--tune measure` is taken for its own.
    #[arg(long, default_value = "model", value_parser = by(), value_name = "HOW")]
    pub(crate) tune: By,
    /// How long timing may take: 10s, 500ms.
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    pub(crate) budget: Duration,
    /// By what `fft-cli tune` found fastest, as this file remembers.
    #[arg(long, value_name = "FILE", conflicts_with = "tune")]
    pub(crate) wisdom: Option<PathBuf>,
    /// By its name: the recipe that prints as this.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["tune", "wisdom"])]
    pub(crate) recipe: Option<String>,
}

/// What chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Model,
    Timings,
}

/// Find the fastest way to do a transform here, and remember it.
///
/// Times the best few recipes, exchanges and sizes of chunks by the model, turn by turn, on noise, and shows them with what
/// the model expected. Later runs use what was found with `fft-cli bench --wisdom FILE`, programs with Tune::Wisdom.
#[derive(Args, Debug)]
pub(crate) struct Tune {
    #[command(flatten)]
    pub(crate) problem: Problem,
    /// How long it may take: 10s, 500ms.
    #[arg(long, default_value = "10s", value_parser = duration, value_name = "TIME")]
    pub(crate) budget: Duration,
    /// Remember what is fastest in this file, beside what it has of other transforms.
    #[arg(long, value_name = "FILE")]
    pub(crate) wisdom: Option<PathBuf>,
}

/// Measure this machine, as these ranks see it: what predictions are made from.
///
/// Takes a few seconds. Rates of memory, of transforms in cache and of codecs, and messages between ranks of a host and
/// between hosts; what cannot be measured here is marked as assumed.
#[derive(Args, Debug)]
pub(crate) struct Calibrate {
    /// Write it into this file, signed with the processor, the ranks and the library.
    #[arg(short, long, value_name = "FILE.toml")]
    pub(crate) output: Option<PathBuf>,
}

/// Transform a NumPy file into another.
///
/// The result is that of numpy.fft.rfftn (r2c), fftn (c2c), irfftn and ifftn (--inverse), and scipy.fft.dctn, dstn,
/// idctn and idstn of each type. Files hold 1 to 4 axes of f4, f8, c8 or c16, little-endian; the result has the
/// precision and the order (C or Fortran) of the input. Every rank reads and writes its own part of the files. An
/// error leaves no output file behind, or the one that was there before.
#[derive(Args, Debug)]
pub(crate) struct Transform {
    /// What is done along each axis.
    #[arg(value_parser = kind())]
    pub(crate) kind: Kind,
    /// The file to read.
    #[arg(value_name = "IN.npy")]
    pub(crate) input: PathBuf,
    /// The file to write.
    #[arg(value_name = "OUT.npy")]
    pub(crate) output: PathBuf,
    /// Transform back.
    #[arg(long)]
    pub(crate) inverse: bool,
    /// Length of the last axis of the real output of an inverse r2c, 2(m-1) by default, m being that of the input.
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<usize>,
    /// What the result is divided by: 1 (forward's default), the logical size (inverse's), or its root.
    #[arg(long, value_parser = scale())]
    pub(crate) scale: Option<Scale>,
    #[command(flatten)]
    pub(crate) grids: Grids,
    /// Print one JSON object instead of a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Check that this installation computes what it should.
///
/// Transforms of all kinds, precisions and exchanges, of many shapes: forward against the definition, and there and
/// back again, from array to array and in place.
#[derive(Args, Debug)]
pub(crate) struct Verify {
    /// Fewer shapes: a few seconds.
    #[arg(long)]
    pub(crate) quick: bool,
}

/// Write a flow field to try things on: u.npy, v.npy and w.npy.
///
/// taylor-green: u = sin x cos y cos z, v = -cos x sin y cos z, w = 0 on [0, 2π)³; its energy is 1/8.
#[derive(Args, Debug)]
pub(crate) struct Sample {
    /// Which field.
    #[arg(value_name = "FIELD", value_parser = ["taylor-green"])]
    pub(crate) field: String,
    /// Points along each of the three axes.
    #[arg(long)]
    pub(crate) n: NonZeroUsize,
    /// The folder to write to; made if there is none.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    #[arg(long, default_value = "f64", value_parser = precision())]
    pub(crate) precision: Precision,
}

/// Show how the energy of a real field is spread over wavenumbers.
///
/// E(k) = ½ Σ |û|²/N² over k - ½ ≤ |k| < k + ½, in a box 2π wide along each axis.
#[derive(Args, Debug)]
pub(crate) struct Spectrum {
    /// The components of the field, 1 to 3 of them.
    #[arg(value_name = "U.npy", required = true, num_args = 1..=3)]
    pub(crate) components: Vec<PathBuf>,
    /// Draw the spectrum into this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write it into this file as lines `k,E`.
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

/// Show what encoded messages cost and save: tables of errors and of bits, and curves.
///
/// table: forward errors by number of ranks, in double precision, in single precision, and in double precision with
/// messages of fewer bits. figure: error over bits per real number sent. tolerance: of every field and tolerance, the bits
/// that it takes, and how far it is used. Without a name, all three. All data that changes ranks is sent, as if every rank
/// were on a host of its own.
///
/// FP64's own error is that of 32 points against the definition of the transform; all others are l2 errors against FP64.
#[derive(Args, Debug)]
pub(crate) struct Study {
    #[arg(value_name = "PART", value_parser = part())]
    pub(crate) parts: Vec<Part>,
    /// What is done along each axis.
    #[arg(long, default_value = "c2c", value_parser = choice(vec![("c2c", Kind::C2C), ("r2c", Kind::R2C)]))]
    pub(crate) kind: Kind,
    /// Points along each axis.
    #[arg(long, default_value = "64x64x64")]
    pub(crate) shape: Shape,
    /// Numbers of ranks, each a thread; the last is that of the figure and the tolerances. Under mpirun or with
    /// --ranks, theirs alone.
    #[arg(long, value_name = "P,...", default_value = "2,4,8,16", value_delimiter = ',')]
    pub(crate) ranks_list: Vec<NonZeroUsize>,
    /// What is transformed; uniform by default, and by the study of tolerances every field.
    #[arg(long, value_parser = field())]
    pub(crate) field: Option<Field>,
    /// Study strict tolerances.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Write everything that was measured into this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Draw the figure into this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

/// A part of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Table,
    Figure,
    Tolerance,
}

/// Say how a transform would be done on ranks and a machine that need not be here, and what it would take.
///
/// The recipe; of each reshape the bytes by the way they go, the messages and where they crowd; the forward transform's
/// time, predicted step by step for the busiest rank and simulated message by message at the ports of hosts, also with
/// half and twice the machine's bandwidths, latencies and overheads, bandwidths of memory and rates of arithmetic; what
/// other layouts would take; and shares of what network and memory allow. Network: 5 log2(N) B P/(α r) per point, P hosts
/// sending B bytes per second, r reshapes, α bytes per point; and without what stays on its host. Memory: data read and
/// written once before the first reshape and after each.
///
/// Simulations of orders in which ranks wait for each other step by step are marked: they are no better than ±4×. There is
/// no separate command for models: this one shows both.
#[derive(Args, Debug)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) place: Where,
    #[command(flatten)]
    pub(crate) grids: Grids,
    /// Print one JSON object and nothing else.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show how a transform would scale on a machine: tables and a figure of rates over numbers of ranks.
///
/// Strong scaling is of the problem as it is, weak scaling of one that grows with the ranks. Messages raw and encoded
/// (--wire, --tolerance; bits:16 by default), beside the pencils of a classic library, the limit Ψ of the network and, where there are any,
/// published rates. Rates are simulated up to some million messages; the figure and the pencils have those that are predicted
/// otherwise.
#[derive(Args, Debug)]
pub(crate) struct Scaling {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Numbers of ranks; the first is that of the problem as it is, from which it grows.
    #[arg(
        long,
        value_name = "P,...",
        default_value = "12,24,48,96,192,384,768,1536",
        value_delimiter = ','
    )]
    pub(crate) ranks_list: Vec<NonZeroUsize>,
    /// Write everything into this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Draw the figure of strong scaling into this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

/// A transform, and the machine that it would run on.
#[derive(Args, Debug)]
pub(crate) struct Where {
    /// What is done along each axis.
    #[arg(value_parser = kind())]
    pub(crate) kind: Kind,
    /// Points along each of 1 to 4 axes: 1024x1024x1024, or 1024^3.
    pub(crate) shape: Shape,
    #[arg(long, default_value = "f64", value_parser = precision())]
    pub(crate) precision: Precision,
    /// default, summit, frontier, ethernet, or a file of that form: NAME.toml.
    #[arg(long, default_value = "default", value_name = "NAME|FILE")]
    pub(crate) machine: String,
    /// Ranks of a host; as many as the machine computes with by default.
    #[arg(long, value_name = "P")]
    pub(crate) per_host: Option<NonZeroUsize>,
    /// Equal transforms done at once.
    #[arg(long, default_value = "1", value_name = "N")]
    pub(crate) howmany: NonZeroUsize,
    /// How data travels, named as for bench: shared by default; p2p where operations take time to begin, as on GPUs, which do not
    /// read each other's memory as fast as their own.
    #[arg(long)]
    pub(crate) exchange: Option<Algorithm>,
    /// Bytes of a chunk, where messages travel in chunks: 512 KiB by default; for scale, a 16th of a rank's data where that
    /// is more.
    #[arg(long, value_name = "BYTES")]
    pub(crate) chunk: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) wires: Wires,
}

/// How messages to other hosts are encoded.
#[derive(Args, Debug)]
pub(crate) struct Wires {
    /// What the transform may lose by it, the l2 norm of the error over that of the result: 1e-6.
    #[arg(long, value_name = "E", value_parser = tolerance)]
    pub(crate) tolerance: Option<Tolerance>,
    /// Keep the tolerance whatever the data.
    #[arg(long, requires = "tolerance")]
    pub(crate) strict: bool,
    /// raw, f32, f16, bf16, mantissa:0 to 52, bits:2 to 52, lossless, or tolerance, the default with --tolerance.
    #[arg(long)]
    pub(crate) wire: Option<Wire>,
    /// Send all data that changes ranks, as if every rank were on a host of its own.
    #[arg(long)]
    pub(crate) ignore_shared_memory: bool,
}

/// How data is cut over the ranks.
#[derive(Args, Debug)]
pub(crate) struct Grids {
    /// Ranks along each axis of the input: 1x2x2.
    #[arg(long, value_name = "GRID")]
    pub(crate) in_grid: Option<Shape>,
    /// Ranks along each axis of the output.
    #[arg(long, value_name = "GRID")]
    pub(crate) out_grid: Option<Shape>,
}

/// One of `choices`, by name.
fn choice<T: Clone + Send + Sync + 'static>(
    choices: Vec<(&'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    PossibleValuesParser::new(names).map(move |found| {
        let chosen = choices.iter().find(|(name, _)| *name == found);
        chosen.expect("clap lets only these names through").1.clone()
    })
}

fn kind() -> impl TypedValueParser<Value = Kind> {
    let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Identity);
    // As SciPy does: without a number, type II is meant.
    let usual = [("dct", Kind::Dct2), ("dst", Kind::Dst2)];
    choice(kinds.map(|kind| (kind.name(), kind)).chain(usual).collect())
}

fn precision() -> impl TypedValueParser<Value = Precision> {
    choice(vec![("f32", Precision::F32), ("f64", Precision::F64)])
}

fn memory() -> impl TypedValueParser<Value = Memory> {
    choice(vec![("ample", Memory::Ample), ("least", Memory::Least)])
}

fn tolerance(error: &str) -> Result<Tolerance, String> {
    let error = error.parse::<f64>().map_err(|what| what.to_string())?;
    Tolerance::relative(error).map_err(|what| what.to_string())
}

fn by() -> impl TypedValueParser<Value = By> {
    choice(vec![("model", By::Model), ("measure", By::Timings)])
}

/// Seconds, or with a unit: 10s, 500ms, 2.5.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, number) => (number.unwrap_or(text), 1.0),
    };
    let seconds = number.trim().parse::<f64>().map_err(|error| error.to_string())?;
    Duration::try_from_secs_f64(seconds * unit).map_err(|error| error.to_string())
}

fn field() -> impl TypedValueParser<Value = Field> {
    choice(Field::ALL.to_vec())
}

fn part() -> impl TypedValueParser<Value = Part> {
    let parts = [("table", Part::Table), ("figure", Part::Figure), ("tolerance", Part::Tolerance)];
    choice(parts.to_vec())
}

fn direction() -> impl TypedValueParser<Value = Direction> {
    choice(vec![("forward", Direction::Forward), ("inverse", Direction::Inverse)])
}

fn device() -> impl TypedValueParser<Value = Device> {
    choice(vec![("host", Device::Host), ("cuda", Device::Cuda)])
}

fn scale() -> impl TypedValueParser<Value = Scale> {
    choice(vec![("none", Scale::None), ("full", Scale::Full), ("symmetric", Scale::Symmetric)])
}

/// The first paragraph of clap's complaint on one line.
pub(crate) fn complaint(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let words = first.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{} (see fft-cli --help)", words.strip_prefix("error: ").unwrap_or(&words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_defined() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn times_have_units() {
        let seconds = |text| duration(text).map(|time| time.as_secs_f64());
        assert_eq!(["10s", "500ms", "2.5"].map(seconds), [Ok(10.0), Ok(0.5), Ok(2.5)]);
        assert!(["", "-1s", "s", "ten", "1e999"].iter().all(|text| duration(text).is_err()));
    }

    #[test]
    fn complaints_are_one_line() {
        for line in ["bench", "bench c2d 8", "bench c2c 8x0", "bench c2c 8 --reps 0", "x"] {
            let words = std::iter::once("fft-cli").chain(line.split(' '));
            let text = complaint(&Cli::try_parse_from(words).unwrap_err());
            assert!(!text.contains('\n') && !text.starts_with("error"), "{text}");
        }
    }
}
