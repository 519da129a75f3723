//! Maps with keys of a few small numbers, in which a search looks up very often.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The default hash took a quarter of a search, because it withstands keys that are chosen to
/// collide. Nobody chooses these keys.
pub(crate) type SmallKeys<K, V> = HashMap<K, V, BuildHasherDefault<Product>>;

/// Products with an odd number, whose high bits are the best.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Product(u64);

impl Hasher for Product {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_usize((*byte).into()));
    }

    fn write_usize(&mut self, number: usize) {
        self.0 = (self.0.rotate_left(26) ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u32(&mut self, number: u32) {
        self.write_usize(number as usize);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    #[test]
    fn small_keys_differ_in_both_ends_of_their_hashes() {
        let hash =
            |key: (usize, usize, usize)| BuildHasherDefault::<Product>::default().hash_one(key);
        let keys = || (0..4096_usize).map(|n| (n % 16, n / 16 % 16, n / 256));
        // Of 4096 random numbers of 12 bits, 2589 differ.
        for ends in [|hash: u64| hash >> 52, |hash| hash % 4096] {
            let found = keys().map(|key| ends(hash(key))).collect::<HashSet<_>>();
            assert!(found.len() > 2000, "{}", found.len());
        }
    }
}
