//! Binding: every pass of a program becomes one operation of a rank.

use super::cpu::Cpu;
use super::op::{HostOp, Local, Op};
use super::reshape::{Encoding, FusedFft, Reshape};
use super::shared_pass::SharedPass;
use crate::base::{Error, Real};
use crate::comm::NodeMemory;
use crate::execute::{BindContext, Operations};
use crate::geometry::{DynBrick, Placed, Transfer};
use crate::lower::program::{LocalPass, Op as Pass, SharedFft};
use crate::lower::tiling::Tiling;
use crate::lower::{AxisFft, Capabilities, ExchangePass, Program};
use crate::problem::{Direction, Link, Problem};
use crate::recipe::{LocalFft, Node, Recipe};
use crate::redistribute::Redistribution;
use crate::redistribute::spill::{BufferOffset, BufferSplit};

/// The operations of one direction on a host, one for each pass of the program.
pub(crate) fn bind<T: Real>(
    recipe: &Recipe,
    context: BindContext<'_>,
    device: &mut Cpu<T>,
) -> Result<Operations<HostOp<T>>, Error> {
    let problem = recipe.problem();
    let capabilities = Capabilities::of(problem, context.node_memory.map(NodeMemory::exposes_all));
    let program = &recipe.lower(context.direction, capabilities);
    let mut binder = Binder { program, problem, context, device, rank: context.comm.rank() };
    let [start, _] = program.start_and_end();
    let mut sizes = vec![binder.reals(start, &BufferSplit::default())[0]];
    let mut ops = Vec::with_capacity(program.ops.len());
    for pass in &program.ops {
        let (op, after) = binder.bind(pass)?;
        binder.device.reserve_spare(after[1], binder.rank)?;
        ops.push(HostOp(op));
        sizes.push(after[0]);
    }
    Ok(Operations { ops, sizes, exposes_all: context.exposes_all(problem) })
}

struct Binder<'a, T: Real> {
    program: &'a Program<'a>,
    problem: &'a Problem,
    context: BindContext<'a>,
    device: &'a mut Cpu<T>,
    rank: usize,
}

impl<T: Real> Binder<'_, T> {
    /// Real numbers of this rank at a node: in the operation's buffer and in spare memory.
    fn reals(&self, node: &Node, split: &BufferSplit) -> [usize; 2] {
        let point = self.problem.batch * node.width();
        match &self.program.exclusive {
            Some(exclusive) => [exclusive.public_points(self.rank) * point, 0],
            None => split.reals(self.rank, node.layout.brick(self.rank), point),
        }
    }

    fn offsets(&self, split: &BufferSplit, node: &Node) -> Vec<BufferOffset> {
        let (brick, point) = (node.layout.brick(self.rank), self.problem.batch * node.width());
        (0..split.count()).map(|part| split.offset(part, self.rank, brick, point)).collect()
    }

    /// The dense parts of this rank's brick before local transforms, and the transforms of each.
    fn local(&self, ffts: &[AxisFft], splits: &[BufferSplit; 2]) -> (Vec<DynBrick>, Vec<LocalFft>) {
        let mut parts: Vec<DynBrick> = Vec::new();
        let mut joined: Vec<LocalFft> = Vec::new();
        for (number, fft) in ffts.iter().enumerate() {
            let [from, _] = self.program.ends(fft.step);
            let (axis, pass) = self.program.pass(fft);
            let split = &splits[usize::from(number > 0)];
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

    /// The operation of a pass, and the real numbers of this rank after it.
    fn bind(&mut self, pass: &Pass<'_>) -> Result<(Op<T>, [usize; 2]), Error> {
        match pass {
            Pass::LocalFft(pass) => {
                let last = pass.ffts.last().expect("a pass has a transform");
                let after = self.reals(self.program.ends(last.step)[1], &pass.splits[1]);
                Ok((self.local_fft(pass)?, after))
            }
            Pass::Exchange(pass) => {
                let after = self.reals(pass.to, &pass.splits[1]);
                // Spare memory is reserved before the transforms of the exchange are planned.
                self.device.reserve_spare(after[1], self.rank)?;
                Ok((self.exchange(pass)?, after))
            }
            Pass::SharedPass(pass) => {
                let end = pass.real.filter(|_| self.context.direction == Direction::Inverse);
                let end = self.program.node(end.unwrap_or(pass.home));
                let after = self.reals(end, &BufferSplit::default());
                Ok((self.shared_pass(pass)?, after))
            }
            Pass::CopyOut { node, split } => {
                let node = self.program.node(*node);
                Ok((self.copy_out(node, split), self.reals(node, &BufferSplit::default())))
            }
        }
    }

    fn local_fft(&mut self, pass: &LocalPass) -> Result<Op<T>, Error> {
        let first = &pass.ffts[0];
        let [from, to] = self.program.ends(first.step);
        let offsets = self.offsets(&pass.splits[0], from).into_iter();
        let offsets = offsets.zip(self.offsets(&pass.splits[1], to));
        let (_, ffts) = self.local(&pass.ffts, &pass.splits);
        let local = |(fft, (from, to)): (LocalFft, _)| {
            let blocks = fft.blocks;
            Ok(Local { fft: self.device.plan_fft(&fft, self.rank)?, blocks, from, to })
        };
        let parts = ffts.into_iter().zip(offsets).map(local).collect::<Result<_, Error>>()?;
        let in_place = !first.changes_len();
        Ok(Op::Fft { parts, in_place, apart: !in_place && pass.splits[0].is_apart() })
    }

    fn exchange(&mut self, pass: &ExchangePass<'_>) -> Result<Op<T>, Error> {
        let (comm, problem, rank) = (self.context.comm, self.problem, self.rank);
        let nodes = [pass.from, pass.to];
        let direct = pass.direct && self.context.node_memory.is_some();
        let link = |peer| match comm.link(peer) {
            Link::Shared if !direct => Link::Remote,
            link => link,
        };
        let [from, to] = nodes;
        let [before, after] = &pass.splits;
        let mut redistribution = Redistribution::new(rank, &link, from, to, problem.batch);
        redistribution = redistribution.split_by([before, after], nodes);
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
            let splits = [after.clone(), after.clone()];
            let (parts, ffts) = self.local(&pass.fuse_after, &splits);
            let offsets = self.offsets(after, to);
            let fused = |(fft, offset): (LocalFft, BufferOffset)| {
                let (blocks, fft) = (fft.blocks, LocalFft { cached: true, ..fft });
                Ok(FusedFft { fft: self.device.plan_fft(&fft, rank)?, blocks, offset })
            };
            let ffts = ffts.into_iter().zip(offsets).map(fused).collect::<Result<_, Error>>()?;
            reshape.fuse_unpack(&redistribution, &parts, ffts);
        }
        let (exchange, apart) = (pass.exchange, before.is_apart());
        Ok(Op::Reshape { reshape: Box::new(reshape), exchange, apart })
    }

    fn shared_pass(&mut self, pass: &SharedFft) -> Result<Op<T>, Error> {
        let [home, work] = [pass.home, pass.work].map(|node| self.program.node(node));
        let axes = self.program.passes(&pass.ffts);
        let real = pass.real.map(|node| &self.program.node(node).layout);
        let tiling = Tiling {
            rank: self.rank,
            home: &home.layout,
            work: &work.layout,
            exclusive: self.program.exclusive.as_ref(),
            first: pass.first,
            batch: self.problem.batch,
            width: home.width(),
            axes: &axes,
            real: real.map(|real| (self.context.direction, real)),
        };
        Ok(Op::SharedPass(Box::new(SharedPass::new(&tiling, self.device)?)))
    }

    fn copy_out(&self, node: &Node, split: &BufferSplit) -> Op<T> {
        let (batch, brick) = (self.problem.batch, node.layout.brick(self.rank));
        let placed = |brick| Placed { brick, order: node.layout.order(), batch };
        let copy = |(part, BufferOffset { first, .. }): (DynBrick, BufferOffset)| {
            Transfer::new(&part, 0..batch, &placed(part), &placed(brick)).behind(first, 0)
        };
        let parts = split.parts(self.rank, brick).into_iter().zip(self.offsets(split, node));
        let parts = parts.filter(|(part, _)| !part.is_empty()).map(copy).collect();
        Op::Copy { parts, width: node.width() }
    }
}
