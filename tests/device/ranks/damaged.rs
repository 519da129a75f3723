//! Damaged messages are an error on all ranks, and the next run works.
//!
//! Messages go through the host, from device memory, or into windows.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use fft_core::{
    Exchanger, Executor, MakeExchanger, MessageHandler, MessagePlan, PackRequest, PinnedMemory,
    Recipe,
};
use thriffty::gpu::{Cuda, DeviceQueue, lend, lend_mut};

use super::*;

/// An exchange that damages the headers of incoming messages on request.
struct Damaging {
    exchange: Box<dyn Exchanger>,
    now: Arc<AtomicBool>,
    together: bool,
}

impl Exchanger for Damaging {
    fn exchange(&self) -> Exchange {
        self.exchange.exchange()
    }

    fn pin(&mut self, pins: Arc<dyn PinnedMemory>) {
        self.exchange.pin(pins);
    }

    fn takes_message_buffers(&self, message_plan: &MessagePlan) -> bool {
        self.exchange.takes_message_buffers(message_plan)
    }

    fn reserve(&mut self, message_plan: &MessagePlan) -> Result<(), Error> {
        self.exchange.reserve(message_plan)
    }

    fn run(
        &mut self,
        message_plan: &MessagePlan,
        handler: &mut dyn MessageHandler,
    ) -> Result<(), Error> {
        let (sent, came) = (Cell::new(0), Cell::new(0));
        let (now, together) = (self.now.load(Relaxed), self.together && handler.together());
        let mut handler =
            Damaged { handler, message_plan, now, together, sent: &sent, came: &came };
        let done = self.exchange.run(message_plan, &mut handler);
        let found = [sent.get(), came.get()];
        assert_eq!(
            found,
            [message_plan.sends.len(), message_plan.recvs.len()],
            "each message once"
        );
        done
    }

    fn memory(&self) -> usize {
        self.exchange.memory()
    }
}

/// The device's handler, which gets messages of a chunk together or one by one.
struct Damaged<'a> {
    handler: &'a mut dyn MessageHandler,
    message_plan: &'a MessagePlan,
    now: bool,
    together: bool,
    sent: &'a Cell<usize>,
    came: &'a Cell<usize>,
}

impl Damaged<'_> {
    /// A message, damaged where that was requested.
    fn came(&self, message: &[u8]) -> Vec<u8> {
        self.came.set(self.came.get() + 1);
        let mut message = message.to_vec();
        if self.now {
            message[0] ^= 0xFF;
        }
        message
    }
}

impl MessageHandler for Damaged<'_> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        self.sent.set(self.sent.get() + 1);
        self.handler.pack(number, message)
    }

    fn together(&self) -> bool {
        self.together
    }

    fn pack_all<'m>(&mut self, requests: &mut dyn Iterator<Item = PackRequest<'m>>) {
        if self.together {
            let sent = self.sent;
            return self.handler.pack_all(&mut requests.inspect(|_| sent.set(sent.get() + 1)));
        }
        for PackRequest { number, message, bytes } in requests {
            bytes.set(self.pack(number, message));
        }
    }

    fn own(&mut self) {
        self.handler.own();
    }

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        let message = self.came(message);
        self.handler.arrived(number, &message)
    }

    fn arrived_all<'m>(&mut self, numbers: Range<usize>, message: &dyn Fn(usize) -> &'m [u8]) {
        let first = numbers.start;
        let all: Vec<_> = numbers.clone().map(|number| self.came(message(number))).collect();
        if self.together {
            self.handler.arrived_all(numbers, &|number| &all[number - first])
        } else {
            numbers.zip(&all).for_each(|(number, message)| {
                self.handler.arrived(number, message);
            })
        }
    }

    fn landed(&mut self, number: usize, bytes: usize) {
        self.came.set(self.came.get() + 1);
        if self.now {
            let buffers = self.message_plan.buffers.as_ref().expect("where it is");
            let (memory, place) = (&buffers.memory[1], buffers.places[1][number]);
            memory.part(place..place + bytes).write(&[0xFF; 8]).expect("a copy");
        }
        self.handler.landed(number, bytes);
    }

    fn finish<'m>(&mut self, message: &dyn Fn(usize) -> &'m [u8]) {
        self.handler.finish(message);
    }
}

/// A plan whose input is ones.
struct Ones {
    plan: Executor<f64, Cuda>,
    stream: Arc<CudaStream>,
    x: Array<f64>,
    y: Array<f64>,
    /// The sum of all, if this rank has it.
    sum: Option<f64>,
}

fn recipe(comm: &dyn Comm, case: &Case<3>, wire: Wire) -> Result<Recipe, Error> {
    let draft = case.draft::<C2c<f64>>(comm)?.wire(wire).ignore_shared_memory(true);
    let draft = match wire {
        Wire::Tolerance => draft.tolerance(Tolerance::relative(1e-4)?),
        _ => draft,
    };
    draft.recipe()
}

impl Ones {
    fn new(
        comm: &dyn Comm,
        recipe: &Recipe,
        (gpu, transport): (&Gpu, GpuTransport),
        make: MakeExchanger<'_>,
    ) -> Result<Self, Error> {
        let stream = gpu.new_stream().unwrap();
        let queue = DeviceQueue { gpu: gpu.clone(), stream: stream.clone(), transport };
        let device = Cuda::new(&queue).unwrap();
        let plan = Executor::bind(recipe, comm.dup()?, device, make)?;
        let problem = recipe.problem();
        let [input, output] = [&problem.input, &problem.output].map(|all| all.brick(comm.rank()));
        let ones: Vec<f64> = (0..2 * input.points()).map(|i| (1 - i % 2) as f64).collect();
        let x = Array::of::<f64>(&stream, &ones);
        let y = Array::of::<f64>(&stream, &vec![0.0; 2 * output.points()]);
        let points: usize = (0..comm.size()).map(|rank| problem.input.brick(rank).points()).sum();
        let sum = (output.lo == [0; 3] && !output.is_empty()).then_some(points as f64);
        Ok(Self { plan, stream, x, y, sum })
    }

    /// Transforms ones, so that the sum can be checked.
    fn run(&mut self) -> Done {
        let Self { plan, stream, x, y, sum } = self;
        let (from, mut to) = (x.numbers.slice(0..x.len), y.numbers.slice_mut(0..y.len));
        let (from, mut to) = (lend(&from, stream), lend_mut(&mut to, stream));
        plan.run(Direction::Forward, Some(&from), &mut to)?;
        drop(to);
        let found: Vec<f64> = y.data(stream);
        if let Some(sum) = sum {
            assert!((found[0] - *sum).abs() < 1.0, "the sum of ones is {}", found[0]);
        }
        Ok(())
    }
}

/// Three runs; in the second the messages to one rank are damaged.
fn run(
    comm: &dyn Comm,
    gpu: (&Gpu, GpuTransport),
    (wire, together): (Wire, bool),
    culprit: usize,
) -> Result<[Done; 3], Error> {
    let case = Case::new([12, 10, 8], [C2C; 3]).exchange(Exchange::P2p);
    let recipe = recipe(comm, &case, wire)?;
    let now = Arc::new(AtomicBool::new(false));
    let make = |exchange, comm: &dyn Comm| -> Result<Box<dyn Exchanger>, Error> {
        let exchange = fft_comm::exchanger(exchange, comm)?;
        Ok(Box::new(Damaging { exchange, now: now.clone(), together }))
    };
    let mut plan = Ones::new(comm, &recipe, gpu, &make)?;
    Ok([false, true, false].map(|damaged| {
        now.store(damaged && comm.rank() == culprit, Relaxed);
        plan.run()
    }))
}

/// Three runs; in the second one rank packs messages of another wire, of the same length.
fn misled(comm: &dyn Comm, gpu: &Gpu, culprit: usize) -> Result<[Done; 3], Error> {
    let wires = [Wire::F32, Wire::Bits(32)];
    let lengths = wires.map(|wire| wire.codec::<f64>().fixed(2 * 2 * 16, 2));
    assert_eq!(lengths[0], lengths[1], "of each message");
    let ranks = comm.size();
    let case = Case::new([2 * ranks, 2 * ranks, 16], [C2C; 3]).exchange(Exchange::P2p);
    let case = case.cuts([ranks, 1, 1], [1, ranks, 1]);
    let [single, other] = wires.map(|wire| recipe(comm, &case, wire));
    let (single, other) = (single?, other?);
    assert_eq!(single.to_string().replace(" f32)", " bits:32)"), other.to_string(), "the steps");
    let mixed = if comm.rank() == culprit { &other } else { &single };
    let reached = (gpu, GpuTransport::PeerToPeer);
    let mut plan = Ones::new(comm, &single, reached, &fft_comm::exchanger)?;
    let mut wrong = Ones::new(comm, mixed, reached, &fft_comm::exchanger)?;
    let (before, damaged) = (plan.run(), wrong.run());
    assert_eq!(wrong.run(), damaged, "again");
    Ok([before, damaged, plan.run()])
}

fn check_answers([before, damaged, after]: &[Done; 3], what: &str) {
    assert_eq!((before, after), (&Ok(()), &Ok(())), "{what}");
    let error = damaged.as_ref().expect_err("a damaged message");
    assert_eq!(error.kind(), ErrorKind::Message, "{what}: {error}");
}

const CULPRITS: [usize; 2] = [0, 2];

#[test]
fn damaged_messages_are_an_error_for_all_ranks_and_the_next_run_works() {
    let Some(gpu) = gpu() else { return };
    for wire in [Wire::F32, Wire::Bits(16), Wire::Tolerance, Wire::Lossless] {
        for culprit in &CULPRITS[usize::from(few())..] {
            for together in [true, false] {
                let found = fft_comm::threads_on(&[0, 1, 2], |comm| {
                    run(&comm, (&gpu, GpuTransport::PeerToPeer), (wire, together), *culprit)
                        .unwrap()
                });
                let what = format!("{wire}, together: {together}");
                found.iter().for_each(|answers| check_answers(answers, &what));
                assert!(found.iter().all(|answers| answers[1] == found[0][1]), "{what}");
            }
        }
    }
}

#[test]
fn so_are_messages_in_windows() {
    let Some(gpu) = gpu() else { return };
    for culprit in CULPRITS {
        let found = thriffty::threads(3, |comm| {
            let answers = misled(&comm, &gpu, culprit)?;
            check_answers(&answers, "windows");
            Ok::<_, Error>(answers)
        });
        let found = found.unwrap();
        assert!(found.iter().all(|answers| answers[1] == found[0][1]), "{found:?}");
    }
}

/// Between processes: in windows.
#[cfg(feature = "mpi")]
pub(crate) fn in_windows(world: &dyn Comm, gpu: &Gpu) -> Done {
    for culprit in 0..world.size() {
        check_answers(&misled(world, gpu, culprit)?, "windows");
    }
    Ok(())
}

/// In device memory, sent from and received into.
#[cfg(feature = "mpi")]
pub(crate) fn on_device(world: &dyn Comm, gpu: &Gpu) -> Done {
    for wire in [Wire::F32, Wire::Bits(16), Wire::Tolerance] {
        for culprit in 0..world.size() {
            let answers = run(world, (gpu, GpuTransport::GpuDirect), (wire, false), culprit)?;
            check_answers(&answers, &format!("{wire} in buffers"));
        }
    }
    Ok(())
}
