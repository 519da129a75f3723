//! The options of a plan.

use std::sync::Arc;

use fft_core::{
    Algorithm, DynBrick, DynGrid, Error, Family, Kind, Machine, Memory, PerAxis, Problem, Scale,
    Tolerance, Wire,
};

use crate::field::DynTransform;
use crate::tuning::{Tune, fingerprint};

/// The options of a plan, as [`Draft`](crate::Draft) sets them. All ranks have the same, but
/// bricks.
///
/// ```
/// use thriffty::planning::{DynTransform, Options};
/// let options = Options { batch: 3, ..Options::new(DynTransform::C2c, 2) };
/// assert_eq!(options.input_order, [0, 1]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// What is done along each axis.
    pub kinds: PerAxis<Kind>,
    /// The length of the transform along each axis; by default, that of physical data. What is
    /// beyond that is taken as 0, and discarded by the inverse.
    pub transform: Option<PerAxis<usize>>,
    /// The modes of spectral data along each axis, the lowest; by default all.
    pub modes: Option<PerAxis<usize>>,
    /// This rank's part of physical data; by default an even cut.
    pub input: Option<DynBrick>,
    /// This rank's part of spectral data; by default an even cut.
    pub output: Option<DynBrick>,
    /// The order of axes in memory of physical data, slowest first.
    pub input_order: PerAxis<usize>,
    /// The order of axes in memory of spectral data, slowest first.
    pub output_order: PerAxis<usize>,
    /// Equal transforms done together.
    pub batch: usize,
    /// What results of forward transforms are multiplied by.
    pub forward: Scale,
    /// What results of inverse transforms are multiplied by.
    pub inverse: Scale,
    /// How messages travel; by default chosen with the recipe.
    pub exchange: Option<Algorithm>,
    /// How messages to other hosts are encoded; by default for the tolerance, if there is one.
    pub wire: Option<Wire>,
    /// What the whole transform may lose by encoded messages.
    pub tolerance: Option<Tolerance>,
    /// The layouts between input and output that the choice of a recipe considers.
    pub layouts: Family,
    /// How much memory the plan takes beside input and output.
    pub memory: Memory,
    /// Whether all arrays are in memory that the ranks of a host share.
    pub shared_arrays: bool,
    /// Whether physical data is in the bricks and the order of axes that cost least.
    pub transposed_input: bool,
    /// Whether spectral data stays in the bricks and the order of axes that cost least.
    pub transposed_output: bool,
    /// Whether all data that changes ranks is sent, also within a host.
    pub ignore_shared_memory: bool,
    /// How the recipe is chosen.
    pub tune: Tune,
    /// The machine of the model; by default [`Machine::default`].
    pub machine: Option<Arc<Machine>>,
}

impl Options {
    /// The usual options of a transform of so many axes.
    ///
    /// # Panics
    /// If there are not 1 to 4 axes.
    pub fn new(transform: DynTransform, axes: usize) -> Self {
        Self {
            kinds: transform.kinds(axes),
            transform: None,
            modes: None,
            input: None,
            output: None,
            input_order: PerAxis::row_major(axes),
            output_order: PerAxis::row_major(axes),
            batch: 1,
            forward: Scale::None,
            inverse: Scale::Full,
            exchange: None,
            wire: None,
            tolerance: None,
            layouts: Family::Any,
            memory: Memory::default(),
            shared_arrays: false,
            transposed_input: false,
            transposed_output: false,
            ignore_shared_memory: false,
            tune: Tune::Model,
            machine: None,
        }
    }

    /// The lengths of transforms and the numbers of modes, of physical data on this grid.
    pub(crate) fn lengths(&self, grid: DynGrid) -> [PerAxis<usize>; 2] {
        let transform = self.transform.unwrap_or(grid.shape());
        [transform, self.modes.unwrap_or(transform)]
    }

    /// The grid of spectral data, of physical data on this grid.
    ///
    /// # Panics
    /// If there are more kinds than axes.
    pub(crate) fn spectral_grid(&self, grid: DynGrid) -> DynGrid {
        let [_, modes] = self.lengths(grid);
        // Numbers of modes without meaning are refused when the problem is made.
        let modes = modes.map(|modes| modes.max(1));
        Problem::spectral_grid(DynGrid::new(modes).unwrap_or(grid), self.kinds)
    }

    /// The wire that is used where none is named by a recipe.
    pub(super) fn usual_wire(&self) -> Wire {
        self.wire.unwrap_or(if self.tolerance.is_some() { Wire::Tolerance } else { Wire::Raw })
    }

    /// Whether whatever has a value for each axis has as many as the grid.
    pub(crate) fn check_axes(&self, grid: DynGrid) -> Result<(), Error> {
        let axes = grid.axes();
        let bricks = [self.input, self.output].into_iter().flatten();
        let ends = bricks.flat_map(|brick| [brick.lo.len(), brick.hi.len()]);
        let orders = [self.input_order.len(), self.output_order.len()];
        let all = ends.map(|found| ("axes of a brick", found));
        let lens = [("lengths of transforms", self.transform), ("numbers of modes", self.modes)];
        let lens = lens.into_iter().filter_map(|(what, lens)| Some((what, lens?.len())));
        let all = all.chain(lens);
        let all = all.chain(orders.map(|found| ("axes of an order", found)));
        let mut all = all.chain([("axes with a kind", self.kinds.len())]);
        match all.find(|(_, found)| *found != axes) {
            Some((what, found)) => Err(Error::argument(what, found, axes)),
            None => Ok(()),
        }
    }

    /// Refuses a brick or an order on a side that is transposed.
    pub(super) fn check_transposed(&self) -> Result<(), Error> {
        let sides = [
            ("transposed input", self.transposed_input, self.input, self.input_order),
            ("transposed output", self.transposed_output, self.output, self.output_order),
        ];
        for (what, transposed, brick, order) in sides {
            if transposed && (brick.is_some() || order != PerAxis::row_major(order.len())) {
                return Err(Error::argument(what, "a brick or an order", "neither"));
            }
        }
        Ok(())
    }

    /// What ranks compare: everything but bricks.
    pub(super) fn entries(&self) -> Vec<(&'static str, String)> {
        let text = |value: Option<String>| value.unwrap_or_else(|| "none".into());
        vec![
            ("kinds", self.kinds.map(Kind::name).join(", ")),
            ("lengths of transforms", text(self.transform.map(|lens| format!("{lens:?}")))),
            ("numbers of modes", text(self.modes.map(|lens| format!("{lens:?}")))),
            ("input order", format!("{:?}", self.input_order)),
            ("output order", format!("{:?}", self.output_order)),
            ("batch", self.batch.to_string()),
            ("scales", format!("{:?}, {:?}", self.forward, self.inverse)),
            ("exchange", text(self.exchange.map(|exchange| exchange.to_string()))),
            ("tuning", self.tune.words()),
            ("machine", text(self.machine.as_deref().map(fingerprint))),
            ("wire", text(self.wire.map(|wire| wire.to_string()))),
            ("layouts", self.layouts.to_string()),
            ("memory", self.memory.to_string()),
            ("shared arrays", self.shared_arrays.to_string()),
            ("transposed input", self.transposed_input.to_string()),
            ("transposed output", self.transposed_output.to_string()),
            ("ignore shared memory", self.ignore_shared_memory.to_string()),
            ("tolerance", text(self.tolerance.map(|tolerance| tolerance.to_string()))),
        ]
    }
}
