//! A recipe bound to a communicator, a device and buffers; and the loop that runs it.

use std::borrow::BorrowMut;

use crate::clock::{Clock, Time};
use crate::program::{Op, Program, Site};
use crate::reshape::Ways;
use crate::route::{Copy, Place};
use crate::{
    Algorithm, Comm, Commons, Device, Direction, Error, Exchange, Real, Recipe, SLOT_ALIGN,
    SharedMemory, agree,
};

/// A bound recipe. Data goes in and out as arrays of real numbers (a complex number is two), each rank
/// passing its own bricks; lengths are the caller's to check.
pub struct Executor<T: Real, Dev: Device<T>> {
    device: Dev,
    comm: Box<dyn Comm>,
    exchanges: Vec<(Algorithm, Box<dyn Exchange>)>,
    forward: Program<T, Dev>,
    inverse: Program<T, Dev>,
    work: Work<Dev::Buffer>,
    /// For exchanges that read other ranks' memory, where there are any on this host.
    commons: Option<Box<dyn Commons>>,
    clock: Clock,
}

/// Data stays only where all ranks share memory.
const ALL_NEAR: &str = "transforms across ranks are planned where there is a commons";
/// Routes are made so ([`Route`](crate::route::Route)).
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
        let reads = recipe.algorithms().contains(&Algorithm::Shared);
        let mut commons = if reads { agree(comm.as_ref(), comm.commons())? } else { None };
        let mut programs = || -> Result<[Program<T, Dev>; 2], Error> {
            // What cannot be held is refused before anything is made for it.
            device.buffer(recipe.most_reals(rank), rank)?;
            let mut program = |direction| {
                let (comm, commons) = (comm.as_ref(), commons.as_deref());
                Program::new(recipe, Site { direction, comm, device: &mut device, commons })
            };
            Ok([program(Direction::Forward)?, program(Direction::Inverse)?])
        };
        let programs = agree(comm.as_ref(), programs())?;
        let size = |work| programs.iter().map(|program| program.work(work)).max().unwrap_or(0);
        let work = Work::new([size(0), size(1)], rank, &device, &mut commons);
        let work = agree(comm.as_ref(), work)?;
        let [forward, inverse] = programs;
        let clock = Clock::default();
        let mut bound = Self { device, comm, exchanges, commons, forward, inverse, work, clock };
        let reserved = bound.reserve();
        agree(bound.comm.as_ref(), reserved)?;
        Ok(bound)
    }

    /// Everything that ranks prepare together. A failure does not keep this rank from the rest.
    fn reserve(&mut self) -> Result<(), Error> {
        let mut result = Ok(());
        for program in [&mut self.forward, &mut self.inverse] {
            for op in &mut program.ops {
                let done = match (op, &mut self.commons) {
                    (Op::Across(across), Some(commons)) => across.admit(commons.as_mut()),
                    (Op::Reshape { reshape, exchange }, _) => {
                        find(&mut self.exchanges, *exchange).reserve(&reshape.traffic)
                    }
                    _ => Ok(()),
                };
                result = result.and(done);
            }
        }
        result
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
            Direction::Forward => &mut self.forward,
            Direction::Inverse => &mut self.inverse,
        };
        let (ops, route) = program.split(src.is_some());
        let mut memory = Arena { input: src, writable: self.work.beside::<T, Dev>(dst) };
        memory.copy(&route.first, &mut self.device);
        let mut result = Ok(());
        for (op, at) in ops.iter_mut().zip(route.places.windows(2)) {
            let (src, dst) = memory.pair(at[0], at[1]);
            let (device, clock) = (&mut self.device, &mut self.clock);
            let done = match op {
                Op::Fft { plan, blocks, .. } => {
                    clock.fft.time(|| device.fft(plan, 0..*blocks, src, dst));
                    Ok(())
                }
                Op::Across(across) => {
                    let commons = self.commons.as_deref_mut().expect(ALL_NEAR);
                    across.run(commons, device, src, dst, clock)
                }
                Op::Reshape { reshape, exchange } => {
                    let exchange = find(&mut self.exchanges, *exchange);
                    let ways = Ways { exchange, commons: &mut self.commons };
                    reshape.run(ways, device, src.expect(TWO_PLACES), dst, clock)
                }
            };
            // Everyone notices that a rank is gone; of any other failure the others know nothing, and wait for this
            // rank in what is to come.
            let alone = matches!(done, Err(Error::Left { .. }));
            result = result.and(done);
            if alone {
                break;
            }
        }
        memory.copy(&route.last, &mut self.device);
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

    /// Bytes of memory beside input and output: work buffers, slots, tiles.
    pub fn memory(&self) -> usize {
        let slots: usize = self.exchanges.iter().map(|(_, exchange)| exchange.memory()).sum();
        let ops = self.forward.ops.iter().chain(&self.inverse.ops);
        let tiles = ops.map(|op| match op {
            Op::Across(across) => across.memory(),
            Op::Reshape { reshape, .. } => reshape.memory(),
            Op::Fft { .. } => 0,
        });
        self.work.reals * size_of::<T>() + slots + tiles.sum::<usize>()
    }
}

fn find(exchanges: &mut [(Algorithm, Box<dyn Exchange>)], wanted: Algorithm) -> &mut dyn Exchange {
    let found = exchanges.iter_mut().find(|(algorithm, _)| *algorithm == wanted);
    found.expect("bind makes every exchange that the recipe names").1.as_mut()
}

/// A plan's own two buffers.
struct Work<B> {
    own: [B; 2],
    /// Where other ranks must see them: both, one after the other, and the first one's real numbers.
    shown: Option<(Box<dyn SharedMemory>, usize)>,
    /// Real numbers of both.
    reals: usize,
}

impl<B> Work<B> {
    /// Collective where other ranks must see it.
    fn new<T: Real, Dev: Device<T, Buffer = B>>(
        sizes: [usize; 2],
        rank: usize,
        device: &Dev,
        commons: &mut Option<Box<dyn Commons>>,
    ) -> Result<Self, Error> {
        // Numbers of any type begin at a multiple of a cache line.
        let first = sizes[0].next_multiple_of(SLOT_ALIGN);
        let reals = first + sizes[1];
        let shown = match commons.as_mut().filter(|commons| !commons.shows_all()) {
            Some(commons) => Some((commons.allocate(reals * size_of::<T>())?, first)),
            None => None,
        };
        let [a, b] = if shown.is_some() { [0, 0] } else { sizes };
        Ok(Self { own: [device.buffer(a, rank)?, device.buffer(b, rank)?], shown, reals })
    }

    /// All memory that can be written.
    fn beside<'a, T: Real, Dev: Device<T, Buffer = B>>(
        &'a mut self,
        output: &'a mut Dev::Memory,
    ) -> [&'a mut Dev::Memory; 3]
    where
        B: BorrowMut<Dev::Memory>,
    {
        match &mut self.shown {
            Some((memory, first)) => {
                let (a, b) = memory.bytes().split_at_mut(*first * size_of::<T>());
                [output, Dev::memory_mut(a), Dev::memory_mut(b)]
            }
            None => {
                let [a, b] = &mut self.own;
                [output, a.borrow_mut(), b.borrow_mut()]
            }
        }
    }
}

/// The memory of one run.
struct Arena<'a, M: ?Sized> {
    input: Option<&'a M>,
    /// The output and the work buffers.
    writable: [&'a mut M; 3],
}

impl<M: ?Sized> Arena<'_, M> {
    fn copy<T: Real, Dev: Device<T, Memory = M>>(&mut self, copy: &Option<Copy>, device: &mut Dev) {
        if let Some(copy) = copy {
            let (src, dst) = self.pair(copy.from, copy.to);
            device.copy(&copy.all, 1, src.expect(TWO_PLACES), dst);
        }
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
