//! A recipe bound to a communicator, a device and buffers; and the loop that runs it.

use std::borrow::BorrowMut;

use crate::clock::{Clock, Time};
use crate::program::{Op, Place, Program};
use crate::{Algorithm, Comm, Device, Direction, Error, Exchange, Real, Recipe, agree};

/// A bound recipe. Data goes in and out as arrays of real numbers (a complex number is two), each rank
/// passing its own bricks; lengths are the caller's to check.
pub struct Executor<T: Real, Dev: Device<T>> {
    device: Dev,
    comm: Box<dyn Comm>,
    exchanges: Vec<(Algorithm, Box<dyn Exchange>)>,
    forward: Program<T, Dev>,
    inverse: Program<T, Dev>,
    work: [Dev::Buffer; 2],
    clock: Clock,
}

/// Routes are made so ([`Program::route`]).
const TWO_PLACES: &str = "an operation that moves data has a source and a destination";

/// Makes the exchange of an algorithm on a communicator. Called by all ranks together; one that fails must do so
/// after its collective part, or on all of them.
pub type MakeExchange<'a> = &'a dyn Fn(Algorithm, &dyn Comm) -> Result<Box<dyn Exchange>, Error>;

impl<T: Real, Dev: Device<T>> Executor<T, Dev> {
    /// Binds a recipe: allocates buffers and slots, prepares local transforms, makes the exchanges.
    /// Collective over `comm`, which the executor keeps.
    ///
    /// # Errors
    /// On every rank the same: [`Error::OnRank`] when memory is short on one, or what `exchange` returns.
    pub fn bind<const D: usize>(
        recipe: &Recipe<D>,
        comm: Box<dyn Comm>,
        mut device: Dev,
        exchange: MakeExchange<'_>,
    ) -> Result<Self, Error> {
        let (rank, algorithms) = (comm.rank(), recipe.algorithms());
        let mut exchanges = Vec::with_capacity(algorithms.len());
        for algorithm in algorithms {
            exchanges.push((algorithm, agree(comm.as_ref(), exchange(algorithm, comm.as_ref()))?));
        }
        let mut allocate = || {
            // What cannot be held is refused before anything is made for it.
            device.buffer(recipe.most_reals(rank), rank)?;
            let forward = Program::new(recipe, Direction::Forward, comm.as_ref(), &mut device)?;
            let inverse = Program::new(recipe, Direction::Inverse, comm.as_ref(), &mut device)?;
            let size = |work| forward.work(work).max(inverse.work(work));
            let work = [device.buffer(size(0), rank)?, device.buffer(size(1), rank)?];
            Ok((forward, inverse, work))
        };
        let (forward, inverse, work) = agree(comm.as_ref(), allocate())?;
        let mut reserved = Ok(());
        for (algorithm, traffic) in forward.traffic().chain(inverse.traffic()) {
            reserved = reserved.and(find(&mut exchanges, algorithm).reserve(traffic));
        }
        agree(comm.as_ref(), reserved)?;
        let clock = Clock::default();
        Ok(Self { device, comm, exchanges, forward, inverse, work, clock })
    }

    /// Transforms `src` into `dst`, or `dst` in place. Collective. Allocates nothing.
    ///
    /// Without `src`, the first numbers of `dst` are the input, and it is as long as the longer of input and
    /// output.
    ///
    /// # Errors
    /// The same on every rank, after all of them have finished: [`Error::OnRank`] when a message was
    /// damaged, or when the transport failed. `dst` then holds nothing of use.
    ///
    /// # Panics
    /// If `src` or `dst` is too short for this rank's bricks.
    pub fn run(
        &mut self,
        direction: Direction,
        src: Option<&Dev::Memory>,
        dst: &mut Dev::Memory,
    ) -> Result<(), Error> {
        let program = match direction {
            Direction::Forward => &self.forward,
            Direction::Inverse => &self.inverse,
        };
        let (device, clock) = (&mut self.device, &mut self.clock);
        let (places, first) = program.route(src.is_some());
        let mut memory = Arena::new(src, dst, &mut self.work);
        if let Some(copy) = first {
            let (src, dst) = memory.pair(copy.from, copy.to);
            device.copy(&copy.all, 1, src.expect(TWO_PLACES), dst);
        }
        let mut result = Ok(());
        for (op, at) in program.ops().iter().zip(places.windows(2)) {
            let (src, dst) = memory.pair(at[0], at[1]);
            match op {
                Op::Fft { plan, blocks, .. } => {
                    clock.fft.time(|| device.fft(plan, 0..*blocks, src, dst));
                }
                Op::Reshape { reshape, exchange } => {
                    let exchange = find(&mut self.exchanges, *exchange);
                    let src = src.expect(TWO_PLACES);
                    let moved = reshape.run(exchange, device, src, dst, clock);
                    // Everyone notices that a rank is gone; of any other failure the others know nothing, and
                    // wait for this rank in the exchanges to come.
                    let alone = matches!(moved, Err(Error::Left { .. }));
                    result = result.and(moved);
                    if alone {
                        break;
                    }
                }
            }
        }
        agree(self.comm.as_ref(), result)
    }

    /// The communicator.
    pub fn comm(&self) -> &dyn Comm {
        self.comm.as_ref()
    }

    /// Where time went since the last [`Executor::clear_clock`].
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Sets all times and counts to zero.
    pub fn clear_clock(&mut self) {
        self.clock = Clock::default();
    }

    /// Bytes of memory beside input and output: work buffers and slots.
    pub fn memory(&self) -> usize {
        let work = |which| self.forward.work(which).max(self.inverse.work(which));
        let slots: usize = self.exchanges.iter().map(|(_, exchange)| exchange.memory()).sum();
        (work(0) + work(1)) * size_of::<T>() + slots
    }
}

fn find(exchanges: &mut [(Algorithm, Box<dyn Exchange>)], wanted: Algorithm) -> &mut dyn Exchange {
    let found = exchanges.iter_mut().find(|(algorithm, _)| *algorithm == wanted);
    found.expect("bind makes every exchange that the recipe names").1.as_mut()
}

/// The memory of one run.
struct Arena<'a, M: ?Sized> {
    input: Option<&'a M>,
    /// The output and the work buffers.
    writable: [&'a mut M; 3],
}

impl<'a, M: ?Sized> Arena<'a, M> {
    fn new<B: BorrowMut<M>>(input: Option<&'a M>, output: &'a mut M, work: &'a mut [B; 2]) -> Self {
        let [a, b] = work;
        Self { input, writable: [output, a.borrow_mut(), b.borrow_mut()] }
    }

    /// A place to read and a place to write; only the latter when they are the same.
    fn pair(&mut self, from: Place, to: Place) -> (Option<&M>, &mut M) {
        let number = |place| match place {
            Place::Output | Place::Input => 0,
            Place::Work(which) => 1 + which,
        };
        if from == Place::Input {
            return (self.input, self.writable[number(to)]);
        }
        if from == to {
            return (None, self.writable[number(to)]);
        }
        let [src, dst] = self
            .writable
            .get_disjoint_mut([number(from), number(to)])
            .expect("two places are two pieces of memory");
        (Some(src), dst)
    }
}
