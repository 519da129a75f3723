//! The buffers of data held in two pieces.

use std::borrow::{Borrow, BorrowMut};

use super::processor::Processor;
use crate::base::Real;

/// The two buffers of a node's data, to be read.
pub(crate) type Read<'a, M> = [&'a M; 2];
pub(crate) type Written<'a, M> = [&'a mut M; 2];

/// The memory from an offset on.
pub(crate) fn rest<T: Real, P: Processor<T>>(memory: &P::Memory, first: usize) -> &P::Memory {
    P::memory(&P::bytes(memory)[first * size_of::<T>()..])
}

pub(crate) fn rest_mut<T: Real, P: Processor<T>>(
    memory: &mut P::Memory,
    first: usize,
) -> &mut P::Memory {
    P::memory_mut(&mut P::bytes_mut(memory)[first * size_of::<T>()..])
}

/// Spare memory as the second buffer of the source or of the destination; the other one is empty.
pub(crate) struct SpillBuffers<B> {
    buffer: B,
    none: B,
    read: bool,
}

impl<B: Default> SpillBuffers<B> {
    pub(crate) fn new(buffer: B, read: bool) -> Self {
        Self { buffer, none: B::default(), read }
    }

    pub(crate) fn split<M: ?Sized>(&mut self) -> (&M, &mut M)
    where
        B: BorrowMut<M>,
    {
        let Self { buffer, none, read } = self;
        match read {
            true => (Borrow::borrow(&*buffer), none.borrow_mut()),
            false => (Borrow::borrow(&*none), buffer.borrow_mut()),
        }
    }

    pub(crate) fn end(self) -> B {
        self.buffer
    }
}
