//! One SpaceSaving table: labels, counts, last occurrences and the choice of the victim.

use hashbrown::HashTable;

use crate::label::Store;
use crate::victims::{Tie, Victims};

/// What a slot knows of its label besides the label itself.
#[derive(Clone, Copy)]
pub(crate) struct Cell {
    /// The label's counter: at least its true count, by at most the minimum counter.
    pub(crate) count: u64,
    /// The number of the update at which it last occurred.
    pub(crate) last_seen: u64,
}

/// SpaceSaving as in docs/privacy.md, "The summary": an update either raises the label's counter, or takes a free slot
/// at its weight, or replaces the label with the minimum counter and adds its weight to it.
pub(crate) struct Table<L> {
    capacity: usize,
    tie: Tie,
    seed: u64,
    labels: L,
    cells: Vec<Cell>,
    /// From a label's hash to its slot.
    index: HashTable<u32>,
    /// Present once the table is full.
    victims: Option<Victims>,
    updates: u64,
}

impl<L: Store> Table<L> {
    pub(crate) fn new(capacity: usize, tie: Tie, seed: u64) -> Self {
        Self {
            capacity,
            tie,
            seed,
            labels: L::default(),
            cells: Vec::new(),
            index: HashTable::new(),
            victims: None,
            updates: 0,
        }
    }

    /// Count `weight >= 1` occurrences in a row of the label with this hash. The caller keeps the sum of all weights
    /// within 2^63 - 1, so that no counter wraps.
    #[inline]
    pub(crate) fn update(&mut self, hash: u64, label: L::Ref<'_>, weight: u64) {
        debug_assert!(weight >= 1);
        self.updates += 1;
        let labels = &self.labels;
        if let Some(&slot) = self
            .index
            .find(hash, |&slot| labels.matches(slot as usize, label))
        {
            let cell = &mut self.cells[slot as usize];
            cell.count += weight;
            cell.last_seen = self.updates;
        } else if self.cells.len() < self.capacity {
            self.take_free_slot(hash, label, weight);
        } else {
            self.replace_victim(hash, label, weight);
        }
    }

    fn take_free_slot(&mut self, hash: u64, label: L::Ref<'_>, weight: u64) {
        let slot = self.cells.len() as u32;
        self.labels.push(label);
        self.cells.push(Cell {
            count: weight,
            last_seen: self.updates,
        });
        self.enter(hash, slot);
    }

    fn replace_victim(&mut self, hash: u64, label: L::Ref<'_>, weight: u64) {
        let cells = &self.cells;
        let victims = self
            .victims
            .get_or_insert_with(|| Victims::new(self.tie, cells));
        let slot = victims.pop(cells);
        let cell = &mut self.cells[slot as usize];
        cell.count += weight;
        cell.last_seen = self.updates;
        victims.place(slot, cell.count);
        let evicted = L::hash(self.labels.get(slot as usize), self.seed);
        if let Ok(entry) = self.index.find_entry(evicted, |&other| other == slot) {
            entry.remove();
        }
        self.labels.replace(slot as usize, label);
        self.enter(hash, slot);
    }

    fn enter(&mut self, hash: u64, slot: u32) {
        let (labels, seed) = (&self.labels, self.seed);
        self.index.insert_unique(hash, slot, |&other| {
            L::hash(labels.get(other as usize), seed)
        });
    }

    /// Add a saved label. Called in last-occurrence order. False if it is there already or no slot is free.
    pub(crate) fn restore(&mut self, label: L::Ref<'_>, count: u64) -> bool {
        let hash = L::hash(label, self.seed);
        let labels = &self.labels;
        let known = self
            .index
            .find(hash, |&slot| labels.matches(slot as usize, label))
            .is_some();
        if known || self.cells.len() == self.capacity {
            return false;
        }
        self.updates += 1;
        self.take_free_slot(hash, label, count);
        true
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    pub(crate) fn label(&self, slot: usize) -> L::Ref<'_> {
        self.labels.get(slot)
    }

    pub(crate) fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        self.cells.iter().map(|cell| cell.count)
    }

    /// The minimum counter, 0 while a slot is free.
    pub(crate) fn minimum(&self) -> u64 {
        if self.cells.len() < self.capacity {
            0
        } else {
            self.counts().min().unwrap_or(0)
        }
    }

    /// The slots in the order of their labels' last occurrences, oldest first.
    pub(crate) fn slots_by_last_occurrence(&self) -> Vec<usize> {
        let mut slots: Vec<usize> = (0..self.cells.len()).collect();
        slots.sort_unstable_by_key(|&slot| self.cells[slot].last_seen);
        slots
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.labels.heap_bytes()
            + self.cells.capacity() * size_of::<Cell>()
            + self.index.allocation_size()
            + self.victims.as_ref().map_or(0, Victims::heap_bytes)
    }
}
