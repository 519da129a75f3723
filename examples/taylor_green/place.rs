//! The pointwise operations of a flow, on the host or on a device.

use thriffty::planning::{Host, Location};
use thriffty::{Error, Field, Physical, Plan, R2c, Spectral};

/// Three components on the grid.
pub(crate) type Velocity<P> = Field<Physical, R2c, 3, <P as Place>::Location>;
/// Three components in spectral space.
pub(crate) type Spectrum<P> = Field<Spectral, R2c, 3, <P as Place>::Location>;

/// The factors of one stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advance {
    /// The factor of the Laplacian in the rate of change.
    pub(crate) viscosity: f64,
    /// The factor of the rate in the result of the step.
    pub(crate) weight: f64,
    /// The factor of the rate in the next stage.
    pub(crate) ahead: f64,
}

/// Where the fields of a flow are.
///
/// Transforms and [`Place::agree`] are collective. What fails elsewhere on one rank is kept, and
/// the next collective call returns it on all.
pub(crate) trait Place: Sized {
    /// The host or a device.
    type Location: Location;

    /// Transforms to spectral space.
    fn forward(
        &mut self,
        plan: &mut Plan<R2c, 3, Self::Location>,
        from: &Velocity<Self>,
        to: &mut Spectrum<Self>,
    ) -> Result<(), Error>;

    /// Transforms to the grid.
    fn inverse(
        &mut self,
        plan: &mut Plan<R2c, 3, Self::Location>,
        from: &Spectrum<Self>,
        to: &mut Velocity<Self>,
    ) -> Result<(), Error>;

    /// Copies a spectrum to two others.
    fn copy(&mut self, from: &Spectrum<Self>, to: [&mut Spectrum<Self>; 2]);

    /// Replaces u by u × ω at every point.
    fn cross(&mut self, u: &mut Velocity<Self>, omega: &Velocity<Self>);

    /// With `f = rate + viscosity stage`, adds `weight f` to `next` and sets `stage` to
    /// `velocity + ahead f`.
    fn advance(
        &mut self,
        factors: Advance,
        velocity_rate: [&Spectrum<Self>; 2],
        next_stage: [&mut Spectrum<Self>; 2],
    );

    /// The sum of the squares of this rank's points.
    fn squares(&mut self, u: &Velocity<Self>) -> Result<f64, Error>;

    /// Changes a field through memory of the host.
    fn edit(
        &mut self,
        field: &mut Velocity<Self>,
        change: impl FnOnce(&mut Field<Physical>) -> Result<(), Error>,
    ) -> Result<(), Error>;

    /// Reads a field in memory of the host.
    fn read<R>(
        &mut self,
        field: &Velocity<Self>,
        look: impl FnOnce(&Field<Physical>) -> Result<R, Error>,
    ) -> Result<R, Error>;

    /// Returns an error of any rank, on all ranks.
    fn agree(&mut self, plan: &mut Plan<R2c, 3, Self::Location>) -> Result<(), Error>;
}

/// Fields on the host.
pub(crate) struct OnHost;

impl Place for OnHost {
    type Location = Host;

    fn forward(
        &mut self,
        plan: &mut Plan<R2c, 3>,
        from: &Velocity<Self>,
        to: &mut Spectrum<Self>,
    ) -> Result<(), Error> {
        plan.forward_into(from.as_slice(), to.as_mut_slice())
    }

    fn inverse(
        &mut self,
        plan: &mut Plan<R2c, 3>,
        from: &Spectrum<Self>,
        to: &mut Velocity<Self>,
    ) -> Result<(), Error> {
        plan.inverse_into(from.as_slice(), to.as_mut_slice())
    }

    fn copy(&mut self, from: &Spectrum<Self>, to: [&mut Spectrum<Self>; 2]) {
        for to in to {
            to.as_mut_slice().copy_from_slice(from.as_slice());
        }
    }

    fn cross(&mut self, u: &mut Velocity<Self>, omega: &Velocity<Self>) {
        let points = u.brick().points();
        let (ux, rest) = u.as_mut_slice().split_at_mut(points);
        let (uy, uz) = rest.split_at_mut(points);
        let (wx, rest) = omega.as_slice().split_at(points);
        let (wy, wz) = rest.split_at(points);
        let u = ux.iter_mut().zip(uy).zip(uz);
        for (((ux, uy), uz), ((wx, wy), wz)) in u.zip(wx.iter().zip(wy).zip(wz)) {
            (*ux, *uy, *uz) = (*uy * wz - *uz * wy, *uz * wx - *ux * wz, *ux * wy - *uy * wx);
        }
    }

    fn advance(
        &mut self,
        Advance { viscosity, weight, ahead }: Advance,
        [velocity, rate]: [&Spectrum<Self>; 2],
        [next, stage]: [&mut Spectrum<Self>; 2],
    ) {
        let given = velocity.as_slice().iter().zip(rate.as_slice());
        let made = next.as_mut_slice().iter_mut().zip(stage.as_mut_slice());
        for ((velocity, rate), (next, stage)) in given.zip(made) {
            let f = rate + *stage * viscosity;
            *next += f * weight;
            *stage = velocity + f * ahead;
        }
    }

    /// By sums of short parts, which keeps rounding errors small.
    fn squares(&mut self, u: &Velocity<Self>) -> Result<f64, Error> {
        let part = |part: &[f64]| part.iter().map(|u| u * u).sum::<f64>();
        Ok(u.as_slice().chunks(256).map(part).sum())
    }

    fn edit(
        &mut self,
        field: &mut Velocity<Self>,
        change: impl FnOnce(&mut Field<Physical>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        change(field)
    }

    fn read<R>(
        &mut self,
        field: &Velocity<Self>,
        look: impl FnOnce(&Field<Physical>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        look(field)
    }

    fn agree(&mut self, _: &mut Plan<R2c, 3>) -> Result<(), Error> {
        Ok(())
    }
}
