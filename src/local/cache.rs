//! Plans of one process that are kept between calls.
//!
//! A plan is in use by one call at a time, so a call takes it out of the cache and puts it back.
//! Threads that transform the same shape at once have a plan each, and nobody waits for a lock while
//! another one computes. The limit is in bytes, because programs that analyse many short signals
//! need thousands of small plans, and others a few large ones.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fft_core::{Error, ErrorKind, PerProcess};

use super::dyn_local_draft::DynLocalDraft;
use super::dyn_local_plan::DynLocalPlan;

/// What idle plans may hold together.
const MOST_BYTES: usize = 1 << 28;
/// What a plan holds besides the memory that it transforms in: its recipe, its report, and tables.
const PLAN_BYTES: usize = 1 << 15;

static CACHE: PerProcess<Mutex<Cache>> = PerProcess::new(Mutex::default);

#[derive(Default)]
struct Cache {
    /// Plans that are in use are not among them.
    idle: HashMap<Key, Vec<Kept>>,
    bytes: usize,
    /// Calls until now, to tell which plan was used last.
    calls: u64,
}

#[derive(Clone, PartialEq)]
struct Key(DynLocalDraft);

// A tolerance is never NaN.
impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let draft = &self.0;
        draft.shape.hash(state);
        draft.precision.hash(state);
        draft.threads.hash(state);
        draft.options.kinds.hash(state);
        draft.options.howmany.hash(state);
    }
}

struct Kept {
    plan: Box<DynLocalPlan>,
    bytes: usize,
    last_call: u64,
}

impl Cache {
    fn take(&mut self, key: &Key) -> Option<Box<DynLocalPlan>> {
        let kept = self.idle.get_mut(key)?.pop()?;
        self.bytes -= kept.bytes;
        Some(kept.plan)
    }

    /// Keeps a plan, and returns those that must go.
    fn put(&mut self, key: Key, plan: Box<DynLocalPlan>) -> Vec<Kept> {
        self.calls += 1;
        let kept = Kept { bytes: plan.memory() + PLAN_BYTES, plan, last_call: self.calls };
        self.bytes += kept.bytes;
        self.idle.entry(key).or_default().push(kept);
        if self.bytes > MOST_BYTES { self.shrink(MOST_BYTES / 4 * 3) } else { Vec::new() }
    }

    /// Gives up the plans that were not used for the longest time, except the last one, until the
    /// others hold at most this number of bytes. To look at all plans for each new one would take
    /// longer than to make it, so a full cache gives up several at once.
    fn shrink(&mut self, most: usize) -> Vec<Kept> {
        let mut ages: Vec<_> =
            self.idle.values().flatten().map(|kept| (kept.last_call, kept.bytes)).collect();
        ages.sort_unstable();
        let (mut bytes, mut oldest) = (self.bytes, 0);
        for (last_call, its_bytes) in ages {
            if bytes <= most || last_call == self.calls {
                break;
            }
            bytes -= its_bytes;
            oldest = last_call;
        }
        self.bytes = bytes;
        let mut gone = Vec::new();
        self.idle.retain(|_, plans| {
            gone.extend(plans.extract_if(.., |kept| kept.last_call <= oldest));
            !plans.is_empty()
        });
        gone
    }
}

fn locked(cache: &Mutex<Cache>) -> MutexGuard<'_, Cache> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives up the plans that calls without a plan have made ([`DynLocalDraft::run`],
/// [`LocalDraft::forward`](super::LocalDraft::forward)) and their threads. Those that are in use
/// stay.
pub fn clear_plans() {
    let all = std::mem::take(&mut *locked(CACHE.get()));
    // Plans end here, where the cache is not locked.
    drop(all);
}

/// Makes something, once more without idle plans if there is not enough memory for it.
pub(super) fn with_room<R>(make: impl Fn() -> Result<R, Error>) -> Result<R, Error> {
    match make() {
        Err(error) if matches!(error.kind(), ErrorKind::Memory | ErrorKind::Threads) => {
            if locked(CACHE.get()).idle.is_empty() {
                return Err(error);
            }
            clear_plans();
            make()
        }
        made => made,
    }
}

/// Runs a kept plan, or a new one, which is then kept.
pub(super) fn with_plan(
    draft: DynLocalDraft,
    run: impl FnOnce(&mut DynLocalPlan) -> Result<(), Error>,
) -> Result<(), Error> {
    let key = Key(draft);
    let cache = CACHE.get();
    let found = locked(cache).take(&key);
    let mut plan = match found {
        Some(plan) => plan,
        None => Box::new(key.0.build()?),
    };
    // A plan that fails is not used again.
    run(&mut plan)?;
    let gone = locked(cache).put(key, plan);
    drop(gone);
    Ok(())
}

#[cfg(test)]
mod tests {
    use fft_core::Precision;

    use super::*;
    use crate::field::DynTransform;

    fn draft(n: usize) -> DynLocalDraft {
        DynLocalDraft::new([n], DynTransform::C2c, Precision::F64)
    }

    /// Puts a plan of this length into the cache.
    fn put(cache: &mut Cache, n: usize) {
        let plan = Box::new(draft(n).build().unwrap());
        assert_eq!(cache.put(Key(draft(n)), plan).len(), 0);
    }

    #[test]
    fn a_full_cache_gives_up_what_was_not_used_for_longest() {
        let mut cache = Cache::default();
        for n in [8, 9, 10, 8] {
            put(&mut cache, n);
        }
        assert!(cache.take(&Key(draft(11))).is_none());
        let again = cache.take(&Key(draft(9))).unwrap();
        cache.put(Key(draft(9)), again);
        let all = cache.bytes;
        // In order of use: 8, 10, 8, 9.
        assert_eq!(cache.shrink(all - 1).len(), 1);
        assert_eq!(cache.shrink(cache.bytes).len(), 0);
        assert!(cache.take(&Key(draft(8))).is_some() && cache.take(&Key(draft(8))).is_none());
        assert!(cache.take(&Key(draft(10))).is_some());
        // The last plan stays, however large it is.
        assert_eq!(cache.shrink(0).len(), 0);
        assert!(cache.take(&Key(draft(9))).is_some());
        assert_eq!(cache.bytes, 0);
    }
}
