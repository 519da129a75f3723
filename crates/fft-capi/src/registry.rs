//! The objects that programs hold, by number.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thriffty::{Comm, PerProcess};

use crate::arrays::Copies;
use crate::plan::Held;
use crate::status::Failure;

/// The objects of one type. Each is in use by one thread at a time.
pub(crate) struct Registry<V> {
    what: &'static str,
    objects: Mutex<BTreeMap<usize, Arc<Mutex<V>>>>,
}

/// All plans of the process. A forked process has none of its parent's, whose threads it lacks.
static PLANS: PerProcess<Registry<Held>> = PerProcess::new(|| Registry::new("plan"));

/// All copies of the process.
static COPIES: PerProcess<Registry<Copies>> = PerProcess::new(|| Registry::new("copy"));

/// All communicators of process groups.
static COMMS: PerProcess<Registry<Box<dyn Comm>>> =
    PerProcess::new(|| Registry::new("communicator"));

pub(crate) fn plans() -> &'static Registry<Held> {
    PLANS.get()
}

pub(crate) fn copies() -> &'static Registry<Copies> {
    COPIES.get()
}

pub(crate) fn comms() -> &'static Registry<Box<dyn Comm>> {
    COMMS.get()
}

/// Odd numbers, so that none is the address of anything but a byte. No two objects have the same.
static NEXT: AtomicUsize = AtomicUsize::new(1);

impl<V> Registry<V> {
    fn new(what: &'static str) -> Self {
        Self { what, objects: Mutex::new(BTreeMap::new()) }
    }

    /// No panic can occur in the few lines that hold the lock.
    fn objects(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<Mutex<V>>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an object; its number.
    pub(crate) fn insert(&self, object: V) -> usize {
        let number = NEXT.fetch_add(2, Ordering::Relaxed);
        self.objects().insert(number, Arc::new(Mutex::new(object)));
        number
    }

    /// Gives an object up. Who uses it at this moment drops it afterwards.
    pub(crate) fn remove(&self, number: usize) -> Result<(), Failure> {
        let object = self.objects().remove(&number);
        // Dropped here, when the registry is free again: dropping is collective.
        object.map(drop).ok_or(Failure::Handle(self.what, number))
    }

    /// Does something with an object. One in which something panicked is not used again.
    pub(crate) fn with<R>(
        &self,
        number: usize,
        action: impl FnOnce(&mut V) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let object = self.objects().get(&number).cloned();
        let object = object.ok_or(Failure::Handle(self.what, number))?;
        let mut object = object.lock().map_err(|_| Failure::Broken(self.what))?;
        action(&mut object)
    }
}
