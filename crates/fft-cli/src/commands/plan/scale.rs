//! `fft-cli scale`: rates by number of ranks, of a fixed problem and of one that grows.

use std::fmt::Write;
use std::num::NonZeroUsize;
use std::path::Path;

use thriffty::Wire;
use thriffty::planning::{self, Exchange, Layouts, Order, Recipe, Step};

use super::ask::Ask;
use super::forecast::{Budget, Chosen, Guess};
use super::options::Scaling;
use super::published::{self, Point};
use crate::args::encoding::Encoding;
use crate::args::kinds::name;
use crate::args::options::{TransformArgs, is_resized};
use crate::args::shape::Shape;
use crate::data::replace;
use crate::output::plot::Plot;
use crate::ranks::world::{Failure, say};

/// One number of ranks.
struct Row {
    /// Whether the problem grew with the ranks.
    weak: bool,
    ask: Ask,
    found: Rates,
}

#[derive(Clone, Copy, Debug)]
struct Rates {
    /// With pencils and posted messages, as in a classic library; `None` without any.
    pencils: Option<f64>,
    raw: Rate,
    encoded: Rate,
    /// Ψ, the limit if all data leaves its host in each reshape; `None` without reshapes.
    limit: Option<f64>,
}

/// GFlop/s of the recipe that the model chooses.
#[derive(Clone, Copy, Debug)]
struct Rate {
    exchange: Exchange,
    predicted: f64,
    /// `None` with too many messages.
    simulated: Option<f64>,
}

impl Rate {
    /// The simulated rate if there is one.
    fn best(&self) -> f64 {
        self.simulated.unwrap_or(self.predicted)
    }
}

pub(crate) fn run(options: &Scaling, ranks: Option<NonZeroUsize>) -> Result<(), Failure> {
    if ranks.is_some() {
        return Err(Failure::Usage(
            "scale takes several numbers of ranks by --ranks-list (see fft-cli scale --help)"
                .into(),
        ));
    }
    let mut rows = Vec::new();
    for weak in [false, true] {
        let first = options.ranks_list.first().map_or(1, |ranks| ranks.get());
        for ranks in &options.ranks_list {
            let mut ask = Ask::new(&options.place, ranks.get())?;
            if !Encoding::of(ask.options()).is_asked_for() {
                let resized = is_resized(ask.options());
                let wire = if resized { Wire::Lossless } else { Wire::Bits(16) };
                ask.options_mut().wire = Some(wire);
            }
            if weak {
                let times = ranks.get() as f64 / first as f64;
                let TransformArgs { shape, choices, .. } = &mut ask.transform;
                *shape =
                    Shape::new(shape.lengths().iter().map(grown(shape.axes(), times)).collect());
                let planning::Options { zero_padded, modes, .. } = &mut choices.options;
                for lens in [zero_padded, modes].into_iter().flatten() {
                    *lens = lens.map(|n| grown(lens.len(), times)(&n));
                }
            }
            let points = ask.transform.shape.product().unwrap_or(usize::MAX);
            let bytes = points.saturating_mul(ask.width()) / ranks.get();
            ask.chunk = ask.chunk.or(Some((bytes / CHUNKS).max(CHUNK)));
            let found = rates(&ask)?;
            rows.push(Row { weak, ask, found });
        }
    }
    let plot = figure(&rows);
    let save = |path: &Path, text: &str| {
        replace::write(path, text)
            .map_err(|error| Failure::Refused(format!("{}: {error}", path.display())))
    };
    if let Some(path) = &options.csv {
        save(path, &csv(&rows))?;
    }
    if let Some(path) = &options.svg {
        save(path, &plot.to_svg())?;
    }
    say(&format!("{}\n{}\n", tables(&rows), plot.to_terminal(88, 28)))
}

/// The even length of an axis in a grid of `axes` axes that has `times` the points.
fn grown(axes: usize, times: f64) -> impl Fn(&usize) -> usize {
    let factor = times.powf(1.0 / axes as f64);
    move |n| ((*n as f64 * factor / 2.0).round() as usize * 2).max(1)
}

/// Chunks of a rank's data, and the least bytes of one.
const CHUNKS: usize = 16;
const CHUNK: usize = 1 << 19;

fn rates(ask: &Ask) -> Result<Rates, Failure> {
    let raw = ask.raw();
    let rate = |seconds: f64| ask.flops() / seconds / 1e9;
    let of = |ask: &Ask| -> Result<_, Failure> {
        let Chosen { recipe, .. } = Chosen::by_model(ask)?;
        let Guess { predicted, simulated, .. } = Budget::new().guess(&recipe, &ask.machine, None);
        let exchange = recipe.problem().options.exchange;
        let (predicted, simulated) = (rate(predicted), simulated.map(rate));
        Ok((Rate { exchange, predicted, simulated }, recipe))
    };
    let mut classic = raw.problem()?;
    classic.options.exchange = Exchange::P2p;
    let pencils = Recipe::with_layouts(classic, Layouts::Pencils).ok().map(|recipe| {
        let guess = Budget::new().guess(&recipe, &ask.machine, Some(Order::Posted));
        rate(guess.simulated.unwrap_or(guess.predicted))
    });
    let (found, recipe) = of(&raw)?;
    let moved = recipe.steps().iter().zip(recipe.nodes()).map(|(step, from)| match step {
        Step::Reshape { .. } => from.layout.grid().points() * from.width(),
        _ => 0,
    });
    let bytes = (moved.sum::<usize>() * ask.real_bytes()) as f64;
    let network = ask.hosts() as f64 * ask.machine.host.value;
    let limit = (bytes > 0.0).then(|| rate(bytes / network));
    Ok(Rates { pencils, raw: found, encoded: of(ask)?.0, limit })
}

/// The published rate of a row, if any.
fn beside(row: &Row) -> Option<&'static Point> {
    let found = published::of(&row.ask);
    found.into_iter().find(|point| !row.weak && point.ranks == row.ask.ranks)
}

fn encoding(rows: &[Row]) -> String {
    rows.first().map_or(String::new(), |row| Encoding::of(row.ask.options()).to_string())
}

fn tables(rows: &[Row]) -> String {
    let mut text = String::new();
    for weak in [false, true] {
        let rows: Vec<_> = rows.iter().filter(|row| row.weak == weak).collect();
        let Some(first) = rows.first() else { continue };
        let what = if weak { "Weak scaling" } else { "Strong scaling" };
        let (options, precision) = (first.ask.options(), first.ask.precision());
        let encoding = Encoding::of(options);
        let width = rows.iter().map(|row| row.ask.transform.grids().len()).fold(16, usize::max);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{what}, {} {precision} on {}, GFlop/s; encoded is {encoding}\n\
             {:>6}{:>6} {:>width$}{:>10}{:>12}{:>12}{:>12}{:>12}{:>10}  exchanges",
            name(first.ask.transform.kind, options),
            first.ask.machine.name,
            "ranks",
            "hosts",
            "grid",
            "pencils",
            "predicted",
            "simulated",
            "encoded:",
            "simulated",
            "Ψ"
        );
        for row in rows {
            write_row(&mut text, row, width);
        }
        text.push('\n');
    }
    text
}

fn write_row(text: &mut String, row: &Row, width: usize) {
    let Rates { pencils, raw, encoded, limit } = row.found;
    let shown = |rate: Option<f64>| rate.map_or("-".into(), |rate| format!("{rate:.0}"));
    let [pencils, limit] = [pencils, limit].map(shown);
    let [coded, simulated] = [encoded.simulated, raw.simulated].map(shown);
    let _ = write!(
        text,
        "{:>6}{:>6} {:>width$}{pencils:>10}{:>12.0}{simulated:>12}{:>12.0}{coded:>12}{limit:>10}  {}, {}",
        row.ask.ranks,
        row.ask.hosts(),
        row.ask.transform.grids(),
        raw.predicted,
        encoded.predicted,
        raw.exchange,
        encoded.exchange,
    );
    let _ = match beside(row) {
        Some(Point { gflops, bits, source, .. }) => {
            writeln!(text, "   published, {bits} bits: {gflops:.0} ({source})")
        }
        None => writeln!(text),
    };
}

fn csv(rows: &[Row]) -> String {
    let mut text = String::from(
        "scaling,ranks,hosts,grid,encoding,pencils,raw_exchange,raw_predicted,raw_simulated,encoded_exchange,\
         encoded_predicted,encoded_simulated,limit,published,published_bits,source\n",
    );
    for row in rows {
        let Rates { pencils, raw, encoded, limit } = row.found;
        let scaling = if row.weak { "weak" } else { "strong" };
        let shown = |rate: Option<f64>| rate.map_or(String::new(), |rate| rate.to_string());
        let [pencils, limit] = [pencils, limit].map(shown);
        let point = beside(row).map_or(",,".into(), |point| {
            format!("{},{},\"{}\"", point.gflops, point.bits, point.source)
        });
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{scaling},{},{},{},\"{}\",{pencils},{},{},{},{},{},{},{limit},{point}",
            row.ask.ranks,
            row.ask.hosts(),
            row.ask.transform.grids(),
            Encoding::of(row.ask.options()),
            raw.exchange,
            raw.predicted,
            shown(raw.simulated),
            encoded.exchange,
            encoded.predicted,
            shown(encoded.simulated),
        );
    }
    text
}

fn figure(rows: &[Row]) -> Plot {
    let strong: Vec<_> = rows.iter().filter(|row| !row.weak).collect();
    let curve = |name: &str, of: &dyn Fn(&Row) -> Option<f64>| {
        let point = |row: &&Row| of(row).map(|rate| (row.ask.ranks as f64, rate));
        (name.to_owned(), strong.iter().filter_map(point).collect())
    };
    let ask = strong.first().map(|row| &row.ask);
    let mut series = vec![
        curve("limit Ψ, raw", &|row| row.found.limit),
        curve("pencils, raw", &|row| row.found.pencils),
        curve("raw", &|row| Some(row.found.raw.best())),
        curve(&encoding(rows), &|row| Some(row.found.encoded.best())),
    ];
    for point in ask.map_or(Vec::new(), published::of) {
        let name = format!("published, {} bits", point.bits);
        series.push((name, vec![(point.ranks as f64, point.gflops)]));
    }
    let title = ask.map_or(String::new(), |ask| {
        format!("{} {} on {}", ask.transform.name(), ask.precision(), ask.machine.name)
    });
    Plot {
        title,
        x_label: "ranks".into(),
        y_label: "GFlop/s".into(),
        series,
        log_x: true,
        log_y: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_grow_with_the_ranks() {
        assert_eq!([grown(3, 1.0)(&64), grown(3, 8.0)(&64)], [64, 128]);
        assert_eq!([grown(2, 2.0)(&64), grown(2, 2.0)(&32), grown(1, 3.0)(&100)], [90, 46, 300]);
    }
}
