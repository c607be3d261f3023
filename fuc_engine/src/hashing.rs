//! Hash tables that are seeded without a system call.
//!
//! Those of the standard library abort the process if `getrandom` fails. These take their seed from
//! the random bytes that the kernel gives each program when it starts. So other users, who
//! choose the names in a table, cannot predict which of them collide.

use std::hash::{BuildHasher, DefaultHasher, Hasher};

use crate::sys;

pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, Seeded>;
pub(crate) type HashSet<K> = std::collections::HashSet<K, Seeded>;

/// Makes hashers that all begin with the same unpredictable bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seeded(u128);

impl Default for Seeded {
    fn default() -> Self {
        Self(sys::random_at_start())
    }
}

impl BuildHasher for Seeded {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u128(self.0);
        hasher
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_depend_on_the_seed() {
        let hash = |seed| Seeded(seed).hash_one("name");
        assert_eq!(hash(1), hash(1));
        assert_ne!(hash(1), hash(2));
        assert_ne!(Seeded::default().0, 0, "the kernel gave no random bytes");
    }
}
