//! A run: steps, rows of the table, checkpoints, and where the time went.

use std::fs;
use std::time::Instant;

use thriffty::planning::Reduce;
use thriffty::{Comm, Error};

use super::checkpoint;
use super::files::on_first;
use super::flow::{Flow, vortex};
use super::options::Options;
use super::picture;
use super::place::Place;
use super::plot::{Curve, svg};
use super::replace::replace;
use super::table::{self, Row, reference, reference_energy};

/// Runs a flow from its beginning or from a checkpoint. Collective.
///
/// # Errors
/// On every rank, when a transform, a device or a file fails.
pub(crate) fn run<P: Place>(
    mut flow: Flow<P>,
    world: &dyn Comm,
    options: &Options,
) -> Result<(), Error> {
    let start = match &options.restart {
        Some(path) => checkpoint::load(&mut flow, world, path)?,
        None => flow.set(vortex(options.size)).map(|()| 0.0)?,
    };
    let mut report = Report::new(world, options, start)?;
    let mut clock = Clock::default();
    report.add(Row::new(start, flow.means()?, options.viscosity()))?;
    for row in 1.. {
        let [from, to] = [row - 1, row].map(|row| row_time(start, row, options));
        if to <= from {
            break;
        }
        let steps = ((to - from) / options.longest_step() - 1e-9).ceil().max(1.0) as usize;
        clock.run(&mut flow, steps, (to - from) / steps as f64)?;
        report.add(Row::new(to, flow.means()?, options.viscosity()))?;
        if let (Some(every), Some(out)) = (options.checkpoint_every, &options.out)
            && row.is_multiple_of(every)
        {
            checkpoint::save(&mut flow, world, out, to)?;
        }
    }
    if let Some(out) = &options.out {
        picture::save(&mut flow, world, &out.join("vorticity.png"))?;
    }
    clock.show(&mut flow, world)
}

/// The time of a row of the table, without the rounding of sums; at most the end.
fn row_time(start: f64, row: usize, options: &Options) -> f64 {
    let time = start + row as f64 * options.every;
    ((time * 1e9).round() / 1e9).min(options.time.max(start))
}

/// The rows so far, on every rank. Rank 0 prints and writes them.
struct Report<'a> {
    world: &'a dyn Comm,
    options: &'a Options,
    rows: Vec<Row>,
    /// Whether there are published values.
    compare: bool,
}

impl<'a> Report<'a> {
    /// Collective.
    fn new(world: &'a dyn Comm, options: &'a Options, start: f64) -> Result<Self, Error> {
        let mut rows = Vec::new();
        if let Some(out) = &options.out {
            on_first(world, out, || fs::create_dir_all(out))?;
            let old = fs::read_to_string(out.join("taylor_green.csv")).unwrap_or_default();
            rows = table::before(start, &old);
        }
        if world.rank() == 0 {
            println!(
                "    time             energy        dissipation         enstrophy  difference"
            );
        }
        Ok(Self { world, options, rows, compare: options.reynolds == table::REYNOLDS })
    }

    /// Collective.
    fn add(&mut self, row: Row) -> Result<(), Error> {
        self.rows.push(row);
        if self.world.rank() == 0 {
            let Row { time, energy, dissipation, enstrophy } = row;
            let known = reference_energy(time).filter(|_| self.compare);
            let off = known.map_or(String::new(), |known| format!("{:11.2e}", energy - known));
            println!("{time:8.3} {energy:18.15} {dissipation:18.15} {enstrophy:17.12} {off}");
        }
        let Some(out) = &self.options.out else { return Ok(()) };
        on_first(self.world, out, || {
            replace(
                &out.join("taylor_green.csv"),
                table::csv(&self.rows, self.compare).as_bytes(),
            )?;
            replace(&out.join("dissipation.svg"), self.plot().as_bytes())
        })
    }

    fn plot(&self) -> String {
        let points = |row: &Row| [row.time, row.dissipation];
        let end = self.rows.iter().map(|row| row.time).fold(0.0, f64::max);
        let known = reference().filter(|row| self.compare && row.time <= end + 1e-9);
        let name = format!("{}³ points", self.options.size);
        let title = format!("Taylor-Green vortex, Re = {}", self.options.reynolds);
        let curves = [
            Curve {
                name: "published, 512³ points",
                colour: "#d0a080",
                points: known.map(|row| points(&row)).collect(),
            },
            Curve {
                name: &name,
                colour: "#0072b2",
                points: self.rows.iter().map(points).collect(),
            },
        ];
        let shown = if self.compare { &curves[..] } else { &curves[1..] };
        svg(&title, ["time", "dissipation rate"], shown)
    }
}

/// Where the time of steps went, on this rank.
#[derive(Default)]
struct Clock {
    steps: Vec<f64>,
    exchanges: f64,
    transforms: f64,
    sent: u64,
    reals: u64,
}

impl Clock {
    /// Collective.
    fn run<P: Place>(&mut self, flow: &mut Flow<P>, steps: usize, dt: f64) -> Result<(), Error> {
        flow.plan().clear_timings();
        self.steps.reserve(steps);
        for _ in 0..steps {
            let start = Instant::now();
            flow.step(dt)?;
            self.steps.push(start.elapsed().as_secs_f64());
        }
        let times = flow.plan().timings();
        let exchanges = times.pack + times.exchange + times.unpack + times.own + times.shared;
        self.exchanges += exchanges.as_secs_f64();
        self.transforms += times.fft.as_secs_f64();
        self.sent += times.sent;
        self.reals += times.reals;
        Ok(())
    }

    /// Prints means over ranks, and the medians of rank 0. Collective.
    fn show<P: Place>(mut self, flow: &mut Flow<P>, world: &dyn Comm) -> Result<(), Error> {
        let wall = self.steps.iter().sum();
        let (sent, reals) = (self.sent as f64, self.reals as f64);
        let mut sums = [wall, self.exchanges, self.transforms, sent, reals];
        world.allreduce(Reduce::Sum, &mut sums)?;
        let [wall, exchanges, transforms, sent, reals] = sums;
        if world.rank() > 0 || self.steps.is_empty() {
            return Ok(());
        }
        self.steps.sort_by(f64::total_cmp);
        let (n, ranks, count) = (flow.size(), world.size(), self.steps.len());
        let (median, mean) = (self.steps[count / 2], wall / (ranks * count) as f64);
        let [exchanges, transforms] = [exchanges, transforms].map(|part| 100.0 * part / wall);
        let rest = 100.0 - exchanges - transforms;
        println!("{}", flow.plan().recipe());
        println!(
            "{n}³ on {ranks} ranks ({}), {count} steps: median {median:.4} s a step, mean {mean:.4} s",
            world.name()
        );
        println!(
            "exchanges {exchanges:.1} %, transforms {transforms:.1} %; operators, products and \
             waiting at the end of a transform {rest:.1} %"
        );
        if let Some(error) = flow.plan().wire_error() {
            println!(
                "{:.1} bits sent per number; error of the last transform about {:.1e}, at most {:.1e}",
                8.0 * sent / reals.max(1.0),
                error.estimate,
                error.bound
            );
        }
        Ok(())
    }
}
