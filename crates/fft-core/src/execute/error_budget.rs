//! The error budget of the reshapes of one direction.
//!
//! All encoders use one quantization step `D`, measured in the result: a reshape whose errors grow
//! by `G` rounds to multiples of `D/G`. This is reverse water-filling over all reshapes (Cover and
//! Thomas, Elements of Information Theory, 10.3.3), which minimizes the bits sent.
//!
//! With `n` real numbers sent in all, uniform errors add up to `D √(n/12)`, and fully correlated
//! errors to `D/2 Σ √nᵢ`.

use super::device::{Device, Operation};
use crate::base::tolerance::LARGE;
use crate::base::{Energy, Error, Real, Tolerance, WireError};
use crate::comm::{Comm, Reduce};
use crate::geometry::Placed;
use crate::geometry::Transfer;
use crate::problem::Gain;
use crate::problem::{Direction, Problem};
use crate::recipe::norm_gain::Loss;
use crate::recipe::norm_gain::gain_of;
use crate::recipe::{Node, Recipe, Step};

/// Margin below the tolerance, because errors of different reshapes are not quite independent. Its
/// square allows for unequal errors of ranks.
const MARGIN: f64 = 0.97;

pub(crate) struct Budget {
    tolerance: Option<Tolerance>,
    whole: Gain,
    /// Relative rounding error of the result.
    rounding: f64,
    /// This rank's whole input and, for a half spectrum, the planes that occur only once.
    parts: Vec<Transfer>,
    energies: Vec<Energy>,
    halved: bool,
    width: usize,
    /// The lossy operations, with real numbers of all ranks.
    losses: Vec<(usize, Loss)>,
    norm: f64,
    sums: Vec<f64>,
}

/// A rank's whole input and, along the halved axis of a spectrum, its planes that occur only once.
fn measured_parts(
    problem: &Problem,
    node: &Node,
    halved: Option<usize>,
    rank: usize,
) -> Vec<Transfer> {
    let (brick, batch) = (node.layout.brick(rank), problem.batch);
    let mut parts = vec![Transfer::run_of(brick.points() * batch)];
    if let Some(axis) = halved.filter(|_| !brick.is_empty()) {
        let n = problem.grid().len(axis);
        let single = [Some(0), n.is_multiple_of(2).then_some(n / 2)].into_iter().flatten();
        let plane = |k: usize| {
            let part = brick.with_range(axis, k..k + 1);
            let placed = |brick| Placed { brick, order: node.layout.order(), batch };
            Transfer::new(&part, 0..batch, &placed(brick), &placed(part))
        };
        parts.extend(single.filter(|k| brick.range(axis).contains(k)).map(plane));
    }
    parts
}

impl Budget {
    /// The budget of these operations; `None` if all are exact. Collective.
    pub(crate) fn new<T: Real, Dev: Device<T>>(
        recipe: &Recipe,
        direction: Direction,
        ops: &[Dev::Op],
        comm: &dyn Comm,
    ) -> Result<Option<Self>, Error> {
        let problem = recipe.problem();
        let mut losses: Vec<_> = (ops.iter().enumerate())
            .filter_map(|(number, op)| Some((number, op.loss()?)))
            .collect();
        let lossy = |step: &Step| matches!(step, Step::Reshape { wire, .. } if wire.is_lossy());
        if !recipe.steps().iter().any(lossy) {
            return Ok(None);
        }
        let mut sums: Vec<_> = losses.iter().map(|(_, loss)| loss.reals).collect();
        sums.reserve_exact(Energy::default().0.len());
        comm.allreduce(Reduce::Sum, &mut sums)?;
        losses.iter_mut().zip(&sums).for_each(|((_, loss), sum)| loss.reals = *sum);
        let steps = recipe.walk(direction);
        let steps: Vec<_> = steps.iter().map(|(_, step, _)| *step).collect();
        let node = direction.choose(recipe.nodes().first(), recipe.nodes().last());
        let node = node.expect("a recipe has a node");
        let halved = problem.halved_axis().filter(|_| direction == Direction::Inverse);
        let parts = measured_parts(problem, node, halved, comm.rank());
        Ok(Some(Self {
            tolerance: problem.options.tolerance,
            whole: gain_of(&steps, problem, direction),
            rounding: problem.rounding(),
            energies: vec![Energy::default(); parts.len()],
            parts,
            halved: halved.is_some(),
            width: node.width(),
            losses,
            norm: 0.0,
            sums,
        }))
    }

    /// Measures the input and, with a tolerance, sets the steps of all encoders. Collective.
    pub(crate) fn open<T: Real, Dev: Device<T>>(
        &mut self,
        ops: &mut [Dev::Op],
        device: &mut Dev,
        input: &Dev::Memory,
        comm: &dyn Comm,
    ) -> Result<(), Error> {
        self.energies.fill(Energy::default());
        device.energy(&self.parts, self.width, input, &mut self.energies);
        let Some(tolerance) = self.tolerance else { return Ok(()) };
        let mut energy = self.energy::<T, Dev>(device);
        comm.allreduce(Reduce::Sum, &mut energy.0)?;
        self.norm = energy.norm();
        let step = self.step(tolerance);
        let common = || self.losses.iter().filter(|(_, loss)| loss.common);
        // The finer step bounds errors that are maximal and equal in every reshape.
        let finer = step / (3.0 * common().count() as f64).sqrt();
        for (op, loss) in common() {
            if tolerance.is_strict() {
                ops[*op].set_step(step / loss.gain.most, None)
            } else {
                let gain = loss.gain.typical;
                ops[*op].set_step(step / gain, Some(finer / gain));
            }
        }
        Ok(())
    }

    fn energy<T: Real, Dev: Device<T>>(&mut self, device: &mut Dev) -> Energy {
        device.energy_queued(&mut self.energies);
        if self.halved {
            self.energies[0].times(2.0, self.energies[1..].iter().copied().sum())
        } else {
            self.energies[0]
        }
    }

    /// The common quantization step, measured in the result.
    fn step(&self, tolerance: Tolerance) -> f64 {
        let (least, most) = (self.norm * self.whole.least, self.norm * self.whole.most);
        let common = || self.losses.iter().filter(|(_, loss)| loss.common);
        let roots = || common().map(|(_, loss)| loss.reals.sqrt()).sum::<f64>();
        let reals = || common().map(|(_, loss)| loss.reals).sum::<f64>();
        let step = if tolerance.is_strict() {
            2.0 * (tolerance.value() * least - self.rounding * most) / roots()
        } else {
            // The root of the mean of n squares scatters by less than 1/√n.
            MARGIN * tolerance.value() * least * 12f64.sqrt() / (reals().sqrt() + 2.0)
        };
        // Step 0 sends data exactly: data without a finite norm.
        match (most, step.is_finite()) {
            (0.0, _) => 1.0,
            (_, true) => step.max(0.0),
            (_, false) => 0.0,
        }
    }

    /// Adds up the errors by one reduction. Collective.
    pub(crate) fn close<T: Real, Dev: Device<T>>(
        &mut self,
        ops: &[Dev::Op],
        device: &mut Dev,
        comm: &dyn Comm,
    ) -> Result<WireError, Error> {
        self.sums.clear();
        self.sums.extend(self.losses.iter().map(|(op, _)| ops[*op].squared_error()));
        if self.tolerance.is_none() {
            let energy = self.energy::<T, Dev>(device);
            self.sums.extend(energy.0);
        }
        comm.allreduce(Reduce::Sum, &mut self.sums)?;
        if let &[small, middle, large] = &self.sums[self.losses.len()..] {
            self.norm = Energy([small, middle, large]).norm();
        }
        if self.norm == 0.0 {
            return Ok(WireError::default());
        }
        // Relative to the input's norm: the error of a reshape in the result.
        let (mut squares, mut sum) = (0.0, 0.0);
        for ((_, loss), lost) in self.losses.iter().zip(&self.sums) {
            let share = lost.sqrt() / self.norm;
            squares += (loss.gain.typical * share).powi(2);
            sum += loss.gain.most * share;
        }
        let Gain { least, typical, most } = self.whole;
        let estimate = squares.sqrt() / typical;
        let bound = (sum + self.rounding * most) / least;
        // Outside this range, squares of errors overflow or underflow.
        if (LARGE.recip()..LARGE).contains(&self.norm) {
            Ok(WireError { estimate, bound })
        } else {
            Ok(WireError { estimate: f64::NAN, bound: f64::NAN })
        }
    }
}
