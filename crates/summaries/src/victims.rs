//! Which label to evict: the one with the minimum count, ties broken by last occurrence.
//!
//! Counts only grow, so the victims are a monotone priority queue, and a radix heap serves: bucket `b >= 1` holds the
//! slots whose count differs from the minimum first at bit `b - 1`, bucket 0 the slots at the minimum. Slots are not
//! moved when their count grows; they are looked at again when their bucket is.
//!
//! Every slot is in exactly one bucket. Cost: when a bucket is opened, each of its slots moves down, or up because its
//! count grew. A count growing from c - 1 to c can lift its slot by at most one more than the number of trailing zeros
//! of c, which sums to less than 2 n + log n over n unit updates of a slot: amortised O(1) per unit update, also where
//! every item is new and on any adversarial stream. A weighted update costs O(log weight) at the most, without a loop
//! over the weight. Bucket 0 is sorted by last occurrence when it is filled; most of it arrives in that order.

use crate::table::Cell;

/// Which of the labels at the minimum count is evicted. Only these two have a privacy proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// The label whose last occurrence is the oldest.
    LeastRecent,
    /// The label whose last occurrence is the newest (the paper's rule).
    MostRecent,
}

/// The slots of a full table, by count.
pub(crate) struct Victims {
    tie: Tie,
    /// The count of the slots in `at_minimum`; every count is at least this.
    minimum: u64,
    /// Slots that had the minimum count when they were sorted, the next victim last.
    at_minimum: Vec<u32>,
    /// `above[b - 1]` is bucket b.
    above: Vec<Vec<u32>>,
}

/// The bucket of a count: 0 at the minimum, else one more than the highest bit in which they differ.
fn bucket(count: u64, minimum: u64) -> usize {
    (u64::BITS - (count ^ minimum).leading_zeros()) as usize
}

impl Victims {
    /// A queue of all slots of a full table.
    pub(crate) fn new(tie: Tie, cells: &[Cell]) -> Self {
        let mut victims = Self {
            tie,
            minimum: 0,
            at_minimum: Vec::new(),
            above: Vec::new(),
        };
        for (slot, cell) in cells.iter().enumerate() {
            victims.place(slot as u32, cell.count);
        }
        victims
    }

    /// Put a slot that is in no bucket where its count, which is above the minimum, belongs.
    #[inline]
    pub(crate) fn place(&mut self, slot: u32, count: u64) {
        let above = bucket(count, self.minimum) - 1;
        if above >= self.above.len() {
            self.above.resize_with(above + 1, Vec::new);
        }
        self.above[above].push(slot);
    }

    /// Take out the slot to evict. The caller raises its count and [`place`](Self::place)s it again.
    #[inline]
    pub(crate) fn pop(&mut self, cells: &[Cell]) -> u32 {
        loop {
            while let Some(slot) = self.at_minimum.pop() {
                let count = cells[slot as usize].count;
                if count == self.minimum {
                    return slot;
                }
                self.place(slot, count);
            }
            self.refill(cells);
        }
    }

    /// Raise the minimum to the smallest count and gather the slots that have it.
    fn refill(&mut self, cells: &[Cell]) {
        for opened in 0..self.above.len() {
            let mut slots = std::mem::take(&mut self.above[opened]);
            let mut lowest = u64::MAX;
            slots.retain(|&slot| {
                let count = cells[slot as usize].count;
                let stays = bucket(count, self.minimum) == opened + 1;
                if stays {
                    lowest = lowest.min(count);
                } else {
                    self.place(slot, count); // its count has grown out of this bucket
                }
                stays
            });
            if slots.is_empty() {
                self.above[opened] = slots;
                continue;
            }
            self.minimum = lowest;
            for slot in slots.drain(..) {
                let count = cells[slot as usize].count;
                if count == lowest {
                    self.at_minimum.push(slot);
                } else {
                    self.place(slot, count);
                }
            }
            self.above[opened] = slots; // keeps its allocation
            let last_seen = |&slot: &u32| cells[slot as usize].last_seen;
            match self.tie {
                Tie::LeastRecent => self
                    .at_minimum
                    .sort_by_key(|slot| std::cmp::Reverse(last_seen(slot))),
                Tie::MostRecent => self.at_minimum.sort_by_key(last_seen),
            }
            return;
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let slots =
            self.above.iter().map(Vec::capacity).sum::<usize>() + self.at_minimum.capacity();
        slots * 4 + self.above.capacity() * size_of::<Vec<u32>>()
    }
}
