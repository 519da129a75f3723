//! From a draft to a plan: ranks agree on the options, choose a recipe and bind it.

use std::path::PathBuf;
use std::sync::Once;

use fft_comm::check_messages;
use fft_core::{
    Access, DynBrick, DynGrid, Error, ErrorKind, Exchange, Layout, MAX_AXES, Machine, PerAxis,
    Problem, Recipe, Wire, agree, assert_same, on_any_rank,
};

#[cfg(feature = "cuda")]
use fft_core::Comm;

use super::dyn_draft::DynDraft;
use super::dyn_plan::DynPlan;
use super::kept_plans::retry_without_kept_plans;
#[cfg(feature = "cuda")]
use super::on_device::Ready;
use super::team_plans;
#[cfg(feature = "cuda")]
use crate::bound::DeviceOptions;
use crate::machines;
use crate::options::{GlobalArrays, MachineChoice, Options, Tuning};
#[cfg(feature = "cuda")]
use crate::tuning::ByClock;
use crate::tuning::{Decision, Wanted, by_clock, decide};

impl DynDraft<'_> {
    /// The recipe that [`DynDraft::build`] would bind. Collective.
    ///
    /// # Errors
    /// The errors of [`Draft::recipe`](crate::Draft::recipe); [`Error::OnRank`] for bricks, orders
    /// or kinds that have other axes than the grid.
    pub fn recipe(&self) -> Result<Recipe, Error> {
        let options = self.settle()?;
        #[cfg(feature = "cuda")]
        if let Some(device) = &self.device {
            let ready = self.ready(device, &options)?;
            return Ok(self.decide_ready(&ready, options)?.recipe);
        }
        Ok(self.decide(&options)?.recipe)
    }

    /// As [`Draft::build`](crate::Draft::build). Collective.
    ///
    /// # Errors
    /// The errors of [`Draft::build`](crate::Draft::build).
    pub fn build(self) -> Result<DynPlan, Error> {
        retry_without_kept_plans(self.comm(), || self.build_in_memory())
    }

    fn build_in_memory(&self) -> Result<DynPlan, Error> {
        let options = self.settle()?;
        if self.has_teams()? {
            return team_plans::plan(self, options);
        }
        let trace = options.trace.clone();
        let mut plan = self.bind(options)?;
        if let Some(path) = trace {
            plan.trace(path)?;
        }
        Ok(plan)
    }

    /// A plan with one thread for each rank. Collective.
    fn bind(&self, mut options: Options) -> Result<DynPlan, Error> {
        #[cfg(feature = "cuda")]
        if let Some(device) = &self.device {
            let ready = self.ready(device, &options)?;
            let decision = self.decide_ready(&ready, options)?;
            return DynPlan::bind_chosen(self.comm(), decision, &|recipe| {
                ready.bind(self.comm(), recipe)
            });
        }
        match DynPlan::bind_on_host(self.comm(), self.decide(&options)?) {
            Err(error) if error.kind() == ErrorKind::SharedMemory => {
                if self.comm().rank() == 0 {
                    NOT_SHARED
                        .call_once(|| log::warn!("messages instead of shared memory: {error}"));
                }
                (options.exchange, options.tuning) = (Some(Exchange::Pipelined), Tuning::Model);
                DynPlan::bind_on_host(self.comm(), self.decide(&options)?)
            }
            made => made,
        }
    }

    /// Whether ranks have teams of threads. Collective, after [`DynDraft::settle`].
    fn has_teams(&self) -> Result<bool, Error> {
        if self.is_local() {
            let threads = self.threads.unwrap_or_else(|| self.useful_threads());
            return Ok(threads > 1 && self.is_on_host());
        }
        let [has_teams] = on_any_rank(self.comm(), [self.threads.unwrap_or(1) > 1])?;
        Ok(has_teams)
    }

    /// The options, once all ranks agree on them, with the machine that they name. Collective.
    pub(super) fn settle(&self) -> Result<Options, Error> {
        let mut options = self.options.clone();
        // A rank that has left is noticed here, before anything is gathered.
        let fits = || tables_fit(self.comm().rank(), &self.lengths_of_lines());
        agree(self.comm(), self.check().and_then(|()| fits()))?;
        // An option set to its default equals one left unset.
        let axes = self.grid.axes();
        options.kinds = Some(options.kinds_of(self.transform, axes));
        options.input_order = Some(options.input_order_of(axes));
        options.output_order = Some(options.output_order_of(axes));
        [options.zero_padded, options.modes] = options.lengths(self.grid).map(Some);
        if options.tolerance.is_none() && options.wire == Some(Wire::Raw) {
            options.wire = None;
        }
        options.trace = options.trace.or_else(|| self.trace_of_environment());
        self.compare(&options)?;
        if let Some(MachineChoice::Named(name)) = &options.machine {
            options.machine = Some(self.read_machine(name)?.into());
        }
        Ok(options)
    }

    /// The lengths of the lines that a rank transforms.
    fn lengths_of_lines(&self) -> PerAxis<usize> {
        let lengths = self.options.zero_padded.unwrap_or(self.grid.shape());
        let (ranks, threads) = (self.comm().size(), self.threads.unwrap_or(1));
        self.factors(&self.options, ranks.max(threads)).unwrap_or(lengths)
    }

    /// The factors of a single axis that this number of ranks would share in even parts.
    pub(super) fn factors(&self, options: &Options, ranks: usize) -> Option<PerAxis<usize>> {
        if self.grid.axes() > 1 || !self.is_on_host() {
            return None;
        }
        let options = Options { machine: None, ..options.clone() };
        let problem = options.problem(GlobalArrays {
            grid: self.grid,
            ranks,
            transform: self.transform,
            precision: self.precision,
            input: None,
            output: None,
            hosts: vec![0; ranks],
            access: Access::default(),
        });
        let problem = problem.ok().filter(|problem| problem.one_axis.is_some())?;
        Some(problem.grid().shape())
    }

    /// The file for a trace, from the environment.
    fn trace_of_environment(&self) -> Option<PathBuf> {
        let mut path = std::env::var_os("THRIFFTY_TRACE").filter(|path| !path.is_empty())?;
        if self.is_local() {
            // Other processes may have the same environment.
            path.push(format!(".{}", std::process::id()));
        }
        Some(path.into())
    }

    /// The machine of this name, for the device of the plan or for the host. Collective.
    fn read_machine(&self, name: &str) -> Result<Machine, Error> {
        #[cfg(feature = "cuda")]
        if let Some(device) = &self.device {
            return machines::read_on_device(self.comm(), &device.gpu, name);
        }
        machines::read(self.comm(), name)
    }

    /// The state that a plan on a device needs before its recipe is chosen. Collective.
    #[cfg(feature = "cuda")]
    fn ready(&self, device: &DeviceOptions, options: &Options) -> Result<Ready, Error> {
        Ready::new(self.comm(), device, options, self.grid, (self.transform, self.precision))
    }

    /// The recipe for a device, and the candidates. Collective.
    #[cfg(feature = "cuda")]
    fn decide_ready(&self, ready: &Ready, options: Options) -> Result<Decision, Error> {
        let by_clock: ByClock<'_> =
            &|problem, wanted, budget| ready.by_clock(self.comm(), problem, wanted, budget);
        self.decide_on_device(options, (ready.access(), ready.name()), by_clock)
    }

    #[cfg(feature = "cuda")]
    fn decide_on_device(
        &self,
        mut options: Options,
        (access, device): (Access, &str),
        by_clock: ByClock<'_>,
    ) -> Result<Decision, Error> {
        options.exchange = options.exchange.or(Some(default_on_devices(self.comm())));
        let problem = self.problem(&options, access)?;
        let wanted = Wanted { device: Some(device), ..self.wanted(&options) };
        decide(self.comm(), problem, &wanted, by_clock)
    }

    /// The recipe, and the candidates. Collective.
    fn decide(&self, options: &Options) -> Result<Decision, Error> {
        let problem = self.problem(options, Access::default())?;
        decide(self.comm(), problem, &self.wanted(options), &|problem, wanted, budget| {
            by_clock(self.comm(), problem, wanted, budget)
        })
    }

    fn wanted<'b>(&'b self, options: &'b Options) -> Wanted<'b> {
        Wanted { options, device: None, watch: self.watch.as_deref().unwrap_or(&|_| ()) }
    }

    /// Checks the grid, that options have as many axes, and the number of threads.
    pub(super) fn check(&self) -> Result<(), Error> {
        let error = self.error.clone().map_or(Ok(()), Err);
        let given = [self.options.input.is_some(), self.options.output.is_some()];
        error.and(self.options.check_axes(self.grid)).and(self.options.check_transposed(given))?;
        match self.threads {
            Some(0) => return Err(Error::argument("threads", 0, "at least 1")),
            Some(threads) if threads > 1 && !self.is_on_host() => {
                return Err(Error::argument("threads", threads, "1 on devices"));
            }
            _ => {}
        }
        // Checked before another exchange replaces it, so that the error names this one.
        self.options.exchange.map_or(Ok(()), |exchange| check_messages(exchange, self.comm()))
    }

    /// The problem of options that all ranks have agreed on. Collective.
    pub(super) fn problem(&self, options: &Options, access: Access) -> Result<Problem, Error> {
        let ranks = self.comm().size();
        let [inputs, outputs] = self.gather_bricks(options)?;
        let layout = |grid: DynGrid, bricks: Option<Vec<DynBrick>>| {
            bricks.map(|bricks| Layout::new(grid, bricks, ranks)).transpose()
        };
        options.problem(GlobalArrays {
            grid: self.grid,
            ranks,
            transform: self.transform,
            precision: self.precision,
            input: layout(self.grid, inputs)?,
            output: layout(self.spectral_grid(), outputs)?,
            hosts: (0..ranks).map(|rank| self.comm().host(rank)).collect(),
            access,
        })
    }

    /// Checks that all ranks drafted the same. Collective.
    fn compare(&self, options: &Options) -> Result<(), Error> {
        let widths = [self.transform.is_complex(), self.transform.has_complex_spectrum()];
        let mut entries = vec![
            ("number of axes", self.grid.axes().to_string()),
            ("precision in bytes", self.precision.bytes().to_string()),
            ("numbers per point", widths.map(|it| if it { "2" } else { "1" }).join(", ")),
            ("grid", self.grid.to_string()),
        ];
        entries.extend(options.entries());
        assert_same(self.comm(), &entries)
    }

    /// The bricks of all ranks, of input and of output; `None` if no rank has given one.
    /// Collective.
    fn gather_bricks(&self, options: &Options) -> Result<[Option<Vec<DynBrick>>; 2], Error> {
        let (rank, ranks, axes) = (self.comm().rank(), self.comm().size(), self.grid.axes());
        let given = [options.input.is_some(), options.output.is_some()];
        let is_any_given = on_any_rank(self.comm(), given)?;
        let input = options.input.unwrap_or_else(|| self.grid.brick(rank, ranks));
        let output = options.output.unwrap_or_else(|| self.spectral_grid().brick(rank, ranks));
        let mut mine = [[[0u64; MAX_AXES]; 2]; 2];
        for (words, brick) in mine.iter_mut().zip([input, output]) {
            for axis in 0..axes {
                (words[0][axis], words[1][axis]) = (brick.lo[axis] as u64, brick.hi[axis] as u64);
            }
        }
        let mut all = vec![mine; ranks];
        self.comm().allgather(bytemuck::bytes_of(&mine), bytemuck::cast_slice_mut(&mut all))?;
        Ok([0, 1].map(|side| {
            let bound =
                |words: &[u64; MAX_AXES]| PerAxis::from_fn(axes, |axis| words[axis] as usize);
            let brick = |words: &[[[u64; MAX_AXES]; 2]; 2]| {
                DynBrick::new(bound(&words[side][0]), bound(&words[side][1]))
            };
            is_any_given[side].then(|| all.iter().map(brick).collect())
        }))
    }
}

/// Checks that there is memory for the tables of the longest axis, because FFT planners end the
/// process if there is none.
fn tables_fit(rank: usize, lengths: &[usize]) -> Result<(), Error> {
    let longest = lengths.iter().copied().max().unwrap_or(1).max(1);
    let mut slow_part = longest;
    for prime in [2, 3, 5, 7, 11] {
        while slow_part.is_multiple_of(prime) {
            slow_part /= prime;
        }
    }
    // A line and two tables; other lengths take several lines of four times the length.
    let bytes_of_point = if slow_part == 1 { 3 * 16 } else { 16 * 16 };
    let bytes = longest.saturating_mul(bytes_of_point);
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(|_| Error::Memory { rank, bytes })
}

/// Limits the warning to one for each process.
static NOT_SHARED: Once = Once::new();

/// The exchange of plans on devices, if none is given: messages between pairs, unless the
/// communicator can send from devices to other hosts only by a collective.
#[cfg(feature = "cuda")]
fn default_on_devices(comm: &dyn Comm) -> Exchange {
    let has_several_hosts = comm.topology().hosts() > 1;
    let only_collective = comm.device().is_some_and(|device| !device.has_flights());
    if !comm.has_messages() || has_several_hosts && only_collective {
        Exchange::Alltoallv
    } else {
        Exchange::P2p
    }
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use super::*;
    use fft_core::{
        Capabilities, DeviceCapabilities, DeviceOp, Direction, Epochs, Grid, Machine, Precision,
    };

    use crate::field::DynTransform;

    /// A device transforms no chunks in its cache: the recipe is the same whether messages are in
    /// chunks or whole.
    #[test]
    fn recipes_of_devices_are_those_of_whole_messages() {
        let recipes = |transform, comm: crate::ThreadComm| {
            let recipe = |exchange: Exchange, access| {
                let grid = Grid::new([512; 3])?;
                let mut draft = DynDraft::new(&comm, grid, transform, Precision::F64);
                draft.options.exchange = Some(exchange);
                let by_clock: ByClock<'_> = &|_, _, _| unreachable!("the model chooses");
                let chosen =
                    draft.decide_on_device(draft.options.clone(), (access, "a GPU"), by_clock)?;
                Ok(chosen.recipe.to_string().replace(&format!(" {exchange} "), " "))
            };
            let others = [Exchange::Shared, Exchange::Pipelined, Exchange::Ring(Epochs::Fence)];
            for access in [Access::Contiguous, Access::Strided, Access::Fetched] {
                let whole = recipe(Exchange::P2p, access)?;
                let transposed = whole.contains("zyx") || whole.contains("yzx");
                match access {
                    Access::Contiguous => assert!(transposed, "{whole}"),
                    Access::Strided => assert!(!transposed, "{whole}"),
                    _ => {}
                }
                for exchange in others {
                    assert_eq!(recipe(exchange, access)?, whole);
                }
            }
            Ok::<_, Error>(())
        };
        for ranks in [2, 4, 8] {
            crate::threads(ranks, |comm| recipes(DynTransform::C2c, comm)).unwrap();
            crate::threads(ranks, |comm| recipes(DynTransform::R2r, comm)).unwrap();
        }
    }

    /// With a machine of GPUs, reshapes overlap with transforms, or are part of them.
    #[test]
    fn reshapes_between_measured_gpus_are_hidden() {
        let seconds = |comm: crate::ThreadComm| {
            let grid = Grid::new([512; 3])?;
            let mut draft = DynDraft::new(&comm, grid, DynTransform::C2c, Precision::F64);
            let mut machine = Machine { gpu: Some("a GPU".into()), ..Machine::default() };
            (machine.memory.value, machine.host_memory.value) = (2.5e12, 5e12);
            machine.flops.iter_mut().for_each(|flops| flops.rate.value = 1e13);
            machine.near.bandwidth.value = 2e11;
            draft.options.machine = Some(machine.into());
            let by_clock: ByClock<'_> = &|_, _, _| unreachable!("the model chooses");
            let seconds = |access| {
                let recipe = draft
                    .decide_on_device(draft.options.clone(), (access, "a GPU"), by_clock)?
                    .recipe;
                Ok::<_, Error>(recipe.predict().seconds)
            };
            let [lines, chunks] = [seconds(Access::Contiguous)?, seconds(Access::Strided)?];
            let fetched = seconds(Access::Fetched)?;
            assert!(chunks < 0.9 * lines && fetched < lines, "{lines} {chunks} {fetched}");
            Ok::<_, Error>(())
        };
        crate::threads(2, seconds).unwrap();
    }

    /// Wisdom of one device and transport is used for no other, nor for the host.
    #[test]
    fn wisdom_names_the_device() {
        crate::threads(2, |comm| {
            let grid = Grid::new([8, 8])?;
            let draft = DynDraft::new(&comm, grid, DynTransform::C2c, Precision::F64);
            let by_clock: ByClock<'_> = &|_, _, _| unreachable!("the model chooses");
            let mut keys: Vec<_> = draft.decide(&draft.options)?.key.into_iter().collect();
            for device in ["one GPU", "another GPU"] {
                let options = draft.options.clone();
                let on_device = (Access::Strided, device);
                keys.extend(draft.decide_on_device(options, on_device, by_clock)?.key);
            }
            assert!(keys[1].contains("on one GPU") && !keys[0].contains("GPU"), "{keys:?}");
            keys.sort();
            keys.dedup();
            assert_eq!(keys.len(), 3);
            Ok::<_, Error>(())
        })
        .unwrap();
    }

    /// Each axis is transformed once on a device, by a pass between data that is whole along it.
    #[test]
    fn padded_and_truncated_passes_are_lowered_for_devices() {
        let check = |comm: crate::ThreadComm| {
            let grid = Grid::new([6, 5, 8])?;
            let draft = DynDraft::new(&comm, grid, DynTransform::R2c, Precision::F64);
            let draft = draft.with(|options| {
                options.batch = 2;
                options.zero_padded = Some([12, 5, 16].into());
                options.modes = Some([7, 4, 16].into());
                options.output_order = Some([2, 0, 1].into());
            });
            let by_clock: ByClock<'_> = &|_, _, _| unreachable!("the model chooses");
            let recipe = draft
                .decide_on_device(draft.options.clone(), (Access::Contiguous, "a GPU"), by_clock)?
                .recipe;
            let device = DeviceCapabilities::apart(comm.size());
            for direction in [Direction::Forward, Direction::Inverse] {
                let program = recipe.lower(direction, Capabilities::of_devices(&device));
                let mut resized = [None; 3];
                for op in program.device_ops() {
                    let DeviceOp::LocalFft(ffts, _) = op else { continue };
                    for fft in ffts {
                        let (axis, pass) = program.pass(fft);
                        let lens = [pass.len_before(), pass.len_after()];
                        for (node, len) in program.fft_ends(fft).into_iter().zip(lens) {
                            let brick = node.layout.brick(comm.rank());
                            assert!(brick.is_empty() || brick.len(axis) == len, "{recipe}");
                        }
                        assert_eq!(resized[axis], None, "{recipe}");
                        resized[axis] = pass.resized;
                    }
                }
                assert_eq!(resized, [Some([6, 7]), Some([5, 4]), Some([8, 16])], "{recipe}");
            }
            Ok::<_, Error>(())
        };
        for ranks in [1, 2, 3, 4, 8] {
            crate::threads(ranks, check).unwrap();
        }
    }
}
