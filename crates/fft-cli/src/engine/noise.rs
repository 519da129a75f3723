//! Noise that is made, transformed and checked on a device.

use thriffty::Error;
use thriffty::gpu::{Gpu, GpuError, GpuReal, Noise};
use thriffty::planning::{Direction, DynArray, DynPlan, Precision};

use super::engine::Engine;

/// The operation on noise.
#[derive(Clone, Copy)]
enum Step {
    Fill,
    Compare,
}

impl Engine {
    /// Fills physical data on the device with noise from `-scale/2` to `scale/2` and transforms it.
    /// Collective.
    pub(super) fn transform_noise(&mut self, scale: f64) -> Result<(), Error> {
        self.on_noise(Step::Fill, scale)?;
        self.run_on_device(Direction::Forward)
    }

    /// The distance of that noise from itself after forward and inverse, on this rank. Collective.
    pub(super) fn distance_of_noise(&mut self, scale: f64) -> Result<[f64; 4], Error> {
        self.transform_noise(scale)?;
        self.run_on_device(Direction::Inverse)?;
        self.on_noise(Step::Compare, scale)
    }

    fn on_noise(&mut self, step: Step, scale: f64) -> Result<[f64; 4], Error> {
        let (gpu, physical, plan) = self.device_parts();
        let done = match plan.problem().precision {
            Precision::F32 => run::<f32>(gpu, physical, plan, (step, scale)),
            _ => run::<f64>(gpu, physical, plan, (step, scale)),
        };
        let done = done.map_err(|why| why.on(plan.comm().rank()));
        self.agree(done)
    }
}

fn run<T: GpuReal>(
    gpu: &Gpu,
    physical: &mut DynArray,
    plan: &DynPlan,
    (step, scale): (Step, f64),
) -> Result<[f64; 4], GpuError> {
    let problem = plan.problem();
    let (grid, brick) = (problem.grid(), plan.input_brick());
    let width = if problem.complex { 2 } else { 1 };
    let order = problem.input.order();
    let noise = Noise::<T>::new(gpu, (&grid, &brick), order, problem.batch, (width, scale))?;
    let stream = plan.stream().expect("a plan on a device");
    let reals = plan.input_len() * width;
    match step {
        Step::Fill => {
            let mut data = physical.device_numbers_mut(reals).expect("an array on a device");
            noise.fill(stream, &mut data).map(|()| [0.0; 4])
        }
        Step::Compare => {
            let data = physical.device_numbers(reals).expect("an array on a device");
            noise.distance(stream, &data)
        }
    }
}
