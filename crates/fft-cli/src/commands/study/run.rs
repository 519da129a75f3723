//! The measurements of the study, in three parts.

use thriffty::planning::Transform;
use thriffty::{Comm, Tolerance, Wire};

use super::lab::Lab;
use super::options::{Options, Part};
use super::row::{Format, Row, TOLERANCES};
use super::show;
use crate::args::kinds::dispatch;
use crate::data::fields::Field;
use crate::data::files::save;
use crate::ranks::world::{Failure, print, refused};

/// The tolerance of the table.
const USUAL: f64 = 1e-6;

/// Runs the command; `said` if the number of ranks was given. Collective.
pub(crate) fn run(comm: &dyn Comm, options: &Options, said: bool) -> Result<(), Failure> {
    if options.svg.is_some() && !options.wants(Part::Figure) {
        return refused("--svg is for the figure, which is not among the parts asked for");
    }
    let said = said || comm.name() != "threads";
    let rows = match options.ranks_list.split_last() {
        Some((last, others)) if !said => {
            let mut rows = Vec::new();
            for ranks in others.iter().filter(|_| options.wants(Part::Table)) {
                rows.extend(by_threads(ranks.get(), options, false)?);
            }
            rows.extend(by_threads(last.get(), options, true)?);
            rows
        }
        _ => measure(comm, options, true)?,
    };
    if let Some(path) = &options.csv {
        save(comm, path, &show::csv(&rows))?;
    }
    let figure = show::figure(options, &rows);
    if let Some(path) = &options.svg {
        save(comm, path, &figure.to_svg())?;
    }
    let mut text = String::new();
    for part in [Part::Table, Part::Figure, Part::Tolerance] {
        if options.wants(part) {
            text += &match part {
                Part::Table => show::table(options, &rows),
                Part::Figure => format!("{}\n", figure.to_terminal(88, 28)),
                Part::Tolerance => show::tolerances(options, &rows),
            };
        }
    }
    print(comm, text.trim_end_matches('\n'))?;
    print(comm, "\n")
}

fn by_threads(ranks: usize, options: &Options, last: bool) -> Result<Vec<Row>, Failure> {
    let all = thriffty::threads(ranks, |comm| measure(&comm, options, last))?;
    Ok(all.into_iter().next().unwrap_or_default())
}

/// Measures the table, and on the last set of ranks the other parts. Collective.
fn measure(comm: &dyn Comm, options: &Options, last: bool) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let mut study = |part, field, formats: Vec<Format>| {
        let kind = options.transform.kind;
        rows.extend(dispatch!(kind, Precision::F64, rows_of(comm, options, part, field, formats))?);
        Ok::<_, Failure>(())
    };
    let field = options.field.unwrap_or(Field::Uniform);
    let usual = match options.transform.options().tolerance {
        Some(tolerance) => tolerance,
        None => Tolerance::relative(USUAL)?,
    };
    if options.wants(Part::Table) {
        let mut formats = vec![Format::Double, Format::Single];
        formats.extend([Wire::F32, Wire::Bits(32), Wire::F16, Wire::Bits(16)].map(Format::wire));
        formats.push(Format::with_tolerance(usual));
        study(Part::Table, field, formats)?;
    }
    if last && options.wants(Part::Figure) {
        let casts = [Wire::Bf16, Wire::F16, Wire::F32].into_iter();
        let mantissas = (4..=52).step_by(2).map(Wire::Mantissa);
        let bits = (4..=52).step_by(2).map(Wire::Bits);
        let formats = mantissas.chain(bits).chain(casts).map(Format::wire).collect();
        study(Part::Figure, field, formats)?;
    }
    if last && options.wants(Part::Tolerance) {
        // Noise is like uniform.
        let all = Field::ALL.into_iter().map(|(_, field)| field).filter(|it| *it != Field::Noise);
        let fields = options.field.map_or(all.collect(), |field| vec![field]);
        let mut formats = Vec::new();
        for error in TOLERANCES {
            let tolerance = Tolerance::relative(error)?;
            let tolerance = if usual.is_strict() { tolerance.strict() } else { tolerance };
            formats.push(Format::with_tolerance(tolerance));
        }
        for field in fields {
            study(Part::Tolerance, field, formats.clone())?;
        }
    }
    Ok(rows)
}

/// The formats of one part, on one field. Collective.
fn rows_of<K: Transform>(
    comm: &dyn Comm,
    options: &Options,
    part: Part,
    field: Field,
    formats: Vec<Format>,
) -> Result<Vec<Row>, Failure> {
    let lab = Lab::<K>::new(comm, options, field)?;
    let row = |format| {
        let found = match format {
            Format::Double => lab.double(),
            Format::Single => lab.single(),
            Format::Encoded(encoding) => lab.encoded(encoding),
        }?;
        Ok(Row { part, field, ranks: comm.size(), format, found })
    };
    formats.into_iter().map(row).collect()
}
