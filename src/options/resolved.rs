//! The meaning of options for a grid.

use std::sync::Arc;

use fft_core::{DynGrid, Error, Kind, Machine, PerAxis, Problem, Wire};

use super::machine_choice::MachineChoice;
use super::table::Options;
use crate::field::DynTransform;

impl Options {
    /// The machine, if the options have it and not only its name.
    pub(crate) fn given_machine(&self) -> Option<&Arc<Machine>> {
        match &self.machine {
            Some(MachineChoice::Given(machine)) => Some(machine),
            _ => None,
        }
    }

    /// The kind of each axis. Where real data has a complex spectrum and no axis is R2C, the last
    /// one of kind C2C is.
    pub(crate) fn kinds_of(&self, transform: DynTransform, axes: usize) -> PerAxis<Kind> {
        let mut kinds = self.kinds.unwrap_or_else(|| transform.kinds(axes));
        if transform == DynTransform::R2c
            && !kinds.contains(&Kind::R2C)
            && let Some(last) = kinds.iter().rposition(|kind| *kind == Kind::C2C)
        {
            kinds[last] = Kind::R2C;
        }
        kinds
    }

    /// The order of the axes of physical data, slowest first.
    pub(crate) fn input_order_of(&self, axes: usize) -> PerAxis<usize> {
        self.input_order.unwrap_or_else(|| PerAxis::row_major(axes))
    }

    /// The order of the axes of spectral data, slowest first.
    pub(crate) fn output_order_of(&self, axes: usize) -> PerAxis<usize> {
        self.output_order.unwrap_or_else(|| PerAxis::row_major(axes))
    }

    /// The lengths of transforms and the numbers of modes, for physical data on this grid.
    pub(crate) fn lengths(&self, grid: DynGrid) -> [PerAxis<usize>; 2] {
        let lengths = self.zero_padded.unwrap_or(grid.shape());
        [lengths, self.modes.unwrap_or(lengths)]
    }

    /// The grid of spectral data, for physical data on this grid.
    ///
    /// # Panics
    /// If there are more kinds than axes.
    pub fn spectral_grid(&self, grid: DynGrid, transform: DynTransform) -> DynGrid {
        let [_, modes] = self.lengths(grid);
        // Numbers of modes without meaning are refused when the problem is made.
        let modes = modes.map(|modes| modes.max(1));
        let kinds = self.kinds_of(transform, grid.axes());
        Problem::spectral_grid(DynGrid::new(modes).unwrap_or(grid), kinds)
    }

    /// The wire for recipes that name none.
    pub(crate) fn usual_wire(&self) -> Wire {
        self.wire.unwrap_or(if self.tolerance.is_some() { Wire::Tolerance } else { Wire::Raw })
    }

    /// Checks that options with a value for each axis have as many values as the grid has axes.
    ///
    /// # Errors
    /// [`Error::Argument`] for an option or a brick with another number.
    pub fn check_axes(&self, grid: DynGrid) -> Result<(), Error> {
        let axes = grid.axes();
        let check = |name: &str, found: Option<usize>| match found.filter(|found| *found != axes) {
            Some(found) => Err(Error::argument(format!("axes of {name}"), found, axes)),
            None => Ok(()),
        };
        check("kinds", self.kinds.map(|kinds| kinds.len()))?;
        for (name, values) in [
            ("input_order", self.input_order),
            ("output_order", self.output_order),
            ("zero_padded", self.zero_padded),
            ("modes", self.modes),
            ("input_cyclic", self.input_cyclic),
            ("output_cyclic", self.output_cyclic),
        ] {
            check(name, values.map(|values| values.len()))?;
        }
        for brick in [self.input, self.output].into_iter().flatten() {
            check("a brick", Some(brick.lo.len()))?;
            check("a brick", Some(brick.hi.len()))?;
        }
        Ok(())
    }

    /// Refuses a brick, which input and output may have, or an order on a side that is transposed
    /// or cyclic.
    pub(crate) fn check_transposed(&self, [input, output]: [bool; 2]) -> Result<(), Error> {
        let sides = [
            ("transposed_input", self.transposed_input, input, self.input_order),
            ("transposed_output", self.transposed_output, output, self.output_order),
            ("input_cyclic", self.input_cyclic.is_some(), input, self.input_order),
            ("output_cyclic", self.output_cyclic.is_some(), output, self.output_order),
        ];
        for (name, transposed, has_brick, order) in sides {
            let is_ordered = order.is_some_and(|order| order != PerAxis::row_major(order.len()));
            if transposed && (has_brick || is_ordered) {
                return Err(Error::argument(name, "a brick or an order", "neither"));
            }
        }
        for (name, transposed, cyclic) in [
            ("input_cyclic", self.transposed_input, self.input_cyclic),
            ("output_cyclic", self.transposed_output, self.output_cyclic),
        ] {
            if transposed && cyclic.is_some() {
                return Err(Error::argument(name, "transposed data", "one of both"));
            }
        }
        Ok(())
    }

    /// Sets options from the environment, as in `THRIFFTY_TOLERANCE=1e-6`: only those for how a
    /// transform is done, so that arrays and results keep their form.
    ///
    /// # Errors
    /// [`Error::Argument`] for an unknown value, with the name of the variable.
    pub fn read_environment(&mut self) -> Result<(), Error> {
        for row in Self::TABLE {
            let variable = format!("THRIFFTY_{}", row.name.to_uppercase());
            let Some(value) = std::env::var_os(&variable) else { continue };
            if !row.scope.is_in_environment() || value.is_empty() {
                continue;
            }
            let Some(text) = value.to_str() else {
                return Err(Error::argument(variable, value.display(), "UTF-8"));
            };
            row.set(self, text).map_err(|error| error.of(variable))?;
        }
        Ok(())
    }

    /// The options that ranks compare: all except bricks.
    pub(crate) fn entries(&self) -> Vec<(&'static str, String)> {
        Self::TABLE.iter().map(|row| (row.name, row.text(self))).collect()
    }

    /// The changed options that decide which recipe is fastest: ` wire=f32 memory=least`.
    pub(crate) fn in_wisdom(&self) -> String {
        let mut text = String::new();
        for row in Self::TABLE {
            if row.scope.is_in_wisdom() && row.is_changed(self) {
                text.push_str(&format!(" {}={}", row.name, row.text(self)));
            }
        }
        text
    }
}
