//! Incompressible flow between two walls, on a staggered grid that is stretched between them.
//!
//! ```text
//! u' = -∇·(uu) - ∇p + ν∇²u + f,   ∇·u = 0
//! ```
//!
//! Axes are x, y, z; walls are at both ends of z. Pressure is at cells, component i of the velocity
//! at the face between a cell and the next along axis i. Differences are of second order.
//! Convection is extrapolated (Adams-Bashforth), diffusion is the mean of both ends of a step
//! (Crank-Nicolson): one Helmholtz equation for each component. A Poisson equation for the pressure
//! then takes the divergence away, to rounding, because its scheme is the divergence of the
//! gradient. All are solved by transforms along x and y and tridiagonal systems along z.

use thriffty::arrays::{Ghosts, GridData, ParallelCopy, Subarray, halo};
use thriffty::planning::{ProcGrid, Reduce};
use thriffty::spectral::{Domain, Operator, Scheme, Tridiagonal};
use thriffty::{Comm, Ends, Error, Field, Grid, Physical, Plan, R2c};

/// What is computed.
#[derive(Clone)]
pub(crate) struct Setting {
    /// Cells along x, y and z.
    pub(crate) cells: [usize; 3],
    /// The lengths along x and y.
    pub(crate) lengths: [f64; 2],
    /// The faces between cells along z; the first and the last are the walls.
    pub(crate) faces: Vec<f64>,
    pub(crate) viscosity: f64,
    /// A force along x for each mass.
    pub(crate) force: f64,
    pub(crate) step: f64,
}

/// Faces between walls at 0 and `height`, finer at the walls.
pub(crate) fn stretched(cells: usize, height: f64) -> Vec<f64> {
    let at = |face: usize| (1.5 * (2.0 * face as f64 / cells as f64 - 1.0)).tanh() / 1.5f64.tanh();
    (0..=cells).map(|face| 0.5 * height * (1.0 + at(face))).collect()
}

/// Solves (shift − ∇²) x = b at cells, or at the faces along z.
struct Solver {
    plan: Plan<R2c, 3>,
    domain: Domain,
}

impl Solver {
    fn new(world: &dyn Comm, setting: &Setting, ends: Ends) -> Result<Self, Error> {
        let [nx, ny, cells] = setting.cells;
        let scheme = Tridiagonal::second_derivative(&setting.faces, ends)?;
        let shape = [nx, ny, scheme.len()];
        let brick = slab(world).brick(&Grid::new(shape)?, world.rank());
        let draft = thriffty::r2c(world, shape).input_brick(brick).transposed_output(true);
        let plan = draft.ends([Ends::Periodic, Ends::Periodic, Ends::Tridiagonal]).build()?;
        let [x, y] = setting.lengths;
        let domain = plan.domain([x, y, setting.faces[cells]])?;
        let domain = domain.with_schemes(&[Scheme::Staggered2; 3])?.with_tridiagonal(scheme)?;
        Ok(Self { plan, domain })
    }

    fn solve(
        &mut self,
        shift: f64,
        right: impl FnMut([usize; 3]) -> f64,
    ) -> Result<Field<Physical, R2c, 3>, Error> {
        let mut field = self.plan.input();
        field.fill(right);
        let mut modes = self.plan.forward(field)?;
        self.domain.apply_in_place(Operator::Helmholtz(shift), &mut modes);
        self.plan.inverse(modes)
    }
}

/// Each rank has a slab of the grid.
fn slab(world: &dyn Comm) -> ProcGrid {
    ProcGrid::new([world.size(), 1, 1])
}

/// A local array with one ghost point on each side.
#[derive(Clone)]
struct Local {
    data: Vec<f64>,
    /// Of the first ghost point.
    lo: [i64; 3],
    strides: [i64; 3],
}

type Point = [i64; 3];

fn moved(mut point: Point, axis: usize, by: i64) -> Point {
    point[axis] += by;
    point
}

fn point(index: [usize; 3]) -> Point {
    index.map(|i| i as i64)
}

impl Local {
    fn place(&self, at: Point) -> usize {
        (0..3).map(|axis| (at[axis] - self.lo[axis]) * self.strides[axis]).sum::<i64>() as usize
    }

    fn at(&self, at: Point) -> f64 {
        self.data[self.place(at)]
    }

    fn set(&mut self, at: Point, value: f64) {
        let place = self.place(at);
        self.data[place] = value;
    }

    /// The mean at the face between a point and the next.
    fn mean(&self, at: Point, axis: usize) -> f64 {
        0.5 * (self.at(at) + self.at(moved(at, axis, 1)))
    }
}

/// A flow at a time.
pub(crate) struct Channel<'a> {
    world: &'a dyn Comm,
    setting: Setting,
    /// Solvers for the pressure, for components along the walls, and for the one between them.
    solvers: [Solver; 3],
    ghosts: ParallelCopy,
    velocity: [Local; 3],
    pressure: Local,
    convection: Option<[Local; 3]>,
    indices: Vec<Point>,
    time: f64,
}

impl<'a> Channel<'a> {
    /// A flow with this velocity at faces, which has no divergence and is 0 at walls. Collective.
    pub(crate) fn new(
        world: &'a dyn Comm,
        setting: Setting,
        velocity: impl Fn(usize, [usize; 3]) -> f64,
    ) -> Result<Self, Error> {
        let solver = |ends| Solver::new(world, &setting, ends);
        let solvers =
            [solver(Ends::Neumann)?, solver(Ends::Dirichlet)?, solver(Ends::DirichletAtFaces)?];
        let grid = Grid::new(setting.cells)?;
        let brick = slab(world).brick(&grid, world.rank());
        let here = Subarray::with_ghosts(brick, [1; 3], [1; 3]);
        let around = Ghosts::new([1, 1, 0], [1, 1, 0], [true, true, false]);
        let ghosts = halo(world, GridData::of::<f64>(grid), around, &[here])?;
        let zero = Local {
            data: vec![0.0; here.distance],
            lo: point(brick.lo).map(|lo| lo - 1),
            strides: here.strides.array::<3>().map(|stride| stride as i64),
        };
        let indices: Vec<_> = solvers[0].plan.input().iter().map(|(at, _)| point(at)).collect();
        let mut flow = Self {
            world,
            solvers,
            ghosts,
            velocity: [(); 3].map(|()| zero.clone()),
            pressure: zero,
            convection: None,
            indices,
            time: 0.0,
            setting,
        };
        for (component, array) in flow.velocity.iter_mut().enumerate() {
            for at in &flow.indices {
                array.set(*at, velocity(component, at.map(|i| i as usize)));
            }
        }
        flow.exchange()?;
        Ok(flow)
    }

    pub(crate) fn time(&self) -> f64 {
        self.time
    }

    /// The width of a cell along an axis.
    fn width(&self, axis: usize, at: Point) -> f64 {
        let Setting { cells, lengths, faces, .. } = &self.setting;
        match axis {
            2 => faces[at[2] as usize + 1] - faces[at[2] as usize],
            _ => lengths[axis] / cells[axis] as f64,
        }
    }

    /// The distance of the centres of a cell and the next.
    fn distance(&self, axis: usize, at: Point) -> f64 {
        0.5 * (self.width(axis, at) + self.width(axis, moved(at, axis, 1)))
    }

    /// Whether a component is at a wall there.
    fn is_wall(&self, component: usize, at: Point) -> bool {
        component == 2 && at[2] + 1 == self.setting.cells[2] as i64
    }

    fn exchange(&mut self) -> Result<(), Error> {
        for array in self.velocity.iter_mut().chain([&mut self.pressure]) {
            self.ghosts.run_in_place(&mut [&mut array.data])?;
        }
        Ok(())
    }

    /// The divergence of what is carried along, of one component.
    fn convected(&self, a: usize, at: Point) -> f64 {
        let (u, flows) = (&self.velocity[a], &self.velocity);
        let flux = |b: usize, at: Point| {
            if a == b { u.mean(at, a).powi(2) } else { u.mean(at, b) * flows[b].mean(at, a) }
        };
        let along = |b: usize| {
            let length = if a == b { self.distance(a, at) } else { self.width(b, at) };
            (flux(b, at) - flux(b, moved(at, b, -1))) / length
        };
        (0..3).map(along).sum()
    }

    fn divergence(&self, at: Point) -> f64 {
        let along = |axis: usize| {
            let u = &self.velocity[axis];
            (u.at(at) - u.at(moved(at, axis, -1))) / self.width(axis, at)
        };
        (0..3).map(along).sum()
    }

    fn slope(&self, of: &Local, axis: usize, at: Point) -> f64 {
        (of.at(moved(at, axis, 1)) - of.at(at)) / self.distance(axis, at)
    }

    /// Goes on by a time step. Collective.
    pub(crate) fn step(&mut self) -> Result<(), Error> {
        let Setting { viscosity, force, step, .. } = self.setting;
        let mut convection = self.velocity.clone();
        for (a, array) in convection.iter_mut().enumerate() {
            for at in &self.indices {
                let is_wall = self.is_wall(a, *at);
                array.set(*at, if is_wall { 0.0 } else { self.convected(a, *at) });
            }
        }
        let before = self.convection.take().unwrap_or_else(|| convection.clone());
        // The mean of the velocity before and after fulfils a Helmholtz equation.
        let shift = 2.0 / (viscosity * step);
        let mut means = Vec::with_capacity(3);
        for a in 0..3 {
            let right = |index: [usize; 3]| {
                let at = point(index);
                let carried = 1.5 * convection[a].at(at) - 0.5 * before[a].at(at);
                let pushed = if a == 0 { force } else { 0.0 };
                let change = pushed - carried - self.slope(&self.pressure, a, at);
                shift * (self.velocity[a].at(at) + 0.5 * step * change)
            };
            let mut right_hand_side = Vec::new();
            let solver = if a == 2 { 2 } else { 1 };
            let brick = self.solvers[solver].plan.input_brick();
            for_each(brick.lo, brick.hi, |index| right_hand_side.push(right(index)));
            let mut values = right_hand_side.into_iter();
            let next = |_| values.next().expect("one for each point");
            means.push(self.solvers[solver].solve(shift, next)?);
        }
        for (u, mean) in self.velocity.iter_mut().zip(&means) {
            for (index, mean) in mean.iter() {
                let at = point(index);
                u.set(at, 2.0 * mean - u.at(at));
            }
        }
        self.exchange()?;
        let divergence: Vec<f64> = self.indices.iter().map(|at| self.divergence(*at)).collect();
        let mut values = divergence.iter();
        let right = |_| -values.next().expect("one for each cell") / step;
        let solved = self.solvers[0].solve(0.0, right)?;
        let mut phi = self.pressure.clone();
        solved.iter().for_each(|(index, value)| phi.set(point(index), *value));
        self.ghosts.run_in_place(&mut [&mut phi.data])?;
        for a in 0..3 {
            for at in &self.indices {
                if !self.is_wall(a, *at) {
                    let u = self.velocity[a].at(*at) - step * self.slope(&phi, a, *at);
                    self.velocity[a].set(*at, u);
                }
            }
        }
        for (at, divergence) in self.indices.iter().zip(&divergence) {
            let change = phi.at(*at) - 0.5 * viscosity * divergence;
            self.pressure.set(*at, self.pressure.at(*at) + change);
        }
        self.exchange()?;
        self.convection = Some(convection);
        self.time += step;
        Ok(())
    }

    /// The largest divergence of a cell. Collective.
    pub(crate) fn largest_divergence(&self) -> Result<f64, Error> {
        let each = self.indices.iter().map(|at| self.divergence(*at).abs());
        let mut most = [each.fold(0.0, f64::max)];
        self.world.allreduce(Reduce::Max, &mut most)?;
        Ok(most[0])
    }

    /// The integral of the velocity's square. Collective.
    pub(crate) fn energy(&self) -> Result<f64, Error> {
        let mut sum = [0.0];
        for at in &self.indices {
            for a in (0..3).filter(|a| !self.is_wall(*a, *at)) {
                let lengths = [0, 1, 2].map(|axis| {
                    if axis == a { self.distance(axis, *at) } else { self.width(axis, *at) }
                });
                sum[0] += self.velocity[a].at(*at).powi(2) * lengths.iter().product::<f64>();
            }
        }
        self.world.allreduce(Reduce::Sum, &mut sum)?;
        Ok(sum[0])
    }

    /// The mean of the velocity along x at each height, and the heights. Collective.
    pub(crate) fn profile(&self) -> Result<Vec<[f64; 2]>, Error> {
        let Setting { cells, faces, .. } = &self.setting;
        let mut sums = vec![0.0; cells[2]];
        for at in &self.indices {
            sums[at[2] as usize] += self.velocity[0].at(*at) / (cells[0] * cells[1]) as f64;
        }
        self.world.allreduce(Reduce::Sum, &mut sums)?;
        let heights = faces.windows(2).map(|pair| 0.5 * (pair[0] + pair[1]));
        Ok(heights.zip(sums).map(|(z, u)| [z, u]).collect())
    }
}

/// Calls `body` with each index of a box, the last axis fastest.
fn for_each(lo: [usize; 3], hi: [usize; 3], mut body: impl FnMut([usize; 3])) {
    for i in lo[0]..hi[0] {
        for j in lo[1]..hi[1] {
            for k in lo[2]..hi[2] {
                body([i, j, k]);
            }
        }
    }
}

/// Flow that a force starts from rest between walls at 0 and `height`.
pub(crate) fn poiseuille(setting: &Setting, z: f64, time: f64) -> f64 {
    use std::f64::consts::PI;
    let (height, nu) = (setting.faces[setting.cells[2]], setting.viscosity);
    let steady = setting.force / (2.0 * nu) * z * (height - z);
    let mode = |n: f64| {
        let k = n * PI / height;
        4.0 * setting.force / (height * nu * k.powi(3)) * (k * z).sin() * (-nu * k * k * time).exp()
    };
    steady - (0..200).map(|n| mode(2.0 * n as f64 + 1.0)).sum::<f64>()
}

/// The slowest Stokes mode of wavenumber `k` between walls at 0 and 2: its rate of decay over the
/// viscosity, and its profile across, of which the velocity between the walls is a multiple.
pub(crate) fn stokes(k: f64) -> (f64, impl Fn(f64) -> f64) {
    // q tan q = -k tanh k, between π/2 and π.
    let (mut low, mut high) = (0.5 * std::f64::consts::PI * (1.0 + 1e-12), std::f64::consts::PI);
    for _ in 0..100 {
        let q = 0.5 * (low + high);
        if q * q.tan() + k * k.tanh() < 0.0 { low = q } else { high = q }
    }
    let q = low;
    let profile = move |z: f64| {
        let y = z - 1.0;
        (q * y).cos() / q.cos() - (k * y).cosh() / k.cosh()
    };
    (q * q + k * k, profile)
}
