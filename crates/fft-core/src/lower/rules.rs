//! Rules that fuse transforms with each other and with exchanges, because their data is in cache.

use super::fusion::{fit_in_block, fusable_suffix};
use super::lowering::Lowering;
use super::ops::{AxisFft, ExchangePass, Op};
use crate::codec::Wire;

impl<'a> Lowering<'a> {
    /// Rule **join**: transforms one after the other become one pass, if blocks with all their
    /// lines fit into cache.
    pub(crate) fn join(&self, ops: Vec<Op<'a>>) -> Vec<Op<'a>> {
        let mut joined: Vec<Op<'a>> = Vec::with_capacity(ops.len());
        for op in ops {
            match (joined.last_mut(), op) {
                (Some(Op::LocalFft(group)), Op::LocalFft(ffts)) if self.joins(group, &ffts[0]) => {
                    group.extend(ffts);
                }
                (_, op) => joined.push(op),
            }
        }
        joined
    }

    fn joins(&self, group: &[AxisFft], fft: &AxisFft) -> bool {
        if fft.changes_len() {
            return false;
        }
        let ends = [self.ends(group[0].step)[0], self.ends(fft.step)[1]];
        let axes: Vec<_> = group.iter().chain([fft]).map(|fft| fft.axis).collect();
        fit_in_block(ends, &axes, self.problem().precision.bytes())
    }

    /// Rule **pack**: an exchange in chunks transforms each chunk before it packs it, if chunks
    /// hold whole lines.
    pub(crate) fn pack(&self, ops: Vec<Op<'a>>) -> Vec<Op<'a>> {
        let mut packed: Vec<Op<'a>> = Vec::with_capacity(ops.len());
        // The axes transformed since the last exchange.
        let mut since = Vec::new();
        for mut op in ops {
            match &mut op {
                Op::LocalFft(ffts) => since.extend(ffts.iter().map(|fft| fft.axis)),
                Op::Exchange(pass) => {
                    pass.whole = self.whole_axes(pass, &since);
                    since.clear();
                    let fits = |fft: &AxisFft| pass.whole.contains(&fft.axis) && !fft.changes_len();
                    if let Some(Op::LocalFft(ffts)) = packed.pop_if(|last| match last {
                        Op::LocalFft(ffts) => ffts.iter().all(fits),
                        _ => false,
                    }) {
                        pass.fuse_before = ffts;
                    }
                }
                _ => since.clear(),
            }
            packed.push(op);
        }
        packed
    }

    /// The axes that chunks of an exchange hold whole, out of those transformed before it.
    fn whole_axes(&self, pass: &ExchangePass<'_>, since: &[usize]) -> Vec<usize> {
        let (problem, from) = (self.problem(), pass.from);
        let element = from.width() * problem.precision.bytes() * problem.batch;
        fusable_suffix(&from.layout, since, element, self.policy.tile_bytes)
    }

    /// Rule **unpack**: an exchange whose messages are all there before they are unpacked
    /// transforms each tile after it unpacked it.
    pub(crate) fn unpack(&self, ops: Vec<Op<'a>>) -> Vec<Op<'a>> {
        let mut unpacked: Vec<Op<'a>> = Vec::with_capacity(ops.len());
        for op in ops {
            match (unpacked.last_mut(), op) {
                (Some(Op::Exchange(pass)), Op::LocalFft(ffts))
                    if !ffts[0].changes_len() && self.unpacks_at_once(pass) =>
                {
                    pass.fuse_after = ffts;
                }
                (_, op) => unpacked.push(op),
            }
        }
        unpacked
    }

    /// Whether all messages arrive before unpacking, and can be read in any order.
    fn unpacks_at_once(&self, pass: &ExchangePass<'_>) -> bool {
        if !pass.fuse_after.is_empty() {
            return false;
        }
        let [from, to] = [&pass.from.layout, &pass.to.layout];
        let silent = from.has_bricks_of(to)
            || self.problem().input.ranks() == 1
            || pass.direct && self.capabilities.shares_memory;
        // Encoded messages are decoded sequentially.
        silent || self.policy.buffers_all && pass.wire == Wire::Raw
    }
}
