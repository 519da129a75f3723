//! Plans that are kept for later calls.

use std::any::Any;
use std::fmt;

use fft_core::{Comm, Error, Reduce, agree, assert_same};

use super::draft::Draft;
use super::dyn_draft::{DynDraft, Key};
use super::dyn_plan::DynPlan;
use super::plan::Plan;
use crate::field::Transform;

/// The most recently used plans of one communicator, for programs that plan in each call.
///
/// [`PlanCache::plan`] takes the place of [`Draft::build`]. Drafts with the same transform,
/// precision, grid and [`Options`](crate::planning::Options) on every rank get the same plan, which
/// keeps its memory and its timings. Options include bricks: a change of one rank's brick plans
/// anew on all.
///
/// Plans are on the host. Wisdom is read, candidates are measured and the function of
/// [`Draft::watch`] is called when a plan is made, but not when it is found. A plan stays in the
/// cache after a failed transform, because it can be used again.
///
/// All ranks make, drop and find the same plans. Dropping the cache is collective for MPI
/// processes, as is dropping a plan.
///
/// ```
/// use thriffty::planning::PlanCache;
/// thriffty::run(2, |world| {
///     let mut plans = PlanCache::new(world, 8)?;
///     for shape in [[8, 8], [6, 10], [8, 8]] {
///         // The third time finds the plan of the first.
///         let plan = plans.plan(thriffty::r2c(world, shape))?;
///         let spectrum = plan.forward(plan.input())?;
///         plan.inverse(spectrum)?;
///     }
///     Ok::<(), thriffty::Error>(())
/// })?;
/// # Ok::<(), thriffty::Error>(())
/// ```
pub struct PlanCache<'a> {
    comm: &'a dyn Comm,
    capacity: usize,
    /// Latest use first, in the same order on all ranks.
    plans: Vec<(Key, Box<dyn Any>)>,
}

impl<'a> PlanCache<'a> {
    /// A cache of at most `capacity` plans over `comm`. Collective.
    ///
    /// # Errors
    /// The same on every rank: [`Error::Disagreement`] about the capacity, and [`Error::Argument`]
    /// if it is 0.
    pub fn new(comm: &'a dyn Comm, capacity: usize) -> Result<Self, Error> {
        assert_same(comm, &[("capacity of a plan cache", capacity.to_string())])?;
        match capacity {
            0 => Err(Error::argument("capacity of a plan cache", 0, "at least 1")),
            _ => Ok(Self { comm, capacity, plans: Vec::new() }),
        }
    }

    /// The plan of this draft: one that all ranks find, or a new one. Collective.
    ///
    /// Finding a plan takes two small reductions and no planning. When the cache is full, the least
    /// recently used plan is dropped before a new one is made.
    ///
    /// # Errors
    /// The same on every rank, and the cache can be used again: the errors of [`Draft::build`], and
    /// [`Error::OnRank`] for a draft over another communicator.
    pub fn plan<K: Transform, const D: usize>(
        &mut self,
        draft: Draft<'_, K, D>,
    ) -> Result<&mut Plan<K, D>, Error> {
        self.find_or_build(draft.into_dyn(), Plan::of)
    }

    /// As [`PlanCache::plan`]. Collective.
    ///
    /// # Errors
    /// As [`PlanCache::plan`]; also [`Error::OnRank`] for a draft on a device.
    pub fn dyn_plan(&mut self, draft: DynDraft<'_>) -> Result<&mut DynPlan, Error> {
        self.find_or_build(draft, |plan| plan)
    }

    /// The key of a draft.
    ///
    /// # Errors
    /// On this rank: for a draft over another communicator; the errors of [`DynDraft::key`].
    fn key(&self, draft: &DynDraft<'_>) -> Result<Key, Error> {
        if !std::ptr::addr_eq(self.comm, draft.comm()) {
            let what = "communicator of a draft";
            return Err(Error::argument(what, "another", "that of the plan cache"));
        }
        draft.key()
    }

    fn find_or_build<P: 'static>(
        &mut self,
        draft: DynDraft<'_>,
        typed: fn(DynPlan) -> P,
    ) -> Result<&mut P, Error> {
        let key = agree(self.comm, self.key(&draft))?;
        // A rank may have several candidates, some of which have other bricks on other ranks.
        let is_found = |(other, plan): &(Key, Box<dyn Any>)| *other == key && plan.is::<P>();
        let mut found: Vec<_> = self.plans.iter().map(|it| f64::from(is_found(it))).collect();
        self.comm.allreduce(Reduce::Min, &mut found)?;
        let entry = match found.iter().position(|&by_all| by_all == 1.0) {
            Some(at) => self.plans.remove(at),
            None => {
                self.plans.truncate(self.capacity - 1);
                (key, Box::new(typed(draft.build()?)) as _)
            }
        };
        self.plans.insert(0, entry);
        Ok(self.plans[0].1.downcast_mut().expect("all found a plan of this type, or made one"))
    }
}

impl fmt::Debug for PlanCache<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanCache")
            .field("capacity", &self.capacity)
            .field("plans", &self.plans.iter().map(|(key, _)| key).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
