//! Processes that return early, and drop their plans while others go on.

use thriffty::planning::{Exchange, Memory};
use thriffty::{C2c, Comm, Error, Grid, Plan};

use super::plans;

type Done = Result<(), Error>;

/// One rank fails by itself and drops its plan; the others get an error in their next call, and
/// whenever they try again. Then all make the next plan.
pub(crate) fn early(comm: &dyn Comm) -> Done {
    if comm.size() == 1 {
        return Ok(());
    }
    for culprit in [comm.size() - 1, 0] {
        before_a_plan(comm, culprit)?;
        for (exchange, memory) in plans::everything() {
            leave(comm, culprit, exchange, memory, false)?;
        }
        leave(comm, culprit, Exchange::Shared, Memory::Ample, true)?;
    }
    Ok(())
}

/// One rank drops the communicator that the others are about to make a plan on.
fn before_a_plan(comm: &dyn Comm, culprit: usize) -> Done {
    let own = comm.dup()?;
    if comm.rank() != culprit {
        let built = Plan::<C2c, 3>::c2c(own.as_ref(), Grid::new([12, 10, 8])?).build();
        assert_eq!(built.map(drop), Err(Error::Left { gone: culprit }));
    }
    Ok(())
}

fn leave(
    comm: &dyn Comm,
    culprit: usize,
    exchange: Exchange,
    memory: Memory,
    shared: bool,
) -> Done {
    let draft = Plan::<C2c, 3>::c2c(comm, Grid::new([12, 10, 8])?);
    let draft = draft.exchange(exchange).memory(memory);
    let mut plan = if shared { draft.shared_arrays(true) } else { draft }.build()?;
    let mut field = if shared { plan.shared_input()? } else { plan.input() };
    let spectrum = plan.forward(field)?;
    field = plan.inverse(spectrum)?;
    if comm.rank() == culprit {
        return Ok(());
    }
    let left = Err(Error::Left { gone: culprit });
    let what = format!("rank {}, {exchange}, {memory:?}", comm.rank());
    assert_eq!(plan.forward(field).map(drop), left, "{what}");
    assert_eq!(plan.shared_input().map(drop), left, "{what}");
    assert_eq!(plan.agree(Ok(())), left, "{what}");
    Ok(())
}

/// All ranks except the first leave, before or during its call. It gets an error about the lowest
/// of them, because each has answered this call; in a process group about any of them, because
/// shared memory may show a higher one first.
pub(crate) fn all_but_one(comm: &dyn Comm) -> Done {
    let mut plan = messages(comm)?;
    if comm.rank() > 0 {
        return Ok(());
    }
    let heard = plan.agree(Ok(()));
    if comm.size() == 1 {
        assert_eq!(heard, Ok(()));
        return Ok(());
    }
    let Err(Error::Left { gone }) = heard else { panic!("{heard:?}") };
    let last = if comm.name() == "group" { comm.size() - 1 } else { 1 };
    assert!((1..=last).contains(&gone), "{gone}");
    Ok(())
}

/// Plans without resources that all ranks free together may be dropped in any order.
pub(crate) fn in_any_order(comm: &dyn Comm) -> Done {
    for round in 0..4 {
        let mut all = [messages(comm)?, messages(comm)?, messages(comm)?];
        all[1].agree(Ok(()))?;
        all.rotate_left((comm.rank() + round) % 3);
        all.into_iter().for_each(drop);
    }
    Ok(())
}

/// A plan that a rank never drops keeps nobody from leaving, nor MPI from ending. It comes last,
/// because others may wait there until MPI ends.
pub(crate) fn kept_by_one(comm: &dyn Comm) -> Done {
    for exchange in [Exchange::P2p, Exchange::Shared] {
        let plan = by(comm, exchange)?;
        if comm.rank() == 0 {
            std::mem::forget(plan);
        }
    }
    Ok(())
}

/// A plan whose ranks send each other messages.
fn messages(comm: &dyn Comm) -> Result<Plan<C2c, 3>, Error> {
    by(comm, Exchange::P2p)
}

fn by(comm: &dyn Comm, exchange: Exchange) -> Result<Plan<C2c, 3>, Error> {
    let plan = Plan::c2c(comm, Grid::new([12, 10, 8])?).exchange(exchange).build()?;
    assert_eq!(plan.exchange(), exchange);
    Ok(plan)
}
