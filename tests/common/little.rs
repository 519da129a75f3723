//! Plans that take little memory, on any communicator.

use Kind::{C2C, Dct2, Dst1, R2C};
use thriffty::planning::{DynBrick, Exchange, Memory, Node, Step, Transform};
use thriffty::{C2c, Comm, Complex, Error, Kind, Plan, R2c, R2r, Tolerance};

use super::check::{Case, Make, check};
use super::lossy;

type Done = Result<(), Error>;

/// Bytes of scratch of all local transforms, and of their tables, which processes do not share.
const SCRATCH: usize = 3 << 15;
/// Bytes of the lists of messages and rounds of an exchange, both ways.
const LISTS: usize = 3 << 17;
/// Bytes of the scratch of codecs.
const CODECS: usize = 1 << 16;
/// Bytes of a tile that ranks fill from each other's memory, at most.
const TILE: usize = 1 << 20;
/// Bytes of lines that are far apart, unless least memory is set.
const FAR: usize = 1 << 19;

/// A few kinds, shapes and tilings, in several chunks: against the definition, out of place, in
/// place and as fields.
pub(crate) fn right(comm: &dyn Comm) -> Done {
    for exchange in Exchange::ALL {
        let least = |case: Case<3>| case.exchange(exchange).memory(Memory::Least);
        check::<C2c<f64>, 3>(comm, &least(Case::new([24, 20, 18], [C2C; 3]).batch(3)))?;
        check::<C2c<f32>, 3>(comm, &least(Case::new([30, 17, 21], [C2C; 3]).tiling(3)))?;
        let half = Case::new([20, 24, 31], [C2C, C2C, R2C]);
        check::<R2c<f64>, 3>(comm, &least(half.clone().batch(2)))?;
        check::<R2c<f64>, 3>(comm, &least(half.tiling(5).orders([2, 0, 1], [1, 2, 0])))?;
        check::<R2r<f64>, 3>(comm, &least(Case::new([16, 25, 33], [Dct2, Dst1, Dct2])))?;
    }
    for exchange in [Exchange::Shared, Exchange::P2p, Exchange::Alltoallv] {
        for [input, output] in cuts(comm.size()) {
            let half = Case::new([8, 12, 10], [C2C, C2C, R2C]).exchange(exchange);
            let half = half.cuts(input, output);
            check::<R2c<f64>, 3>(comm, &half.clone().memory(Memory::Least))?;
            if exchange == Exchange::Shared {
                check::<R2c<f64>, 3>(comm, &half)?;
            }
        }
    }
    Ok(())
}

/// Input and output in slabs, pencils and bricks, each with each, on two and four ranks.
fn cuts(ranks: usize) -> Vec<[[usize; 3]; 2]> {
    let slabs = [[ranks, 1, 1], [1, ranks, 1], [1, 1, ranks]];
    let all = match ranks {
        2 => slabs.to_vec(),
        4 => [slabs, [[2, 2, 1], [2, 1, 2], [1, 2, 2]]].concat(),
        _ => Vec::new(),
    };
    all.iter().flat_map(|input| all.iter().map(|output| [*input, *output])).collect()
}

/// Bytes of a plane of any rank's brick at any node, at most.
fn plane<K: Transform>(plan: &Plan<K, 3>) -> usize {
    let problem = plan.recipe().problem();
    let planes = |node: &Node| {
        let point = problem.batch * node.width() * problem.precision.bytes();
        let most = |brick: &DynBrick| {
            let lens = (0..3).map(|axis| brick.len(axis)).filter(|len| *len > 1);
            brick.points() / lens.min().unwrap_or(1)
        };
        point * node.layout.bricks().iter().map(most).max().unwrap_or(0)
    };
    plan.recipe().nodes().iter().map(planes).max().unwrap_or(0)
}

/// Bytes of a chunk of messages and of a round of them, at most: of planes of a brick, unless these
/// are larger than two chunks.
fn chunk_and_round<K: Transform>(plan: &Plan<K, 3>) -> [usize; 2] {
    let (problem, ranks) = (plan.recipe().problem(), plan.comm().size());
    let (width, least) = (if problem.complex { 2 } else { 1 }, 8192 * ranks);
    let all = problem.grid().points() * width * problem.precision.bytes() * problem.batch;
    let plane = plane(plan);
    let chunk = (all / ranks / 64).max(least).max(plane);
    [chunk, (all / ranks / 128).max(least).max(plane.min(2 * least))]
}

/// A rank takes at most the largest brick of the transform and the part of it that does not fit
/// into the output.
fn within<K: Make>(comm: &dyn Comm, case: &Case<3>, tolerance: bool) -> Done {
    let plan = |memory| {
        let draft = case.clone().memory(memory).draft::<K>(comm)?;
        if tolerance {
            draft.ignore_shared_memory(true).tolerance(Tolerance::relative(1e-6)?).build()
        } else {
            draft.build()
        }
    };
    let least = plan(Memory::Least)?;
    let recipe = least.recipe();
    let bytes = |node: &Node| {
        let points = node.layout.brick(comm.rank()).points() * case.batch;
        points * node.width() * recipe.problem().precision.bytes()
    };
    let held = recipe.nodes().iter().map(bytes).max().expect("a recipe has a node");
    let ends = [0, recipe.nodes().len() - 1].map(|node| bytes(&recipe.nodes()[node]));
    let over = held - ends.into_iter().min().expect("there are two");
    let (messages, [chunk, round]) = (!recipe.problem().all_near(), chunk_and_round(&least));
    // A tile and tables; messages of a round out and in, or two windows, in which each pair of
    // ranks has a place for all reshapes. With bricks that are not even, a rank may get whole
    // chunks of all others at once.
    let even = case.tiling.is_none();
    let messages_take = match case.exchange {
        Exchange::Ring(_) if !even => 4 * comm.size() * round,
        _ if !even => 2 * comm.size() * chunk,
        Exchange::Ring(_) => 6 * round,
        _ => (5 * round).min(4 * chunk),
    };
    // Where the collective is made of messages between pairs, these have slots of their own.
    let pairs = if case.exchange == Exchange::Alltoallv { 2 * round } else { 0 };
    let steps = |step: &&Step| matches!(step, Step::Reshape { .. });
    let lists = LISTS * recipe.steps().iter().filter(steps).count() + CODECS;
    let rest = SCRATCH + if messages { messages_take + pairs + lists } else { TILE };
    let what = format!("{case:?} on {} ranks: {recipe}", comm.size());
    // What does not fit is cut off in planes.
    let (found, bound) = (least.workspace_bytes(), held + over + plane(&least) + rest);
    assert!(found <= bound, "{found} bytes, {bound} allowed, a rank holds {held}: {what}");
    // Ranks that all share memory need no more with ample memory, if bricks are even.
    if !messages && even && !tolerance {
        let ample = plan(Memory::Ample)?.workspace_bytes();
        assert!(ample <= bound + FAR, "{ample} bytes, {bound} allowed and {FAR}: {what}");
    }
    // Each rank has messages of more than a few chunks, whose memory is saved.
    if messages && even && case.cuts.is_none() {
        let ample = plan(Memory::Ample)?.workspace_bytes();
        assert!(found + held / 6 < ample, "{found}, {ample}: {what}");
    }
    Ok(())
}

/// The workspace is the size of the data, the part that does not fit into the output, and a
/// constant.
pub(crate) fn bounded(comm: &dyn Comm) -> Done {
    for exchange in Exchange::ALL {
        let shape = [96, 64, 72];
        let whole = Case::new(shape, [C2C; 3]).exchange(exchange);
        within::<C2c<f64>>(comm, &whole, false)?;
        within::<C2c<f32>>(comm, &whole.clone().batch(2), false)?;
        within::<C2c<f64>>(comm, &whole, true)?;
        let half = Case::new(shape, [C2C, C2C, R2C]).exchange(exchange);
        within::<R2c<f64>>(comm, &half, false)?;
        within::<R2c<f64>>(comm, &half, true)?;
        // Layouts that are less even at the ends than in between, or different at the two ends.
        for seed in 0..3 {
            within::<C2c<f64>>(comm, &whole.clone().tiling(seed), false)?;
            within::<R2c<f64>>(comm, &half.clone().tiling(seed), false)?;
        }
    }
    // So large that tiles and messages are a small part. Each pair of cuts takes its turn.
    for (number, [input, output]) in cuts(comm.size()).into_iter().enumerate() {
        let exchange = [Exchange::Shared, Exchange::P2p][number % 2];
        let (whole, half) = ([C2C; 3], [C2C, C2C, R2C]);
        let case = |kinds| Case::new([128; 3], kinds).exchange(exchange).cuts(input, output);
        match number / 2 % 2 {
            0 => within::<C2c<f64>>(comm, &case(whole), false)?,
            _ => within::<R2c<f64>>(comm, &case(half), false)?,
        }
    }
    Ok(())
}

/// For large data, messages are a small part by default, too: in chunks, a few of which are under
/// way at once, or in one. Messages that are put, or that hosts send as one, take more.
pub(crate) fn modest(comm: &dyn Comm) -> Done {
    // With one rank there are none, and with many ranks the part of each is small.
    if !(2..=4).contains(&comm.size()) {
        return Ok(());
    }
    let all = Exchange::ALL.into_iter().chain([Exchange::KWay(3)]);
    let more = |exchange: &Exchange| matches!(exchange, Exchange::Ring(_) | Exchange::Hosts);
    for exchange in all.filter(|exchange| !more(exchange)) {
        let case = Case::new([192; 3], [C2C; 3]).exchange(exchange);
        let plan = case.plan::<C2c<f64>>(comm)?;
        let (found, bytes) = (plan.workspace_bytes(), plan.input_len() * size_of::<Complex<f64>>());
        // If ranks of a host can access no arrays but their own, the part of the data that no other
        // rank transforms stays in the output.
        let apart = comm.node_memory()?.is_some_and(|node_memory| !node_memory.exposes_all());
        let private = apart && exchange == Exchange::Shared && plan.recipe().problem().all_near();
        let most = bytes + bytes / 6 - if private { bytes / comm.size() } else { 0 };
        let most = most + 2 * LISTS + SCRATCH;
        assert!(found <= most, "{found} bytes, {most} allowed: {}", plan.recipe());
    }
    Ok(())
}

/// All of it.
pub(crate) fn all(comm: &dyn Comm) -> Done {
    right(comm)?;
    bounded(comm)?;
    modest(comm)?;
    lossy::all(comm, Memory::Least)
}
