//! The zones that workers are in: two workers in the same zone have to wait for each other.

use std::iter;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A set of zones, each of which one worker at a time can change.
///
/// Numbers that are equal modulo 64 stand for the same zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Zones(u64);

impl Zones {
    pub(crate) const NONE: Self = Self(0);

    #[must_use]
    pub(crate) fn plus(self, number: u64) -> Self {
        Self(self.0 | 1 << (number % 64))
    }
}

/// Counts the workers in each zone. A hint, which publishes nothing: two workers may enter the same zone together.
pub(super) struct Occupancy([AtomicU32; 64]);

impl Occupancy {
    pub(super) fn new() -> Self {
        Self([const { AtomicU32::new(0) }; 64])
    }

    fn counters(&self, Zones(mut rest): Zones) -> impl Iterator<Item = &AtomicU32> {
        iter::from_fn(move || {
            let lowest = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            self.0.get(lowest as usize)
        })
    }

    /// Returns `true` if a worker is in one of the zones.
    pub(super) fn is_occupied(&self, zones: Zones) -> bool {
        self.counters(zones).any(|count| count.load(Relaxed) > 0)
    }

    /// Counts a worker until [`count_out`](Self::count_out).
    pub(super) fn count_in(&self, zones: Zones) {
        self.counters(zones).for_each(|count| {
            count.fetch_add(1, Relaxed);
        });
    }

    pub(super) fn count_out(&self, zones: Zones) {
        self.counters(zones).for_each(|count| {
            count.fetch_sub(1, Relaxed);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_occupied_until_the_last_worker_leaves() {
        let occupancy = Occupancy::new();
        let [two, both] = [Zones::NONE.plus(2), Zones::NONE.plus(2).plus(67)];
        occupancy.count_in(both);
        occupancy.count_in(two);
        assert!(occupancy.is_occupied(Zones::NONE.plus(3)));
        assert!(!occupancy.is_occupied(Zones::NONE.plus(4)));
        assert!(!occupancy.is_occupied(Zones::NONE));
        occupancy.count_out(both);
        assert!(!occupancy.is_occupied(Zones::NONE.plus(3)));
        assert!(occupancy.is_occupied(both));
        occupancy.count_out(two);
        assert!(!occupancy.is_occupied(both));
    }
}
