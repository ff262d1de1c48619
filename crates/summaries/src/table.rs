//! One SpaceSaving table: labels, counts, last occurrences and the choice of the victim.
//!
//! Labels stand in buckets of eight slots, each a row of tags (`tags.rs`) that are compared at once. A label has two
//! buckets, and goes into the one with more room; so both are looked at, without a branch. Where both are full it is
//! displaced into one further on in the sequence of buckets that its hash leads to; its first bucket knows that there
//! is such a label.

use crate::batch::Group;
use crate::label::{HashKey, Store};
use crate::tags::{self, ROW, Row, with_tag};
use crate::victims::{Tie, Victims};

/// The count of a slot without a label.
pub(crate) const FREE: u64 = u64::MAX;
/// The fraction of the slots that hold labels when the table is full.
const LOAD: (usize, usize) = (3, 4);
/// The odd factor that leads from a label's bucket to the next one in its sequence.
const NEXT: u64 = 0xD6E8_FEB8_6659_FD93;
/// Buckets of a sequence that are found by hash; those after them follow each other.
const HASHED: u32 = 64;
/// The number of an update after which they are numbered anew.
const LAST_UPDATE: u32 = u32::MAX - 1;
/// Buckets of a table with its first label.
const FIRST_BUCKETS: usize = 2;
/// The bit of a tag whose label is in neither of its first two buckets.
const DISPLACED: u16 = 1;

/// SpaceSaving as in docs/privacy.md, "The variant": an update either raises the label's counter, or takes a free slot
/// at its weight, or replaces the label with the minimum counter and adds its weight to it.
#[repr(align(128))] // workers count into neighbouring tables
pub(crate) struct Table<L> {
    capacity: usize,
    key: HashKey,
    tracked: usize,
    /// For each bucket the tags of its slots.
    tags: Vec<Row>,
    /// For each bucket the number of labels that it is the first of and that are displaced.
    displaced: Vec<u32>,
    /// The largest number in its sequence at which a displaced label stands.
    furthest: u32,
    labels: L,
    /// For each slot its label's counter: at least the true count, by at most the minimum counter.
    counts: Vec<u64>,
    /// For each slot the number of the update at which its label last occurred.
    last_seen: Vec<u32>,
    updates: u32,
    victims: Victims,
}

/// The buckets of a table for so many labels.
fn buckets_for(labels: usize) -> usize {
    (labels * LOAD.1).div_ceil(LOAD.0 * ROW).max(1)
}

/// The tag of a label with this hash in one of its first two buckets.
#[inline(always)]
fn tag(hash: u64) -> u16 {
    tags::tag(hash, DISPLACED)
}

impl<L: Store> Table<L> {
    pub(crate) fn new(capacity: usize, tie: Tie, key: HashKey) -> Self {
        Self {
            capacity,
            key,
            tracked: 0,
            tags: Vec::new(),
            furthest: 0,
            displaced: Vec::new(),
            labels: L::default(),
            counts: Vec::new(),
            last_seen: Vec::new(),
            updates: 0,
            victims: Victims::new(tie),
        }
    }

    #[inline(always)]
    fn bucket(&self, hash: u64) -> usize {
        (((hash >> 32) * self.tags.len() as u64) >> 32) as usize
    }

    #[inline(always)]
    fn first_two(&self, hash: u64) -> (usize, usize) {
        (self.bucket(hash), self.bucket(hash.wrapping_mul(NEXT)))
    }

    /// The bucket at a number in a label's sequence; 0 and 1 are the first two. It comes to every bucket in the end.
    fn further(&self, hash: u64, number: u32) -> usize {
        if number < HASHED {
            self.bucket(hash.wrapping_mul(NEXT.wrapping_pow(number)))
        } else {
            (self.bucket(hash) + number as usize) % self.tags.len()
        }
    }

    #[inline(always)]
    fn find(&self, hash: u64, label: L::Ref<'_>) -> Option<usize> {
        let tag = tag(hash);
        let (first, second) = self.first_two(hash);
        let mut found =
            with_tag(self.tags.get(first)?, tag) | (with_tag(self.tags.get(second)?, tag) << ROW);
        while found != 0 {
            let bit = found.trailing_zeros() as usize;
            let bucket = if bit < ROW { first } else { second };
            let slot = bucket * ROW + bit % ROW;
            if self.labels.matches(slot, label) {
                return Some(slot);
            }
            found &= found - 1;
        }
        if self.displaced[first] != 0 {
            return self.find_displaced(hash, label);
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn find_displaced(&self, hash: u64, label: L::Ref<'_>) -> Option<usize> {
        let tag = tag(hash) | DISPLACED;
        for number in 2..=self.furthest {
            let bucket = self.further(hash, number);
            let mut found = with_tag(&self.tags[bucket], tag);
            while found != 0 {
                let slot = bucket * ROW + found.trailing_zeros() as usize;
                if self.labels.matches(slot, label) {
                    return Some(slot);
                }
                found &= found - 1;
            }
        }
        None
    }

    fn take_free_slot(&mut self, hash: u64, label: L::Ref<'_>, count: u64) {
        if self.tracked == self.tags.len() * ROW * LOAD.0 / LOAD.1 {
            self.grow();
        }
        self.tracked += 1;
        self.insert(hash, label, count);
    }

    /// Put a label that is not tracked into a slot without one.
    #[inline(always)]
    fn insert(&mut self, hash: u64, label: L::Ref<'_>, count: u64) -> usize {
        let slot = self.take_slot(hash);
        self.fill(slot, label, count);
        slot
    }

    #[inline(always)]
    fn fill(&mut self, slot: usize, label: L::Ref<'_>, count: u64) {
        self.labels.set(slot, label);
        self.counts[slot] = count;
        self.last_seen[slot] = self.updates;
    }

    /// Give a slot without a label the tag of one.
    #[inline(always)]
    fn take_slot(&mut self, hash: u64) -> usize {
        let (first, second) = self.first_two(hash);
        let room = with_tag(&self.tags[first], tags::NONE);
        let other = with_tag(&self.tags[second], tags::NONE);
        let (bucket, room) = if room.count_ones() >= other.count_ones() {
            (first, room)
        } else {
            (second, other)
        };
        if room != 0 {
            let slot = bucket * ROW + room.trailing_zeros() as usize;
            self.tags[bucket][slot % ROW] = tag(hash);
            slot
        } else {
            self.displaced_slot(hash)
        }
    }

    /// A slot for a label whose first two buckets are full.
    #[cold]
    #[inline(never)]
    fn displaced_slot(&mut self, hash: u64) -> usize {
        let first = self.bucket(hash);
        self.displaced[first] += 1;
        let mut number = 2;
        let (bucket, room) = loop {
            let bucket = self.further(hash, number);
            let room = with_tag(&self.tags[bucket], tags::NONE);
            if room != 0 {
                break (bucket, room);
            }
            number += 1;
        };
        self.furthest = self.furthest.max(number);
        let offset = room.trailing_zeros() as usize;
        self.tags[bucket][offset] = tag(hash) | DISPLACED;
        bucket * ROW + offset
    }

    #[inline(always)]
    fn remove(&mut self, slot: usize) {
        let tag = std::mem::replace(&mut self.tags[slot / ROW][slot % ROW], tags::NONE);
        self.counts[slot] = FREE;
        if tag & DISPLACED != 0 {
            self.forget_displaced(slot);
        }
    }

    #[cold]
    #[inline(never)]
    fn forget_displaced(&mut self, slot: usize) {
        let first = self.bucket(L::hash(self.labels.get(slot), &self.key));
        self.displaced[first] -= 1;
    }

    /// Double the buckets, up to those that the capacity needs.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let doubled = (self.tags.len() * 2).max(FIRST_BUCKETS);
        let buckets = doubled.min(buckets_for(self.capacity));
        let slots = self.slots();
        let labels = std::mem::take(&mut self.labels);
        self.labels.grow(buckets * ROW);
        let counts = std::mem::replace(&mut self.counts, vec![FREE; buckets * ROW]);
        let last_seen = std::mem::replace(&mut self.last_seen, vec![0; buckets * ROW]);
        self.tags = vec![[tags::NONE; ROW]; buckets];
        self.furthest = 0;
        self.displaced = vec![0; buckets];
        for slot in slots {
            let label = labels.get(slot);
            let moved = self.insert(L::hash(label, &self.key), label, counts[slot]);
            self.last_seen[moved] = last_seen[slot];
        }
    }

    /// Number the last occurrences anew, from 1, in their order.
    #[cold]
    #[inline(never)]
    fn renumber_updates(&mut self) {
        let slots = self.slots_by_last_occurrence(0);
        let filled_at = self.victims.filled_at();
        let before = slots.partition_point(|&slot| self.last_seen[slot] < filled_at);
        self.victims.renumbered(before as u32);
        for (number, &slot) in slots.iter().enumerate() {
            self.last_seen[slot] = number as u32 + 1;
        }
        // one more than the labels, so that the queue's own number stays in the past
        self.updates = slots.len() as u32 + 1;
    }

    /// The slots that hold a label.
    fn slots(&self) -> Vec<usize> {
        let all = self.counts.iter().enumerate();
        all.filter(|&(_, &count)| count != FREE)
            .map(|(slot, _)| slot)
            .collect()
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
        if let Some(slot) = self.find(hash, label) {
            let count = self.counts[slot] + weight;
            self.counts[slot] = count;
            self.last_seen[slot] = self.updates;
            self.victims.grown(slot, count);
        } else if self.tracked < self.capacity {
            self.take_free_slot(hash, label, weight);
        } else {
            let victim = self
                .victims
                .pop(&self.counts, &self.last_seen, self.updates);
            let count = self.counts[victim] + weight;
            self.remove(victim);
            let slot = self.take_slot(hash);
            self.labels.give_room(victim, slot);
            self.fill(slot, label, count);
            self.victims.entered(slot, count);
        }
    }

    fn restore(&mut self, _: usize, label: L::Ref<'_>, count: u64) -> bool {
        let hash = L::hash(label, &self.key);
        if self.tracked == self.capacity || self.find(hash, label).is_some() {
            return false;
        }
        self.updates += 1;
        self.take_free_slot(hash, label, count);
        true
    }

    fn slots_by_last_occurrence(&self, _: usize) -> Vec<usize> {
        let mut slots = self.slots();
        slots.sort_unstable_by_key(|&slot| self.last_seen[slot]);
        slots
    }

    fn label(&self, slot: usize) -> L::Ref<'_> {
        self.labels.get(slot)
    }

    fn count(&self, slot: usize) -> u64 {
        self.counts[slot]
    }

    fn minimum(&self, _: usize) -> u64 {
        if self.tracked < self.capacity {
            0
        } else {
            self.counts.iter().copied().min().unwrap_or(0)
        }
    }

    fn heap_bytes(&self) -> usize {
        self.labels.heap_bytes()
            + self.counts.capacity() * 8
            + self.last_seen.capacity() * 4
            + self.tags.capacity() * size_of::<Row>()
            + self.displaced.capacity() * 4
            + self.victims.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::{ByteString, ByteStrings, Integer, Integers};
    use crate::reference::Twin;

    /// Integers that all have one hash, or one of two.
    #[derive(Default)]
    struct Colliding(Integers);

    impl Store for Colliding {
        type Ref<'a> = Integer;

        fn grow(&mut self, slots: usize) {
            self.0.grow(slots);
        }
        fn hash(label: Integer, _: &HashKey) -> u64 {
            if label.bits.is_multiple_of(3) {
                u64::MAX
            } else {
                0
            }
        }
        fn expect(&self, _: usize) {}
        fn give_room(&mut self, _: usize, _: usize) {}
        fn get(&self, slot: usize) -> Integer {
            self.0.get(slot)
        }
        fn matches(&self, slot: usize, label: Integer) -> bool {
            self.0.matches(slot, label)
        }
        fn set(&mut self, slot: usize, label: Integer) {
            self.0.set(slot, label);
        }
        fn heap_bytes(&self) -> usize {
            self.0.heap_bytes()
        }
    }

    fn counters<L: for<'a> Store<Ref<'a> = Integer> + 'static>(
        table: &Table<L>,
    ) -> Vec<(i128, u64)> {
        let slots = table.slots_by_last_occurrence(0);
        let counter = |slot| (table.label(slot).into(), table.count(slot));
        slots.into_iter().map(counter).collect()
    }

    fn update<L: for<'a> Store<Ref<'a> = Integer>>(table: &mut Table<L>, label: u64, weight: u64) {
        let label = Integer::from(label);
        table.update(0, L::hash(label, &HashKey::new(7)), label, weight);
    }

    /// A stream of labels and weights, the same for the same seed.
    fn stream(seed: u64, labels: u64, length: usize) -> impl Iterator<Item = (u64, u64)> {
        let mut state = seed;
        (0..length).map(move |_| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let draw = state >> 33;
            (
                draw % labels,
                if draw.is_multiple_of(7) {
                    draw % 100 + 1
                } else {
                    1
                },
            )
        })
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
        assert!(table.labels.arena_bytes() <= 1000 * 24);
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
                assert!(capacity < 40 || colliding.furthest >= HASHED);
            }
        }
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
