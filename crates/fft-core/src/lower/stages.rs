//! The steps of a direction as a host does them, and where what is between them is kept when that is to be one place beside the output.

use super::tiling::{fit_in_cache, fusable_suffix};
use crate::codec::Wire;
use crate::execute::BindContext;
use crate::geometry::exclusive::Exclusive;
use crate::geometry::{DynBrick, Topology};
use crate::problem::Algorithm;
use crate::problem::Memory;
use crate::problem::{Direction, Kind, Problem};
use crate::recipe::{Node, Recipe, Step};
use crate::redistribute::spill::{BufferSplit, Spill};

/// A step and the nodes it leads from and to.
pub(crate) type Walked<'a> = (&'a Node, Step, &'a Node);

/// A step, or several.
pub(crate) enum Stage<'a> {
    Scale(f64),
    Fft {
        from: &'a Node,
        to: &'a Node,
        axis: usize,
        kind: Kind,
    },
    Reshape {
        from: &'a Node,
        to: &'a Node,
        wire: Wire,
        exchange: Algorithm,
        /// All steps that follow.
        rest: Vec<Step>,
    },
    /// Transforms on other layouts, of data that stays where it is.
    SharedPass {
        home: &'a Node,
        first: &'a Node,
        steps: Vec<Walked<'a>>,
        /// Real data, and the axis along which `home` has half its spectrum, where that is done with the first of the
        /// transforms, or on the way back with the last.
        real: Option<(&'a Node, usize)>,
    },
}

/// What is kept where.
#[derive(Default)]
pub(crate) struct MemoryPlan {
    /// What stays in the output, where all steps are one stage for that.
    pub(crate) exclusive: Option<Exclusive>,
    /// How ranks keep what each reshape brings, as it comes; by number of the reshape.
    pub(crate) keeps: Vec<BufferSplit>,
    /// Whether the result comes to memory of the plan's own, and must be copied.
    pub(crate) copies: bool,
    /// Whether ranks send messages in a reshape even where they can read each other's memory.
    pub(crate) messages: bool,
}

/// The stages of one direction, and what is kept where: a part in the output all the while, where that can be ([`in_both`]); otherwise the
/// first of these ways that does with little memory, if it is to be little, or if ranks that all share memory do without a second place
/// by that (real data then took 0.84 to 1.05 of the time). By what all ranks know.
pub(crate) fn stages<'a>(
    recipe: &'a Recipe,
    site: BindContext<'_>,
) -> (Vec<Stage<'a>>, MemoryPlan) {
    if let Some((stage, exclusive)) = in_both(recipe, site) {
        return (vec![stage], MemoryPlan { exclusive: Some(exclusive), ..MemoryPlan::default() });
    }
    let plain = || {
        let seen = site.exposes_all(recipe.problem());
        // Where only the plan's own memory is shown it takes no longer.
        let saves = !seen || recipe.problem().memory == Memory::Least;
        let stages = staged(recipe, site, true, saves);
        let stages = if seen { halved(stages, recipe.problem(), site.direction) } else { stages };
        (stages, MemoryPlan::default())
    };
    let way = |(across, copies, visits)| {
        let stages = staged(recipe, site, across, true);
        let thrift = thrift(&stages, recipe, site, (copies, visits))?;
        Some((stages, thrift))
    };
    let ways = [
        (true, false, true),
        (true, true, true),
        (false, false, true),
        (false, true, true),
        (false, false, false),
        (false, true, false),
    ];
    if recipe.problem().memory == Memory::Least {
        return ways.into_iter().find_map(way).unwrap_or_else(plain);
    }
    let found = plain();
    if !(recipe.problem().all_near() && shares(&found.0)) || one_place(&found.0, recipe, site) {
        return found;
    }
    ways.into_iter().filter(|(_, _, visits)| *visits).find_map(way).unwrap_or(found)
}

/// All steps of a direction as one stage, on data that ends where it began, of which each rank has some that nobody else ever transforms:
/// as others see the plan's memory alone, that stays in the output, and the plan needs so much less.
fn in_both<'a>(recipe: &'a Recipe, site: BindContext<'_>) -> Option<(Stage<'a>, Exclusive)> {
    let problem = recipe.problem();
    if site.node_memory.is_none() || !problem.all_near() || site.exposes_all(problem) {
        return None;
    }
    let steps = recipe.walk(site.direction);
    let (home, end) = (steps.first()?.0, steps.last()?.2);
    if home.layout != end.layout || !steps.iter().all(|(_, step, to)| stays(step, to, home)) {
        return None;
    }
    let works = steps.iter().filter(|(_, step, _)| matches!(step, Step::Fft { .. }));
    let works: Vec<_> = works.map(|(_, _, to)| &to.layout).collect();
    let exclusive = Exclusive::of(&home.layout, &works);
    let some = !works.is_empty() && exclusive.is_any();
    some.then_some((Stage::SharedPass { home, first: home, steps, real: None }, exclusive))
}

/// Whether a step may as well be done on data that stays.
fn stays(step: &Step, to: &Node, home: &Node) -> bool {
    match step {
        Step::Reshape { exchange: Algorithm::Shared, .. } | Step::Scale { .. } => true,
        Step::Reshape { .. } => false,
        Step::Fft { kind, .. } => *kind != Kind::R2C && to.complex == home.complex,
    }
}

/// Whether what is between stages is in the output or in one other place, from which the end may be brought to the output.
fn one_place(stages: &[Stage<'_>], recipe: &Recipe, site: BindContext<'_>) -> bool {
    // Half a spectrum made across ranks has its place: there is nothing to be gained.
    if stages.iter().any(|stage| matches!(stage, Stage::SharedPass { real: Some(_), .. })) {
        return true;
    }
    let kept = |copies| thrift(stages, recipe, site, (copies, true));
    let whole = |thrift: MemoryPlan| thrift.keeps.iter().all(|keep| keep.0.is_none());
    [false, true].into_iter().filter_map(kept).any(whole)
}

/// Whether all data that changes ranks is read where it is.
fn shares(stages: &[Stage<'_>]) -> bool {
    stages.iter().all(|stage| match stage {
        Stage::Reshape { exchange, .. } => *exchange == Algorithm::Shared,
        Stage::Scale(_) | Stage::Fft { .. } | Stage::SharedPass { .. } => true,
    })
}

/// The stages of one direction, where transforms may be done `across` ranks, and `saves` says whether one place for what is between
/// is better than two.
fn staged<'a>(
    recipe: &'a Recipe,
    site: BindContext<'_>,
    across: bool,
    saves: bool,
) -> Vec<Stage<'a>> {
    let walk = recipe.walk(site.direction);
    let (mut stages, mut rest) = (Vec::new(), &walk[..]);
    while let [(from, step, to), tail @ ..] = rest {
        rest = tail;
        match *step {
            Step::Scale { forward, inverse } => {
                stages.push(Stage::Scale(site.direction.choose(forward, inverse)));
            }
            Step::Fft { axis, kind } => stages.push(Stage::Fft { from, to, axis, kind }),
            Step::Reshape { wire, exchange } => {
                let mut to = *to;
                let staying = || staying(recipe.problem(), site, from, step, tail, saves);
                if let Some(steps) = across.then(staying).flatten() {
                    let (steps, tail) = tail.split_at(steps);
                    let (first, steps) = (to, steps.to_vec());
                    (rest, to) = (tail, steps[steps.len() - 1].2);
                    stages.push(Stage::SharedPass { home: from, first, steps, real: None });
                }
                if rest.len() == tail.len() || to.layout != from.layout {
                    let rest = rest.iter().map(|(_, step, _)| *step).collect();
                    stages.push(Stage::Reshape { from, to, wire, exchange, rest });
                }
            }
        }
    }
    stages
}

/// Half a spectrum is made with the transforms across ranks that follow, or on the way back with those before, where their lines
/// fit into one tile: a pass less. Others must see the caller's arrays.
fn halved<'a>(stages: Vec<Stage<'a>>, problem: &Problem, direction: Direction) -> Vec<Stage<'a>> {
    let forward = direction == Direction::Forward;
    let leads = |(_, step, _): &Walked<'_>| matches!(step, Step::Reshape { .. });
    let mut done: Vec<Stage<'a>> = Vec::with_capacity(stages.len());
    let mut rest = stages.into_iter().peekable();
    while let Some(mut stage) = rest.next() {
        match (done.last_mut(), &mut stage) {
            (
                Some(&mut Stage::Fft { from, to, axis, kind: Kind::R2C }),
                Stage::SharedPass { first, steps, real, .. },
            ) if forward => {
                let until = steps.iter().position(leads).unwrap_or(0);
                if fit(problem, [from, to, first], axis, axes_of(&steps[..until])) {
                    *real = Some((from, axis));
                    done.pop();
                }
            }
            // A factor that follows waits for a transform to come.
            (
                Some(Stage::SharedPass { steps, real, .. }),
                &mut Stage::Fft { from, to, axis, kind: Kind::R2C },
            ) if !forward && !matches!(rest.peek(), Some(Stage::Scale(_))) => {
                let (last, before) = steps.split_last().expect("it leads somewhere");
                let since = before.iter().rposition(leads).map_or(0, |reshape| reshape + 1);
                if fit(problem, [to, from, last.0], axis, axes_of(&before[since..])) {
                    *real = Some((to, axis));
                    continue;
                }
            }
            _ => {}
        }
        done.push(stage);
    }
    done
}

/// The axes of transforms.
fn axes_of(steps: &[Walked<'_>]) -> Vec<usize> {
    let axis = |(_, step, _): &Walked<'_>| match step {
        Step::Fft { axis, .. } => Some(*axis),
        _ => None,
    };
    steps.iter().filter_map(axis).collect()
}

/// Whether lines along these axes, and along that of which `home` has half a spectrum, are whole in `work`, and fit into cache
/// together.
fn fit(
    problem: &Problem,
    [real, home, work]: [&Node; 3],
    axis: usize,
    mut axes: Vec<usize>,
) -> bool {
    let len = home.layout.grid().len(axis);
    let whole = |brick: &DynBrick| brick.is_empty() || brick.len(axis) == len;
    let some = !axes.is_empty() && !axes.contains(&axis);
    axes.push(axis);
    let element = problem.howmany * home.width() * problem.precision.bytes();
    some && work.layout.bricks().iter().all(whole)
        && real.layout.order() == home.layout.order()
        && fit_in_cache(&home.layout, &axes, element)
}

/// Of the steps after a reshape how many may as well be done on data that stays: transforms and reshapes between ranks that
/// all share memory, up to one that leads back to where it began. If none does, and of two places for what is between one is to be
/// saved, up to the last.
fn staying(
    problem: &Problem,
    site: BindContext<'_>,
    from: &Node,
    step: &Step,
    rest: &[Walked<'_>],
    saves: bool,
) -> Option<usize> {
    let stays = |(_, step, to): &&Walked<'_>| stays(step, to, from);
    let shared = matches!(step, Step::Reshape { exchange: Algorithm::Shared, .. });
    if site.node_memory.is_none() || !shared || !problem.all_near() {
        return None;
    }
    let steps = rest.iter().take_while(stays).count();
    let leads = |(_, step, _): &Walked<'_>| matches!(step, Step::Reshape { .. });
    let home = |walked: &Walked<'_>| leads(walked) && walked.2.layout == from.layout;
    let elsewhere = || rest[..steps].iter().rposition(leads).filter(|_| saves);
    rest[..steps].iter().position(home).or_else(elsewhere).map(|last| last + 1)
}

/// Data of a node, between two stages that move it or may not change where it is.
struct Rest<'a> {
    node: &'a Node,
    /// Reshapes before.
    reshapes: usize,
    /// Whether other ranks read it in a reshape.
    read: bool,
    /// Whether others transform it.
    worked: bool,
    /// Whether what follows leads to another place.
    leaves: bool,
}

/// Data between stages goes back and forth between two places: one of the plan's own, and the output. What does not fit into
/// that is kept in halves, the second apart; where other ranks reach it, it cannot be. Then it may help to begin in the other
/// place, and to copy the result; or else not to read others' memory but to send messages.
fn thrift(
    stages: &[Stage<'_>],
    recipe: &Recipe,
    site: BindContext<'_>,
    (copies, visits): (bool, bool),
) -> Option<MemoryPlan> {
    let (problem, nodes) = (recipe.problem(), recipe.nodes());
    let ends = [&nodes[0], &nodes[nodes.len() - 1]];
    let [start, end] = site.direction.choose(ends, [ends[1], ends[0]]);
    let reals =
        |node: &Node, rank| node.layout.brick(rank).points() * problem.howmany * node.width();
    let over =
        |node: &Node| (0..problem.input.ranks()).any(|rank| reals(node, rank) > reals(end, rank));
    // A rank that is alone on its host has no node_memory, and must decide as the others do.
    let visited = Topology::new(&problem.hosts, problem.input.ranks()).ranks_per_host() > 1;
    let exposes_all = problem.all_near() && site.exposes_all(problem);
    // Whether what is done to the input is done on the way out.
    let axes = stages.iter().map_while(|stage| match stage {
        Stage::Scale(_) => Some(None),
        Stage::Fft { axis, .. } => Some(Some(*axis)),
        _ => None,
    });
    let axes: Vec<_> = axes.flatten().collect();
    let element = problem.howmany * start.width() * problem.precision.bytes();
    let departs = problem.pipelined()
        && fusable_suffix(&start.layout, &axes, element, problem.tile_bytes()).len() == axes.len();
    let new = |node, reshapes| Rest { node, reshapes, read: false, worked: false, leaves: false };
    let mut rests = vec![new(start, 0)];
    // By number of reshapes before: axes that are transformed there.
    let mut whole = vec![Vec::new()];
    for stage in stages {
        let first = rests.len() == 1;
        let now = rests.last_mut().expect("there is one");
        let reshapes = now.reshapes;
        match stage {
            Stage::Scale(_) => {}
            Stage::Fft { to, axis, kind, .. } => {
                whole[reshapes].push(*axis);
                now.leaves = *kind == Kind::R2C;
                if now.leaves || first && !departs {
                    rests.push(new(to, reshapes));
                }
            }
            Stage::Reshape { to, exchange, .. } => {
                now.read |= *exchange == Algorithm::Shared && visited;
                now.leaves = true;
                rests.push(new(to, reshapes + 1));
                whole.push(Vec::new());
            }
            Stage::SharedPass { home, .. } => {
                now.worked = true;
                if first {
                    rests.push(Rest { worked: true, ..new(home, reshapes) });
                }
            }
        }
    }
    let (mut keeps, mut in_output) = (vec![BufferSplit::default(); whole.len()], !copies);
    for (number, rest) in rests.iter().enumerate().rev() {
        in_output ^= rest.leaves;
        if !in_output {
            continue;
        }
        let over = number > 0 && over(rest.node);
        let shown = rest.worked || rest.read && visits;
        if shown && (over || !exposes_all) {
            return None;
        }
        if over {
            // What others transform they look for where the whole brick has it, and so it is in the input.
            let with = |other: &Rest<'_>| other.worked && other.reshapes == rest.reshapes;
            let whole_brick = rest.reshapes == 0 || rests.iter().any(with);
            let room = |rank| reals(end, rank);
            let halves = Spill::new(rest.node, problem.howmany, &whole[rest.reshapes], room);
            let keep = BufferSplit(Some(halves.filter(|_| !whole_brick)?));
            let comes = rests[number - 1].reshapes < rest.reshapes;
            keeps[rest.reshapes] = if comes { keep } else { keep.transposed() };
        }
    }
    Some(MemoryPlan { exclusive: None, keeps: keeps.split_off(1), copies, messages: !visits })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Precision;
    use crate::geometry::{DynGrid, Layout, ProcGrid};

    /// A recipe for half a spectrum, from pencils to pencils on four ranks.
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

    /// The stages where data stays from the first reshape to the last.
    fn across(recipe: &Recipe, direction: Direction) -> Vec<Stage<'_>> {
        let walk = recipe.walk(direction);
        let leads = |(_, step, _): &Walked<'_>| matches!(step, Step::Reshape { .. });
        let first = walk.iter().position(leads).unwrap();
        let last = walk.iter().rposition(leads).unwrap();
        let mut stages = Vec::new();
        for (number, &(from, step, to)) in walk.iter().enumerate() {
            match step {
                Step::Fft { axis, kind } if number < first || number > last => {
                    stages.push(Stage::Fft { from, to, axis, kind });
                }
                _ if number == first => {
                    let steps = walk[first + 1..=last].to_vec();
                    stages.push(Stage::SharedPass { home: from, first: to, steps, real: None });
                }
                _ => {}
            }
        }
        stages
    }

    #[test]
    fn half_a_spectrum_is_made_across_ranks_where_lines_fit() {
        // Complex planes of the last have 1 MiB and a little.
        for (shape, fits) in [([8, 6, 10], true), ([4, 256, 256], true), ([4, 256, 512], false)] {
            let recipe = pencils(shape);
            for direction in [Direction::Forward, Direction::Inverse] {
                let stages = halved(across(&recipe, direction), recipe.problem(), direction);
                let real = stages.iter().filter_map(|stage| match stage {
                    Stage::SharedPass { real, .. } => real.map(|(node, axis)| (node.complex, axis)),
                    _ => None,
                });
                let expected = if fits { vec![(false, 2)] } else { vec![] };
                assert_eq!(real.collect::<Vec<_>>(), expected, "{shape:?} {direction:?}");
                assert_eq!(stages.len(), if fits { 1 } else { 2 }, "{shape:?} {direction:?}");
            }
            // A factor at the end has no other transform to go with.
            let mut stages = across(&recipe, Direction::Inverse);
            stages.push(Stage::Scale(0.5));
            assert_eq!(halved(stages, recipe.problem(), Direction::Inverse).len(), 3);
        }
    }
}
