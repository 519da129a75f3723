//! What the reshapes of one direction may lose, and what they lost.
//!
//! All encoders work with one step, measured in the result: a reshape whose errors grow by `G` until then rounds to
//! multiples of `D/G`. That is reverse water-filling over all reshapes at once (Cover and Thomas, Elements of Information
//! Theory, 10.3.3): no split of the tolerance among them sends fewer bits. With `n` real numbers sent in all, errors that
//! are spread evenly over half a step add up to `D √(n/12)`, and errors that conspire to `D/2 Σ √nᵢ`.

use super::device::{Device, Operation};
use crate::base::tolerance::LARGE;
use crate::base::{Energy, Error, Real, Tolerance, WireError};
use crate::comm::{Comm, Reduce};
use crate::geometry::Placed;
use crate::geometry::Transfer;
use crate::problem::Direction;
use crate::recipe::norm_gain::Loss;
use crate::recipe::norm_gain::{Gain, gain_of};
use crate::recipe::{Recipe, Step};

/// Stay a little below the tolerance, as errors of one reshape and of another are not quite independent, least of all
/// where steps are as large as most numbers. Its square leaves each rank's errors room to be larger by 6% than expected.
const MARGIN: f64 = 0.97;

/// The account of one direction of a plan.
pub(crate) struct Budget {
    tolerance: Option<Tolerance>,
    /// From the norm of the input to that of the result.
    whole: Gain,
    /// What rounding may add to the result, as a share of it.
    rounding: f64,
    /// All of this rank's input and, where half a spectrum comes in, its planes that are not there twice; sums of their squares.
    parts: Vec<Transfer>,
    energies: Vec<Energy>,
    halved: bool,
    width: usize,
    /// The operations that may lose something; real numbers are those of all ranks.
    losses: Vec<(usize, Loss)>,
    /// The norm of the input in the present run.
    norm: f64,
    sums: Vec<f64>,
}

impl Budget {
    /// For operations of which some may lose something; `None` if none may. Collective.
    ///
    /// # Errors
    /// What the communicator returns.
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
        let points = node.layout.brick(comm.rank()).points() * problem.howmany;
        let halved = problem.halved_axis().filter(|_| direction == Direction::Inverse);
        let mut parts = vec![Transfer::run_of(points)];
        if let Some(axis) = halved {
            let n = problem.grid().len(axis);
            let twins = [Some(0), n.is_multiple_of(2).then_some(n / 2)];
            let brick = node.layout.brick(comm.rank());
            let there = twins.into_iter().flatten().filter(|k| brick.range(axis).contains(k));
            let plane = |k: usize| {
                let part = brick.with_range(axis, k..k + 1);
                let (order, howmany) = (node.layout.order(), problem.howmany);
                let from = Placed { brick, order, howmany };
                Transfer::new(&part, 0..howmany, &from, &Placed { brick: part, order, howmany })
            };
            parts.extend(there.filter(|_| !brick.is_empty()).map(plane));
        }
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

    /// Measures the input. With a tolerance, sets the steps of all encoders; without one the norm is for the report alone, and
    /// nobody waits for it here. Collective: one reduction of three numbers with a tolerance, otherwise none.
    ///
    /// # Errors
    /// What the communicator returns.
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
        // Errors that are as large as can be, and all alike in every reshape, then add up to no more than others do.
        let finer = step / (3.0 * common().count() as f64).sqrt();
        for (op, loss) in common() {
            match tolerance.is_strict() {
                false => {
                    let gain = loss.gain.typical;
                    ops[*op].set_step(step / gain, Some(finer / gain));
                }
                true => ops[*op].set_step(step / loss.gain.most, None),
            }
        }
        Ok(())
    }

    /// What the input of this rank adds to the square of its norm.
    fn energy<T: Real, Dev: Device<T>>(&mut self, device: &mut Dev) -> Energy {
        device.energy_queued(&mut self.energies);
        match self.halved {
            true => self.energies[0].times(2.0, self.energies[1..].iter().copied().sum()),
            false => self.energies[0],
        }
    }

    /// The step that all encoders have, measured in the result.
    fn step(&self, tolerance: Tolerance) -> f64 {
        let (least, most) = (self.norm * self.whole.least, self.norm * self.whole.most);
        let common = || self.losses.iter().filter(|(_, loss)| loss.common);
        let roots = || common().map(|(_, loss)| loss.reals.sqrt()).sum::<f64>();
        let reals = || common().map(|(_, loss)| loss.reals).sum::<f64>();
        let step = match tolerance.is_strict() {
            // The root of the mean of so many squares scatters by 0.45/√n: room for more than four times that.
            false => MARGIN * tolerance.value() * least * 12f64.sqrt() / (reals().sqrt() + 2.0),
            true => 2.0 * (tolerance.value() * least - self.rounding * most) / roots(),
        };
        // Nothing but zeros: any step sends them in no bits. What has no norm goes as it is, which step 0 stands for.
        match (most, step.is_finite()) {
            (0.0, _) => 1.0,
            (_, true) => step.max(0.0),
            (_, false) => 0.0,
        }
    }

    /// Adds up what was lost. Collective: one reduction of as many numbers as there are reshapes, without a tolerance of three
    /// more.
    ///
    /// # Errors
    /// What the communicator returns.
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
        // As a share of the input's norm: what a reshape lost as it is in the result.
        let (mut squares, mut sum) = (0.0, 0.0);
        for ((_, loss), lost) in self.losses.iter().zip(&self.sums) {
            let share = lost.sqrt() / self.norm;
            squares += (loss.gain.typical * share).powi(2);
            sum += loss.gain.most * share;
        }
        let Gain { least, typical, most } = self.whole;
        let estimate = squares.sqrt() / typical;
        let bound = (sum + self.rounding * most) / least;
        // Beyond, squares of errors leave the range of numbers.
        match (LARGE.recip()..LARGE).contains(&self.norm) {
            true => Ok(WireError { estimate, bound }),
            false => Ok(WireError { estimate: f64::NAN, bound: f64::NAN }),
        }
    }
}
