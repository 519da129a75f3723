//! Solvers of Poisson's equation in open space: a zero-padded plan, and plain doubling.

use std::time::Instant;

use thriffty::planning::{Reduce, agree};
use thriffty::spectral::Domain;
use thriffty::{Comm, Draft, Error, Field, Physical, Plan, R2c, Spectral};

use crate::bunch::Bunch;
use crate::target::Target;

/// A potential, or a density.
type Potential<T> = Field<Physical, R2c, 3, <T as Target>::Location>;

/// A way to solve the equation, on n points along each axis.
pub(super) struct Solver<T: Target> {
    plan: Plan<R2c, 3, T::Location>,
    /// Convolutions take no lengths, so the lengths of this domain are 1.
    domain: Domain,
    green: Field<Spectral, R2c, 3, T::Location>,
    n: usize,
}

/// A plan of n points, padded to 2n along each axis.
pub(super) fn padded_draft(world: &dyn Comm, n: usize) -> Draft<'_, R2c, 3> {
    thriffty::r2c(world, [n; 3]).zero_padded([2 * n; 3]).transposed_output(true)
}

/// A plan of 2n points along each axis.
pub(super) fn doubled_draft(world: &dyn Comm, n: usize) -> Draft<'_, R2c, 3> {
    thriffty::r2c(world, [2 * n; 3]).transposed_output(true)
}

fn build<T: Target>(
    target: &T,
    draft: Draft<'_, R2c, 3>,
    messages: bool,
) -> Result<Plan<R2c, 3, T::Location>, Error> {
    let draft = target.place(draft);
    if messages { draft.ignore_shared_memory(true).build() } else { draft.build() }
}

impl<T: Target> Solver<T> {
    pub(super) fn padded(
        (world, target): (&dyn Comm, &T),
        bunch: &Bunch,
        n: usize,
        messages: bool,
    ) -> Result<Self, Error> {
        let plan = build(target, padded_draft(world, n), messages)?;
        let green = plan.green_function(bunch.spacing(n))?;
        let domain = plan.domain([1.0; 3])?;
        Ok(Self { plan, domain, green, n })
    }

    /// The plain solver, with Green's function of the padded one in its own layout.
    pub(super) fn doubled(
        (world, target): (&dyn Comm, &T),
        padded: &Self,
        messages: bool,
    ) -> Result<Self, Error> {
        let n = padded.n;
        let mut plan = build(target, doubled_draft(world, n), messages)?;
        let from = &padded.plan;
        let mut back = thriffty::r2c(world, [2 * n; 3])
            .output_brick(from.output_brick())
            .output_order(from.output_order().array())
            .build()?;
        let mut green = back.output();
        let found = agree(world, padded.green.to_host())?;
        green.as_mut_slice().copy_from_slice(found.as_slice());
        let here = back.inverse(green)?;
        let mut samples = plan.input();
        samples.copy_from(&here);
        let green = plan.forward(samples)?;
        let domain = plan.domain([1.0; 3])?;
        Ok(Self { plan, domain, green, n })
    }

    /// The potential, and the seconds that the slowest rank took.
    pub(super) fn solve(&mut self, bunch: &Bunch) -> Result<(Potential<T>, f64), Error> {
        let n = self.n;
        let mut rho = self.plan.input();
        rho.fill(|index| {
            if index.iter().all(|&i| i < n) { bunch.density(bunch.position(n, index)) } else { 0.0 }
        });
        self.plan.comm().barrier()?;
        let start = Instant::now();
        let mut rho_hat = self.plan.forward(rho)?;
        self.domain.convolve(&self.green, &mut rho_hat);
        let phi = self.plan.inverse(rho_hat)?;
        // Devices work asynchronously.
        agree(self.plan.comm(), phi.synchronize())?;
        let mut seconds = [start.elapsed().as_secs_f64()];
        self.plan.comm().allreduce(Reduce::Max, &mut seconds)?;
        Ok((phi, seconds[0]))
    }

    /// The largest and the l2 error of a potential, relative to the largest potential.
    pub(super) fn errors(&self, bunch: &Bunch, phi: &Potential<T>) -> Result<[f64; 2], Error> {
        let (n, exact) = (self.n, bunch.potential());
        let phi = agree(self.plan.comm(), phi.to_host())?;
        let (mut largest, mut square) = ([0f64], [0f64]);
        for (index, value) in phi.iter().filter(|(index, _)| index.iter().all(|&i| i < n)) {
            let error = value - exact(bunch.position(n, index));
            largest[0] = largest[0].max(error.abs());
            square[0] += error * error;
        }
        self.plan.comm().allreduce(Reduce::Max, &mut largest)?;
        self.plan.comm().allreduce(Reduce::Sum, &mut square)?;
        let peak = exact([0.0; 3]);
        Ok([largest[0] / peak, (square[0] / (n as f64).powi(3)).sqrt() / peak])
    }
}

/// Bytes that the busiest rank sends to others in a solution, if each rank is a host.
pub(super) fn bytes_sent(draft: Draft<'_, R2c, 3>) -> Result<f64, Error> {
    let prediction = draft.ignore_shared_memory(true).recipe()?.predict();
    // The inverse sends them back.
    Ok(2.0 * prediction.steps.iter().map(|step| step.volume.far).sum::<f64>())
}
