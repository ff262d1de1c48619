//! Many SpaceSaving tables of a few counters each, side by side in the same arrays.
//!
//! A table this small needs no queue of victims: one look at its keys (`key.rs`) finds the label to evict. The smallest
//! is the least recent label at the minimum (or, with the occurrences numbered downwards, the most recent one), and a
//! free slot goes before any label. So an update takes constant time on every stream, growth of the arrays aside.

use std::ops::Range;

use crate::batch::Group;
use crate::key::{self, COUNT_BITS, Key, MAX_ORDER};
use crate::label::{HashKey, Store};
use crate::tags::{self, ROW, Row, tag};
use crate::victims::Tie;

/// The largest table: its slots fit into the bits of one word.
pub(crate) const MAX_SLOTS: usize = 64;

/// The number of an update after which they are numbered anew; every number is the order of an occurrence.
const LAST_UPDATE: u32 = MAX_ORDER - 1;
/// The part of a count that fits into a key.
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
/// Slots of a group whose memory is worth asking for ahead: more than a second-level cache holds with the other groups.
const LARGE: usize = 1 << 11;
/// In place of the position of a table that has no label yet.
const NOWHERE: u32 = u32::MAX;

/// A group of a summary's tables, each of at most [`MAX_SLOTS`] counters. A table comes into the arrays with its first
/// label, behind those that are there.
#[repr(align(128))] // workers count into neighbouring groups
pub(crate) struct SmallTables<L> {
    tie: Tie,
    hash_key: HashKey,
    /// For each table how many counters it has.
    capacities: Capacities,
    /// Rows of slots that a table takes in the arrays below.
    rows: usize,
    /// For each table its position among those in the arrays, or [`NOWHERE`].
    positions: Vec<u32>,
    /// For each position the number of updates of the table, numbered anew after [`LAST_UPDATE`].
    updates: Vec<u32>,
    /// For each row the tags of its slots.
    tags: Vec<Row>,
    /// For each slot its key, with the lower bits of the count.
    keys: Vec<Key>,
    /// For each slot the bits of its count that its key has no room for; no slots before there is such a count.
    high: Vec<u32>,
    labels: L,
}

/// The counters of a group of tables: `larger` tables have one more than the others.
#[derive(Clone, Copy)]
pub(crate) struct Capacities {
    pub(crate) tables: usize,
    pub(crate) counters: usize,
    pub(crate) larger: usize,
}

impl Capacities {
    pub(crate) fn of(&self, table: usize) -> usize {
        self.counters + usize::from(table < self.larger)
    }

    fn most(&self) -> usize {
        self.of(0)
    }
}

impl<L: Store> SmallTables<L> {
    pub(crate) fn new(capacities: Capacities, tie: Tie, hash_key: HashKey) -> Self {
        debug_assert!(capacities.most() <= MAX_SLOTS);
        Self {
            tie,
            hash_key,
            capacities,
            rows: capacities.most().div_ceil(ROW),
            positions: vec![NOWHERE; capacities.tables],
            updates: Vec::new(),
            tags: Vec::new(),
            keys: Vec::new(),
            high: Vec::new(),
            labels: L::default(),
        }
    }

    /// The first slot of the table at a position.
    #[inline(always)]
    fn first_slot(&self, position: usize) -> usize {
        position * self.rows * ROW
    }

    /// All slots of the table at a position; the last ones may be above its capacity, and stay free.
    fn slots(&self, position: usize) -> Range<usize> {
        self.first_slot(position)..self.first_slot(position + 1)
    }

    /// The slots of the table at a position that have the tag of a hash, as bits.
    #[inline(always)]
    fn with_tag(&self, position: usize, hash: u64) -> u64 {
        let tag = tag(hash, 0);
        let first = position * self.rows;
        let mut found = 0u64;
        for (number, row) in self.tags[first..first + self.rows].iter().enumerate() {
            found |= u64::from(tags::with_tag(row, tag)) << (number * ROW);
        }
        found
    }

    #[inline(always)]
    fn find(&self, position: usize, hash: u64, label: L::Ref<'_>) -> Option<usize> {
        let mut found = self.with_tag(position, hash);
        while found != 0 {
            let slot = self.first_slot(position) + found.trailing_zeros() as usize;
            if self.labels.matches(slot, label) {
                return Some(slot);
            }
            found &= found - 1;
        }
        None
    }

    /// The slot to take: a free one, or that of the label to evict.
    #[inline(always)]
    fn victim(&self, position: usize, capacity: usize) -> usize {
        let first = self.first_slot(position);
        let slots = first..first + capacity;
        let key = match self.high.get(slots.clone()) {
            None => key::smallest(&self.keys[slots]),
            Some(high) => key::smallest_with_high(&self.keys[slots], high),
        };
        first + key.slot()
    }

    /// Set the count of a slot, or its lower bits, and that its label has just occurred.
    #[inline(always)]
    fn set_key(&mut self, position: usize, slot: usize, count: u64) {
        let order = match self.tie {
            Tie::LeastRecent => self.updates[position],
            Tie::MostRecent => LAST_UPDATE + 1 - self.updates[position],
        };
        self.keys[slot] = Key::new(count, order, slot - self.first_slot(position));
    }

    /// Set the count of a slot where there are counts that do not fit into a key. `low` is the new count without the
    /// slot's higher bits so far.
    #[cold]
    #[inline(never)]
    fn raise_high(&mut self, position: usize, slot: usize, low: u64) {
        self.high.resize(self.keys.len(), 0);
        self.high[slot] += (low >> COUNT_BITS) as u32;
        self.set_key(position, slot, low & COUNT_MASK);
    }

    /// Number the occurrences in a table anew, from 1, in their order.
    #[cold]
    #[inline(never)]
    fn renumber_updates(&mut self, position: usize) {
        let slots = self.by_last_occurrence(position);
        for (number, &slot) in slots.iter().enumerate() {
            self.updates[position] = number as u32 + 1;
            self.set_key(position, slot, self.keys[slot].count());
        }
    }

    #[cold]
    #[inline(never)]
    fn take_position(&mut self, table: usize) -> usize {
        let position = self.updates.len();
        if position == self.updates.capacity() {
            // by a half, not to double: what waits to be used is the waste
            let more = (position / 2).max(4).min(self.capacities.tables - position);
            self.updates.reserve_exact(more);
            self.tags.reserve_exact(more * self.rows);
            self.keys.reserve_exact(more * self.rows * ROW);
            self.labels.grow(self.first_slot(position + more));
        }
        self.updates.push(0);
        self.tags
            .resize((position + 1) * self.rows, [tags::NONE; ROW]);
        self.keys.extend((0..self.rows * ROW).map(Key::free));
        if !self.high.is_empty() {
            self.high.resize(self.keys.len(), 0);
        }
        self.positions[table] = position as u32;
        position
    }

    /// The position of a table that has had a label.
    #[inline(always)]
    fn position(&self, table: usize) -> Option<usize> {
        let position = self.positions[table];
        (position != NOWHERE).then_some(position as usize)
    }

    /// The slots of the table at a position that hold a label, oldest last occurrence first.
    fn by_last_occurrence(&self, position: usize) -> Vec<usize> {
        let mut slots: Vec<usize> = self
            .slots(position)
            .filter(|&slot| !self.keys[slot].is_free())
            .collect();
        slots.sort_unstable_by_key(|&slot| self.keys[slot].order());
        if self.tie == Tie::MostRecent {
            slots.reverse();
        }
        slots
    }
}

impl<L: Store> Group<L> for SmallTables<L> {
    #[inline(always)]
    fn is_large(&self) -> bool {
        self.keys.len() >= LARGE
    }

    #[inline(always)]
    fn expect(&self, table: usize) {
        if let Some(position) = self.position(table) {
            crate::cpu::prefetch(&self.tags, position * self.rows);
        }
    }

    #[inline(always)]
    fn seek(&self, table: usize, hash: u64) {
        if let Some(position) = self.position(table) {
            let first = self.first_slot(position);
            let slot = match self.with_tag(position, hash) {
                0 => first,
                found => first + found.trailing_zeros() as usize,
            };
            crate::cpu::prefetch(&self.keys, slot);
            self.labels.expect(slot);
        }
    }

    #[inline(always)]
    fn update(&mut self, table: usize, hash: u64, label: L::Ref<'_>, weight: u64) {
        debug_assert!(weight >= 1);
        let position = match self.position(table) {
            Some(position) => position,
            None => self.take_position(table),
        };
        if self.updates[position] == LAST_UPDATE {
            self.renumber_updates(position);
        }
        self.updates[position] += 1;
        let slot = match self.find(position, hash, label) {
            Some(slot) => slot,
            None => {
                let slot = self.victim(position, self.capacities.of(table));
                self.tags[slot / ROW][slot % ROW] = tag(hash, 0);
                self.labels.set(slot, label);
                slot
            }
        };
        let count = self.keys[slot].count() + weight;
        if count <= COUNT_MASK && self.high.is_empty() {
            self.set_key(position, slot, count);
        } else {
            self.raise_high(position, slot, count);
        }
    }

    fn restore(&mut self, table: usize, label: L::Ref<'_>, count: u64) -> bool {
        let hash = L::hash(label, &self.hash_key);
        if let Some(position) = self.position(table) {
            let full = self.by_last_occurrence(position).len() == self.capacities.of(table);
            if full || self.find(position, hash, label).is_some() {
                return false;
            }
        }
        self.update(table, hash, label, count);
        true
    }

    fn slots_in_saved_order(&self, table: usize) -> Vec<usize> {
        let position = self.position(table);
        position.map_or(Vec::new(), |position| self.by_last_occurrence(position))
    }

    fn label(&self, slot: usize) -> L::Ref<'_> {
        self.labels.get(slot)
    }

    fn count(&self, slot: usize) -> u64 {
        let high = self.high.get(slot).copied().unwrap_or(0);
        u64::from(high) << COUNT_BITS | self.keys[slot].count()
    }

    fn minimum(&self, table: usize) -> u64 {
        let slots = self.slots_in_saved_order(table);
        if slots.len() < self.capacities.of(table) {
            return 0;
        }
        let counts = slots.into_iter().map(|slot| self.count(slot));
        counts.min().unwrap_or(0)
    }

    fn heap_bytes(&self) -> usize {
        self.labels.heap_bytes()
            + self.keys.capacity() * size_of::<Key>()
            + self.tags.capacity() * size_of::<Row>()
            + (self.positions.capacity() + self.updates.capacity() + self.high.capacity()) * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::{Integer, Integers};

    fn tables(tie: Tie) -> SmallTables<Integers> {
        let capacities = Capacities {
            tables: 3,
            counters: 10,
            larger: 1,
        };
        SmallTables::new(capacities, tie, HashKey::new(7))
    }

    fn update(tables: &mut SmallTables<Integers>, table: usize, label: u64, weight: u64) {
        let label = Integer::from(label);
        tables.update(
            table,
            Integers::hash(label, &HashKey::new(7)),
            label,
            weight,
        );
    }

    fn counters(tables: &SmallTables<Integers>, table: usize) -> Vec<(u64, u64)> {
        let slots = tables.slots_in_saved_order(table).into_iter();
        slots
            .map(|slot| (tables.label(slot).bits, tables.count(slot)))
            .collect()
    }

    #[test]
    fn numbering_the_updates_anew_changes_nothing() {
        for tie in [Tie::LeastRecent, Tie::MostRecent] {
            for start in 0..40 {
                let (mut late, mut early) = (tables(tie), tables(tie));
                update(&mut late, 0, 0, 1);
                update(&mut early, 0, 0, 1);
                late.updates[0] = LAST_UPDATE - start;
                for step in 0u64..300 {
                    let label = (step * step + u64::from(start)) % 23;
                    update(&mut late, 0, label, 1 + step % 3);
                    update(&mut early, 0, label, 1 + step % 3);
                    assert_eq!(counters(&late, 0), counters(&early, 0));
                }
                assert!(late.updates[0] < 1000);
            }
        }
    }

    #[test]
    fn a_count_without_lower_bits_is_no_free_slot() {
        for tie in [Tie::LeastRecent, Tie::MostRecent] {
            for start in 0..3 {
                let mut tables = tables(tie);
                update(&mut tables, 0, 7, 1);
                tables.updates[0] = LAST_UPDATE - start;
                update(&mut tables, 0, 8, 1 << COUNT_BITS);
                update(&mut tables, 0, 9, 3 << COUNT_BITS);
                let expected = [(7, 1), (8, 1 << COUNT_BITS), (9, 3 << COUNT_BITS)];
                assert_eq!(counters(&tables, 0), expected);
            }
        }
    }

    #[test]
    fn tables_without_labels_take_no_slots() {
        let mut tables = tables(Tie::LeastRecent);
        assert!(tables.keys.is_empty());
        update(&mut tables, 2, 5, 1);
        assert_eq!(tables.keys.len(), 16);
        assert_eq!(
            (counters(&tables, 0), counters(&tables, 2)),
            (vec![], vec![(5, 1)])
        );
    }
}
