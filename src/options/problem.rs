//! From options to a problem.

use fft_core::{Access, Error, Layout, PerAxis, Precision, Problem, Recipe};

use super::table::Options;
use crate::field::DynTransform;

/// The arrays of all ranks, from which [`Options::problem`] makes a problem.
#[derive(Clone, Debug)]
pub struct GlobalArrays {
    /// The types of data.
    pub transform: DynTransform,
    /// The precision of all numbers.
    pub precision: Precision,
    /// The bricks of physical data.
    pub input: Layout,
    /// The bricks of spectral data.
    pub output: Layout,
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
        let GlobalArrays { transform, precision, input, output, hosts, access } = arrays;
        let grid = input.grid();
        let kinds = self.kinds_of(transform, grid.axes());
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
        let transposed = [self.transposed_input, self.transposed_output];
        if transposed != [false; 2] {
            [problem.input, problem.output] =
                Recipe::transposed_layouts(&problem, self.layouts, transposed)?;
        }
        Ok(problem)
    }
}

/// A layout with another order of axes; errors name the option.
fn ordered(name: &str, layout: Layout, order: PerAxis<usize>) -> Result<Layout, Error> {
    layout.ordered(order).map_err(|error| error.of(name))
}
