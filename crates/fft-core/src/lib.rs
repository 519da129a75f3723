//! The core of thriffty, without MPI, CUDA and unsafe code.
//!
//! A [`Problem`] over [`Layout`]s is planned as a [`Recipe`], by the costs of a [`Machine`]
//! ([`cost`]). An [`Executor`] binds it to a [`Comm`] and a [`Device`] and runs it. Each reshape is
//! an [`Exchanger`] of messages, which a [`MessageHandler`] packs and unpacks. A [`Codec`] encodes
//! boxes of an array ([`Transfer`]) as messages.
//!
//! Each folder uses only the ones before it: base, geometry, codec, problem, recipe, redistribute,
//! lower, planner, simulate. The folders comm and spectral use problem, arrays and execute use
//! comm; execute uses lower as well, and host uses execute.
//!
//! Errors of some ranks become the same error on all ranks by [`agree`].
#![forbid(unsafe_code)]

mod arrays;
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
mod spectral;

pub use arrays::{
    ArrayRole, CopyMessage, CopyPart, CopyPlan, Ghosts, GridData, OwnCopy, ParallelCopy, Subarray,
};
pub use base::cache_sizes::BUNDLE_BYTES;
pub use base::{
    Element, Energy, Error, ErrorKind, Precision, Real, Timings, Tolerance, WireError, escaped,
    locked, median, shown,
};
pub use codec::{BadMessage, Codec, Packed, Wire};
pub use comm::{
    Arrival, Comm, DeviceAllocation, DeviceBuffer, DeviceComm, Epoch, Exchanger, Expose,
    FailureDetector, Flight, Funnel, InEpoch, LocalBuffers, MessageBuffers, MessageHandler,
    MessagePlan, MessageSlots, MessageSpec, NodeMemory, OneSided, PackRequest, Part, Parts,
    PeerMemory, PinnedMemory, Reduce, RmaWindow, SLOT_ALIGN, Segment, SharedMemory, SharesMemory,
    Slot, SlotParts, SlotPool, SlotSpec, TeamComms, Teams, Unwinding, UsedBytes, Work,
    WritePartition, agree, agree_by, agree_by_memory, assert_same, gather_lists, matching,
    on_all_ranks, on_any_rank,
};
pub use execute::{
    Activity, AnyExecutor, BindContext, Device, Event, Executor, MakeExchanger, OpBuffers,
    Operation, Operations, Places, Profiler, Recorder, RunContext, RunParts, Window, WorkReals,
};
pub use fft_lines::{Costs, LineCosts, PerProcess, RADICES, Trigonometric, TrigonometricType};
pub use geometry::{
    Brick, DIMS, DynBrick, DynGrid, Grid, Layout, MAX_AXES, Panel, PerAxis, Placed, ProcGrid,
    Topology, Transfer, View, check_axes,
};
pub use host::{
    Cpu, CpuCall, CpuFft, HostExecutor, HostOp, HostWork, LineFft, LinePlanner, bind_on_host,
};
pub use lower::{
    AcrossFft, AxisFft, Capabilities, Chunks, DeviceCapabilities, DeviceLink, DeviceOp, EngineCopy,
    EngineSide, ExchangePass, FftGroup, LineRuns, MemoryNeeds, MemoryUse, PieceGrid, Program,
    StorePass, is_large, loads_lines, swapped,
};
pub use num_complex::Complex;
pub use planner::cost;
pub use planner::{BytesMoved, Expected, Layouts, PredictedOperation, Prediction};
pub use problem::{
    Access, Chunking, Codecs, Direction, Division, Ends, Epochs, Exchange, Factors, GpuTransport,
    How, Kind, Link, Machine, Memory, Messages, Norm, OneAxis, Pattern, Problem, Quantity, Rate,
    Scale, TransportOptions, TransportPolicy,
};
pub use recipe::{LineSide, LocalFft, Loss, Node, Pass, Recipe, Step, Twiddles};
pub use redistribute::{
    Chunk, LocalRead, LocalReadBox, Redistribution, TransposedWhenRead, by_host,
};
pub use simulate::{Message, Order, Schedule, SimulatedStep, Simulation, Simulator, Summary};
pub use spectral::{
    AxisModes, BindCopy, DividedAxis, Modes, Operator, Scheme, Spectrum, SystemTask, Systems,
    Tridiagonal, Wavenumbers, mode,
};
