//! What the tests of the tables share: labels that collide, and streams.

use crate::label::{HashKey, Integer, Integers, Label, Store};

/// Integers that all have one hash, or one of two.
#[derive(Default)]
pub(crate) struct Colliding(Integers);

impl Store for Colliding {
    type Ref<'a> = Integer;

    fn grow(&mut self, slots: usize) {
        self.0.grow(slots);
    }
    fn as_label<'a>(label: Integer) -> Label<'a>
    where
        Self: 'a,
    {
        Label::Integer(label)
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

/// A stream of labels and weights, the same for the same seed.
pub(crate) fn stream(seed: u64, labels: u64, length: usize) -> impl Iterator<Item = (u64, u64)> {
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
