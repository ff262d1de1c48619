//! Which label to evict: the one with the minimum count, ties broken by last occurrence.
//!
//! While the minimum stays, the labels at it only get fewer: one that occurs leaves them, and none joins. So a queue of
//! them, sorted once by last occurrence, yields the victims; a slot whose count has grown is passed over. When it runs
//! empty the minimum rises, and the labels at the new one are gathered: those that came to it while the last queue ran
//! were logged in order, and a scan of the counts finds the older ones, which are sorted.
//!
//! A scan takes time in proportion to the table. It is paid for by the updates since the last one; where those were
//! too few (one free slot among heavy counters, counts far apart), a [`RadixHeap`] takes over for as many evictions as
//! the table has slots. So unit updates cost amortised O(1) on every stream, besides sorting.

use crate::radix_heap::RadixHeap;
use crate::slots::FREE;
use crate::tags::ROW;

/// Which of the labels at the minimum count is evicted. Only these two have a privacy proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// The label whose last occurrence is the oldest.
    LeastRecent,
    /// The label whose last occurrence is the newest (the paper's rule).
    MostRecent,
}

/// Slots scanned per update that pays for the scan.
const SCAN_SLOTS_PER_UPDATE: usize = 16;

/// The queue of victims of a full table.
pub(crate) struct Victims {
    tie: Tie,
    /// The count of the slots in `queue`; every count is at least this.
    minimum: u64,
    /// The count that is logged: one above the minimum, or 0 while nothing is.
    logged: u64,
    /// The slots that had the minimum count when the queue was filled, by last occurrence, oldest first.
    queue: Vec<u32>,
    /// Where the oldest one that is still in the queue stands.
    head: usize,
    /// The slots whose count has become `logged` since the queue was filled, in that order.
    log: Vec<u32>,
    /// The number of the update at which the queue was filled.
    filled_at: u32,
    /// In place of the queue, for that many more evictions.
    heap: Option<(RadixHeap, usize)>,
}

impl Victims {
    /// No victims are known before the table is full.
    pub(crate) fn new(tie: Tie) -> Self {
        Self {
            tie,
            minimum: 0,
            logged: 0,
            queue: Vec::new(),
            head: 0,
            log: Vec::new(),
            filled_at: 0,
            heap: None,
        }
    }

    /// Learn that a tracked label's count has grown to `count`.
    #[inline(always)]
    pub(crate) fn grown(&mut self, slot: usize, count: u64) {
        if count == self.logged {
            self.log.push(slot as u32);
        }
    }

    /// Learn that a label has entered a full table with `count`.
    #[inline(always)]
    pub(crate) fn entered(&mut self, slot: usize, count: u64) {
        match &mut self.heap {
            None => self.grown(slot, count),
            Some((heap, _)) => heap.place(slot as u32, count),
        }
    }

    /// Take out the slot to evict, in update number `now`.
    #[inline(always)]
    pub(crate) fn pop(&mut self, counts: &[u64], last_seen: &[u32], now: u32) -> usize {
        if self.heap.is_some()
            && let Some(slot) = self.pop_heap(counts, last_seen, now)
        {
            return slot;
        }
        loop {
            let next = match self.tie {
                Tie::LeastRecent => {
                    let next = self.queue.get(self.head).copied();
                    self.head += 1;
                    next
                }
                Tie::MostRecent => self.queue.pop(),
            };
            match next {
                Some(slot) if counts[slot as usize] == self.minimum => return slot as usize,
                Some(_) => {} // it has occurred since
                None => {
                    self.fill(counts, last_seen, now);
                    if let Some(slot) = self.pop_heap(counts, last_seen, now) {
                        return slot;
                    }
                }
            }
        }
    }

    /// The slot to evict from the heap, if there is one; back to the queue when it has served its time.
    #[cold]
    #[inline(never)]
    fn pop_heap(&mut self, counts: &[u64], last_seen: &[u32], now: u32) -> Option<usize> {
        let (heap, left) = self.heap.as_mut()?;
        let tie = self.tie;
        let slot = heap.pop(counts, |at_minimum| {
            let seen = |&slot: &u32| last_seen[slot as usize];
            match tie {
                Tie::LeastRecent => at_minimum.sort_by_key(|slot| std::cmp::Reverse(seen(slot))),
                Tie::MostRecent => at_minimum.sort_by_key(seen),
            }
        });
        *left -= 1;
        if *left == 0
            && let Some((heap, _)) = self.heap.take()
        {
            let (minimum, mut at_minimum) = heap.into_parts();
            if self.tie == Tie::LeastRecent {
                at_minimum.reverse(); // the queue has the oldest first
            }
            self.minimum = minimum;
            self.queue.append(&mut at_minimum);
            self.start(now);
        }
        Some(slot as usize)
    }

    /// Gather the slots at the next minimum.
    #[inline(never)]
    fn fill(&mut self, counts: &[u64], last_seen: &[u32], now: u32) {
        let paid = (now - self.filled_at) as usize * SCAN_SLOTS_PER_UPDATE;
        if self.logged == 0 {
            // a slot is logged once while the minimum stays, so neither ever holds more than there are labels
            let labels = counts.iter().filter(|&&count| count != FREE).count();
            self.queue.reserve_exact(labels);
            self.log.reserve_exact(labels);
        } else if paid < counts.len() {
            self.heap = Some((RadixHeap::new(counts), counts.len()));
            self.logged = 0;
            self.log.clear();
            self.queue.clear();
            return;
        }
        let mut older = gather(counts, self.logged, last_seen, self.filled_at);
        if older.is_empty()
            && !self
                .log
                .iter()
                .any(|&slot| counts[slot as usize] == self.logged)
        {
            self.logged = counts.iter().copied().min().unwrap_or(FREE);
            self.log.clear();
            older = gather(counts, self.logged, last_seen, u32::MAX);
        }
        older.sort_unstable();
        self.minimum = self.logged;
        std::mem::swap(&mut self.queue, &mut self.log);
        if !older.is_empty() {
            self.queue
                .splice(0..0, older.into_iter().map(|word| word as u32));
        }
        self.start(now);
    }

    fn start(&mut self, now: u32) {
        self.head = 0;
        self.logged = self.minimum + 1;
        self.log.clear();
        self.filled_at = now;
    }

    /// The updates have been renumbered: `before` of the slots were last updated before the queue was filled.
    pub(crate) fn renumbered(&mut self, before: u32) {
        self.filled_at = before + 1;
    }

    pub(crate) fn filled_at(&self) -> u32 {
        self.filled_at
    }

    #[cfg(test)]
    pub(crate) fn is_heap(&self) -> bool {
        self.heap.is_some()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let heap = self.heap.as_ref().map_or(0, |(heap, _)| heap.heap_bytes());
        (self.queue.capacity() + self.log.capacity()) * 4 + heap
    }
}

/// The slots with a count that were last updated before `before`, each as the word `last_seen << 32 | slot`, so that
/// sorting needs no lookup.
fn gather(counts: &[u64], count: u64, last_seen: &[u32], before: u32) -> Vec<u64> {
    crate::cpu::best(
        #[inline(always)]
        || gather_here(counts, count, last_seen, before),
    )
}

#[inline(always)]
fn gather_here(counts: &[u64], count: u64, last_seen: &[u32], before: u32) -> Vec<u64> {
    const HITS: usize = 32 * ROW; // a block of rows, all of which may be hits
    debug_assert!(counts.len().is_multiple_of(ROW) && counts.len() == last_seen.len());
    let mut gathered = Vec::new();
    let mut hits = [0; HITS];
    let blocks = counts.chunks(HITS).zip(last_seen.chunks(HITS));
    for (block, (counts, last_seen)) in blocks.enumerate() {
        let mut number = 0;
        let counts = counts.as_chunks::<ROW>().0.iter();
        let rows = counts.zip(last_seen.as_chunks::<ROW>().0);
        for (row, (counts, seen)) in rows.enumerate() {
            let there: [bool; ROW] =
                std::array::from_fn(|i| (counts[i] == count) & (seen[i] < before));
            if !there.iter().fold(false, |any, &is| any | is) {
                continue;
            }
            // each is written, and kept by going on behind it: hits follow no pattern that a branch could learn;
            // there are no more hits than slots so far, so that % and min change nothing but the checks of bounds
            for offset in 0..ROW {
                let slot = block * HITS + row * ROW + offset;
                hits[number % HITS] = u64::from(seen[offset]) << 32 | slot as u64;
                number += usize::from(there[offset]);
            }
        }
        gathered.extend_from_slice(&hits[..number.min(HITS)]);
    }
    gathered
}
