//! The buffers of data between stages, if one buffer besides the output is to suffice.

use super::fusion::fusable_suffix;
use super::stages::{Lowering, Stage};
use crate::geometry::Topology;
use crate::geometry::exclusive::Exclusive;
use crate::problem::{Direction, Kind, Memory};
use crate::recipe::Step;
use crate::redistribute::spill::{BufferSplit, Spill};

#[derive(Default)]
pub(crate) struct MemoryPlan {
    /// The data kept in the output, if all steps are one shared stage.
    pub(crate) exclusive: Option<Exclusive>,
    /// The split of bricks after each reshape.
    pub(crate) splits: Vec<BufferSplit>,
    /// Whether the result is copied from the plan's memory to the output.
    pub(crate) copies_out: bool,
    /// Whether ranks of a host send messages instead of reading each other's memory.
    pub(crate) messages: bool,
}

#[derive(Clone, Copy)]
struct Variant {
    /// In-place transforms across ranks.
    across: bool,
    copies_out: bool,
    /// Whether ranks of a host read each other's memory in reshapes.
    direct: bool,
}

/// All variants in order of preference.
const VARIANTS: [Variant; 6] = {
    const fn of(across: bool, copies_out: bool, direct: bool) -> Variant {
        Variant { across, copies_out, direct }
    }
    [
        of(true, false, true),
        of(true, true, true),
        of(false, false, true),
        of(false, true, true),
        of(false, false, false),
        of(false, true, false),
    ]
};

struct Stored {
    node: usize,
    reshapes: usize,
    /// Whether other ranks read it in a reshape.
    read: bool,
    /// Whether other ranks transform it.
    transformed: bool,
    /// Whether the next stage writes to the other buffer.
    moves: bool,
}

impl Lowering<'_> {
    /// The stages of the direction and the buffers of data between them.
    ///
    /// The first choice is one shared stage ([`Lowering::single_stage`]). The second is the first
    /// variant with one buffer, to save memory or if all ranks share it. The last is two buffers.
    pub(crate) fn plan_memory(&self) -> (Vec<Stage>, MemoryPlan) {
        if !self.capabilities.fuses_in_cache {
            return (self.stages(false, false), MemoryPlan::default());
        }
        if let Some((stage, exclusive)) = self.single_stage() {
            let plan = MemoryPlan { exclusive: Some(exclusive), ..MemoryPlan::default() };
            return (vec![stage], plan);
        }
        let least = self.problem().options.memory == Memory::Least;
        let exposes_all = self.capabilities.exposes_all;
        let two_buffers = || {
            // If only the plan's memory is exposed, one buffer costs no time.
            let stages = self.stages(true, !exposes_all || least);
            let stages = if exposes_all { self.halved(stages) } else { stages };
            (stages, MemoryPlan::default())
        };
        let one_buffer = |variant: &Variant| {
            let stages = self.stages(variant.across, true);
            let plan = self.one_buffer(&stages, *variant)?;
            Some((stages, plan))
        };
        if least {
            return VARIANTS.iter().find_map(one_buffer).unwrap_or_else(two_buffers);
        }
        let found = two_buffers();
        let all_direct = found.0.iter().all(|stage| match stage {
            Stage::Reshape { reshape, .. } => reshape.step.reads_peers(),
            _ => true,
        });
        let all_near = self.policy.all_near;
        if !all_near || !all_direct || self.needs_one_buffer(&found.0) {
            return found;
        }
        let mut direct = VARIANTS.iter().filter(|variant| variant.direct);
        direct.find_map(one_buffer).unwrap_or(found)
    }

    /// Whether these stages already use no more than the output and one buffer.
    fn needs_one_buffer(&self, stages: &[Stage]) -> bool {
        // A real transform across ranks needs no further buffer.
        if stages.iter().any(|stage| matches!(stage, Stage::Shared { real: Some(_), .. })) {
            return true;
        }
        let variant = |copies_out| Variant { across: true, copies_out, direct: true };
        let plans = [false, true].map(|copies_out| self.one_buffer(stages, variant(copies_out)));
        let whole = |plan: MemoryPlan| plan.splits.iter().all(|split| split.0.is_none());
        plans.into_iter().flatten().any(whole)
    }

    /// A plan with the output and one buffer. Peers cannot access data that is split in two.
    fn one_buffer(&self, stages: &[Stage], variant: Variant) -> Option<MemoryPlan> {
        let (problem, last) = (self.problem(), self.recipe.nodes().len() - 1);
        let end = self.direction.choose(last, 0);
        let reals = |node: usize, rank| {
            let node = self.node(node);
            node.layout.brick(rank).points() * problem.batch * node.width()
        };
        let over =
            |node| (0..problem.input.ranks()).any(|rank| reals(node, rank) > reals(end, rank));
        let exposes_all = self.policy.all_near && self.capabilities.exposes_all;
        let (stored, whole) = self.stored_data(stages);
        let mut splits = vec![BufferSplit::default(); whole.len()];
        let mut in_output = !variant.copies_out;
        for (number, rest) in stored.iter().enumerate().rev() {
            in_output ^= rest.moves;
            if !in_output {
                continue;
            }
            let over = number > 0 && over(rest.node);
            let exposed = rest.transformed || rest.read && variant.direct;
            if exposed && (over || !exposes_all) {
                return None;
            }
            if over && problem.is_any_resized() {
                // Planes of a brick have several sizes between two reshapes.
                return None;
            }
            if over {
                // Data that other ranks transform must be whole; so must the input.
                let with = |other: &Stored| other.transformed && other.reshapes == rest.reshapes;
                let whole_brick = rest.reshapes == 0 || stored.iter().any(with);
                let room = |rank| reals(end, rank);
                let node = self.node(rest.node);
                let spill = Spill::new(node, problem.batch, &whole[rest.reshapes], room);
                let split = BufferSplit(Some(spill.filter(|_| !whole_brick)?));
                let comes = stored[number - 1].reshapes < rest.reshapes;
                splits[rest.reshapes] = if comes { split } else { split.transposed() };
            }
        }
        let splits = splits.split_off(1);
        let (copies_out, messages) = (variant.copies_out, !variant.direct);
        Some(MemoryPlan { exclusive: None, splits, copies_out, messages })
    }

    /// The data between stages, and the transformed axes by number of preceding reshapes.
    fn stored_data(&self, stages: &[Stage]) -> (Vec<Stored>, Vec<Vec<usize>>) {
        let problem = self.problem();
        // All ranks must decide alike, also one alone on its host.
        let topology = Topology::new(&problem.hosts, problem.input.ranks());
        let visited = topology.ranks_per_host() > 1;
        let packed_in_place = self.packs_first_transforms(stages);
        let start = self.direction.choose(0, self.recipe.nodes().len() - 1);
        let new = |node, reshapes| Stored {
            node,
            reshapes,
            read: false,
            transformed: false,
            moves: false,
        };
        let mut stored = vec![new(start, 0)];
        let mut whole = vec![Vec::new()];
        for stage in stages {
            let first = stored.len() == 1;
            let now = stored.last_mut().expect("there is one");
            let reshapes = now.reshapes;
            match stage {
                Stage::Scale(_) => {}
                Stage::Fft(walked) => {
                    let Step::Fft { axis, kind } = walked.step else { continue };
                    whole[reshapes].push(axis);
                    now.moves = kind == Kind::R2C || self.problem().is_resized(axis);
                    if now.moves || first && !packed_in_place {
                        stored.push(new(walked.to, reshapes));
                    }
                }
                Stage::Reshape { reshape, .. } => {
                    now.read |= reshape.step.reads_peers() && visited;
                    now.moves = true;
                    stored.push(new(reshape.to, reshapes + 1));
                    whole.push(Vec::new());
                }
                Stage::Shared { home, .. } => {
                    now.transformed = true;
                    if first {
                        stored.push(Stored { transformed: true, ..new(*home, reshapes) });
                    }
                }
            }
        }
        (stored, whole)
    }

    /// Whether all transforms of the input are done chunk by chunk before packing.
    fn packs_first_transforms(&self, stages: &[Stage]) -> bool {
        let (problem, policy) = (self.problem(), self.policy);
        let start = match self.direction {
            Direction::Forward => self.node(0),
            Direction::Inverse => self.node(self.recipe.nodes().len() - 1),
        };
        let axes = stages.iter().map_while(|stage| match stage {
            Stage::Scale(_) => Some(None),
            Stage::Fft(walked) => match walked.step {
                Step::Fft { axis, .. } => Some(Some(axis)),
                _ => None,
            },
            _ => None,
        });
        let axes: Vec<_> = axes.flatten().collect();
        let element = problem.batch * start.width() * problem.precision.bytes();
        let fused = fusable_suffix(&start.layout, &axes, element, policy.tile_bytes);
        policy.pipelined && fused.len() == axes.len()
    }
}
