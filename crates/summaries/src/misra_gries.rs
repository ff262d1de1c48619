//! One Misra-Gries table, in the variant of Lebeda and Tětek 2023 that keeps labels whose counter is zero.
//!
//! An update either raises the label's counter, or takes a free slot at its weight, or, where some counters are zero,
//! replaces the smallest label among them, or else takes one off every counter and drops the item, for each unit of its
//! weight: after as many as the smallest counter has units, there are zeros. What is taken off every counter is added
//! once, to the base that all of them are stored above.
//!
//! A [`RadixHeap`] of the stored counts finds the label to replace: its minimum is the base while there are zeros, and
//! the labels at it are sorted by label once. They only get fewer before the base rises again: one that occurs leaves
//! them, and none joins. Before the table is full no label is looked for, and there is no heap.
//!
//! Cost of an update, amortised, on every stream: O(1) to find the label, O(log weight) in the heap (its module says
//! why), whatever number of counters goes down. A label is sorted among those at the minimum at most once for each
//! update: it leaves them only as the one that an update replaces, or by an update of its own, so that sorting takes
//! O(log capacity) comparisons of labels. Nothing loops over a weight.

use crate::batch::Group;
use crate::label::{HashKey, Store};
use crate::radix_heap::RadixHeap;
use crate::slots::{FREE, Slots};

/// The first base: every stored count is above 0, where the heap begins.
const FIRST_BASE: u64 = 1;

/// Misra-Gries as in `python/dptop/reference/misra_gries.py`.
pub(crate) struct MisraGries<L> {
    slots: Slots<L>,
    /// What has been taken off every counter so far, and [`FIRST_BASE`].
    base: u64,
    /// For each slot its label's counter and the base: the counter is at most the true count.
    stored: Vec<u64>,
    heap: Option<RadixHeap>,
}

impl<L: Store> MisraGries<L> {
    pub(crate) fn new(capacity: usize, key: HashKey) -> Self {
        Self {
            slots: Slots::new(capacity, key),
            base: FIRST_BASE,
            stored: Vec::new(),
            heap: None,
        }
    }

    fn take_free_slot(&mut self, hash: u64, label: L::Ref<'_>, count: u64) {
        let slot = self.slots.take(hash, label, |moves| {
            self.stored = moves.carry(&self.stored, FREE);
        });
        self.stored[slot] = self.base + count;
    }

    /// Whether some stream of that length leaves these counters.
    ///
    /// Each time that something is taken off every counter, an item is dropped: so the length exceeds the sum of the
    /// counters by a multiple of the capacity and one. Zeros come about in this way only, and it takes a full table.
    /// Whatever these rules allow, some stream leaves: that of the labels in turn, each as often as its counter and the
    /// number of dropped items say, and then these items, all of one further label.
    pub(crate) fn could_count(&self, length: u64) -> bool {
        let counters = || self.slots.taken().map(|slot| self.count(slot));
        match length.checked_sub(counters().sum()) {
            None => false,
            Some(0) => counters().all(|count| count > 0),
            Some(more) => {
                self.slots.full() && more.is_multiple_of(self.slots.capacity() as u64 + 1)
            }
        }
    }

    /// Count a label that is not tracked, in a full table.
    #[inline(always)]
    fn replace(&mut self, hash: u64, label: L::Ref<'_>, weight: u64) {
        let slots = &self.slots;
        let smallest_label_last = |at_minimum: &mut [u32]| {
            let label = |&slot: &u32| slots.label(slot as usize);
            at_minimum.sort_unstable_by(|a, b| label(b).cmp(&label(a)));
        };
        let heap = self
            .heap
            .get_or_insert_with(|| RadixHeap::new(&self.stored));
        let smallest = heap.pop(&self.stored, smallest_label_last) as usize;
        let taken_off = weight.min(self.stored[smallest] - self.base);
        self.base += taken_off;
        if taken_off == weight {
            heap.put_back(smallest as u32);
            return;
        }
        self.stored[smallest] = FREE;
        let slot = self.slots.replace(smallest, hash, label);
        self.stored[slot] = self.base + (weight - taken_off);
        heap.place(slot as u32, self.stored[slot]);
    }
}

impl<L: Store> Group<L> for MisraGries<L> {
    #[inline(always)]
    fn update(&mut self, _: usize, hash: u64, label: L::Ref<'_>, weight: u64) {
        debug_assert!(weight >= 1);
        if let Some(slot) = self.slots.find(hash, label) {
            self.stored[slot] += weight;
        } else if !self.slots.full() {
            self.take_free_slot(hash, label, weight);
        } else {
            self.replace(hash, label, weight);
        }
    }

    fn restore(&mut self, _: usize, label: L::Ref<'_>, count: u64) -> bool {
        let hash = self.slots.hash(label);
        if self.slots.full() || self.slots.find(hash, label).is_some() {
            return false;
        }
        self.take_free_slot(hash, label, count);
        !self.slots.beyond_hashes()
    }

    fn slots_in_saved_order(&self, _: usize) -> Vec<usize> {
        let mut slots: Vec<usize> = self.slots.taken().collect();
        slots.sort_unstable_by(|&a, &b| self.label(a).cmp(&self.label(b)));
        slots
    }

    fn label(&self, slot: usize) -> L::Ref<'_> {
        self.slots.label(slot)
    }

    fn count(&self, slot: usize) -> u64 {
        self.stored[slot] - self.base
    }

    fn minimum(&self, _: usize) -> u64 {
        0
    }

    fn heap_bytes(&self) -> usize {
        let heap = self.heap.as_ref().map_or(0, RadixHeap::heap_bytes);
        self.slots.heap_bytes() + self.stored.capacity() * 8 + heap
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::{Integer, Integers};
    use crate::reference::MisraGriesTwin;
    use crate::testing::{Colliding, stream};

    fn counters<L: for<'a> Store<Ref<'a> = Integer> + 'static>(
        table: &MisraGries<L>,
    ) -> Vec<(i128, u64)> {
        let slots = table.slots_in_saved_order(0).into_iter();
        slots
            .map(|slot| (table.label(slot).into(), table.count(slot)))
            .collect()
    }

    fn update<L: for<'a> Store<Ref<'a> = Integer>>(
        table: &mut MisraGries<L>,
        label: u64,
        weight: u64,
    ) {
        let label = Integer::from(label);
        table.update(0, table.slots.hash(label), label, weight);
    }

    #[test]
    fn labels_with_one_hash_are_told_apart() {
        for capacity in [1, 2, 7, 40, 150] {
            let mut colliding = MisraGries::<Colliding>::new(capacity, HashKey::new(7));
            let mut twin = MisraGriesTwin::new(capacity);
            for (label, weight) in stream(1, 200, 4000) {
                update(&mut colliding, label, weight);
                twin.update(label.into(), weight);
            }
            let expected: Vec<(i128, u64)> = twin.counters.into_iter().collect();
            assert_eq!(counters(&colliding), expected);
            assert!(capacity < 40 || colliding.slots.beyond_hashes());
        }
    }

    #[test]
    fn every_step_equals_the_twins() {
        for (seed, labels) in [(1, 9), (2, 12), (3, 40), (4, 1 << 20)] {
            let mut table = MisraGries::<Integers>::new(8, HashKey::new(7));
            let mut twin = MisraGriesTwin::new(8);
            let (mut zeros, mut dropped) = (0, 0);
            for (label, weight) in stream(seed, labels, 3000) {
                let base = table.base;
                update(&mut table, label, weight);
                twin.update(i128::from(label), weight);
                let expected: Vec<(i128, u64)> = twin.counters.clone().into_iter().collect();
                assert_eq!(counters(&table), expected);
                zeros += expected.iter().filter(|counter| counter.1 == 0).count();
                dropped += usize::from(table.base > base);
            }
            assert!(
                zeros > 20 && dropped > 20,
                "{labels} labels: {zeros}, {dropped}"
            );
        }
    }

    #[test]
    fn a_length_is_possible_exactly_if_a_stream_has_it() {
        let counted = |stream: &[(u64, u64)]| {
            let mut table = MisraGries::<Integers>::new(2, HashKey::new(7));
            stream.iter().for_each(|&(x, w)| update(&mut table, x, w));
            (0..20)
                .filter(|&length| table.could_count(length))
                .collect::<Vec<u64>>()
        };
        assert_eq!(counted(&[]), [0]);
        assert_eq!(counted(&[(1, 3)]), [3]); // a free slot: nothing was dropped
        assert_eq!(counted(&[(1, 3), (2, 1)]), [4, 7, 10, 13, 16, 19]);
        assert_eq!(counted(&[(1, 4), (2, 2), (3, 1)]), [4, 7, 10, 13, 16, 19]);
        assert_eq!(counted(&[(1, 2), (2, 1), (3, 1)]), [4, 7, 10, 13, 16, 19]); // a zero
    }
}
