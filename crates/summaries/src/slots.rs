//! Where a table's labels stand, and how they are found.
//!
//! Labels stand in buckets of eight slots, each a row of tags (`tags.rs`) that are compared at once. A label has two
//! buckets, and goes into the one with more room; so both are looked at, without a branch. Where both are full it is
//! displaced into one further on in the sequence of buckets that its hash leads to; its first bucket knows that there
//! is such a label.
//!
//! What a table knows of a label besides, it keeps in arrays of its own, by slot.

use crate::label::{HashKey, Store};
use crate::tags::{self, ROW, Row, with_tag};

/// The count of a slot without a label, in the arrays of the tables.
pub(crate) const FREE: u64 = u64::MAX;
/// The fraction of the slots that hold labels when the table is full.
const LOAD: (usize, usize) = (3, 4);
/// The odd factor that leads from a label's bucket to the next one in its sequence.
const NEXT: u64 = 0xD6E8_FEB8_6659_FD93;
/// Buckets of a sequence that are found by hash; those after them follow each other.
const HASHED: u32 = 64;
/// Buckets of a table with its first label.
const FIRST_BUCKETS: usize = 2;
/// The bit of a tag whose label is in neither of its first two buckets.
const DISPLACED: u16 = 1;

/// The slots of a table. They are there once a label is, and doubled as more come, up to those that the capacity needs.
pub(crate) struct Slots<L> {
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
}

/// Labels that have gone to other slots, as there are more of these now.
pub(crate) struct Moves {
    slots: usize,
    /// Slots before and after.
    moves: Vec<(u32, u32)>,
}

impl Moves {
    /// What stood beside the labels, beside them again; `free` where no label is.
    pub(crate) fn carry<T: Copy>(&self, beside: &[T], free: T) -> Vec<T> {
        let mut moved = vec![free; self.slots];
        for &(from, to) in &self.moves {
            moved[to as usize] = beside[from as usize];
        }
        moved
    }

    /// Where slots are now.
    pub(crate) fn new_slots(&self, before: &[u32]) -> Vec<u32> {
        let mut after = vec![0; self.slots];
        for &(from, to) in &self.moves {
            after[from as usize] = to;
        }
        before.iter().map(|&slot| after[slot as usize]).collect()
    }
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

impl<L: Store> Slots<L> {
    pub(crate) fn new(capacity: usize, key: HashKey) -> Self {
        Self {
            capacity,
            key,
            tracked: 0,
            tags: Vec::new(),
            displaced: Vec::new(),
            furthest: 0,
            labels: L::default(),
        }
    }

    pub(crate) fn hash(&self, label: L::Ref<'_>) -> u64 {
        L::hash(label, &self.key)
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether there are as many labels as may be.
    #[inline(always)]
    pub(crate) fn full(&self) -> bool {
        self.tracked == self.capacity
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

    /// The slot that holds a label.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64, label: L::Ref<'_>) -> Option<usize> {
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

    /// Put a label that is not tracked into a slot, where they are not [`full`](Self::full). Whoever keeps something
    /// beside the labels is told first if they have moved.
    pub(crate) fn take(
        &mut self,
        hash: u64,
        label: L::Ref<'_>,
        moved: impl FnOnce(&Moves),
    ) -> usize {
        debug_assert!(!self.full());
        if self.tracked == self.tags.len() * ROW * LOAD.0 / LOAD.1 {
            moved(&self.grow());
        }
        self.tracked += 1;
        self.insert(hash, label)
    }

    /// Put a label that is not tracked into a slot, in place of the one in the slot `victim`, which may be another.
    #[inline(always)]
    pub(crate) fn replace(&mut self, victim: usize, hash: u64, label: L::Ref<'_>) -> usize {
        self.remove(victim);
        let slot = self.take_slot(hash);
        self.labels.give_room(victim, slot);
        self.labels.set(slot, label);
        slot
    }

    fn insert(&mut self, hash: u64, label: L::Ref<'_>) -> usize {
        let slot = self.take_slot(hash);
        self.labels.set(slot, label);
        slot
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
        if tag & DISPLACED != 0 {
            self.forget_displaced(slot);
        }
    }

    #[cold]
    #[inline(never)]
    fn forget_displaced(&mut self, slot: usize) {
        let first = self.bucket(self.hash(self.labels.get(slot)));
        self.displaced[first] -= 1;
    }

    /// Double the buckets, up to those that the capacity needs.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> Moves {
        let doubled = (self.tags.len() * 2).max(FIRST_BUCKETS);
        let buckets = doubled.min(buckets_for(self.capacity));
        let mut moves = Vec::with_capacity(self.tracked);
        moves.extend(self.taken().map(|slot| (slot as u32, 0)));
        let labels = std::mem::take(&mut self.labels);
        self.labels.grow(buckets * ROW);
        self.tags = vec![[tags::NONE; ROW]; buckets];
        self.furthest = 0;
        self.displaced = vec![0; buckets];
        for (from, to) in &mut moves {
            let label = labels.get(*from as usize);
            *to = self.insert(L::hash(label, &self.key), label) as u32;
        }
        Moves {
            slots: buckets * ROW,
            moves,
        }
    }

    /// The slots that hold a label.
    pub(crate) fn taken(&self) -> impl Iterator<Item = usize> {
        let tags = self.tags.as_flattened().iter().enumerate();
        tags.filter(|&(_, &tag)| tag != tags::NONE)
            .map(|(slot, _)| slot)
    }

    /// The label in a slot that holds one.
    #[inline]
    pub(crate) fn label(&self, slot: usize) -> L::Ref<'_> {
        self.labels.get(slot)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.labels.heap_bytes()
            + self.tags.capacity() * size_of::<Row>()
            + self.displaced.capacity() * 4
    }

    /// Whether some label stands where its hash alone does not lead any more. With a random key a label does with a
    /// chance below 2^-60: 64 buckets that its hash leads to would all have to be full, of which few are. So saved
    /// labels that do were chosen to collide, and reading more of them would take time that grows with their square.
    pub(crate) fn beyond_hashes(&self) -> bool {
        self.furthest >= HASHED
    }

    #[cfg(test)]
    pub(crate) fn labels(&self) -> &L {
        &self.labels
    }
}
