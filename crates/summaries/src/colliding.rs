//! For tests: labels that collide.

use crate::label::{HashKey, Integer, Integers, Store};

/// Integers that all have one hash, or one of two.
#[derive(Default)]
pub(crate) struct Colliding(Integers);

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
