//! Messages that are damaged on their way through the host: an error for all ranks, and the next run is as if nothing had been.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use fft_core::{Exchange, Executor, Pins, Port, Traffic};
use thriffty::gpu::{Cuda, lend, lend_mut};

use super::*;

/// An exchange that damages the headers of what it sends, when it is told to.
struct Damaging {
    exchange: Box<dyn Exchange>,
    now: Arc<AtomicBool>,
}

impl Exchange for Damaging {
    fn algorithm(&self) -> Algorithm {
        self.exchange.algorithm()
    }

    fn pin(&mut self, pins: Arc<dyn Pins>) {
        self.exchange.pin(pins);
    }

    fn reserve(&mut self, traffic: &Traffic) -> Result<(), Error> {
        self.exchange.reserve(traffic)
    }

    fn run(&mut self, traffic: &Traffic, port: &mut dyn Port) -> Result<(), Error> {
        let sent = Cell::new(0);
        let mut port = Damaged { port, now: self.now.load(Relaxed), sent: &sent };
        let done = self.exchange.run(traffic, &mut port);
        assert_eq!(sent.get(), traffic.sends.len(), "each message is packed");
        done
    }

    fn memory(&self) -> usize {
        self.exchange.memory()
    }
}

/// The port of a device, which here takes messages one by one.
struct Damaged<'a> {
    port: &'a mut dyn Port,
    now: bool,
    sent: &'a Cell<usize>,
}

impl Port for Damaged<'_> {
    fn pack(&mut self, number: usize, message: &mut [u8]) -> usize {
        let bytes = self.port.pack(number, message);
        self.sent.set(self.sent.get() + 1);
        if self.now {
            message[0] ^= 0xFF;
        }
        bytes
    }

    fn own(&mut self) {
        self.port.own();
    }

    fn arrived(&mut self, number: usize, message: &[u8]) -> bool {
        self.port.arrived(number, message)
    }

    fn finish<'m>(&mut self, message: &dyn Fn(usize) -> &'m [u8]) {
        self.port.finish(message);
    }
}

/// The sum over all points, which are ones, with a rank whose messages are damaged in the second of three runs.
fn run(comm: &dyn Comm, gpu: &Gpu, wire: Wire, culprit: usize) -> Result<[Done; 3], Error> {
    let case = Case::new([12, 10, 8], [C2C; 3]).exchange(Algorithm::P2p);
    let recipe = case.draft::<C2c<f64>>(comm)?.wire(wire).recipe()?;
    let now = Arc::new(AtomicBool::new(false));
    let make = |algorithm, comm: &dyn Comm| -> Result<Box<dyn Exchange>, Error> {
        let exchange = fft_comm::exchange(algorithm, comm)?;
        Ok(Box::new(Damaging { exchange, now: now.clone() }))
    };
    let stream = gpu.new_stream().unwrap();
    let device = Cuda::<f64>::new(gpu, stream.clone()).unwrap();
    let mut plan = Executor::bind(&recipe, comm.dup()?, device, &make)?;
    let [input, output] =
        [recipe.problem().input.brick(comm.rank()), recipe.problem().output.brick(comm.rank())];
    let ones: Vec<f64> = (0..2 * input.points()).map(|i| (1 - i % 2) as f64).collect();
    let x = Array::of::<f64>(&stream, &ones);
    let mut y = Array::of::<f64>(&stream, &vec![0.0; 2 * output.points()]);
    let mut answers = [false, true, false].map(|damaged| {
        now.store(damaged && comm.rank() == culprit, Relaxed);
        let (from, mut to) = (x.numbers.slice(0..x.len), y.numbers.slice_mut(0..y.len));
        let (from, mut to) = (lend(&from, &stream), lend_mut(&mut to, &stream));
        plan.run(Direction::Forward, Some(&from), &mut to)
    });
    let found: Vec<f64> = y.data(&stream);
    if output.lo == [0; 3] && !output.is_empty() && (found[0] - 960.0).abs() > 1e-2 {
        answers[2] = Err(Error::argument("the sum of ones", found[0], "960"));
    }
    Ok(answers)
}

#[test]
fn damaged_messages_are_an_error_for_all_ranks_and_the_next_run_works() {
    let Some(gpu) = gpu() else { return };
    for wire in [Wire::F32, Wire::Bits(16), Wire::Lossless] {
        for culprit in if few() { &[2][..] } else { &[0, 2] } {
            let found =
                fft_comm::threads_on(&[0, 1, 2], |comm| run(&comm, &gpu, wire, *culprit).unwrap());
            for [before, damaged, after] in &found {
                assert_eq!((before, after), (&Ok(()), &Ok(())), "{wire}");
                assert_eq!(damaged, &found[0][1], "{wire}");
                let error = damaged.as_ref().expect_err("a damaged message");
                assert_eq!(error.kind(), ErrorKind::Message, "{wire}: {error}");
            }
        }
    }
}
