//! The options of `fft-cli study`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use crate::args::choices::Offer;
use crate::args::options::TransformArgs;
use crate::args::parse::{choice, count};
use crate::data::fields::Field;

/// Show errors and bits of encoded messages, as tables and curves.
///
/// table: forward errors by number of ranks, in double and single precision, and in double
/// precision with encoded messages. figure: error over bits per real number sent. tolerance: bits,
/// error and bounds of every field and tolerance. All three by default. All data between ranks is
/// sent, as if every rank were on a host of its own.
///
/// --tolerance is the tolerance of the table, 1e-6 by default. If it is strict, all tolerances are
/// strict.
///
/// Errors are l2 distances from FP64; the error of FP64 itself is measured at 32 points by the
/// definition of the transform.
#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(super) transform: TransformArgs<OfStudy>,
    #[arg(value_name = "PART", value_parser = choice(Part::ALL))]
    pub(super) parts: Vec<Part>,
    /// Numbers of ranks, which are threads; the figure and the tolerances use the last one. Not
    /// under mpirun or with --ranks.
    #[arg(long, value_name = "P,...", default_value = "2,4,8,16", value_delimiter = ',')]
    #[arg(value_parser = count)]
    pub(super) ranks_list: Vec<NonZeroUsize>,
    /// The input; by default uniform, and for tolerances every field.
    #[arg(long, value_parser = choice(Field::ALL))]
    pub(super) field: Option<Field>,
    /// Write all results into this file.
    #[arg(long, value_name = "FILE")]
    pub(super) csv: Option<PathBuf>,
    /// Draw the figure into this file.
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
}

/// The options of a study, which chooses the encodings.
#[derive(Clone, Debug)]
pub(super) struct OfStudy;

impl Offer for OfStudy {
    fn takes(name: &str) -> bool {
        ["kinds", "tolerance"].contains(&name)
    }
}

impl Options {
    pub(super) fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Table,
    Figure,
    Tolerance,
}

impl Part {
    const ALL: [(&'static str, Self); 3] =
        [("table", Self::Table), ("figure", Self::Figure), ("tolerance", Self::Tolerance)];
}
