//! From options to a problem.

use fft_core::{
    Access, Division, DynGrid, Error, Factors, Layout, PerAxis, Precision, Problem, ProcGrid,
    Recipe,
};

use super::table::Options;
use crate::field::DynTransform;

/// The arrays of all ranks, from which [`Options::problem`] makes a problem.
#[derive(Clone, Debug)]
pub struct GlobalArrays {
    /// The grid of physical data.
    pub grid: DynGrid,
    /// The number of ranks.
    pub ranks: usize,
    /// The types of data.
    pub transform: DynTransform,
    /// The precision of all numbers.
    pub precision: Precision,
    /// The bricks of physical data; `None` for even ones.
    pub input: Option<Layout>,
    /// The bricks of spectral data; `None` for even ones.
    pub output: Option<Layout>,
    /// The host of each rank; empty if each is on a host of its own.
    pub hosts: Vec<usize>,
    /// Memory access of local transforms.
    pub access: Access,
}

impl Options {
    /// The problem of these arrays. The machine comes from the options, if they have one; a name is
    /// not looked up.
    ///
    /// # Errors
    /// [`Error::Argument`] or [`Error::Geometry`] for options without a meaning for these arrays.
    pub fn problem(&self, arrays: GlobalArrays) -> Result<Problem, Error> {
        let GlobalArrays { grid, ranks, transform, precision, input, output, hosts, access } =
            arrays;
        let kinds = self.kinds_of(transform, grid.axes());
        let is_given = [input.is_some(), output.is_some()];
        self.check_transposed(is_given)?;
        let even = |grid: DynGrid| Layout::even(grid, ProcGrid::cubic(grid, ranks), ranks);
        let input = input.unwrap_or_else(|| even(grid));
        let output = output.unwrap_or_else(|| even(self.spectral_grid(grid, transform)));
        let input = ordered("input_order", input, self.input_order_of(grid.axes()))?;
        let output = ordered("output_order", output, self.output_order_of(grid.axes()))?;
        let (complex, lengths) = (transform.is_complex(), self.lengths(grid));
        let mut problem = Problem::resized(kinds, complex, precision, input, output, lengths)?;
        let complex_spectrum = transform.has_complex_spectrum();
        if problem.complex_spectrum() != complex_spectrum {
            let list = kinds.map(|kind| kind.name()).join(", ");
            let expected = if complex_spectrum { "one axis of kind r2c" } else { "no r2c" };
            return Err(Error::argument("kinds", list, expected));
        }
        if self.batch == 0 {
            return Err(Error::argument("batch", 0, "at least 1"));
        }
        problem.batch = self.batch;
        (problem.forward_scale, problem.inverse_scale) = (self.forward_scale, self.inverse_scale);
        if let Some(machine) = self.given_machine() {
            problem.machine = machine.clone();
        }
        problem.options.exchange = self.exchange.unwrap_or_default();
        problem.options.tolerance = self.tolerance;
        problem.options.wire = self.usual_wire();
        problem.options.access = access;
        problem.options.memory = self.memory;
        problem.options.reproducible = self.reproducible;
        problem.options.shared_arrays = self.shared_arrays;
        if !self.ignore_shared_memory {
            problem.hosts = hosts;
        }
        if problem.can_share_axis() {
            let problem = self.with_factors(problem, is_given)?;
            return problem.factored(self.one_rank);
        }
        for (name, parts) in
            [("input_cyclic", self.input_cyclic), ("output_cyclic", self.output_cyclic)]
        {
            if let Some(parts) = parts.filter(|parts| parts.iter().any(|parts| *parts != 1)) {
                let expected = "none, unless ranks share the complex transform of a single axis";
                return Err(Error::argument(name, format!("{parts:?}"), expected));
            }
        }
        let transposed = [self.transposed_input, self.transposed_output];
        if transposed != [false; 2] {
            [problem.input, problem.output] =
                Recipe::transposed_layouts(&problem, self.layouts, transposed)?;
        }
        Ok(problem)
    }

    /// A problem of one axis with layouts that suit factors of its length, on the sides whose
    /// bricks are not given. Without factors, layouts stay as they are.
    fn with_factors(&self, mut problem: Problem, is_given: [bool; 2]) -> Result<Problem, Error> {
        let (n, ranks) = (problem.grid().len(0), problem.input.ranks());
        let wanted = [
            (self.input_cyclic, self.transposed_input, &problem.input),
            (self.output_cyclic, self.transposed_output, &problem.output),
        ];
        let mut sides = [Division::BLOCKS; 2];
        for (number, (cyclic, transposed, layout)) in wanted.into_iter().enumerate() {
            sides[number] = match cyclic {
                Some(parts) => Division::cyclic(parts[0], ranks),
                None if transposed => Division::STRIDED,
                None if is_given[number] => Division::of(layout),
                None => Division::BLOCKS,
            };
        }
        let Some(factors) = Factors::new(n, ranks, sides) else {
            let is_cyclic = sides.iter().any(|side| side.stride.is_some());
            let may_be_alone = self.one_rank && !is_cyclic;
            return if may_be_alone { Ok(problem) } else { Err(Factors::none(n, sides)) };
        };
        let [before, after] = sides;
        if !is_given[0] || self.input_cyclic.is_some() || self.transposed_input {
            problem.input = factors.layout(true, before, ranks);
        }
        if !is_given[1] || self.output_cyclic.is_some() || self.transposed_output {
            problem.output = factors.layout(false, after, ranks);
        }
        Ok(problem)
    }
}

/// A layout with another order of axes; errors name the option.
fn ordered(name: &str, layout: Layout, order: PerAxis<usize>) -> Result<Layout, Error> {
    layout.ordered(order).map_err(|error| error.of(name))
}
