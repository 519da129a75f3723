//! Plans of one process that are kept between calls.
//!
//! A plan is in use by one call at a time, so a call takes it out of the cache and puts it back.
//! Threads that transform the same shape at once have a plan each, and nobody waits for a lock
//! while another one computes. The limit is in bytes, because programs that analyse many short
//! signals need thousands of small plans, and others a few large ones.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Mutex;

use fft_core::{Comm, Error, ErrorKind, PerProcess, locked};

use super::dyn_draft::{DynDraft, Key};
use super::dyn_plan::DynPlan;

/// Bytes that idle plans may hold together, except the one that was used last.
const MOST_BYTES: usize = 1 << 28;
/// Bytes that a plan holds besides the memory that it transforms in: its recipe, report and tables.
const PLAN_BYTES: usize = 1 << 15;

static CACHE: PerProcess<Mutex<Cache>> = PerProcess::new(Mutex::default);

#[derive(Default)]
struct Cache {
    /// Plans that are in use are not among them.
    idle: HashMap<Key, Vec<Kept>>,
    bytes: usize,
    /// The number of calls so far, to find the least recently used plan.
    calls: u64,
}

// A tolerance is never NaN.
impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.grid.shape().hash(state);
        self.precision.hash(state);
        self.threads.hash(state);
        self.options.kinds.hash(state);
        self.options.batch.hash(state);
    }
}

struct Kept {
    plan: Box<DynPlan>,
    /// Bytes that it holds, counted when it was made, because counting takes longer than a small
    /// transform.
    bytes: usize,
    last_call: u64,
}

impl Kept {
    fn new(plan: DynPlan) -> Self {
        Self { bytes: plan.workspace_bytes() + PLAN_BYTES, plan: Box::new(plan), last_call: 0 }
    }
}

impl Cache {
    fn take(&mut self, key: &Key) -> Option<Kept> {
        let kept = self.idle.get_mut(key)?.pop()?;
        self.bytes -= kept.bytes;
        Some(kept)
    }

    /// Keeps a plan, and returns the plans that must be dropped.
    fn put(&mut self, key: Key, kept: Kept) -> Vec<Kept> {
        self.calls += 1;
        self.bytes += kept.bytes;
        self.idle.entry(key).or_default().push(Kept { last_call: self.calls, ..kept });
        if self.bytes > MOST_BYTES { self.shrink(MOST_BYTES / 4 * 3) } else { Vec::new() }
    }

    /// Returns the least recently used plans, except the last one, until the others hold at most
    /// this number of bytes. Looking at all plans for each new one would take longer than making
    /// it, so a full cache gives up several at once.
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

/// Drops the plans that calls without a plan have made ([`DynDraft::run_once`],
/// [`Draft::forward_once`](crate::Draft::forward_once)) and their threads, and returns their
/// number. Plans in use stay.
///
/// If there is not enough memory for a plan of one process, the library calls this and tries again.
pub fn clear_plans() -> usize {
    let all = std::mem::take(&mut *locked(CACHE.get()));
    // Plans are dropped here, where the cache is not locked.
    all.idle.into_values().map(|plans| plans.len()).sum()
}

/// Makes something on a communicator. If there is not enough memory, a single process drops its
/// idle plans and tries again. Several processes do not, because all of them would have to.
pub(super) fn retry_without_kept_plans<R>(
    comm: &dyn Comm,
    make: impl Fn() -> Result<R, Error>,
) -> Result<R, Error> {
    match make() {
        Err(error)
            if error.kind() == ErrorKind::Memory && comm.size() == 1 && clear_plans() > 0 =>
        {
            make()
        }
        made => made,
    }
}

/// Runs the kept plan of a draft, or a new one, which is then kept.
///
/// # Errors
/// The errors of the plan; [`Error::Argument`] for a draft that is not for this process alone.
pub(super) fn with_plan(
    draft: &DynDraft<'_>,
    run: impl FnOnce(&mut DynPlan) -> Result<(), Error>,
) -> Result<(), Error> {
    if !draft.is_local() {
        let what = "draft of a transform without a plan";
        return Err(Error::argument(what, "one over a communicator", "one of this process"));
    }
    let threads = Some(draft.useful_threads());
    let key = Key { threads, ..draft.key()? };
    let cache = CACHE.get();
    let found = locked(cache).take(&key);
    let mut kept = match found {
        Some(kept) => kept,
        None => {
            let mut draft = draft.clone();
            draft.threads = threads;
            Kept::new(draft.build()?)
        }
    };
    let result = run(&mut kept.plan);
    // A plan that fails is not used again, unless it has refused the arrays.
    if result.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::Argument) {
        let gone = locked(cache).put(key, kept);
        drop(gone);
    }
    result
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use fft_core::{DynGrid, Precision};

    use super::*;
    use crate::field::DynTransform;

    fn draft(n: usize) -> DynDraft<'static> {
        DynDraft::local(DynGrid::new([n]).unwrap(), DynTransform::C2c, Precision::F64)
    }

    fn key(n: usize) -> Key {
        draft(n).key().unwrap()
    }

    /// Puts a plan of this length into the cache.
    fn put(cache: &mut Cache, n: usize) {
        let kept = Kept::new(draft(n).build().unwrap());
        assert_eq!(cache.put(key(n), kept).len(), 0);
    }

    #[test]
    fn a_full_cache_gives_up_what_was_not_used_for_longest() {
        let mut cache = Cache::default();
        for n in [8, 9, 10, 8] {
            put(&mut cache, n);
        }
        assert!(cache.take(&key(11)).is_none());
        let again = cache.take(&key(9)).unwrap();
        cache.put(key(9), again);
        let all = cache.bytes;
        // In order of use: 8, 10, 8, 9.
        assert_eq!(cache.shrink(all - 1).len(), 1);
        assert_eq!(cache.shrink(cache.bytes).len(), 0);
        assert!(cache.take(&key(8)).is_some() && cache.take(&key(8)).is_none());
        assert!(cache.take(&key(10)).is_some());
        // The last plan stays, however large it is.
        assert_eq!(cache.shrink(0).len(), 0);
        assert!(cache.take(&key(9)).is_some());
        assert_eq!(cache.bytes, 0);
    }

    #[test]
    fn many_small_plans_are_kept() {
        let mut cache = Cache::default();
        (1..500).for_each(|n| put(&mut cache, n));
        assert!((1..500).all(|n| cache.take(&key(n)).is_some()));
    }

    /// Two calls with equal drafts are inside their plans at the same time.
    #[test]
    fn calls_side_by_side_do_not_wait_for_each_other() {
        let both_run = Barrier::new(2);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    with_plan(&draft(77), |_| {
                        both_run.wait();
                        Ok(())
                    })
                });
            }
        });
        let kept = locked(CACHE.get()).idle.get(&Key { threads: Some(1), ..key(77) }).map(Vec::len);
        assert!(matches!(kept, Some(1 | 2)), "{kept:?}");
    }
}
