//! The operations of a host: passes through its caches.

use super::cpu::{Cpu, CpuFft};
use super::reshape::{Reshape, Transports};
use super::shared_pass::SharedPass;
use super::spill_buffers::split_spare;
use crate::base::timings::Time;
use crate::base::{Error, Real};
use crate::comm::MessagePlan;
use crate::execute::{OpBuffers, Operation, RunContext, RunParts};
use crate::geometry::Transfer;
use crate::problem::Exchange;
use crate::recipe::norm_gain::Loss;
use crate::redistribute::spill::BufferOffset;

/// A bound pass of a program on a host.
pub struct HostOp<T: Real>(pub(crate) Op<T>);

pub(crate) enum Op<T: Real> {
    /// If `reads_spare`, the second part of the source is in spare memory, otherwise the second
    /// part of the destination.
    Fft {
        parts: Vec<Local<T>>,
        reads_spare: bool,
    },
    Reshape {
        reshape: Box<Reshape<T>>,
        exchange: Exchange,
        reads_spare: bool,
    },
    SharedPass(Box<SharedPass<T>>),
    Copy {
        parts: Vec<Transfer>,
        width: usize,
    },
}

/// A local transform of a part of a brick, and the part's offsets before and after.
pub(crate) struct Local<T: Real> {
    pub(crate) fft: CpuFft<T>,
    pub(crate) blocks: usize,
    pub(crate) from: BufferOffset,
    pub(crate) to: BufferOffset,
}

impl<T: Real> Operation<T, Cpu<T>> for HostOp<T> {
    fn loss(&self) -> Option<Loss> {
        match &self.0 {
            Op::Reshape { reshape, .. } => reshape.loss(),
            _ => None,
        }
    }

    fn set_step(&mut self, step: f64, finer: Option<f64>) {
        if let Op::Reshape { reshape, .. } = &mut self.0 {
            reshape.set_step(step, finer);
        }
    }

    fn squared_error(&self) -> f64 {
        match &self.0 {
            Op::Reshape { reshape, .. } => reshape.squared_error(),
            _ => 0.0,
        }
    }

    fn message_plan(&self) -> Option<&MessagePlan> {
        match &self.0 {
            Op::Reshape { reshape, .. } => Some(&reshape.message_plan),
            _ => None,
        }
    }

    fn reserve(&mut self, context: &mut RunContext<Cpu<T>>) -> Result<(), Error> {
        match (&mut self.0, &mut context.node_memory) {
            (Op::SharedPass(pass), Some(node_memory)) => pass.register(node_memory.as_mut()),
            (Op::Reshape { reshape, exchange, .. }, _) => {
                context.split(*exchange).exchange.reserve(&reshape.message_plan)
            }
            _ => Ok(()),
        }
    }

    fn run(
        &mut self,
        context: &mut RunContext<Cpu<T>>,
        buffers: OpBuffers<'_, [T]>,
    ) -> Result<(), Error> {
        let OpBuffers { src, dst, window, spare } = buffers;
        let spare = spare.unwrap_or_default();
        match &mut self.0 {
            Op::Fft { parts, reads_spare } => {
                let RunContext { device, timings, .. } = context;
                let (read, written) = split_spare(spare, *reads_spare);
                let (src, dst) = (src.map(|src| [src, read]), [dst, written]);
                for Local { fft, blocks, from, to } in parts {
                    let src = src.map(|src| &src[from.piece][from.first..]);
                    let dst = &mut dst[to.piece][to.first..];
                    timings.fft.time(|| device.fft(fft, 0..*blocks, src, dst));
                }
                Ok(())
            }
            Op::Copy { parts, width } => {
                let RunContext { device, timings, .. } = context;
                let src = src.expect("a copy has a source and a destination");
                timings.own.time(|| {
                    parts.iter().for_each(|part| device.copy_nontemporal(part, *width, src, dst))
                });
                Ok(())
            }
            Op::SharedPass(pass) => {
                let RunContext { device, node_memory, timings, .. } = context;
                let node_memory =
                    node_memory.as_deref_mut().expect("planned where there is a node_memory");
                let buffers = OpBuffers { src, dst, window, spare: None };
                pass.run(node_memory, device, buffers, timings)
            }
            Op::Reshape { reshape, exchange, reads_spare } => {
                let RunParts { device, exchange, node_memory, timings } = context.split(*exchange);
                let src = src.expect("a reshape has a source and a destination");
                let (read, written) = split_spare(spare, *reads_spare);
                let transports = Transports { exchange, node_memory };
                reshape.run(transports, device, [src, read], [dst, written], timings)
            }
        }
    }

    fn memory(&self) -> usize {
        match &self.0 {
            Op::SharedPass(pass) => pass.memory(),
            Op::Reshape { reshape, .. } => reshape.memory(),
            Op::Fft { .. } | Op::Copy { .. } => 0,
        }
    }
}
