//! Tables that the plans of a process share. The first plan that needs a transform makes it, and
//! it is freed with the last plan that uses it.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use crate::lanes::Batch;
use crate::per_process::PerProcess;

/// What a transform computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Transform {
    Complex {
        forward: bool,
    },
    Real,
    Dct1,
    Dst1,
    Type2And3,
    Type4,
    /// Several lines at once, by radices of costs that have this hash.
    Batch(Batch, u64),
}

/// The transform is its name: memory checkers complain where enums with data are compared.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    number: TypeId,
    transform: String,
    n: usize,
}

/// A transform and the bytes of its own tables, without those of transforms that it calls.
pub(crate) struct Made<F> {
    pub(crate) transform: F,
    pub(crate) bytes: usize,
}

/// The place of a transform, which one thread makes while others wait for it.
type Slot = OnceLock<Made<Box<dyn Any + Send + Sync>>>;

static SLOTS: PerProcess<Mutex<HashMap<Key, Weak<Slot>>>> = PerProcess::new(Mutex::default);

fn slot(key: Key) -> Arc<Slot> {
    let mut slots = SLOTS.get().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(slot) = slots.get(&key).and_then(Weak::upgrade) {
        return slot;
    }
    if slots.len() == slots.capacity() {
        slots.retain(|_, slot| slot.strong_count() > 0);
    }
    let slot = Arc::default();
    slots.insert(key, Arc::downgrade(&slot));
    slot
}

/// The transforms that a plan uses.
#[derive(Default)]
pub(crate) struct Held(HashMap<Key, Arc<Slot>>);

impl Held {
    /// The transform of lines of `n` numbers of type `T`, which is made if no plan of this process
    /// has it. `make` must not use this cache: a plan holds all transforms that it needs itself,
    /// so that each plan counts them.
    pub(crate) fn get<T: 'static, F: Clone + Send + Sync + 'static>(
        &mut self,
        transform: Transform,
        n: usize,
        make: impl FnOnce() -> Made<F>,
    ) -> F {
        let key = Key { number: TypeId::of::<T>(), transform: format!("{transform:?}"), n };
        let slot = self.0.entry(key.clone()).or_insert_with(|| slot(key));
        let made = slot.get_or_init(|| {
            let Made { transform, bytes } = make();
            Made { transform: Box::new(transform), bytes }
        });
        made.transform.downcast_ref::<F>().expect("transforms of a key have one type").clone()
    }

    /// Bytes of tables. Where `n` plans share tables, each counts `1/n` of them.
    pub(crate) fn bytes(&self) -> usize {
        let share = |slot: &Arc<Slot>| {
            slot.get().map_or(0, |made| made.bytes.div_ceil(Arc::strong_count(slot)))
        };
        self.0.values().map(share).sum()
    }
}
