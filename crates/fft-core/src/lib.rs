//! The core of thriffty: geometry, recipes, plans, codecs and local transforms.
//!
//! Nothing here knows MPI or CUDA, and nothing is unsafe. Read it in the order in which data flows:
//!
//! 1. **geometry**: [`Grid`], [`Brick`], [`ProcGrid`], [`Layout`] say who holds what;
//! 2. **recipe**: [`Problem`] says what is wanted, [`Recipe`] how it is done, [`cost`] why so;
//! 3. **plan**: [`Executor`] binds a recipe to a [`Comm`] and a [`Device`] and runs it;
//! 4. **exchange**: [`Exchange`] moves the messages of a reshape through a [`Flight`] or a collective,
//!    calling a [`Port`] to fill and empty them;
//! 5. **codec, wire**: a [`Codec`] turns boxes of an array ([`Transfer`]) into the bytes of a message.
//!
//! Errors are values and, where only some ranks can see them, made collective by [`agree`].
#![forbid(unsafe_code)]

mod across;
mod bind;
mod brick;
mod budget;
mod candidates;
mod clock;
mod codec;
mod columns;
mod coming;
mod comm;
mod commons;
pub mod cost;
mod cpu;
mod cut;
mod depart;
mod device;
mod division;
mod error;
mod exact;
mod exchange;
mod executor;
mod fetching;
mod gain;
mod grid;
mod halves;
mod host;
mod host_executor;
mod index;
mod kind;
mod layout;
mod leg;
mod lines;
mod load;
mod local;
mod machine;
mod matching;
mod moves;
mod opaque;
mod passes;
mod per_axis;
mod play;
mod predict;
mod private;
mod problem;
mod processor;
mod procgrid;
mod program;
mod puts;
mod real;
mod recipe;
mod reshape;
mod route;
mod schedule;
mod search;
mod simulate;
mod slot;
mod stages;
mod tiles;
mod tolerance;
mod transfer;
mod turn;
mod turned;

pub use brick::{Brick, DynBrick};
pub use candidates::Family;
pub use clock::Clock;
pub use codec::{BadMessage, Codec, Packed, Wire};
pub use comm::{Arrival, Comm, Flight, Link, Part, Parts, Reduce, agree, agree_by};
pub use commons::{Commons, Ends, Neighbours, Piece, Share, SharedMemory, Show, Work};
pub use cpu::{Cpu, CpuFft};
pub use device::{Between, Device, Operation, Operations, Site, Split, Tools};
pub use error::{Error, ErrorKind};
pub use exchange::{Algorithm, Blank, Epochs, Exchange, Parcel, Port, Traffic};
pub use executor::{Executor, MakeExchange};
pub use grid::{DynGrid, Grid};
pub use host::{Host, HostOp, HostWork};
pub use host_executor::HostExecutor;
pub use kind::{Direction, Kind, Scale};
pub use layout::Layout;
pub use leg::Leg;
pub use lines::{LineFft, LinePlanner};
pub use local::{LocalFft, Pass};
pub use machine::{Codecs, How, Machine, Messages, Quantity, Rate};
pub use matching::matching;
pub use moves::{Chunk, Moves, Near, NearBox};
pub use num_complex::Complex;
pub use opaque::{Berths, Keeper, Opaque, Vouched};
pub use per_axis::{MAX_AXES, PerAxis};
pub use predict::{Expected, Prediction, Volume};
pub use problem::{Access, Chunking, Memory, Problem};
pub use processor::Processor;
pub use procgrid::ProcGrid;
pub use puts::{Epoch, InEpoch, Puts};
pub use real::{Element, Precision, Real};
pub use recipe::{Node, Recipe, Step};
pub use reshape::Loss;
pub use route::Manner;
pub use schedule::{Message, Schedule, Summary};
pub use simulate::{Order, Played, Simulation, Simulator};
pub use slot::{Pins, SLOT_ALIGN, Slot, SlotPool};
pub use tolerance::{Energy, Tolerance, WireError};
pub use transfer::{DIMS, Panel, Placed, Transfer, View};
pub use turn::by_host;
pub use turned::TurnedWhenRead;
