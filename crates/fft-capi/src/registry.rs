//! Live plans by number.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::plan::Held;
use crate::status::Failure;

/// A plan in use by one thread at a time.
type Shared = Arc<Mutex<Held>>;

/// All plans of the process, and the number of the next.
struct Registry {
    plans: BTreeMap<usize, Shared>,
    next: usize,
}

/// Odd numbers, so that none is the address of anything but a byte.
static REGISTRY: Mutex<Registry> = Mutex::new(Registry { plans: BTreeMap::new(), next: 1 });

/// What panics does so outside of the few lines that hold the lock.
fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a plan; its number.
pub(crate) fn insert(plan: Held) -> usize {
    let mut registry = registry();
    let number = registry.next;
    registry.next += 2;
    registry.plans.insert(number, Arc::new(Mutex::new(plan)));
    number
}

/// Gives a plan up. Who uses it at this moment drops it afterwards.
pub(crate) fn remove(number: usize) -> Result<(), Failure> {
    let plan = registry().plans.remove(&number);
    // Dropped here, when the registry is free again: dropping is collective.
    plan.map(drop).ok_or(Failure::Handle(number))
}

/// Does something with a plan. One in which something panicked is not used again.
pub(crate) fn with<R>(
    number: usize,
    action: impl FnOnce(&mut Held) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let plan = registry().plans.get(&number).cloned().ok_or(Failure::Handle(number))?;
    let mut plan = plan.lock().map_err(|_| Failure::Broken)?;
    action(&mut plan)
}
