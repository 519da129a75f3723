//! Predicted costs of a recipe, step by step.
//!
//! The search adds independent edges. The prediction follows the passes of the executed
//! [`Program`].

use super::candidates::{AxisSet, adjacent_bytes};
use super::cost::{Model, Order, Spent};
use super::volume::{self, Volume};
use crate::geometry::{Layout, Topology};
use crate::lower::ops::{AcrossFft, Op, StorePass};
use crate::lower::{AxisFft, Capabilities, DeviceCapabilities, ExchangePass, Program};
use crate::problem::{Access, Direction, Machine, Problem};
use crate::recipe::{Node, Recipe, Step};

/// The predicted times of a forward transform.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Each step of the recipe.
    pub steps: Vec<Expected>,
    /// The total.
    pub seconds: f64,
    /// Passes over memory.
    pub passes: usize,
}

/// The predicted time of one step on the busiest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Expected {
    /// Seconds added by this step, with the transforms fused into a reshape.
    pub seconds: f64,
    /// Memory accesses among these, without messages.
    pub memory: f64,
    /// Arithmetic among these.
    pub arithmetic: f64,
    /// The parts of a reshape's time.
    pub spent: Spent,
    /// The data it moves.
    pub volume: BytesMoved,
}

/// Bytes that the busiest rank and the busiest host move in a reshape, as encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BytesMoved {
    /// Bytes that stay on the rank.
    pub own: f64,
    /// Bytes to, or from, other ranks of the host.
    pub near: f64,
    /// Bytes to, or from, ranks of other hosts.
    pub far: f64,
    /// Bytes out of, or into, a host.
    pub host: f64,
    /// Messages to and from ranks of the host; none with shared memory.
    pub near_messages: f64,
    /// Messages to and from ranks of other hosts.
    pub far_messages: f64,
}

/// The predicted time of an operation on the busiest rank.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedOperation {
    /// The operation, as [`Program`] prints it.
    pub text: String,
    /// Seconds by the model.
    pub seconds: f64,
    /// Seconds of its accesses to memory, or of its messages on their way if these take longer. It
    /// cannot be faster on the machine of the model.
    pub floor: f64,
}

impl Recipe {
    /// The predicted cost of the forward transform on the problem's machine. Ranks of one host are
    /// assumed to be threads, or, on a machine of GPUs, to have a GPU each, joined by links. Beyond
    /// 64 ranks, GPUs are assumed not to move data while they transform.
    ///
    /// Deterministic and without communication. Cost: O(ranks) for each step; on machines of GPUs
    /// the cost of [`Recipe::lower`].
    pub fn predict(&self) -> Prediction {
        self.predict_on(&self.problem().machine)
    }

    /// The predicted cost on another machine.
    pub fn predict_on(&self, machine: &Machine) -> Prediction {
        self.predict_program(machine, Direction::Forward, |predictor| {
            let program = predictor.program;
            program.ops.iter().for_each(|op| predictor.operation(op));
            let steps = std::mem::take(&mut predictor.steps);
            let seconds = steps.iter().map(|step| step.seconds).sum();
            Prediction { steps, seconds, passes: program.passes_over_memory() }
        })
    }

    /// Each operation of a direction, with its predicted time on the problem's machine. Bound
    /// programs can have other operations, because ranks may be able to do less than threads. Empty
    /// for a plan on devices if the machine has none.
    pub fn predict_operations(&self, direction: Direction) -> Vec<PredictedOperation> {
        let problem = self.problem();
        if problem.options.access != Access::Cached && problem.machine.gpu.is_none() {
            return Vec::new();
        }
        self.predict_program(&self.problem().machine, direction, |predictor| {
            let program = predictor.program;
            let operations = program.ops.iter().zip(program.texts()).map(|(op, text)| {
                let before = predictor.sums();
                predictor.operation(op);
                let [seconds, memory, flight] = predictor.sums();
                PredictedOperation {
                    text,
                    seconds: seconds - before[0],
                    floor: (memory - before[1]).max(flight - before[2]),
                }
            });
            operations.collect()
        })
    }

    fn predict_program<R>(
        &self,
        machine: &Machine,
        direction: Direction,
        predict: impl FnOnce(&mut Predictor<'_>) -> R,
    ) -> R {
        let problem = self.problem();
        let is_on_devices = machine.gpu.is_some() && problem.options.access != Access::Cached;
        let is_lowered = is_on_devices && problem.input.ranks() <= volume::FEW;
        let devices = is_lowered.then(|| DeviceCapabilities::of_ranks(problem));
        let capabilities = match &devices {
            Some(devices) => Capabilities::of_devices(devices),
            None => Capabilities::of_threads(problem),
        };
        let program = &self.lower(direction, capabilities);
        let hosts = &Topology::new(&problem.hosts, problem.input.ranks());
        let model = Model::of(machine, hosts, problem.input.ranks());
        let all_near = program.policy.all_near && problem.input.ranks() > 1;
        let steps = vec![Expected::default(); self.steps().len()];
        let (volumes, before) = (vec![None; steps.len()], 0.0);
        let mut predictor = Predictor {
            program,
            problem,
            model,
            hosts,
            all_near,
            is_on_devices,
            steps,
            volumes,
            before,
        };
        predictor.reshapes();
        predict(&mut predictor)
    }
}

struct Predictor<'a> {
    program: &'a Program<'a>,
    problem: &'a Problem,
    model: Model<'a>,
    hosts: &'a Topology,
    /// Whether several ranks read each other's memory.
    all_near: bool,
    /// Whether plans are on a machine's GPUs.
    is_on_devices: bool,
    steps: Vec<Expected>,
    /// The volume of each step that is a reshape.
    volumes: Vec<Option<Volume>>,
    /// Seconds of the transforms since the last reshape, on devices.
    before: f64,
}

impl Predictor<'_> {
    fn operation(&mut self, op: &Op<'_>) {
        match op {
            Op::LocalFft(ffts) => self.transforms(ffts, false),
            Op::SharedPass(pass) => self.transforms(&pass.ffts, false),
            Op::Exchange(pass) => self.exchange(pass),
            Op::Across(AcrossFft { both, .. }) => self.transforms(both, false),
            Op::Store(pass) => self.store(pass),
            Op::CopyOut => self.copy_out(self.program.start_and_end()[1]),
        }
    }

    /// Seconds of all steps: in all, of memory, and of messages on their way.
    fn sums(&self) -> [f64; 3] {
        let zero = [0.0; 3];
        self.steps.iter().fold(zero, |[seconds, memory, flight], step| {
            [seconds + step.seconds, memory + step.memory, flight + step.spent.flight]
        })
    }

    /// The volume of every reshape, and its barrier with shared memory.
    fn reshapes(&mut self) {
        for (number, step) in self.program.recipe.steps().iter().enumerate() {
            let Step::Reshape { wire, .. } = *step else { continue };
            let [from, to] = self.program.ends(number);
            let volume = self.volume(from, to);
            self.volumes[number] = Some(volume);
            let share = wire.share(self.problem.precision, self.problem.options.tolerance);
            let expected = &mut self.steps[number];
            let element = bytes(self.problem, from);
            expected.volume = BytesMoved {
                own: volume.own * element,
                near: volume.near * element,
                far: volume.far * element * share,
                host: volume.host * element * share,
                near_messages: if self.all_near { 0.0 } else { volume.near_messages },
                far_messages: volume.far_messages,
            };
            if self.all_near {
                let unpack = self.model.barrier();
                expected.spent = Spent { unpack, pieces: 1.0, ..Spent::default() };
                expected.seconds = unpack;
                expected.memory = unpack;
            }
        }
    }

    fn volume(&self, from: &Node, to: &Node) -> Volume {
        Volume::new(&from.layout, &to.layout, self.hosts, Layout::count)
    }

    fn exchange(&mut self, pass: &ExchangePass<'_>) {
        let problem = self.problem;
        let [from, to] = [pass.from, pass.to];
        if self.all_near && pass.direct {
            // The next transforms read from peers.
            if pass.fuse_after.is_empty() {
                self.pass(pass.step, from, to);
            } else {
                self.transforms(&pass.fuse_after, false);
            }
            return;
        }
        let order = Order {
            load: self.volumes[pass.step].expect("an exchange executes a reshape"),
            element: bytes(problem, from),
            share: pass.wire.share(problem.precision, problem.options.tolerance),
            wire: pass.wire,
            exchange: self.program.policy.exchange,
            chunk: pass.chunking.map(|chunking| chunking.bytes as f64),
            rounds: self.program.policy.rounds as f64,
        };
        let spent = self.model.reshape(&order);
        let before = pass.fuse_before.iter().map(|fft| self.transform(fft)[0]);
        let arithmetic = before.fold(0.0, |sum, one| sum + one);
        let seconds = self.beside_transforms(pass, spent.with(arithmetic));
        let memory = (spent.pack + spent.unpack).min(seconds);
        let volume = self.steps[pass.step].volume;
        self.steps[pass.step] = Expected { seconds, memory, arithmetic, spent, volume };
        if !pass.fuse_after.is_empty() {
            self.transforms(&pass.fuse_after, true);
        }
    }

    /// Transforms that do the last exchange, and the one before them if they load.
    fn store(&mut self, pass: &StorePass<'_>) {
        if let Some(loads) = &pass.loads {
            self.exchange(loads);
        }
        let stores = ExchangePass { fuse_after: pass.ffts.clone(), ..pass.exchange.clone() };
        self.exchange(&stores);
    }

    /// The time that an exchange adds to its transforms. GPUs do both at the same time.
    fn beside_transforms(&mut self, pass: &ExchangePass<'_>, seconds: f64) -> f64 {
        let before = std::mem::take(&mut self.before);
        if self.program.capabilities.device.is_none() {
            return seconds;
        }
        let bytes = pass.from.layout.most_points() as f64 * bytes(self.problem, pass.from);
        if !pass.fuse_after.is_empty() {
            self.model.fetched(seconds, self.model.pass(bytes))
        } else if let Some(chunks) = &pass.chunks {
            self.model.chunked(bytes, chunks.all() as f64, seconds, before)
        } else {
            seconds
        }
    }

    /// Transforms in one pass over memory, or fused into unpacking. A device's library takes a pass
    /// for each axis. If operations share a transform, each sets the same cost.
    fn transforms(&mut self, ffts: &[AxisFft], unpacked: bool) {
        if self.is_on_devices {
            for fft in ffts {
                let [arithmetic, memory] = self.transform(fft);
                let step = &mut self.steps[fft.step];
                (step.arithmetic, step.memory) = (arithmetic, memory);
                step.seconds = arithmetic + memory;
                self.before += step.seconds;
            }
            return;
        }
        let costs: Vec<_> = ffts.iter().map(|fft| self.transform(fft)).collect();
        let arithmetic = costs.iter().map(|[arithmetic, _]| arithmetic).sum::<f64>();
        let passes = costs.iter().map(|[_, memory]| *memory);
        let memory = passes.fold(0.0, f64::max);
        let memory = if unpacked { 0.0 } else { memory * self.scattered(ffts) };
        let step = &mut self.steps[ffts[0].step];
        (step.arithmetic, step.memory) = (arithmetic, memory);
        step.seconds = arithmetic + memory;
    }

    /// Arithmetic and memory of a transform in a pass of its own.
    fn transform(&self, fft: &AxisFft) -> [f64; 2] {
        let [from, _] = self.program.ends(fft.step);
        let most = from.layout.most_points() as f64;
        let strided = from.layout.order().contiguous() != fft.axis || self.all_near;
        let gathered = strided && self.problem.prefers_contiguous();
        let (n, len) = (self.problem.zero_padded[fft.axis], from.layout.grid().len(fft.axis));
        // A padded line costs as much as a full one. A half spectrum is not padded.
        let longer = if fft.resized { n as f64 / len as f64 } else { 1.0 };
        let n = if fft.resized { n } else { len };
        self.model.transform(n, most * bytes(self.problem, from), longer, gathered)
    }

    /// The slowdown of memory for lines gathered from all ranks.
    fn scattered(&self, ffts: &[AxisFft]) -> f64 {
        if !self.all_near {
            return 1.0;
        }
        let [_, to] = self.program.ends(ffts[ffts.len() - 1].step);
        let work = &to.layout;
        let home = at_home(work, &self.problem.input);
        let (order, batch) = (to.layout.order(), self.problem.batch);
        let element = bytes(self.problem, to) / batch as f64;
        let axes: AxisSet = ffts.iter().map(|fft| 1 << fft.axis).sum();
        self.model.scattered(adjacent_bytes(home.as_ref(), work, &order, axes, element, batch))
    }

    fn pass(&mut self, step: usize, from: &Node, to: &Node) {
        let most =
            [from, to].map(|node| node.layout.most_points() as f64 * bytes(self.problem, node));
        let memory = self.model.pass(most[0].max(most[1]));
        let expected = &mut self.steps[step];
        expected.spent.unpack += memory;
        expected.memory += memory;
        expected.seconds += memory;
    }

    fn copy_out(&mut self, node: &Node) {
        self.pass(self.steps.len() - 1, node, node);
    }
}

/// The input's layout on the grid of this work; `None` if a cut axis has another length.
fn at_home(work: &Layout, input: &Layout) -> Option<Layout> {
    (0..input.grid().axes()).try_fold(input.clone(), |home, axis| {
        let n = work.grid().len(axis);
        if n == home.grid().len(axis) {
            Some(home)
        } else {
            home.is_whole(axis).then(|| home.with_len(axis, n))
        }
    })
}

fn bytes(problem: &Problem, node: &Node) -> f64 {
    (node.width() * problem.precision.bytes() * problem.batch) as f64
}
