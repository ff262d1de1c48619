//! One SpaceSaving table: labels, counts, last occurrences and the choice of the victim.

use crate::batch::Group;
use crate::label::{HashKey, Store};
use crate::slots::{FREE, Slots};
use crate::victims::{Tie, Victims};

/// The number of an update after which they are numbered anew.
const LAST_UPDATE: u32 = u32::MAX - 1;

/// SpaceSaving as in docs/privacy.md, "The variant": an update either raises the label's counter, or takes a free slot
/// at its weight, or replaces the label with the minimum counter and adds its weight to it.
#[repr(align(128))] // workers count into neighbouring tables
pub(crate) struct Table<L> {
    slots: Slots<L>,
    /// For each slot its label's counter: at least the true count, by at most the minimum counter.
    counts: Vec<u64>,
    /// For each slot the number of the update at which its label last occurred.
    last_seen: Vec<u32>,
    updates: u32,
    victims: Victims,
}

impl<L: Store> Table<L> {
    pub(crate) fn new(capacity: usize, tie: Tie, key: HashKey) -> Self {
        Self {
            slots: Slots::new(capacity, key),
            counts: Vec::new(),
            last_seen: Vec::new(),
            updates: 0,
            victims: Victims::new(tie),
        }
    }

    fn take_free_slot(&mut self, hash: u64, label: L::Ref<'_>, count: u64) {
        let slot = self.slots.take(hash, label, |moves| {
            self.counts = moves.carry(&self.counts, FREE);
            self.last_seen = moves.carry(&self.last_seen, 0);
        });
        self.counts[slot] = count;
        self.last_seen[slot] = self.updates;
    }

    /// Number the last occurrences anew, from 1, in their order.
    #[cold]
    #[inline(never)]
    fn renumber_updates(&mut self) {
        let slots = self.slots_in_saved_order(0);
        let filled_at = self.victims.filled_at();
        let before = slots.partition_point(|&slot| self.last_seen[slot] < filled_at);
        self.victims.renumbered(before as u32);
        for (number, &slot) in slots.iter().enumerate() {
            self.last_seen[slot] = number as u32 + 1;
        }
        // one more than the labels, so that the queue's own number stays in the past
        self.updates = slots.len() as u32 + 1;
    }
}

impl<L: Store> Group<L> for Table<L> {
    #[inline(always)]
    fn update(&mut self, _: usize, hash: u64, label: L::Ref<'_>, weight: u64) {
        debug_assert!(weight >= 1);
        if self.updates == LAST_UPDATE {
            self.renumber_updates();
        }
        self.updates += 1;
        if let Some(slot) = self.slots.find(hash, label) {
            let count = self.counts[slot] + weight;
            self.counts[slot] = count;
            self.last_seen[slot] = self.updates;
            self.victims.grown(slot, count);
        } else if !self.slots.full() {
            self.take_free_slot(hash, label, weight);
        } else {
            let victim = self
                .victims
                .pop(&self.counts, &self.last_seen, self.updates);
            let count = self.counts[victim] + weight;
            self.counts[victim] = FREE;
            let slot = self.slots.replace(victim, hash, label);
            self.counts[slot] = count;
            self.last_seen[slot] = self.updates;
            self.victims.entered(slot, count);
        }
    }

    fn restore(&mut self, _: usize, label: L::Ref<'_>, count: u64) -> bool {
        let hash = self.slots.hash(label);
        if self.slots.full() || self.slots.find(hash, label).is_some() {
            return false;
        }
        self.updates += 1;
        self.take_free_slot(hash, label, count);
        !self.slots.beyond_hashes()
    }

    fn slots_in_saved_order(&self, _: usize) -> Vec<usize> {
        let mut slots: Vec<usize> = self.slots.taken().collect();
        slots.sort_unstable_by_key(|&slot| self.last_seen[slot]);
        slots
    }

    fn label(&self, slot: usize) -> L::Ref<'_> {
        self.slots.label(slot)
    }

    fn count(&self, slot: usize) -> u64 {
        self.counts[slot]
    }

    fn minimum(&self, _: usize) -> u64 {
        if self.slots.full() {
            self.counts.iter().copied().min().unwrap_or(0)
        } else {
            0
        }
    }

    fn heap_bytes(&self) -> usize {
        self.slots.heap_bytes()
            + self.counts.capacity() * 8
            + self.last_seen.capacity() * 4
            + self.victims.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::{ByteString, ByteStrings, Integer, Integers};
    use crate::reference::Twin;
    use crate::testing::{Colliding, stream};

    fn counters<L: for<'a> Store<Ref<'a> = Integer> + 'static>(
        table: &Table<L>,
    ) -> Vec<(i128, u64)> {
        let slots = table.slots_in_saved_order(0);
        let counter = |slot| (table.label(slot).into(), table.count(slot));
        slots.into_iter().map(counter).collect()
    }

    fn update<L: for<'a> Store<Ref<'a> = Integer>>(table: &mut Table<L>, label: u64, weight: u64) {
        let label = Integer::from(label);
        table.update(0, L::hash(label, &HashKey::new(7)), label, weight);
    }

    #[test]
    fn evicted_labels_leave_their_room_to_the_newcomers() {
        let mut table = Table::<ByteStrings>::new(1000, Tie::LeastRecent, HashKey::new(7));
        for label in 0..20_000 {
            let bytes = format!("label number {label:011}");
            let label = ByteString {
                bytes: bytes.as_bytes(),
                shortened: false,
            };
            let hash = ByteStrings::hash(label, &HashKey::new(7));
            table.update(0, hash, label, 1);
        }
        assert!(table.slots.labels().arena_bytes() <= 1000 * 24);
    }

    #[test]
    fn labels_with_one_hash_are_told_apart() {
        for tie in [Tie::LeastRecent, Tie::MostRecent] {
            for capacity in [1, 2, 7, 40, 150] {
                let mut colliding = Table::<Colliding>::new(capacity, tie, HashKey::new(7));
                let mut plain = Table::<Integers>::new(capacity, tie, HashKey::new(7));
                for (label, weight) in stream(1, 200, 4000) {
                    update(&mut colliding, label, weight);
                    update(&mut plain, label, weight);
                }
                assert_eq!(counters(&colliding), counters(&plain));
                assert!(capacity < 40 || colliding.slots.beyond_hashes());
            }
        }
    }

    #[test]
    fn saved_labels_that_were_chosen_to_collide_are_refused_early() {
        let mut colliding = Table::<Colliding>::new(1 << 20, Tie::LeastRecent, HashKey::new(7));
        let mut plain = Table::<Integers>::new(1 << 20, Tie::LeastRecent, HashKey::new(7));
        let restored = (0..100_000u64).take_while(|&label| colliding.restore(0, label.into(), 1));
        assert!(restored.count() < 1000);
        assert!((0..100_000u64).all(|label| plain.restore(0, label.into(), 1)));
    }

    #[test]
    fn numbering_the_updates_anew_changes_nothing() {
        for tie in [Tie::LeastRecent, Tie::MostRecent] {
            for start in 0..60 {
                let mut late = Table::<Integers>::new(8, tie, HashKey::new(7));
                let mut early = Table::<Integers>::new(8, tie, HashKey::new(7));
                late.updates = LAST_UPDATE - start;
                for (label, weight) in stream(u64::from(start), 14, 200) {
                    update(&mut late, label, weight);
                    update(&mut early, label, weight);
                    assert_eq!(counters(&late), counters(&early));
                }
                assert!(late.updates < 1000);
            }
        }
    }

    #[test]
    fn a_minimum_that_rises_too_fast_to_be_scanned_for_is_kept_in_a_heap_and_back() {
        for tie in [Tie::LeastRecent, Tie::MostRecent] {
            let mut table = Table::<Integers>::new(64, tie, HashKey::new(7));
            let mut twin = Twin::new(64, tie);
            let mut heaped = 0;
            let heavy = (0..63).map(|label| (label, 200 + label % 5));
            let rising = (0..600).map(|label| (1000 + label, 1));
            let even = (0..3000).map(|label| (5000 + label, 1));
            for (label, weight) in heavy.chain(rising).chain(even) {
                update(&mut table, label, weight);
                twin.update(label.into(), weight);
                assert_eq!(counters(&table), twin.counters);
                heaped += usize::from(table.victims.is_heap());
            }
            assert!(heaped > 100 && !table.victims.is_heap());
        }
    }
}
