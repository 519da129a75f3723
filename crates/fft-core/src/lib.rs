//! The core of thriffty: geometry, recipes, plans, codecs and local transforms.
//!
//! Nothing here knows MPI or CUDA, and nothing is unsafe. Read it in the order in which data flows:
//!
//! 1. **geometry**: [`Grid`], [`Brick`], [`ProcGrid`], [`Layout`] say who holds what;
//! 2. **recipe**: [`Problem`] says what is wanted, [`Recipe`] how it is done, [`cost`] why so;
//! 3. **plan**: [`Executor`] binds a recipe to a [`Comm`] and a [`Device`] and runs it;
//! 4. **exchange**: [`Exchange`] moves the messages of a reshape through a [`Flight`] or a collective,
//!    calling a [`MessageHandler`] to fill and empty them;
//! 5. **codec, wire**: a [`Codec`] turns boxes of an array ([`Transfer`]) into the bytes of a message.
//!
//! Errors are values and, where only some ranks can see them, made collective by [`agree`].
#![forbid(unsafe_code)]

mod base;
mod codec;
mod comm;
mod execute;
mod geometry;
mod host;
mod lower;
mod planner;
mod problem;
mod recipe;
mod redistribute;
mod simulate;

pub use base::{Element, Energy, Error, ErrorKind, Precision, Real, Timings, Tolerance, WireError};
pub use codec::{BadMessage, Codec, Packed, Wire};
pub use comm::{
    Arrival, Comm, DeviceAllocation, DeviceBuffer, DeviceComm, Epoch, Exchange, Expose, Flight,
    InEpoch, LocalBuffers, MessageBuffers, MessageHandler, MessagePlan, MessageSpec, NodeMemory,
    PackRequest, Part, Parts, PeerMemory, PinnedMemory, Reduce, RmaWindow, SLOT_ALIGN, Segment,
    SharedMemory, Slot, SlotPool, Work, WritePartition, agree, agree_by, assert_same, matching,
};
pub use execute::{
    BindContext, BufferRequirement, CallerArrays, Device, Executor, MakeExchange, OpBuffers,
    Operation, Operations, RunContext, RunParts,
};
pub use geometry::{
    Brick, DIMS, DynBrick, DynGrid, Grid, Layout, MAX_AXES, Panel, PerAxis, Placed, ProcGrid,
    Topology, Transfer, View,
};
pub use host::{
    Cpu, CpuFft, Host, HostExecutor, HostOp, HostWork, LineFft, LinePlanner, Processor,
};
pub use lower::{Capabilities, Program};
pub use num_complex::Complex;
pub use planner::cost;
pub use planner::{BytesMoved, Expected, Family, Prediction};
pub use problem::{
    Access, Algorithm, Chunking, Codecs, Direction, Epochs, How, Kind, Link, Machine, Memory,
    Messages, Problem, Quantity, Rate, Scale, TransportPolicy,
};
pub use recipe::{BoundStep, LocalFft, Loss, Node, Pass, Recipe, Step};
pub use redistribute::{
    Chunk, LocalRead, LocalReadBox, Redistribution, TransposedWhenRead, by_host,
};
pub use simulate::{Message, Order, Played, Schedule, Simulation, Simulator, Summary};
