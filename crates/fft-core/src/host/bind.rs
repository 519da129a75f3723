//! Binding: every pass of a program becomes one operation of a rank.

use super::cpu::Cpu;
use super::op::{HostOp, Local, Op};
use super::reshape::{Encoding, FusedFft, Reshape};
use super::shared_pass::SharedPass;
use crate::base::{Error, Real};
use crate::comm::NodeMemory;
use crate::execute::{BindContext, Operations};
use crate::geometry::{DynBrick, Placed, Transfer};
use crate::lower::ops::{Op as Pass, SharedFft};
use crate::lower::program::Value;
use crate::lower::tiling::Tiling;
use crate::lower::{AxisFft, Capabilities, ExchangePass, Program};
use crate::problem::{Link, Problem};
use crate::recipe::{LocalFft, Recipe};
use crate::redistribute::Redistribution;
use crate::redistribute::spill::{BufferOffset, BufferSplit};

/// The operations of one direction on a host, one for each pass of the program.
pub(crate) fn bind<T: Real>(
    recipe: &Recipe,
    context: BindContext<'_>,
    device: &mut Cpu<T>,
) -> Result<Operations<HostOp<T>>, Error> {
    let (problem, rank) = (recipe.problem(), context.comm.rank());
    let capabilities = Capabilities::of(problem, context.node_memory.map(NodeMemory::exposes_all));
    let program = &recipe.lower(context.direction, capabilities);
    let mut binder = Binder { program, problem, context, device, rank };
    let mut ops = Vec::with_capacity(program.ops.len());
    for number in 0..program.ops.len() {
        ops.push(HostOp(binder.bind(number)?));
    }
    let needs = program.memory_needs(rank, context.exposes_all(problem));
    Ok(Operations { ops, needs, texts: program.texts() })
}

struct Binder<'a, T: Real> {
    program: &'a Program<'a>,
    problem: &'a Problem,
    context: BindContext<'a>,
    device: &'a mut Cpu<T>,
    rank: usize,
}

impl<T: Real> Binder<'_, T> {
    /// The offset of each dense part of a value.
    fn offsets(&self, Value { node, split }: &Value<'_>) -> Vec<BufferOffset> {
        let (brick, point) = (node.layout.brick(self.rank), self.problem.batch * node.width());
        (0..split.count()).map(|part| split.offset(part, self.rank, brick, point)).collect()
    }

    /// The dense parts of this rank's brick before local transforms, and the transforms of each.
    fn local(&self, ffts: &[AxisFft], splits: [&BufferSplit; 2]) -> (Vec<DynBrick>, Vec<LocalFft>) {
        let mut parts: Vec<DynBrick> = Vec::new();
        let mut joined: Vec<LocalFft> = Vec::new();
        for (number, fft) in ffts.iter().enumerate() {
            let [from, _] = self.program.ends(fft.step);
            let (axis, pass) = self.program.pass(fft);
            let split = splits[usize::from(number > 0)];
            let bricks = split.parts(self.rank, from.layout.brick(self.rank));
            let along = |part: &DynBrick| {
                let order = from.layout.order();
                LocalFft::along(axis, part, order, self.problem.batch, pass.clone())
            };
            if number == 0 {
                joined = bricks.iter().map(along).collect();
                parts = bricks;
            } else {
                let bytes = self.problem.precision.bytes();
                for (all, part) in joined.iter_mut().zip(&bricks) {
                    assert!(all.join(&along(part), bytes), "blocks of one pass fit into cache");
                }
            }
        }
        (parts, joined)
    }

    /// The operation of a pass of this number.
    fn bind(&mut self, number: usize) -> Result<Op<T>, Error> {
        let program = self.program;
        let [before, after] = [&program.values[number], &program.values[number + 1]];
        match &program.ops[number] {
            Pass::LocalFft(ffts) => self.local_fft(ffts, before, after),
            Pass::Exchange(pass) => self.exchange(pass, before, after),
            Pass::SharedPass(pass) => self.shared_pass(number, pass),
            Pass::CopyOut => Ok(self.copy_out(before)),
            Pass::Across(_) | Pass::Store(_) => unreachable!("lowered for a device"),
        }
    }

    fn local_fft(
        &mut self,
        ffts: &[AxisFft],
        before: &Value<'_>,
        after: &Value<'_>,
    ) -> Result<Op<T>, Error> {
        let offsets = self.offsets(before).into_iter().zip(self.offsets(after));
        let (_, ffts) = self.local(ffts, [&before.split, &after.split]);
        let local = |(fft, (from, to)): (LocalFft, _)| {
            let blocks = fft.blocks;
            Ok(Local { fft: self.device.plan_fft(&fft, self.rank)?, blocks, from, to })
        };
        let parts = ffts.into_iter().zip(offsets).map(local).collect::<Result<_, Error>>()?;
        // In place, the second part of both is in spare memory.
        let reads_spare = before.split.is_apart() && !after.split.is_apart();
        Ok(Op::Fft { parts, reads_spare })
    }

    fn exchange(
        &mut self,
        pass: &ExchangePass<'_>,
        before: &Value<'_>,
        after: &Value<'_>,
    ) -> Result<Op<T>, Error> {
        let (comm, problem, rank) = (self.context.comm, self.problem, self.rank);
        let nodes = [pass.from, pass.to];
        let direct = pass.direct && self.context.node_memory.is_some();
        let link = |peer| match comm.link(peer) {
            Link::Shared if !direct => Link::Remote,
            link => link,
        };
        let [from, to] = nodes;
        let mut redistribution = Redistribution::new(rank, &link, from, to, problem.batch);
        redistribution = redistribution.split_by([&before.split, &after.split], nodes);
        if let Some(chunking) = pass.chunking {
            let element = from.width() * T::PRECISION.bytes();
            redistribution = redistribution.chunked(nodes, &pass.whole, element, chunking);
        }
        let is_raw = |peer| problem.is_raw_link(rank, peer);
        let (wire, gain, buffers_all) = (pass.wire, pass.gain, self.program.policy.buffers_all);
        let encoding = Encoding { wire, is_raw: &is_raw, gain, buffers_all };
        let number = self.program.message_number(pass);
        let mut reshape = Reshape::new(&redistribution, encoding, number, direct);
        if !pass.fuse_before.is_empty() {
            let axes = self.program.passes(&pass.fuse_before);
            reshape.fuse_pack(&redistribution, &axes, self.device)?;
        }
        if !pass.fuse_after.is_empty() {
            let (parts, ffts) = self.local(&pass.fuse_after, [&after.split; 2]);
            let offsets = self.offsets(after);
            let fused = |(fft, offset): (LocalFft, BufferOffset)| {
                let (blocks, fft) = (fft.blocks, LocalFft { cached: true, ..fft });
                Ok(FusedFft { fft: self.device.plan_fft(&fft, rank)?, blocks, offset })
            };
            let ffts = ffts.into_iter().zip(offsets).map(fused).collect::<Result<_, Error>>()?;
            reshape.fuse_unpack(&redistribution, &parts, ffts);
        }
        let (exchange, reads_spare) = (pass.exchange, before.split.is_apart());
        Ok(Op::Reshape { reshape: Box::new(reshape), exchange, reads_spare })
    }

    fn shared_pass(&mut self, number: usize, pass: &SharedFft<'_>) -> Result<Op<T>, Error> {
        let axes = self.program.passes(&pass.ffts);
        let exclusive = self.program.exclusive.as_ref();
        let tiling = Tiling {
            rank: self.rank,
            home: &pass.home.layout,
            work: &pass.work.layout,
            exclusive,
            first: exclusive.is_some() && number == 0,
            batch: self.problem.batch,
            width: pass.home.width(),
            axes: &axes,
            real: pass.real.map(|real| (self.context.direction, &real.layout)),
        };
        Ok(Op::SharedPass(Box::new(SharedPass::new(&tiling, self.device)?)))
    }

    fn copy_out(&self, value: &Value<'_>) -> Op<T> {
        let Value { node, split } = value;
        let (batch, brick) = (self.problem.batch, node.layout.brick(self.rank));
        let placed = |brick| Placed { brick, order: node.layout.order(), batch };
        let copy = |(part, BufferOffset { first, .. }): (DynBrick, BufferOffset)| {
            Transfer::new(&part, 0..batch, &placed(part), &placed(brick)).behind(first, 0)
        };
        let parts = split.parts(self.rank, brick).into_iter().zip(self.offsets(value));
        let parts = parts.filter(|(part, _)| !part.is_empty()).map(copy).collect();
        Op::Copy { parts, width: node.width() }
    }
}
