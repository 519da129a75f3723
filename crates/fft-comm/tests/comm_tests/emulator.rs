//! A device that runs the programs of GPUs on threads: each operation as the program defines it,
//! with copies of other ranks' arrays in place of links.

use std::sync::{Arc, Mutex};

use fft_core::{
    AcrossFft, BindContext, Capabilities, Comm, Cpu, CpuFft, Device, DeviceCapabilities, DeviceOp,
    Energy, Error, ExchangePass, FftGroup, LocalFft, LocalReadBox, MessagePlan, NodeMemory,
    OpBuffers, Operation, Operations, Pass, Places, Program, Recipe, Redistribution, RunContext,
    StorePass, Transfer, WorkReals, swapped,
};

/// An array of one rank that others read, or the numbers that it writes into others' arrays.
#[derive(Clone, Default)]
pub(crate) enum Shown {
    #[default]
    Nothing,
    Array(Arc<Vec<f64>>),
    /// For each rank, the writes into its array.
    Writes(Arc<Vec<Vec<Write>>>),
}

/// A complex number, and where it begins in an array of real numbers.
type Write = (usize, [f64; 2]);

/// What all ranks show each other.
pub(crate) type Board = Arc<Mutex<Vec<Shown>>>;

/// A board for this number of ranks.
pub(crate) fn board(ranks: usize) -> Board {
    Arc::new(Mutex::new(vec![Shown::default(); ranks]))
}

/// The device of one rank.
pub(crate) struct Emulator {
    capabilities: DeviceCapabilities,
    comm: Box<dyn Comm>,
    board: Board,
    cpu: Cpu<f64>,
}

impl Emulator {
    pub(crate) fn new(capabilities: DeviceCapabilities, comm: &dyn Comm, board: Board) -> Self {
        let comm = comm.dup().expect("threads");
        Self { capabilities, comm, board, cpu: Cpu::default() }
    }

    /// What all ranks show; `mine` of this one.
    fn exchange(&self, mine: Shown) -> Vec<Shown> {
        self.board.lock().unwrap()[self.comm.rank()] = mine;
        self.comm.barrier().unwrap();
        let all = self.board.lock().unwrap().clone();
        self.comm.barrier().unwrap();
        all
    }

    /// The arrays of all ranks.
    fn arrays(&self, mine: &[f64]) -> Vec<Arc<Vec<f64>>> {
        let all = self.exchange(Shown::Array(Arc::new(mine.to_vec())));
        let array = |shown| match shown {
            Shown::Array(array) => array,
            _ => panic!("all ranks run the same operation"),
        };
        all.into_iter().map(array).collect()
    }
}

/// Transforms of a dense array.
pub(crate) struct Transforms {
    passes: Vec<(LocalFft, CpuFft<f64>)>,
}

impl Transforms {
    fn new(group: &FftGroup, cpu: &mut Cpu<f64>) -> Result<Self, Error> {
        let mut lens = group.lens[0].clone();
        let mut passes = Vec::new();
        let last = group.passes.len() - 1;
        for (number, (place, pass)) in group.passes.iter().enumerate() {
            let factor = if number == last { group.factor } else { 1.0 };
            let is_empty = lens.contains(&0) || group.lens[1].contains(&0);
            let blocks = if is_empty { 0 } else { lens[..*place].iter().product() };
            let inner = lens[place + 1..].iter().product();
            let pass = Pass { outer: 1, inner, factor, ..pass.clone() };
            lens[*place] = pass.len_after();
            let fft = LocalFft { blocks, passes: vec![pass], cached: false, to_cache: false };
            let planned = cpu.plan_fft(&fft, 0)?;
            passes.push((fft, planned));
        }
        Ok(Self { passes })
    }

    fn run(&self, cpu: &mut Cpu<f64>, mut array: Vec<f64>) -> Vec<f64> {
        for (fft, planned) in &self.passes {
            let mut result = vec![0.0; fft.blocks * fft.block_after()];
            cpu.fft(planned, 0..fft.blocks, Some(&array), &mut result);
            array = result;
        }
        array
    }
}

/// Calls `visit(owner, first, there)` for each element of pieces: its place in the dense array that
/// they form, and in the memory of its owner.
fn elements(pieces: &[LocalReadBox], mut visit: impl FnMut(usize, usize, usize)) {
    const DIMS: usize = fft_core::DIMS;
    let len = |axis: usize| pieces.iter().map(|piece| piece.ranges[axis].end).max().unwrap_or(0);
    let lens: [usize; DIMS] = std::array::from_fn(len);
    for LocalReadBox { owner, ranges, source } in pieces {
        let shape: [usize; DIMS] = std::array::from_fn(|axis| ranges[axis].len());
        for number in 0..shape.iter().product() {
            let (mut rest, mut index) = (number, [0; DIMS]);
            for axis in (0..DIMS).rev() {
                index[axis] = rest % shape[axis];
                rest /= shape[axis];
            }
            let (mut here, mut there) = (0, source.offset);
            for axis in 0..DIMS {
                here = here * lens[axis] + ranges[axis].start + index[axis];
                there += index[axis] * source.stride[axis];
            }
            visit(*owner, here, there);
        }
    }
}

/// The dense array that pieces of complex numbers form.
fn gathered(pieces: &[LocalReadBox], arrays: &[Arc<Vec<f64>>]) -> Vec<f64> {
    let mut found = Vec::new();
    elements(pieces, |owner, here, there| {
        if found.len() < 2 * (here + 1) {
            found.resize(2 * (here + 1), f64::NAN);
        }
        found[2 * here..][..2].copy_from_slice(&arrays[owner][2 * there..][..2]);
    });
    found
}

/// Where a rank's array after an exchange comes from.
pub(crate) struct Copies {
    width: usize,
    reads: Vec<(usize, Transfer)>,
    /// The sender, from its array to a message, and from there.
    messages: Vec<(usize, Transfer, Transfer)>,
}

impl Copies {
    fn new(
        devices: &DeviceCapabilities,
        recipe: &Recipe,
        pass: &ExchangePass<'_>,
        rank: usize,
    ) -> Self {
        let own = redistribution(devices, recipe, pass, rank);
        let take = |read: &fft_core::LocalRead| Some((read.owner, own.take(read, &own.all())?));
        let message = |(peer, part): &(usize, fft_core::DynBrick)| {
            let sent = redistribution(devices, recipe, pass, *peer);
            assert!(sent.sends.contains(&(rank, *part)), "the sender sends what is received");
            Some((*peer, sent.gather(part), own.scatter(part, &own.all())?))
        };
        Self {
            width: own.width,
            reads: own.local_reads.iter().filter_map(take).collect(),
            messages: own.recvs.iter().filter_map(message).collect(),
        }
    }

    fn run(&self, arrays: &[Arc<Vec<f64>>], dst: &mut [f64]) {
        let width = self.width;
        let copy = |transfer: &Transfer, src: &[f64], dst: &mut [f64]| {
            transfer.runs(|from, to, len| {
                dst[width * to..][..width * len]
                    .copy_from_slice(&src[width * from..][..width * len]);
            });
        };
        for (owner, transfer) in &self.reads {
            copy(transfer, &arrays[*owner], dst);
        }
        for (sender, gather, scatter) in &self.messages {
            let mut message = vec![f64::NAN; width * gather.elements()];
            copy(gather, &arrays[*sender], &mut message);
            copy(scatter, &message, dst);
        }
    }
}

fn redistribution(
    devices: &DeviceCapabilities,
    recipe: &Recipe,
    pass: &ExchangePass<'_>,
    rank: usize,
) -> Redistribution {
    let problem = recipe.problem();
    let path = |peer: usize| devices.path(problem, pass, [rank, peer]);
    Redistribution::new(rank, &path, pass.from, pass.to, problem.batch)
}

/// A bound operation.
pub(crate) enum EmulatedOp {
    Fft(Transforms),
    Copies(Copies),
    /// Transforms of the array that these pieces form, of this rank's array or of all.
    Loads {
        pieces: Vec<LocalReadBox>,
        reads_peers: bool,
        ffts: Transforms,
    },
    /// The same, with the places of results in other ranks' arrays.
    Stores {
        pieces: Vec<LocalReadBox>,
        reads_peers: bool,
        ffts: Transforms,
        to: Vec<LocalReadBox>,
    },
}

impl EmulatedOp {
    fn new(
        device: &mut Emulator,
        program: &Program<'_>,
        op: &DeviceOp<'_, '_>,
    ) -> Result<Self, Error> {
        let (rank, recipe) = (device.comm.rank(), program.recipe());
        let devices = device.capabilities.clone();
        let pieces =
            |pass: &ExchangePass<'_>| redistribution(&devices, recipe, pass, rank).pieces();
        Ok(match op {
            DeviceOp::LocalFft(ffts, _) => {
                Self::Fft(Transforms::new(&program.group(ffts, rank), &mut device.cpu)?)
            }
            DeviceOp::Across(AcrossFft { both, last }) => {
                let both = program.group(both, rank);
                let (group, source) = match last {
                    true => (both.across_last(), both.across_source()),
                    false => (both.across_first(), both.across_whole()),
                };
                let ffts = Transforms::new(&group, &mut device.cpu)?;
                Self::Loads { pieces: vec![source], reads_peers: false, ffts }
            }
            DeviceOp::Exchange(pass) if pass.fuse_after.is_empty() => {
                Self::Copies(Copies::new(&devices, recipe, pass, rank))
            }
            DeviceOp::Exchange(pass) => {
                let group = program.group(&pass.fuse_after, rank);
                let pieces = pieces(pass);
                let (group, pieces) = if group.is_across() {
                    (group.across_first(), swapped(&pieces))
                } else {
                    (group, pieces)
                };
                let ffts = Transforms::new(&group, &mut device.cpu)?;
                Self::Loads { pieces, reads_peers: true, ffts }
            }
            DeviceOp::Store(pass) => {
                let StorePass { ffts, loads, .. } = pass;
                let group = program.group(ffts, rank);
                let (group, from) = match loads {
                    Some(loads) => (group, pieces(loads)),
                    None => (group.across_last(), vec![group.across_source()]),
                };
                let ffts = Transforms::new(&group, &mut device.cpu)?;
                let to = pieces(&pass.way_back());
                Self::Stores { pieces: from, reads_peers: loads.is_some(), ffts, to }
            }
        })
    }
}

impl Operation<f64, Emulator> for EmulatedOp {
    fn message_plan(&self) -> Option<&MessagePlan> {
        None
    }

    fn run(
        &mut self,
        context: &mut RunContext<Emulator>,
        OpBuffers { src, dst, window, .. }: OpBuffers<'_, [f64]>,
    ) -> Result<(), Error> {
        assert!(window.is_none(), "no operation of a device needs a window");
        let device = &mut context.device;
        let src = src.unwrap_or(dst);
        let load = |device: &Emulator, pieces: &[LocalReadBox], reads_peers: bool| {
            if reads_peers {
                gathered(pieces, &device.arrays(src))
            } else {
                gathered(pieces, &[Arc::new(src.to_vec())])
            }
        };
        match self {
            Self::Fft(ffts) => {
                let result = ffts.run(&mut device.cpu, src.to_vec());
                dst[..result.len()].copy_from_slice(&result);
            }
            Self::Copies(copies) => {
                let arrays = device.arrays(src);
                copies.run(&arrays, dst);
            }
            Self::Loads { pieces, reads_peers, ffts } => {
                let array = load(device, pieces, *reads_peers);
                let result = ffts.run(&mut device.cpu, array);
                dst[..result.len()].copy_from_slice(&result);
            }
            Self::Stores { pieces, reads_peers, ffts, to } => {
                let array = load(device, pieces, *reads_peers);
                let result = ffts.run(&mut device.cpu, array);
                let mut writes = vec![Vec::new(); device.comm.size()];
                elements(to, |owner, here, there| {
                    writes[owner].push((2 * there, [result[2 * here], result[2 * here + 1]]));
                });
                for shown in device.exchange(Shown::Writes(Arc::new(writes))) {
                    let Shown::Writes(writes) = shown else {
                        panic!("all ranks run the same operation");
                    };
                    for (first, number) in &writes[device.comm.rank()] {
                        dst[*first..][..2].copy_from_slice(number);
                    }
                }
            }
        }
        Ok(())
    }
}

impl Device<f64> for Emulator {
    type Memory = [f64];
    type Work = [Vec<f64>; 3];
    type Op = EmulatedOp;

    fn connect(
        &mut self,
        _recipe: &Recipe,
        _comm: &dyn Comm,
    ) -> Result<Option<Box<dyn NodeMemory>>, Error> {
        Ok(None)
    }

    fn bind(
        &mut self,
        recipe: &Recipe,
        context: BindContext<'_>,
    ) -> Result<Operations<EmulatedOp>, Error> {
        let devices = self.capabilities.clone();
        let program = recipe.lower(context.direction, Capabilities::of_devices(&devices));
        let mut ops = Vec::new();
        for op in program.device_ops() {
            ops.push(EmulatedOp::new(self, &program, &op)?);
        }
        let exposes_all = devices.exposes_all || recipe.problem().options.shared_arrays;
        let needs = program.memory_needs(self.comm.rank(), exposes_all);
        Ok(Operations { ops, needs, texts: program.texts() })
    }

    fn work(
        &mut self,
        WorkReals { buffers: [first, second], spare }: WorkReals,
        _comm: &dyn Comm,
        _node_memory: Option<&mut dyn NodeMemory>,
    ) -> Result<[Vec<f64>; 3], Error> {
        Ok([first, second, spare].map(|reals| vec![f64::NAN; reals]))
    }

    fn places<'a>(
        [first, second, spare]: &'a mut [Vec<f64>; 3],
        output: &'a mut [f64],
    ) -> Places<'a, [f64]> {
        Places { output, work: [first, second], spare: Some(spare) }
    }

    fn copy(&mut self, reals: usize, src: &[f64], dst: &mut [f64]) {
        dst[..reals].copy_from_slice(&src[..reals]);
    }

    fn energy(&mut self, _: &[Transfer], _: usize, _: &[f64], _: &mut [Energy]) {
        unreachable!("messages are raw");
    }
}
