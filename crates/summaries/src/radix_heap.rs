//! A monotone priority queue of slots by count, for streams whose minimum rises faster than a scan could follow.
//!
//! Counts only grow, so a radix heap serves: bucket `b >= 1` holds the slots whose count differs from the minimum first
//! at bit `b - 1`, bucket 0 the slots at the minimum. Slots are not moved when their count grows; they are looked at
//! again when their bucket is.
//!
//! Cost: when a bucket is opened, each of its slots moves down, or up because its count grew. A count growing from c -
//! 1 to c can lift its slot by at most one more than the number of trailing zeros of c, which sums to less than 2 n +
//! log n over n unit updates of a slot: amortised O(1). A weighted update costs O(log weight), without a loop over the
//! weight.

use crate::slots::FREE;

/// The slots of a full table, by count. Each is in exactly one bucket.
pub(crate) struct RadixHeap {
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

impl RadixHeap {
    /// A heap of all slots that hold a label; their counts are above 0, and free ones have the count [`FREE`].
    pub(crate) fn new(counts: &[u64]) -> Self {
        let mut heap = Self {
            minimum: 0,
            at_minimum: Vec::new(),
            above: Vec::new(),
        };
        for (slot, &count) in counts.iter().enumerate() {
            if count != FREE {
                heap.place(slot as u32, count);
            }
        }
        heap
    }

    /// The count of the last victim, and the slots that are still to be evicted at it, the next one last.
    pub(crate) fn into_parts(self) -> (u64, Vec<u32>) {
        (self.minimum, self.at_minimum)
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

    /// Take out the slot to evict: of those at the minimum the one that `next_last`, which sorts slots, puts at the
    /// end. The caller raises its count and [`place`](Self::place)s it again.
    #[inline]
    pub(crate) fn pop(&mut self, counts: &[u64], next_last: impl Fn(&mut [u32])) -> u32 {
        loop {
            while let Some(slot) = self.at_minimum.pop() {
                let count = counts[slot as usize];
                if count == self.minimum {
                    return slot;
                }
                self.place(slot, count);
            }
            self.refill(counts, &next_last);
        }
    }

    /// Raise the minimum to the smallest count and gather the slots that have it.
    #[inline] // into `pop`, in whichever unit the compiler puts that: 6 % of a weighted stream
    fn refill(&mut self, counts: &[u64], next_last: &impl Fn(&mut [u32])) {
        for opened in 0..self.above.len() {
            let mut slots = std::mem::take(&mut self.above[opened]);
            let mut lowest = u64::MAX;
            slots.retain(|&slot| {
                let count = counts[slot as usize];
                let stays = bucket(count, self.minimum) == opened + 1;
                if stays {
                    lowest = lowest.min(count);
                } else {
                    self.place(slot, count); // its count has grown out of this bucket
                }
                stays
            });
            if slots.is_empty() {
                continue;
            }
            self.minimum = lowest;
            for slot in slots {
                let count = counts[slot as usize];
                if count == lowest {
                    self.at_minimum.push(slot);
                } else {
                    self.place(slot, count);
                }
            }
            next_last(&mut self.at_minimum);
            return;
        }
    }

    /// Undo a [`pop`](Self::pop).
    #[inline]
    pub(crate) fn put_back(&mut self, slot: u32) {
        self.at_minimum.push(slot);
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let slots =
            self.above.iter().map(Vec::capacity).sum::<usize>() + self.at_minimum.capacity();
        slots * 4 + self.above.capacity() * size_of::<Vec<u32>>()
    }
}
