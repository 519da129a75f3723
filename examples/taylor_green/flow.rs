//! The flow: its velocity in spectral space, and one time step.
//!
//! The Navier-Stokes equations in rotational form, `∂u/∂t = P(u × ω) + ν∇²u`. P projects on fields
//! without divergence, so that no pressure is needed. Products are formed on the grid. Modes from
//! 2/3 of the highest wavenumber on are left out, or set to 0, so that products have no aliases.

use std::f64::consts::TAU;
use std::mem::swap;

use thriffty::planning::Reduce;
use thriffty::spectral::{Domain, Operator};
use thriffty::{Error, Field, Physical, Plan, R2c};

use super::place::{Advance, Place, Spectrum, Velocity};

/// The classical Runge-Kutta method. Each stage has the weight of its rate in the step, and how far
/// the next stage advances with it.
const STAGES: [(f64, f64); 4] =
    [(1.0 / 6.0, 0.5), (1.0 / 3.0, 0.5), (1.0 / 3.0, 1.0), (1.0 / 6.0, 0.0)];

/// An incompressible flow in the periodic box (0, 2π)³.
///
/// A step allocates nothing: its fields are made once.
pub(crate) struct Flow<P: Place> {
    plan: Plan<R2c, 3, P::Location>,
    domain: Domain,
    place: P,
    viscosity: f64,
    /// Whether spectra have modes from 2/3 of the highest on, which are then set to 0.
    whole: bool,
    /// The state of the flow.
    velocity: Spectrum<P>,
    /// The velocity after the step: the sum over stages.
    next: Spectrum<P>,
    /// The velocity at a stage, then its Laplacian.
    stage: Spectrum<P>,
    /// The vorticity at a stage, then the rate of change without viscosity.
    rate: Spectrum<P>,
    u: Velocity<P>,
    omega: Velocity<P>,
}

/// Means over the box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Means {
    /// `<u·u>/2`
    pub(crate) energy: f64,
    /// `<ω·ω>/2`
    pub(crate) enstrophy: f64,
}

impl<P: Place> Flow<P> {
    /// A flow at rest. The plan transforms three components. With `shared` it is one of
    /// `shared_arrays`.
    ///
    /// # Errors
    /// When memory is short. Collective.
    pub(crate) fn new(
        mut plan: Plan<R2c, 3, P::Location>,
        place: P,
        viscosity: f64,
        shared: bool,
    ) -> Result<Self, Error> {
        let mut spectrum = || if shared { plan.shared_output() } else { Ok(plan.output()) };
        let [velocity, next, stage, rate] = [spectrum()?, spectrum()?, spectrum()?, spectrum()?];
        let mut physical = || if shared { plan.shared_input() } else { Ok(plan.input()) };
        let [u, omega] = [physical()?, physical()?];
        let domain = plan.domain([TAU; 3])?;
        let whole = {
            let problem = plan.problem();
            problem.modes[0] > modes(problem.grid().shape()[0])
        };
        Ok(Self { plan, domain, place, viscosity, whole, velocity, next, stage, rate, u, omega })
    }

    /// One step of the classical Runge-Kutta method. Viscosity is explicit. Collective.
    ///
    /// # Errors
    /// The same on every rank, when a transform or a device fails.
    pub(crate) fn step(&mut self, dt: f64) -> Result<(), Error> {
        self.place.copy(&self.velocity, [&mut self.next, &mut self.stage]);
        for (weight, ahead) in STAGES {
            self.rates()?;
            // f = rate + ν∇²u; next += weight dt f; stage = velocity + ahead dt f
            let advance =
                Advance { viscosity: self.viscosity, weight: weight * dt, ahead: ahead * dt };
            self.place.advance(
                advance,
                [&self.velocity, &self.rate],
                [&mut self.next, &mut self.stage],
            );
        }
        swap(&mut self.velocity, &mut self.next);
        self.place.agree(&mut self.plan)
    }

    /// Makes `rate = P(u × ω)`, without aliases, and `stage = ∇²u` of the velocity in `stage`.
    fn rates(&mut self) -> Result<(), Error> {
        let Self { plan, domain, place, whole, stage, rate, u, omega, .. } = self;
        domain.apply(Operator::Curl, stage, rate);
        place.inverse(plan, stage, u)?;
        place.inverse(plan, rate, omega)?;
        place.cross(u, omega);
        place.forward(plan, u, rate)?;
        if *whole {
            domain.apply_in_place(Operator::Cutoff(2.0 / 3.0), rate);
        }
        domain.apply_in_place(Operator::Project, rate);
        domain.apply_in_place(Operator::Laplacian, stage);
        Ok(())
    }

    /// Sets the velocity to a function of the global index, for each component, and removes its
    /// divergence and the modes that products need. Collective.
    ///
    /// # Errors
    /// As [`Flow::step`].
    pub(crate) fn set(&mut self, value: impl Fn(usize, [usize; 3]) -> f64) -> Result<(), Error> {
        self.edit(|u| {
            let points = u.brick().points();
            for (at, (index, u)) in u.iter_mut().enumerate() {
                *u = value(at / points, index);
            }
            Ok(())
        })
    }

    /// Lets a function set this rank's part of the velocity, as [`Flow::set`]. Collective.
    ///
    /// # Errors
    /// The error of the function, on every rank, and the errors of [`Flow::step`].
    pub(crate) fn edit(
        &mut self,
        change: impl FnOnce(&mut Field<Physical>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let changed = self.place.edit(&mut self.u, change);
        self.plan.agree(changed)?;
        self.place.forward(&mut self.plan, &self.u, &mut self.velocity)?;
        if self.whole {
            self.domain.apply_in_place(Operator::Cutoff(2.0 / 3.0), &mut self.velocity);
        }
        self.domain.apply_in_place(Operator::Project, &mut self.velocity);
        Ok(())
    }

    /// Lets a function read this rank's part of the velocity. Collective.
    ///
    /// # Errors
    /// The error of the function, on every rank, and the errors of [`Flow::step`].
    pub(crate) fn read<R>(
        &mut self,
        look: impl FnOnce(&Field<Physical>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.place.inverse(&mut self.plan, &self.velocity, &mut self.u)?;
        let found = self.place.read(&self.u, look);
        self.plan.agree(found)
    }

    /// Lets a function read this rank's part of the vorticity. Collective.
    ///
    /// # Errors
    /// As [`Flow::read`].
    pub(crate) fn read_vorticity<R>(
        &mut self,
        look: impl FnOnce(&Field<Physical>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.domain.apply(Operator::Curl, &self.velocity, &mut self.rate);
        self.place.inverse(&mut self.plan, &self.rate, &mut self.omega)?;
        let found = self.place.read(&self.omega, look);
        self.plan.agree(found)
    }

    /// Means of the flow, by transforms to the grid. Collective.
    ///
    /// # Errors
    /// As [`Flow::step`].
    pub(crate) fn means(&mut self) -> Result<Means, Error> {
        self.domain.apply(Operator::Curl, &self.velocity, &mut self.rate);
        self.place.inverse(&mut self.plan, &self.velocity, &mut self.u)?;
        self.place.inverse(&mut self.plan, &self.rate, &mut self.omega)?;
        let squares =
            self.place.squares(&self.u).and_then(|u| Ok([u, self.place.squares(&self.omega)?]));
        let mut sums = self.plan.agree(squares)?;
        self.plan.comm().allreduce(Reduce::Sum, &mut sums)?;
        let points = self.size().pow(3) as f64;
        let [energy, enstrophy] = sums.map(|sum| 0.5 * sum / points);
        Ok(Means { energy, enstrophy })
    }

    /// Points along each axis.
    pub(crate) fn size(&self) -> usize {
        self.plan.problem().grid().shape()[0]
    }

    /// The plan.
    pub(crate) fn plan(&mut self) -> &mut Plan<R2c, 3, P::Location> {
        &mut self.plan
    }
}

/// The modes along an axis of `n` points whose products have no aliases: below 2/3 of the highest.
pub(crate) fn modes(n: usize) -> usize {
    2 * (n.saturating_sub(1) / 3) + 1
}

/// The vortex of Taylor and Green at the time 0, on a grid of `n` points along each axis.
pub(crate) fn vortex(n: usize) -> impl Fn(usize, [usize; 3]) -> f64 {
    move |component, index| {
        let [x, y, z] = index.map(|i| TAU * i as f64 / n as f64);
        match component {
            0 => x.sin() * y.cos() * z.cos(),
            1 => -x.cos() * y.sin() * z.cos(),
            _ => 0.0,
        }
    }
}
