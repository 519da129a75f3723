//! Rules that transform in shared memory: in place, across the ranks of a host.
//!
//! Between a reshape and the reshape back to the first layout, ranks need not exchange data. Each
//! rank fetches lines of the other layout from all ranks' memory into its cache, transforms them,
//! and stores them where they were. This takes one pass over memory instead of three.

use super::fusion::fit_in_cache;
use super::lowering::Lowering;
use super::ops::{AxisFft, ExchangePass, Op, SharedFft};
use crate::geometry::DynBrick;
use crate::geometry::exclusive::Exclusive;
use crate::problem::{Direction, Kind};
use crate::recipe::Node;

impl<'a> Lowering<'a> {
    /// The data that no other rank transforms, if all steps can be shared passes on one layout.
    ///
    /// This is useful only if the caller's arrays are not shared, because the data stays in them.
    pub(crate) fn exclusive(&self) -> Option<Exclusive> {
        if !self.capabilities.shares_memory || self.capabilities.exposes_all {
            return None;
        }
        let [start, end] = self.start_and_end();
        let ops = self.unfused(true);
        let stays = ops.iter().all(|op| self.stays(op, start));
        if start.layout != end.layout || !stays {
            return None;
        }
        let works = ops.iter().filter_map(|op| match op {
            Op::LocalFft(ffts) => Some(&self.ends(ffts[0].step)[1].layout),
            _ => None,
        });
        let works: Vec<_> = works.collect();
        let exclusive = Exclusive::of(&start.layout, &works);
        (!works.is_empty() && exclusive.is_any()).then_some(exclusive)
    }

    /// Whether an operation works in place on data at `home`.
    fn stays(&self, op: &Op<'_>, home: &Node) -> bool {
        match op {
            Op::Exchange(pass) => pass.exchange.reads_peers(),
            Op::LocalFft(ffts) => ffts.iter().all(|fft| {
                let [_, to] = self.ends(fft.step);
                !fft.changes_len() && to.complex == home.complex
            }),
            _ => false,
        }
    }

    /// Rule **share**: exchanges there and back, and the transforms between them, become shared
    /// passes. To save memory (`saves`), this is also done if the last exchange leads to another
    /// layout; that exchange then follows.
    pub(crate) fn share(&self, ops: Vec<Op<'a>>, saves: bool) -> Vec<Op<'a>> {
        let mut shared = Vec::with_capacity(ops.len());
        let mut rest = &ops[..];
        while let [op, tail @ ..] = rest {
            rest = tail;
            let Op::Exchange(there) = op else {
                shared.push(op.clone());
                continue;
            };
            let Some(count) = self.in_place(there, tail, saves) else {
                shared.push(op.clone());
                continue;
            };
            let (in_place, tail) = tail.split_at(count);
            rest = tail;
            shared.extend(self.shared_passes(there.from, there.to, in_place));
            let Some(Op::Exchange(back)) = in_place.last() else { unreachable!("ends with it") };
            if back.to.layout != there.from.layout {
                let gain = self.gain(there.from, back.step);
                let moves = ExchangePass { to: back.to, gain, ..there.clone() };
                shared.push(Op::Exchange(moves));
            }
        }
        shared
    }

    /// The number of operations after an exchange that can work in place, up to an exchange that
    /// leads back or, if it `saves`, the last exchange.
    fn in_place(&self, there: &ExchangePass<'_>, rest: &[Op<'_>], saves: bool) -> Option<usize> {
        if !self.capabilities.shares_memory || !there.exchange.reads_peers() {
            return None;
        }
        let count = rest.iter().take_while(|op| self.stays(op, there.from)).count();
        let staying = &rest[..count];
        let is_exchange = |op: &Op<'_>| matches!(op, Op::Exchange(_));
        let leads_back = |op: &Op<'_>| match op {
            Op::Exchange(pass) => pass.to.layout == there.from.layout,
            _ => false,
        };
        let elsewhere = staying.iter().rposition(is_exchange).filter(|_| saves);
        staying.iter().position(leads_back).or(elsewhere).map(|last| last + 1)
    }

    /// The shared passes of these operations on data at `home`, the first ones on lines of `work`.
    pub(crate) fn shared_passes(
        &self,
        home: &'a Node,
        mut work: &'a Node,
        ops: &[Op<'a>],
    ) -> Vec<Op<'a>> {
        let mut passes = Vec::new();
        let mut ffts = Vec::new();
        let mut add = |work, ffts: Vec<AxisFft>| {
            if !ffts.is_empty() {
                passes.push(Op::SharedPass(SharedFft { home, work, ffts, real: None }));
            }
        };
        for op in ops {
            match op {
                Op::LocalFft(local) => ffts.extend_from_slice(local),
                Op::Exchange(pass) => {
                    add(work, std::mem::take(&mut ffts));
                    work = pass.to;
                }
                _ => unreachable!("not made yet"),
            }
        }
        add(work, ffts);
        passes
    }

    /// Rule **halve**: a real transform before a shared pass, or after it in the inverse, joins the
    /// pass if its lines fit into the tile.
    pub(crate) fn halve(&self, ops: Vec<Op<'a>>) -> Vec<Op<'a>> {
        let mut halved: Vec<Op<'a>> = Vec::with_capacity(ops.len());
        for op in ops {
            match (halved.last(), &op) {
                (Some(Op::LocalFft(ffts)), Op::SharedPass(pass))
                    if self.direction == Direction::Forward && self.fits(pass, &ffts[0]) =>
                {
                    let fft = ffts[0].clone();
                    let real = Some(self.ends(fft.step)[0]);
                    let ffts = [vec![fft], pass.ffts.clone()].concat();
                    halved.pop();
                    halved.push(Op::SharedPass(SharedFft { ffts, real, ..pass.clone() }));
                }
                (Some(Op::SharedPass(pass)), Op::LocalFft(ffts))
                    if self.direction == Direction::Inverse && self.fits(pass, &ffts[0]) =>
                {
                    let fft = ffts[0].clone();
                    let real = Some(self.ends(fft.step)[1]);
                    let pass = pass.clone();
                    let ffts = [pass.ffts, vec![fft]].concat();
                    halved.pop();
                    halved.push(Op::SharedPass(SharedFft { ffts, real, ..pass }));
                }
                _ => halved.push(op),
            }
        }
        halved
    }

    /// Whether the lines of a real transform and of a shared pass fit into cache together.
    fn fits(&self, pass: &SharedFft<'_>, fft: &AxisFft) -> bool {
        if fft.kind != Kind::R2C || fft.resized || pass.real.is_some() {
            return false;
        }
        let [before, after] = self.ends(fft.step);
        let [real, home] = self.direction.choose([before, after], [after, before]);
        let len = home.layout.grid().len(fft.axis);
        let whole = |brick: &DynBrick| brick.is_empty() || brick.len(fft.axis) == len;
        let mut axes: Vec<_> = pass.ffts.iter().map(|fft| fft.axis).collect();
        let is_new = !axes.contains(&fft.axis);
        axes.push(fft.axis);
        let problem = self.problem();
        let element = problem.batch * home.width() * problem.precision.bytes();
        is_new
            && pass.work.layout.bricks().iter().all(whole)
            && real.layout.order() == home.layout.order()
            && fit_in_cache(&home.layout, &axes, element)
    }

    /// Rule **divide**: a shared pass along axes whose lines do not fit into one tile becomes one
    /// pass for each axis.
    pub(crate) fn divide(&self, ops: Vec<Op<'a>>) -> Vec<Op<'a>> {
        let problem = self.problem();
        let mut divided = Vec::with_capacity(ops.len());
        for op in ops {
            let Op::SharedPass(pass) = op else {
                divided.push(op);
                continue;
            };
            let axes: Vec<_> = pass.ffts.iter().map(|fft| fft.axis).collect();
            let element = pass.home.width() * problem.precision.bytes() * problem.batch;
            if fit_in_cache(&pass.home.layout, &axes, element) {
                divided.push(Op::SharedPass(pass));
                continue;
            }
            for fft in &pass.ffts {
                divided.push(Op::SharedPass(SharedFft { ffts: vec![fft.clone()], ..pass.clone() }));
            }
        }
        divided
    }
}

#[cfg(test)]
mod tests {
    use crate::base::Precision;
    use crate::geometry::{DynGrid, Layout, ProcGrid};
    use crate::lower::Capabilities;
    use crate::problem::{Direction, Kind, Problem};
    use crate::recipe::Recipe;

    /// A recipe of a real transform, from pencils to pencils on four ranks.
    fn pencils(shape: [usize; 3]) -> Recipe {
        let (grid, kinds) = (DynGrid::new(shape).unwrap(), [Kind::C2C, Kind::C2C, Kind::R2C]);
        let even = |grid| Layout::even(grid, ProcGrid::new([2, 2, 1]), 4);
        let (input, output) = (even(grid), even(Problem::spectral_grid(grid, kinds)));
        let problem = Problem::new(kinds, false, Precision::F64, input, output).unwrap();
        let steps = "(r2c z) (exchange [4x1x1] shared raw) (fft y) (exchange [1x4x1] shared raw) (fft x) \
                     (scale inverse) (exchange [2x2x1] shared raw)";
        let [x, y, z] = shape;
        let text = format!("(r2c {x}x{y}x{z} f64 ranks=4 [2x2x1] {steps})");
        Recipe::exact(problem, &text).unwrap()
    }

    #[test]
    fn real_transforms_join_shared_passes_where_their_lines_fit() {
        let capabilities = Capabilities { shares_memory: true, exposes_all: true, device: None };
        // Complex planes of the last shape exceed the cache.
        for (shape, fits) in [([8, 6, 10], true), ([4, 256, 256], true), ([4, 256, 512], false)] {
            let recipe = pencils(shape);
            for direction in [Direction::Forward, Direction::Inverse] {
                let program = recipe.lower(direction, capabilities).to_string();
                let is_joined = |line: &str| line.starts_with("shared") && line.contains("r2c z");
                assert_eq!(program.lines().any(is_joined), fits, "{program}");
                assert_eq!(program.lines().filter(|line| line.contains("r2c z")).count(), 1);
            }
        }
    }
}
